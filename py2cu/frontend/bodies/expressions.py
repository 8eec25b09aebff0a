"""LibCST expressions → IR, one method per kind.

An expression that kernels cannot have is reported and replaced by a constant, so that reading goes on and one run shows
every error of a file.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

import libcst as cst

from py2cu import builtins, ir
from py2cu.analysis.effects import commute
from py2cu.analysis.promotion import rounded
from py2cu.builtins.launch import LANE
from py2cu.frontend.bodies.calls import CallReader
from py2cu.frontend.bodies.comparisons import read_comparison
from py2cu.frontend.bodies.hoisting import Operand
from py2cu.frontend.bodies.methods import read_rank, read_shape, refuse_attribute
from py2cu.frontend.bodies.parts import (
    Element,
    is_array,
    is_indexed,
    is_list_part,
    is_tensor,
    read_extents,
    read_subscript,
    subscripts,
)
from py2cu.frontend.bodies.scope import LAUNCH_OBJECTS, Scope
from py2cu.frontend.bodies.tables import constant_value, read_indices, read_lookup
from py2cu.frontend.bodies.tuples.values import choose, read_display, read_item, settle
from py2cu.frontend.bodies.views import View
from py2cu.frontend.hints.annotations import array_type
from py2cu.frontend.hints.subscripts import rewrite_slices
from py2cu.frontend.names.constants import Value, check_64_bits
from py2cu.frontend.names.operators import SYMBOLS
from py2cu.frontend.names.syntax import source_text
from py2cu.ir.complex_numbers import is_literal, literal
from py2cu.ir.visit import names_in, walk
from py2cu.source import Span
from py2cu.suggestions import did_you_mean

_WORDS: Final[dict[type[cst.BaseExpression], str]] = {
    cst.SimpleString: "a string", cst.FormattedString: "an f-string", cst.ConcatenatedString: "a string",
    cst.List: "a list", cst.Dict: "a dict", cst.Set: "a set", cst.Tuple: "a tuple",
    cst.Lambda: "a lambda that has no name",
    cst.ListComp: "a comprehension", cst.SetComp: "a comprehension", cst.DictComp: "a comprehension",
    cst.GeneratorExp: "a generator", cst.Yield: "`yield`", cst.Await: "`await`",
    cst.Ellipsis: "`...`", cst.StarredElement: "`*`",
}  # fmt: skip
_LOOP: Final = "write a `for` over `range(…)`"
_INSTEAD: Final[dict[type[cst.BaseExpression], str]] = {
    cst.Lambda: "name it on a line of its own: `f = lambda v: …`",
    cst.ListComp: _LOOP, cst.SetComp: _LOOP, cst.DictComp: _LOOP, cst.GeneratorExp: _LOOP,
    cst.List: "assign it to a name on a line of its own: `acc = [0.0] * 4`", cst.Tuple: "use a local for each item",
    cst.Dict: "use an array parameter", cst.Set: "compare one by one: `a == b or a == c`",
}  # fmt: skip
_NUMBERS_ONLY: Final = "a kernel computes with numbers and elements of arrays"
_LANE: Final = frozenset(builtins.ROWS[LANE].names)
_AXES: Final = ("x", "y", "z")


@dataclass(frozen=True, slots=True)
class ExpressionReader:
    """Reads expressions in one kernel's scope."""

    scope: Scope

    @property
    def calls(self) -> CallReader:
        return CallReader(self.scope, self.read)

    def read(self, node: cst.BaseExpression) -> ir.Expr:
        """`node` as IR; types are unknown unless the node itself determines them."""
        mark = len(self.scope.hoisted.operands)
        value = self._read(node)
        self.scope.hoisted.operands[mark:] = [Operand(value)]
        return value

    def _read(self, node: cst.BaseExpression) -> ir.Expr:
        span = self.scope.span_of(node)
        match node:  # the most frequent first: LibCST's classes are slow to tell apart
            case cst.Name():
                return self._read_name(node)
            case cst.Subscript():
                return self._read_subscript(node)
            case cst.BinaryOperation(right=cst.Imaginary()) if isinstance(
                number := self.scope.environment.constant(node), complex
            ):
                return literal(number, span)
            case cst.BinaryOperation(left=left, operator=operator, right=right) if type(operator) in SYMBOLS:
                self.scope.report_flag(operator, left, right)
                return ir.Binary(SYMBOLS[type(operator)], self.read(left), self.read(right), span)
            case cst.Integer():
                return self._read_integer(node)
            case cst.Float():
                return ir.Constant(float(node.value), span, text=node.value)
            case cst.Imaginary():
                return literal(complex(node.value), span)
            case cst.Attribute():
                return self._read_attribute(node)
            case cst.UnaryOperation(operator=cst.Minus(), expression=cst.Integer() as inner):
                return self._read_integer(inner, negative=True, place=node)
            case cst.UnaryOperation(operator=sign, expression=inner):
                self.scope.report_flag(sign, inner)
                return self._fold_sign(ir.Unary(SYMBOLS[type(sign)], self.read(inner), span))
            case cst.BooleanOperation(left=left, operator=junction, right=right):
                word = "and" if isinstance(junction, cst.And) else "or"
                first = self.read(left)
                with self.scope.hoisted.conditional(f"what stands behind `{word}` may not be computed"):
                    return ir.BoolOp(word, first, self.read(right), span)
            case cst.Comparison():
                return read_comparison(node, self.scope, self.read)
            case cst.IfExp(test=test, body=body, orelse=orelse):
                condition = self.read(test)
                with self.scope.hoisted.conditional("only one of the two values is computed"):
                    then, otherwise = self.read(body), self.read(orelse)
                return choose(condition, then, otherwise, node, self.scope)
            case cst.Call():
                return self.calls.read_call(node)
            case cst.Tuple(elements=[_, *_] as elements):
                return read_display(node, elements, self.scope, self.read)
            case cst.NamedExpr(target=cst.Name() as target, value=value):
                return self._read_named(target, value, span)
            case _:
                return self._refuse(node)

    def _read_named(self, target: cst.Name, value: cst.BaseExpression, span: Span) -> ir.Expr:
        """`(v := x[i])` is `v` behind an assignment that the statement needs before it."""
        hoisted, name = self.scope.hoisted, target.value
        assigned = self.read(value)
        if self.scope.form(assigned) is not None:
            self.scope.error("P103", "`:=` assigns numbers, and this is a tuple", target, "assign on a line of its own")
        elif conflict := hoisted.barrier or self._conflict(ir.Assign(name, assigned, span)):
            place = "in an `if` of its own" if hoisted.barrier else "on a line of its own"
            self.scope.error("P103", f"`:=` cannot stand here: {conflict}", target, f"assign `{name}` {place}")
        elif self.scope.takes_number(target):
            hoisted.statements.append(self.scope.assign(name, assigned, span))
            return ir.Name(name, span)
        return ir.Constant(0, span)

    def _conflict(self, assign: ir.Assign) -> str | None:
        """Why `assign` cannot run before what the statement has read; None if nothing can observe it."""
        *before, _ = self.scope.hoisted.operands
        if any(assign.name in names_in(operand.value) for operand in before):  # rule: walrus-read
            return f"`{assign.name}` is read before `:=` changes it"
        calls = any(isinstance(part, ir.DeviceCall | ir.Atomic) for part in walk(assign.value))
        observers = (ir.DeviceCall, ir.Atomic, *([ir.Load] if calls else ()))
        observes = any(isinstance(part, observers) for operand in before for part in walk(operand.value))
        values = [operand.value for operand in before]
        if observes or not commute(self.scope.footprint((), *values), self.scope.footprint((assign,))):
            return "a call and `:=` stand in one expression"  # rule: walrus-observed
        return None

    def _read_integer(self, node: cst.Integer, negative: bool = False, place: cst.CSTNode | None = None) -> ir.Expr:
        """`-1` is a constant, not an operation on one."""
        span = self.scope.span_of(place or node)
        value = -int(node.value, 0) if negative else int(node.value, 0)
        text = f"-{node.value}" if negative else node.value
        return ir.Constant(check_64_bits(value, self.scope.reporter, span), span, text=text)

    def _fold_sign(self, node: ir.Unary) -> ir.Expr:
        """Fold the sign of a constant: `-1.0`."""
        match node:
            case ir.Unary(op="-", operand=ir.Constant(value=value, text=text, named=named)) if not isinstance(
                value, bool
            ):
                return ir.Constant(-value, node.span, text=f"-{text}" if text else "", named=named)
            case ir.Unary(op="-", operand=ir.Call(args=(ir.Constant(value=real), ir.Constant(value=imag))) as pair) if (
                is_literal(pair)
            ):
                return literal(-complex(real, imag), node.span)
            case _:
                return node

    def _read_name(self, node: cst.Name) -> ir.Expr:
        span, name = self.scope.span_of(node), node.value
        if name in ("True", "False"):
            return ir.Constant(name == "True", span)
        if name in self.scope.broken:
            return ir.Constant(0, span)
        if (launched := self.scope.launch_object(node)) is not None:
            return self._read_launch(node, launched, "x")
        if name in self.scope.bindings:
            return replace(self.scope.bindings[name], span=span)
        if name in self.scope.arrays or name in self.scope.views.views:
            tested = f", or test `{name} is not None`" if name in self.scope.optional_parameters else ""
            what = f"`{name}` is an array; a kernel works on its elements"
            rank = len(self.scope.arrays[name].dims) if name in self.scope.arrays else self.scope.views.views[name].rank
            indices = ", ".join("ijklmnop"[:rank]) or "()"
            self.scope.error("P303", what, node, f"index it: `{name}[{indices}]`{tested}")
            return ir.Constant(0, span)
        if name in self.scope.ranges:
            what = f"`{name}` is a range; a kernel loops over it, and takes its `len`"
            self.scope.error("P104", what, node, f"`for k in {name}:`")
            return ir.Constant(0, span)
        if name in self.scope.views.ended:
            kind = self.scope.views.kind(name)
            what = f"`{name}` is {kind} in the block that defines it, and the block has ended"
            self.scope.error("P204", what, node, "define it before the block")
            return ir.Constant(0, span)
        if name in self.scope.values:
            return ir.Name(name, span)
        return self._read_outer(node, name)

    def _read_outer(self, node: cst.Name | cst.Attribute, text: str) -> ir.Expr:
        """A name from around the kernel: a constant of `math` or of the module."""
        span = self.scope.span_of(node)
        qualified = self.scope.environment.qualify(node)
        if qualified in _LANE:
            return ir.Call(LANE, (), span)
        if qualified in builtins.CONSTANTS:
            return ir.Constant(builtins.CONSTANTS[qualified], span)
        if isinstance(node, cst.Attribute) and qualified is None and self.scope.reports_ambiguous(node):
            return ir.Constant(0, span)
        if isinstance(node, cst.Attribute) and isinstance(node.value, cst.Call):
            hint = f"assign it to a name outside the kernel: `LIMIT = {text}`"
            self.scope.error("P202", f"`{text}` is computed in the kernel", node, hint)
            return ir.Constant(0, span)
        if (element := self.scope.environment.element(node)) is not None:
            dtype, number = element
            named = self.scope.constant(node, rounded(ir.ElementType(dtype), number)).named
            return ir.Call(f"numpy.{dtype.name}", (ir.Constant(number, span, named=named),), span)
        constant: Value | None = self.scope.environment.constant(node)
        if constant is None:
            constant = self.scope.functions.constant(node)
        if isinstance(constant, complex):
            return literal(constant, span)
        if isinstance(constant, bool | int | float):
            return self.scope.constant(node, constant)
        if (table := self.scope.table(node)) is not None:
            return constant_value(table, node, self.scope)
        if self.scope.reports_class(node):
            return ir.Constant(0, span)
        if qualified is not None or isinstance(node, cst.Attribute) or text in self.scope.environment.live:
            member = (qualified or "").removeprefix("numba.cuda.").removeprefix("py2cu.").partition(".")[0]
            hint = did_you_mean(member, LAUNCH_OBJECTS, "pass it as a parameter")
            self.scope.error("P202", f"a kernel cannot use the value of `{text}`", node, hint)
        elif text in self.scope.environment.definitions:
            hint = f"assign a number to it, `{text} = …`, or make it a parameter"
            self.scope.error("P202", f"`{text}` is not a literal constant", node, hint)
        else:
            self.scope.unknown_name(node)
        return ir.Constant(0, span)

    def _read_attribute(self, node: cst.Attribute) -> ir.Expr:
        attribute = node.attr.value
        launched = self.scope.launch_object(node.value)
        if launched is not None:
            if attribute in _AXES:
                return self._read_launch(node, launched, attribute)
            self.scope.error("P202", f"`{launched}` has x, y and z, not `{attribute}`", node, f"write `{launched}.x`")
            return ir.Constant(0, self.scope.span_of(node))
        if is_list_part(node.value, self.scope):
            what = f"a list has no `.{attribute}`"
            self.scope.error("P202", what, node, f"`len({source_text(node.value)})` is its length")
            return ir.Constant(0, self.scope.span_of(node))
        if is_array(node.value, self.scope):
            if (rank := read_rank(node, self.scope, self.read)) is not None:
                return rank
            if attribute == "shape" and (extents := read_extents(node.value, self.scope, self.read)):
                span = self.scope.span_of(node)
                return ir.Tuple(tuple(replace(extent, span=span) for extent in extents), span)
            refuse_attribute(node, self.scope)
            return ir.Constant(0, self.scope.span_of(node))
        if (launch_object := self.scope.launch_object(node)) is not None:
            return self._read_launch(node, launch_object, "x")
        if attribute in ("real", "imag") and self.scope.is_number(node.value):
            return ir.Call(f"complex.{attribute}", (self.read(node.value),), self.scope.span_of(node))
        return self._read_outer(node, source_text(node))

    def _read_launch(self, node: cst.Name | cst.Attribute, launched: str, axis: str) -> ir.Expr:
        return ir.LaunchIndex(launched, axis, self.scope.span_of(node))

    def _read_subscript(self, node: cst.Subscript) -> ir.Expr:
        span = self.scope.span_of(node)
        if (lookup := read_lookup(node, self.scope, self.read)) is not None:
            return lookup
        match node.value:
            case cst.Name(value=name) | cst.Attribute(value=cst.Name(value=name)) if name in self.scope.broken:
                pass
            case cst.Attribute(value=base, attr=cst.Name(value="shape")) if is_tensor(base, self.scope):
                return read_shape(node, base, self.scope, self.read)
            case cst.Attribute() as attribute if is_list_part(attribute.value, self.scope):
                return self._read_attribute(attribute)
            case cst.Attribute(value=cst.Name(value=name)) as attribute if name in self.scope.arrays:
                refuse_attribute(attribute, self.scope)
            case _ if is_indexed(node, self.scope):
                element = self.read_element(node)
                return ir.Constant(0, span) if element is None else ir.Load(element.array, element.indices, span)
            case cst.Name(value=name) if name in self.scope.arrays:
                indices = self.read_vector_indices(node, name)
                hint = f"`for v in {source_text(node)}:`, `[v for v in {source_text(node)}]`"
                is_row = indices is not None and self.scope.is_row(name, len(indices))
                if indices is None or (is_row and self.scope.refuses_open_row(name, node, hint)):
                    return ir.Constant(0, span)
                return ir.Load(name, indices, span)
            case cst.Subscript(value=cst.Name(value=name)) as row if name in self.scope.arrays:
                texts = ", ".join(source_text(each.slice) for each in (*row.slice, *node.slice))
                hint = f"write `{name}[{texts}]`"
                self.scope.error("P401", "a view in rows takes all its indices at once", node, hint)
            case cst.Name(value=name) as base if name in self.scope.views.ended or name in self.scope.ranges:
                return self._read_name(base)
            case base if self._is_computed(base) and self.scope.form(value := self.read(base)) is not None:
                return read_item(node, settle(value, self.scope), self.scope, self.read)
            case base if self.scope.form_of(base) is not None:
                return read_item(node, self.read(base), self.scope, self.read)
            case cst.Name(value=name) if name in self.scope.values:
                return self._read_item(node, ir.Name(name, self.scope.span_of(node.value)))
            case cst.Call() as call if self.calls.functions.is_invoke(call):
                return self._read_item(node, self.read(call))
            case cst.Name() as base if not self.scope.is_local(base) and self.scope.environment.qualify(base) is None:
                self.scope.unknown_name(base)
            case base if self.scope.reports_class(base) or self.scope.reports_ambiguous(base):
                pass
            case cst.Call(func=cst.Attribute(attr=cst.Name(value="view"))) as view:
                hint = f"assign the view first: `rows = {source_text(view)}`"
                self.scope.error("P401", "only names can be indexed", node, hint)
            case cst.Call(func=function):
                unpacked = f"unpack it on a line of its own: `a, b = {source_text(node.value)}`"
                hint = builtins.REFUSED.get(self.scope.environment.qualify(function) or "", unpacked)
                self.scope.error("P401", "only names can be indexed", node, hint)
            case base:
                hint = f"make it a parameter: {array_type(1, self.scope.environment)}"
                if isinstance(base, cst.Subscript) or self.scope.environment.constant(base) is not None:
                    hint = f"use it without an index: `{source_text(base)}`"
                self.scope.error("P401", "only arrays can be indexed", node, hint)
        return ir.Constant(0, span)

    def _is_computed(self, node: cst.BaseExpression) -> bool:
        """True for a tuple that has no name: a display, a choice, and an item of these or of a function's result."""
        match node:
            case cst.Subscript(value=cst.Call() as call):
                return self.calls.functions.is_invoke(call)
            case cst.Subscript(value=base):
                return self._is_computed(base)
            case _:
                return isinstance(node, cst.Tuple | cst.IfExp)

    def _read_item(self, node: cst.Subscript, base: ir.Expr) -> ir.Expr:
        """`t[0]`; type inference checks that `t` is a tuple with that item where its form is unknown."""
        if self.scope.form(base) is not None:
            return read_item(node, base, self.scope, self.read)
        match [element.slice for element in node.slice]:
            case [cst.Index(value=value, star=None)]:
                at = self.scope.environment.constant(value)
                if isinstance(at, int):
                    return ir.TupleItem(base, at, self.scope.span_of(node))
        self.scope.error(
            "P401", "only arrays can be indexed at run time", node,
            f"make it a parameter: {array_type(1, self.scope.environment)}; of a tuple, take one item: `t[0]`",
        )  # fmt: skip
        return ir.Constant(0, self.scope.span_of(node))

    def read_element(self, node: cst.Subscript) -> Element | None:
        """The element of an array or of a view that `node` is; None after a diagnostic."""
        match read_subscript(node, self.scope, self.read):
            case View(array=array, rank=rank):
                count = f"{rank} dimension{'s' * (rank > 1)}"
                what = f"this is a part of `{array}` with {count}; a kernel works on elements"
                indices = ", ".join("klmnopq"[:rank])
                hint = f"index it: `{source_text(node)}[{indices}]`"
                if self.scope.environment.imports_numba:
                    others = len(self.scope.arrays[array].dims) - rank
                    hint += f", or type `{array}` as {array_type(others, self.scope.environment)}"
                self.scope.error("P303", what, node, hint)
                return None
            case element:
                return element

    def read_vector_indices(self, node: cst.Subscript, name: str) -> tuple[ir.Expr, ...] | None:
        """The indices of a row, or of an element, of a view in rows."""
        parts, rank = subscripts(node), len(self.scope.arrays[name].dims)
        if len(parts) not in (rank - 1, rank):
            what = f"`{name}` has {rank} dimensions and takes {rank} indices, not {len(parts)}"
            indices = ", ".join(map(source_text, parts[:rank]))
            self.scope.error("P401", what, node, f"write `{name}[{indices}]`")
            return None
        if not all(isinstance(part, cst.Index) and part.star is None for part in parts):
            hint = rewrite_slices(node.value, parts, node)
            self.scope.error("P401", "a view in rows takes indices, not slices", node, hint)
            return None
        singles = (part.value for part in parts if isinstance(part, cst.Index))
        return read_indices(singles, node, self.scope, self.read)

    def _refuse(self, node: cst.BaseExpression) -> ir.Expr:
        word = _WORDS.get(type(node), "this expression")
        # rule: refused-value
        self.scope.error("P103", f"{word} is not supported in a kernel", node, _INSTEAD.get(type(node), _NUMBERS_ONLY))
        return ir.Constant(0, self.scope.span_of(node))
