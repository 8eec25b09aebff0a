"""Calls → IR: device functions, builtins, builtins that expand to formulas, atomics, barriers and `len`.

In: a LibCST call in a scope. Out: an expression or a statement. A call that kernels cannot make is reported with a
suggestion, and replaced by a constant.
"""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from py2cu import builtins, ir
from py2cu.builtins import Builtin, Rule
from py2cu.builtins.atomics import ATOMICS, OPERATIONS
from py2cu.builtins.launch import POSITIONS
from py2cu.builtins.memory import CACHE_HINTS, STCS
from py2cu.builtins.methods import way_to_call
from py2cu.builtins.sync import BLOCK_BARRIER, GRID_BARRIER
from py2cu.frontend.bodies.formulas import expand_call
from py2cu.frontend.bodies.functions.calls import FunctionCallReader
from py2cu.frontend.bodies.methods import read_len, read_method, read_receiver
from py2cu.frontend.bodies.parts import cache_hint, hinted_places, is_list_part, read_part
from py2cu.frontend.bodies.scope import Scope
from py2cu.frontend.bodies.sequences.folds import read_fold
from py2cu.frontend.bodies.sequences.reductions import RESULTS, ReductionReader
from py2cu.frontend.bodies.sequences.to_tuple import TUPLE, read_tuple
from py2cu.frontend.bodies.sequences.unrolling import is_unroll
from py2cu.frontend.bodies.tables import Read, read_indices
from py2cu.frontend.bodies.tuples.forms import numbers_of
from py2cu.frontend.bodies.tuples.values import open_tuple
from py2cu.frontend.declarations.array_declarations import MAKERS, example
from py2cu.frontend.hints.calls import nearest_function, rewrite_call
from py2cu.frontend.names.constants import as_float
from py2cu.frontend.names.syntax import named_in, nodes_in, source_text
from py2cu.frontend.numba.launch import read_position
from py2cu.ir.visit import walk


@dataclass(frozen=True, slots=True)
class CallReader:
    """Reads calls in one kernel's scope, and their arguments by `read`."""

    scope: Scope
    read: Read

    @property
    def functions(self) -> FunctionCallReader:
        return FunctionCallReader(self.scope, self.read)

    def read_call(self, node: cst.Call) -> ir.Expr:
        span = self.scope.span_of(node)
        qualified = self.scope.environment.qualify(node.func)
        if qualified == "builtins.len" and len(node.args) == 1:
            return read_len(node, self.scope, self.read)
        if qualified in POSITIONS and not self.scope.is_local(node.func):
            if (place := read_position(node, POSITIONS[qualified], self.scope.environment, span)) is None:
                what = f"`{source_text(node.func)}` takes the number of axes: 1, 2 or 3"
                self.scope.error("P105", what, node, f"`{source_text(node.func)}(1)`")
            return place or ir.Constant(0, span)
        if self.acts(node):
            return self._read_acting(node) or ir.Constant(0, span)
        if hint := cache_hint(node, self.scope):
            access = self.read_hinted(node)
            if isinstance(access, ir.Store):
                self.scope.error("P103", f"`{hint}` has no value", node, f"write `{source_text(node)}` on its own line")
            return access if isinstance(access, ir.Load) else ir.Constant(0, span)
        if qualified == TUPLE and not self.scope.is_local(node.func):
            return read_tuple(node, self.scope, self.read)
        if (fold := builtins.find_fold(self.meaning(node.func) or "")) is not None:
            return read_fold(node, fold, self.scope, self.read)
        if (method := read_method(node, self.scope, self.read)) is not None:
            return method
        if (receiver := read_receiver(node, self.scope, self.read)) is not None:
            return self._read_builtin(node, *receiver)
        if qualified is None or self.scope.is_local(node.func):
            self._refuse_call(node, qualified)
            return ir.Constant(0, span)
        if qualified == "builtins.float" and (text := self._string(node)) is not None:
            return self._read_float(node, text)
        if qualified == "builtins.ord" and isinstance(code := self.scope.environment.constant(node), int):
            return ir.Constant(code, span)
        if qualified in RESULTS and (reduced := ReductionReader(self.scope, self.read).read_reduction(node, qualified)):
            return reduced
        return self._read_builtin(node, qualified)

    def _read_builtin(self, node: cst.Call, qualified: str, *receiver: ir.Expr) -> ir.Expr:
        """A call of a builtin; `receiver` is its first argument where it is called as a method."""
        if (expanded := self._read_formula(node, qualified, receiver)) is not None:
            return expanded
        span, row = self.scope.span_of(node), builtins.lookup(qualified)
        if row is None and receiver and isinstance(node.func, cst.Attribute):
            what, hint = "does not take these arguments", way_to_call(qualified, source_text(node.func.value))
            self.scope.error("P105", f"`{source_text(node.func)}` {what}", node, f"as in `{hint}`")
            return ir.Constant(0, span)
        if row is None or row.rule is Rule.SYNC:
            self._refuse_call(node, qualified)
            return ir.Constant(0, span)
        low, high = (count - len(receiver) for count in row.arity)
        args = _placed(node, row.parameters[len(receiver) :])
        if args is None:
            self.scope.error("P105", "builtins take plain arguments in a kernel", node, "pass each by position")
        elif not low <= len(node.args) <= high:
            expected = str(low or "no") if low == high else f"{low} to {high}"
            what = f"`{source_text(node.func)}` takes {expected} argument{'s' * (low != 1)}, not {len(node.args)}"
            self.scope.error("P105", what, node, f"pass {expected if low or high else 'none'}")
        return ir.Call(row.key, (*receiver, *(self.read(arg.value) for arg in args or node.args)), span)

    def _read_formula(self, node: cst.Call, qualified: str, receiver: tuple[ir.Expr, ...]) -> ir.Expr | None:
        """A call of a builtin that expands to a formula; None for any other."""
        places = [arg for arg in node.args if arg.keyword is None and not arg.star]
        by_name = {arg.keyword.value: arg for arg in node.args if arg.keyword is not None}
        constants = {name: self.scope.environment.constant(arg.value) for name, arg in by_name.items()}
        options = {name: text for name, text in constants.items() if isinstance(text, str)}
        named = {name: arg for name, arg in by_name.items() if name not in options}
        formula = builtins.find_formula(qualified, len(receiver) + len(places), named, options)
        if formula is None or len(places) + len(by_name) != len(node.args):
            return None
        arguments = dict(zip(formula.parameters[len(receiver) :], places, strict=False)) | named
        values = dict(zip(formula.parameters, receiver, strict=False))
        values |= {name: self.read(arg.value) for name, arg in arguments.items()}
        values = {
            name: self.scope.save(each) if _is_collective(each) and not formula.uses_once(name) else each
            for name, each in values.items()
        }
        return expand_call(formula, values, self.scope.span_of(node))

    def needs_statements(self, node: cst.BaseExpression) -> bool:
        """True where `:=` assigns, and where `sum`, `any` or their like takes one argument, which a loop reduces."""
        calls = (each for each in nodes_in(node) if isinstance(each, cst.Call) and len(each.args) == 1)
        return bool(self.scope.named and named_in(node)) or any(self.meaning(call.func) in RESULTS for call in calls)

    def is_atomic(self, node: cst.Call) -> bool:
        """True for a call of `atomic.add` or its kin."""
        return self._atomic_operation(node) is not None

    def _atomic_operation(self, node: cst.Call) -> str | None:
        return OPERATIONS.get(self.meaning(node.func) or "")

    def read_atomic(self, node: cst.Call) -> ir.Atomic | None:
        """An atomic operation on an array element; None, after a diagnostic, if its arguments do not fit."""
        op = self._atomic_operation(node)
        assert op is not None
        count = 2 + ATOMICS[op].values
        if len(node.args) != count or any(arg.keyword or arg.star for arg in node.args):
            values = ", ".join(("compare", "value")[-ATOMICS[op].values :])
            what = f"`atomic.{op}` takes an array, an index and {'two values' if count == 4 else 'a value'}"
            first = source_text(node.args[0].value) if node.args else "x"
            self.scope.error("P105", what, node, f"`atomic.{op}({first}, i, {values})`")
            return None
        place = self._read_place(node, f"atomic.{op}")
        values_ = (arg.value for arg in node.args[2:])
        return place and ir.Atomic(op, *place, tuple(map(self.read, values_)), self.scope.span_of(node))

    def _read_place(self, node: cst.Call, function: str) -> tuple[str, tuple[ir.Expr, ...]] | None:
        """The element of an array that the first two arguments of a call of `function` select; for CUDA's cache hints
        also a row of a view. None after a diagnostic.
        """
        array, index, *_ = (arg.value for arg in node.args)
        part = read_part(array, self.scope, self.read)
        name = array.value if isinstance(array, cst.Name) and array.value in self.scope.arrays else ""
        if (part is None and not name) or is_list_part(array, self.scope):
            text = source_text(array.value) if isinstance(array, cst.Subscript) else "x"
            self.scope.error("P105", "the first argument is an array", array, f"`{function}({text}, i, …)`")
            return None
        items = hinted_places(index)
        rank = len(self.scope.arrays[name].dims) if part is None else part.rank
        pair = [] if isinstance(index, cst.Tuple) else self._items(index)
        is_row = function in CACHE_HINTS and self.scope.is_row(name, len(pair or items))
        if len(pair or items) != rank and not is_row:
            what = f"`{source_text(array)}` takes {rank} {'index' if rank == 1 else 'indices'}, not {len(items)}"
            places = ", ".join([*map(source_text, items), *"klmnopqr"][:rank])
            self.scope.error("P401", what, index, f"write `{places}`" if rank == 1 else f"write `({places})`")
            return None
        # rule: hinted-open-row
        if is_row and function != STCS and self.scope.refuses_open_row(name, node, f"`for v in {source_text(node)}:`"):
            return None
        indices = tuple(pair) or read_indices(items, node, self.scope, self.read)
        return (name, indices) if part is None else (part.array, part.indices(indices))

    def read_hinted(self, node: cst.Call) -> ir.Load | ir.Store | None:
        """An access by `ldg` or its kin; None, after a diagnostic, if its arguments do not fit."""
        name = cache_hint(node, self.scope)
        parameters = builtins.ROWS[f"py2cu.{name}"].parameters
        if len(node.args) != len(parameters) or any(arg.keyword or arg.star for arg in node.args):
            takes = f"an array and an index{', and a value' if len(parameters) > 2 else ''}, by position"
            first = source_text(node.args[0].value) if node.args else "x"
            call = f"`{name}({', '.join((first, 'i', *parameters[2:]))})`"
            self.scope.error("P105", f"`{name}` takes {takes}", node, call)
            return None
        place, span = self._read_place(node, name), self.scope.span_of(node)
        if place is None:
            return None
        if len(parameters) == 2:
            return ir.Load(*place, span, hint=name)
        array, indices = place
        if any(self.acts(each) for each in nodes_in(node) if each is not node):  # Python computes the indices first
            # rule: hinted-order
            indices = tuple(at if isinstance(at, ir.Constant | ir.Name) else self.scope.save(at) for at in indices)
        return ir.Store(array, indices, self.read(node.args[2].value), span, hint=name)

    def acts(self, node: cst.CSTNode) -> bool:
        """True for a call of a device function, and for an atomic operation."""
        return isinstance(node, cst.Call) and (self.functions.is_invoke(node) or self.is_atomic(node))

    def _read_acting(self, node: cst.Call) -> ir.DeviceCall | ir.Atomic | None:
        return self.functions.read_invoke(node) if self.functions.is_invoke(node) else self.read_atomic(node)

    def _items(self, index: cst.BaseExpression) -> list[ir.Expr]:
        """The numbers of a tuple that is an index under one name; none of anything else."""
        if self.scope.form_of(index) is None:
            return []
        return [*numbers_of(open_tuple(self.read(index), index, self.scope))]

    def read_acting(self, node: cst.Call) -> ir.Block | None:
        """Read a call with side effects that stands on a line of its own.

        It calls a device function, an atomic operation, a store with a cache hint, a barrier or a fence. The block is
        empty after a diagnostic; the result is None for any other call.
        """
        span = self.scope.span_of(node)
        if self.acts(node):
            call = self._read_acting(node)
            return () if call is None else (ir.ExprStmt(call, span),)
        if cache_hint(node, self.scope) == STCS:
            store = self.read_hinted(node)
            return (store,) if isinstance(store, ir.Store) else ()
        sync = self.read_sync(node)
        return None if sync is None else (sync,)

    def read_sync(self, node: cst.Call) -> ir.Sync | None:
        """A barrier or a fence; None for any other call."""
        row = self._sync_row(node)
        if row is None:
            return None
        _, most = row.arity
        if len(node.args) > most or any(arg.keyword or arg.star for arg in node.args):
            takes = "no arguments" if most == 0 else "a mask, or nothing"
            self.scope.error("P105", f"`{source_text(node.func)}` takes {takes}", node, f"`{source_text(node.func)}()`")
            return ir.Sync(row.name, (), self.scope.span_of(node))
        return ir.Sync(row.name, tuple(self.read(arg.value) for arg in node.args), self.scope.span_of(node))

    def _sync_row(self, node: cst.Call) -> Builtin | None:
        """The barrier or fence that `node` calls: `syncthreads` also for `syncb.wait()` of a parameter, `syncgrid` for
        Numba's `cuda.cg.this_grid().sync()`.
        """
        match node.func:
            case cst.Attribute(value=cst.Name(value=name), attr=cst.Name(value="wait")) if name in self.scope.barriers:
                return builtins.ROWS[BLOCK_BARRIER]
            case cst.Attribute(value=group, attr=cst.Name(value="sync")) if self.is_grid(group):
                return builtins.ROWS[GRID_BARRIER]
        row = builtins.lookup(self.meaning(node.func) or "")
        return row if row is not None and row.rule is Rule.SYNC else None

    def is_grid(self, node: cst.BaseExpression) -> bool:
        """True for Numba's group of all threads, `cuda.cg.this_grid()`, and for a local that holds it."""
        match node:
            case cst.Name(value=name):
                return name in self.scope.grids
            case cst.Call(func=function, args=[]):
                return self.meaning(function) == "numba.cuda.cg.this_grid"
            case _:
                return False

    def meaning(self, function: cst.BaseExpression) -> str | None:
        """The qualified name of the called function; None if it is a local of the kernel, or unknown."""
        return None if self.scope.is_local(function) else self.scope.environment.qualify(function)

    def _string(self, node: cst.Call) -> str | None:
        """The only argument of a call, if it is a constant string; None otherwise."""
        match node.args:
            case [cst.Arg(value=value, keyword=None, star="")]:
                constant = self.scope.environment.constant(value)
                return constant if isinstance(constant, str) else None
            case _:
                return None

    def _read_float(self, node: cst.Call, text: str) -> ir.Constant:
        """`float("inf")`, in any spelling that Python accepts."""
        value = as_float(text)
        if value is None:
            hint = '`float("inf")`, `float("-inf")`, `float("nan")`, or the digits of a number'
            self.scope.error("P103", f"Python reads no float in {text!r}", node, hint)
        return ir.Constant(0.0 if value is None else value, self.scope.span_of(node))

    def _refuse_call(self, node: cst.Call, qualified: str | None) -> None:
        match node.func:
            case cst.Attribute(value=cst.Name(value=name)) if name in self.scope.broken:
                pass
            case cst.Name(value=name) if self.scope.is_local(node.func):
                what = "an array" if name in self.scope.arrays else "a number"
                hint = f"index it: `{name}[i]`" if name in self.scope.arrays else f"`{name} * (…)` multiplies"
                self.scope.error("P105", f"`{name}` is {what} here, not a function", node.func, hint)
            case cst.Lambda():
                self.scope.error(
                    "P103", "a lambda that has no name is not supported in a kernel", node.func,
                    "name it on a line of its own: `f = lambda v: …`",
                )  # fmt: skip
            case _ if is_unroll(node, self.scope):
                what, hint = "`unroll` is allowed only in the head of a `for` loop", f"`for k in {source_text(node)}:`"
                self.scope.error("P104", what, node, hint)
            case cst.Name(value="range"):
                what, hint = "`range` is allowed only in the head of a `for` loop", f"`for k in {source_text(node)}:`"
                self.scope.error("P104", what, node, hint)
            case cst.Name(value=name) if qualified is None and self.scope.environment.definition(name) is not None:
                self._refuse_definition(node, name)
            case cst.Name() as name if qualified is None:
                self.scope.unknown_name(name)
            case cst.Attribute(value=cst.Name() as name) if self.scope.is_unknown(name):
                self.scope.unknown_name(name)
            case cst.Attribute(value=cst.Name(value=name), attr=cst.Name(value="view")) if name in self.scope.arrays:
                hint = f"`x4 = {source_text(node)}` outside loops and branches, once"
                if self.scope.base_array(name) in self.scope.optional_parameters:
                    hint = f"index the elements of `{name}`, which may be None"
                self.scope.error("P410", "a view in rows must be assigned on a line of its own", node, hint)
            case _ if qualified is not None and (space := MAKERS.get(qualified)) is not None:
                hint = f"`{example(qualified)}` outside loops and branches, once"
                self.scope.error("P408", f"a {space.value} array must be assigned on a line of its own", node, hint)
            case _ if (row := self._sync_row(node)) is not None:
                hint = f"write `{row.name}()` on a line of its own"
                self.scope.error("P103", f"`{row.name}` has no value", node, hint)
            case _ if (way := builtins.way_to_unpack(qualified or "")) is not None:
                what = f"`{source_text(node.func)}` returns two numbers"
                hint = f"unpack them on a line of their own: `{rewrite_call(way, node)}`"
                self.scope.error("P105", what, node, hint)
            case _ if ways := builtins.ways_to_call(qualified or ""):
                hint = f"as in `{rewrite_call(ways[0], node)}`"
                self.scope.error("P105", f"`{source_text(node.func)}` does not take these arguments", node, hint)
            case _:
                name = qualified.removeprefix("builtins.") if qualified else source_text(node.func)
                self.scope.error(
                    "P105", f"`{name}` is not a function that kernels can call", node.func,
                    self._function_hint(node.func, qualified or ""),
                )  # fmt: skip

    def _refuse_definition(self, node: cst.Call, name: str) -> None:
        """Refuse a call of a name around the kernel that is assigned a value, not defined by `def`."""
        match self.scope.environment.definition(name):
            case cst.Lambda(params=params):
                what = f"`{name}` is a lambda that is not named on a line of its own"
                hint = f"write `{name} = lambda {' '.join(source_text(params).split())}: …` on a line of its own"
            case _ if self.scope.table(node.func) is not None:
                what, hint = f"`{name}` is a tuple of constants, not a function", f"look a number up: `{name}[k]`"
            case _ if self.scope.environment.constant(node.func) is not None:
                what, hint = f"`{name}` is a constant, not a function", f"`{name} * (…)` multiplies"
            case _:
                what, hint = f"`{name}` is not a function defined by `def`", f"write `def {name}(…):`"
        self.scope.error("P105", what, node.func, hint)

    def _function_hint(self, node: cst.BaseExpression, qualified: str) -> str:
        """What to write instead of `node`, which kernels cannot call."""
        if isinstance(node, cst.Attribute) and source_text(node.value) in self.scope.barriers:
            return f"a barrier has one method: `{source_text(node.value)}.wait()`"
        refused = builtins.REFUSED.get(qualified) or builtins.REFUSED.get(qualified.rpartition(".")[0])
        return refused or self.scope.functions.missing(node) or nearest_function(qualified)


def _is_collective(value: ir.Expr) -> bool:
    """True for a value that threads compute together, such as a shuffle: all of them have to, and once."""
    rows = (builtins.row_behind(node.function) for node in walk(value) if isinstance(node, ir.Call))
    return any(row is not None and row.effects.together is not None for row in rows)


def _placed(call: cst.Call, parameters: tuple[str, ...]) -> list[cst.Arg] | None:
    """The arguments in the order of the parameters; None if they do not fit."""
    places = [arg for arg in call.args if arg.keyword is None and not arg.star]
    if len(places) == len(call.args):
        return places
    by_name = dict(zip(parameters, places, strict=False))
    by_name |= {arg.keyword.value: arg for arg in call.args if arg.keyword is not None}
    names = parameters[: len(call.args)]
    return [by_name[name] for name in names] if by_name.keys() == {*names} and len(names) == len(call.args) else None
