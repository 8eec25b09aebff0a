"""Assignments to several targets: every value is computed once, before any target changes.

a, b = b, a               a ← b, b ← a                         with `new_b = a` before them
h, w = x.shape            h ← x.shape[0], w ← x.shape[1]
q, r = divmod(f(i), k)    q ← operand // k, r ← operand % k    with `operand = f(i)` before them
a, b = f(x[i])            a ← a_b[0], b ← a_b[1]               with `a_b = f(x[i])` before them
a, b = T                  a ← T[0], b ← T[1]                   of constants from around the kernel
a, b = x2[i]              a ← a_b[0], b ← a_b[1]               with `a_b = x2[i]`, a row of a view, before them
a, b, c = x[i]               a ← x[i, 0], b ← x[i, 1], c ← x[i, 2]  of a row of an array
a = b = x[i]              a ← value, b ← value                 with `value = x[i]` before them
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

import libcst as cst

from py2cu import ir
from py2cu.analysis.effects import Footprint, commute
from py2cu.builtins import find_pair_formula
from py2cu.builtins.launch import POSITIONS
from py2cu.frontend.bodies.expressions import ExpressionReader
from py2cu.frontend.bodies.formulas import expand
from py2cu.frontend.bodies.parts import cache_hint, is_part, is_tensor, read_part
from py2cu.frontend.bodies.scope import Scope
from py2cu.frontend.bodies.sequences.ranges import Range, as_index
from py2cu.frontend.bodies.sequences.reader import SequenceReader
from py2cu.frontend.bodies.sequences.unpacking import Pair, distribute, known_rounds, unpack
from py2cu.frontend.bodies.tables import constant_value, read_table
from py2cu.frontend.bodies.tuples.items import Item, as_item
from py2cu.frontend.bodies.tuples.values import open_tuple
from py2cu.frontend.bodies.views import View, is_fixed
from py2cu.frontend.hints.targets import rewrite_names
from py2cu.frontend.names.syntax import assigned_names, is_starred, nodes_in
from py2cu.ir.visit import is_duplicable, walk
from py2cu.source import Span

_ONLY: Final = "only tuples, rows, `.shape`, `divmod(…)` and generators can be unpacked"


@dataclass(slots=True)
class Unpacker:
    """Reads one assignment."""

    scope: Scope
    expressions: ExpressionReader
    statement: cst.Assign
    following: Sequence[cst.BaseStatement]  # this statement and those behind it in its block
    saved: list[ir.Assign | ir.Assert] = field(default_factory=list)  # statements that run before the assignment
    saved_before: list[int] = field(default_factory=list)  # of each pair, how many of these stand before its value
    results: dict[cst.BaseExpression, ir.Name] = field(default_factory=dict)  # tuples, by their calls or rows

    @property
    def span(self) -> Span:
        return self.scope.span_of(self.statement)

    def read(self) -> list[Pair]:
        """Targets from left to right with their values; none, after a diagnostic, if they do not match."""
        targets: list[cst.BaseExpression] = [target.target for target in self.statement.targets]
        value = self.statement.value
        if is_part(value, self.scope) and len(targets) == 1 and self._takes_part(targets[0]):
            part = self._part(value)
            return [] if part is None else [(targets[0], part)]
        if len(targets) == 1 and isinstance(targets[0], cst.Name) and (numbers := self._range(targets[0].value)):
            self._define_range(targets[0], numbers)
            return []
        if any(isinstance(target, cst.Tuple | cst.List) for target in targets):
            return self._in_order([pair for target in targets for pair in self._unpack(target, value)])
        return self._share(targets, self.expressions.read(value))

    def _range(self, name: str) -> Range | None:
        """The range that the statement keeps in the variable `name`; None for another value.

        Its bounds are evaluated here: those that may change later are saved.
        """

        def keep(bound: ir.Expr, what: str) -> ir.Expr:
            assigned = self.scope.named.union(assigned_names(self.following))
            # rule: range-kept
            return as_index(bound) if is_fixed(bound, assigned) else self.scope.save(as_index(bound), f"{name}_{what}")

        value = self.statement.value
        if not isinstance(value, cst.Call):
            return None
        return SequenceReader(self.scope, self.expressions.read, self.span).read_range(value, keep)

    def _define_range(self, target: cst.Name, numbers: Range) -> None:
        """`members = range(a, b)`: a name from here to the end of the block, which has no code."""
        name = target.value
        if not self.scope.is_assignable(target):
            return
        if name not in self.scope.once:  # rule: range-once
            what = f"`{name}` is a range here, and is assigned elsewhere in this function, too"
            self.scope.error("P203", what, target, "use another name")
            return
        self.scope.ranges[name] = numbers
        self.scope.views.ranges.add(name)
        self.scope.elide(target, ir.Elision.RANGE)

    def _takes_part(self, target: cst.BaseExpression) -> bool:
        """True for a name, and for a part of an array, which takes the elements of another part."""
        return isinstance(target, cst.Name) or is_part(target, self.scope)

    def _share(self, targets: list[cst.BaseExpression], value: ir.Expr) -> list[Pair]:
        """One value for all targets; later targets read the first one if that has the type of the value."""
        first = targets[0]
        if isinstance(first, cst.Name) and first.value in self.scope.once:
            again = ir.Name(first.value, self.span)
            return [(target, again if place else value) for place, target in enumerate(targets)]
        if len(targets) > 1 and not isinstance(value, ir.Constant | ir.Name):
            value = self._save(value, "value", self.span)
        return [(target, value) for target in targets]

    def _unpack(self, target: cst.BaseExpression, value: cst.BaseExpression) -> list[Pair]:
        """Pair each name or element of `target` with its value; none, after a diagnostic, if they do not match."""
        if is_part(value, self.scope):
            part = self._part(value)
            return [] if part is None else self._unpack_part(target, part)
        if not isinstance(target, cst.Tuple | cst.List):
            return self._pairs([target], [self._read(value)])
        if (row := read_table(value, self.scope)) is not None:
            return self._distribute(target, constant_value(row, value, self.scope), value)
        targets = [element.value for element in target.elements]
        has_star = any(map(is_starred, target.elements))
        match value:
            case cst.Tuple(elements=elements) | cst.List(elements=elements) if not any(map(is_starred, elements)) and (
                not has_star
            ):
                if self._counts_match(len(elements), targets, value):
                    inner = zip(targets, elements, strict=True)
                    return [pair for part, element in inner for pair in self._unpack(part, element.value)]
                return []
            case cst.Call(func=func, args=args) if (
                pair_formula := find_pair_formula(self.expressions.calls.meaning(func), len(args))
            ) is not None and not (has_star or any(arg.keyword or arg.star for arg in args)):
                operands = [self.expressions.read(arg.value) for arg in args]
                for at in self.scope.to_save(operands, lambda operand: not is_duplicable(operand)):
                    operands[at] = self._save(operands[at], "operand", operands[at].span)
                operands_by_name = dict(zip(pair_formula.parameters, operands, strict=True))
                values = [expand(text, operands_by_name, self.scope.span_of(value)) for text in pair_formula.texts]
            case cst.Call() if self.expressions.calls.functions.is_invoke(value) or cache_hint(value, self.scope):
                return self._unpack_local(target, self._result(value, targets), value)
            case cst.Subscript(value=cst.Name(value=name)) if self.scope.is_row_view(name):
                return self._unpack_local(target, self._result(value, targets), value)
            case cst.Name(value=name) if name in self.scope.values:
                return self._unpack_local(target, ir.Name(name, self.scope.span_of(value)), value)
            case cst.Call() if self.expressions.calls.meaning(value.func) in POSITIONS:
                return self._distribute(target, self.expressions.read(value), value)
            case cst.Tuple() | cst.IfExp() | cst.Name() | cst.Attribute():
                return self._distribute(target, open_tuple(self.expressions.read(value), value, self.scope), value)
            case cst.Subscript(value=cst.Attribute(value=array, attr=cst.Name(value="shape"))) if is_tensor(
                array, self.scope
            ):
                return self._distribute(target, open_tuple(self.expressions.read(value), value, self.scope), value)
            case cst.Subscript() if self.scope.form_of(value) is not None:
                return self._distribute(target, open_tuple(self.expressions.read(value), value, self.scope), value)
            case _:
                return self._unpack_sequence(target, value)
        return self._pairs(targets, values) if self._counts_match(len(values), targets, value) else []

    def _unpack_local(self, target: cst.Tuple | cst.List, local: ir.Name, value: cst.BaseExpression) -> list[Pair]:
        """A local that is a tuple; type inference checks the number of its items where its form is unknown."""
        form, elements = self.scope.form(local), target.elements
        is_plain = not any(is_starred(each) or isinstance(each.value, cst.Tuple | cst.List) for each in elements)
        if is_plain and (form is None or all(item is None for item in form)):
            return self._pairs([each.value for each in elements], self._items(local, len(elements)))
        return self._distribute(target, self.scope.variable(local.id, local.span), value)

    def _distribute(self, target: cst.Tuple | cst.List, tuple_: ir.Expr, value: cst.BaseExpression) -> list[Pair]:
        """The items of an opened tuple to the parts of the target."""
        if not isinstance(tuple_, ir.Tuple):
            self.scope.error("P103", _ONLY, value, "assign one by one")
            return []
        parts = distribute(target, tuple(map(as_item, tuple_.items)), value, self.scope) or []
        checks: list[ir.Assert] = []
        pairs = [pair for part, item in parts for pair in unpack(part, item, self.scope, checks)]
        self.saved_before += [len(self.saved)] * len(pairs)
        return pairs

    def _part(self, value: cst.BaseExpression) -> View | None:
        """The part of an array that `value` is, with a local for each index that changes while it is used."""
        part = read_part(value, self.scope, self.expressions.read)
        if part is None:
            return None
        assigned = self.scope.named.union(assigned_names(self.following))
        return part.kept(assigned, lambda index: self._save(index, "index", index.span))

    def _unpack_part(self, target: cst.BaseExpression, part: View) -> list[Pair]:
        checks: list[ir.Assert] = []
        pairs = unpack(target, part, self.scope, checks)
        self.saved += checks
        self.saved_before += [len(self.saved)] * len(pairs)
        return list(pairs)

    def _unpack_sequence(self, target: cst.Tuple | cst.List, value: cst.BaseExpression) -> list[Pair]:
        """A row of a table, a generator, or another sequence, item by item."""
        span, count = self.scope.span_of(target), len(target.elements)
        reader = SequenceReader(self.scope, self.expressions.read, span)
        checks: list[ir.Assert] = []
        item: Item | None = reader.read_row(value)
        if item is None and (sequence := reader.read_sequence(value)) is not None:
            length = known_rounds(sequence, self.scope)
            if length is None and any(map(is_starred, target.elements)):
                hint = "write the extent in the annotation"
                self.scope.error("P103", "`*` needs a known number of values", value, hint)
                return []
            if length is None:
                is_count = ir.Compare("==", sequence.rounds, ir.Constant(count, span, ir.PY_INT), span)
                checks.append(ir.Assert(is_count, (f"{count} values are unpacked",), "", span))
            places = range(count if length is None else length)
            item = tuple(sequence.item(ir.Constant(at, span, ir.PY_INT)) for at in places)
        if item is None:
            self.scope.error("P103", _ONLY, value, "assign one by one")
            return []
        pairs = unpack(target, item, self.scope, checks)
        self.saved += checks
        self.saved_before += [len(self.saved)] * len(pairs)
        return list(pairs)

    def _pairs(self, targets: Sequence[cst.BaseExpression], values: Sequence[ir.Expr | View]) -> list[Pair]:
        """Pair targets with the values that were just read."""
        self.saved_before += [len(self.saved)] * len(values)
        return list(zip(targets, values, strict=True))

    def _read(self, value: cst.BaseExpression) -> ir.Expr:
        """A value for one target; if several targets share it and it has effects, it is computed once."""
        result = self.expressions.read(value)
        acts = any(isinstance(node, ir.DeviceCall | ir.Atomic) for node in walk(result))
        return self._result(value, ()) if acts and len(self.statement.targets) > 1 else result  # rule: atomic-targets

    def _result(self, node: cst.BaseExpression, targets: Sequence[cst.BaseExpression]) -> ir.Name:
        """The result of a device function, or a row of a view, in a local named after the targets."""
        if node not in self.results:
            names = [target.value for target in targets if isinstance(target, cst.Name)]
            name = "_".join(names) if len(names) == len(targets) else ""
            result = self.expressions.read(node)
            self.results[node] = self._save(result, name.strip("_") or "result", self.scope.span_of(node))
        return self.results[node]

    @staticmethod
    def _items(tuple_name: ir.Name, count: int) -> list[ir.Expr]:
        return [ir.TupleItem(tuple_name, at, tuple_name.span, count=count) for at in range(count)]

    def _counts_match(self, count: int, targets: Sequence[cst.BaseExpression], value: cst.BaseExpression) -> bool:
        if count != len(targets):
            what = f"{count} values for {len(targets)} names"
            self.scope.error("P103", what, value, rewrite_names(targets, count))
        return count == len(targets)

    def _save(self, value: ir.Expr, name: str, span: Span) -> ir.Name:
        fresh = self.scope.fresh(name)
        self.saved.append(self.scope.assign(fresh, value, span))
        return ir.Name(fresh, span)

    def _in_order(self, pairs: list[Pair]) -> list[Pair]:
        """The pairs, with a local for each value that must be computed before a target changes or a value acts."""
        early = self._taken_early(pairs)
        saved, done, ordered = self.saved, 0, []
        self.saved = []
        for at, (target, value) in enumerate(pairs):
            self.saved += saved[done : self.saved_before[at]]
            done = self.saved_before[at]
            if at in early and not isinstance(value, View):
                name = f"new_{target.value}" if isinstance(target, cst.Name) else "new_value"
                value = self._save(value, name, self.span)
            ordered.append((target, value))
        self.saved += saved[done:]
        return ordered

    def _taken_early(self, pairs: list[Pair]) -> set[int]:
        """The pairs whose values an earlier target may change, and those that must be computed before them."""
        effects = [self._effect(value) for _, value in pairs]
        early: set[int] = set()
        changed: set[str] = set()  # by earlier targets, and by calls in their indices
        read: set[str] = set()  # by these indices
        for at, (target, _) in enumerate(pairs):
            effect = effects[at]
            if (effect.reads | effect.loads) & changed or effect.stores & (changed | read):  # rule: taken-early
                early.add(at)
            nodes = tuple(nodes_in(target))
            named = [self.scope.memory(node.value) for node in nodes if isinstance(node, cst.Name)]
            changed |= {*named} if any(isinstance(node, cst.Call) for node in nodes) else {*named[:1]}  # rule: reorders
            read |= {*named}
        later: list[Footprint] = []  # of values computed before the assignment, of pairs behind this one
        for at in reversed(range(len(pairs))):
            last = self.saved_before[at + 1] if at + 1 < len(pairs) else len(self.saved)
            later += [self.scope.footprint((stmt,)) for stmt in self.saved[self.saved_before[at] : last]]
            if at in early or not all(commute(effects[at], other) for other in later):  # rule: taken-early-meets
                early.add(at)
                later.append(effects[at])
        return early

    def _effect(self, value: ir.Expr | View) -> Footprint:
        """The footprint of a value; nothing changes the names in the indices of a part: see `View.kept`."""
        return Footprint() if isinstance(value, View) else self.scope.footprint((), value)
