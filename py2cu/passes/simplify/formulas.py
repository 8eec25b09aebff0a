"""The common formula of two expressions, with a select in place of each operand that differs.

    1.0 / (1.0 + exp(-v))         →    (1.0 if v >= 0 else exp(v)) / (1.0 + exp(-v if v >= 0 else v))
    exp(v) / (1.0 + exp(v))

In: two lowered expressions and the test that selects one. Out: one expression, and its expensive operations.

Compilers contract a product and the sum that adds it into an FMA if both stand in one basic block. So no select
separates the two, and a merged sum has no operand that may be a product.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import Final

from py2cu import ir
from py2cu.analysis.range_rules import is_float
from py2cu.builtins import ROWS, Rule
from py2cu.ir.rewrite import map_children, rebuild
from py2cu.ir.saved_values import SavedValues
from py2cu.ir.visit import always_evaluated, children, is_duplicable, statements, walk
from py2cu.passes.lowering.widen_halves import ROUND_TO, TO_COMPUTE_TYPE

_MOST_CHOICES: Final = 2
_CHEAP: Final = frozenset(("math.fabs", "math.copysign", "math.fma"))
_OPEN: Final = ir.Name("")  # a placeholder, to count the uses that a local would have

Shared = tuple[ir.Expr, ir.Expr, ir.Expr]
"""The operation in the one branch, in the other branch, and merged."""
Values = dict[str, list[ir.Expr]]
"""The locals of the branches, with the values that the branches give them."""


@dataclass(slots=True)
class MergedFormula:
    """The formula of two branches that `test` selects; `products` are the locals that may hold a product."""

    test: ir.Expr
    products: frozenset[str]
    choices: list[tuple[ir.Expr, ir.Expr]] = field(default_factory=list)  # the operands that differ
    shared: list[Shared] = field(default_factory=list)  # the expensive operations, operands first

    def merge(self, then: ir.Expr, orelse: ir.Expr) -> ir.Expr:
        """Merge the two expressions into one."""
        if is_alike(then, orelse):
            for part in always_evaluated(then):
                self._share(part, part, part)
            return then
        if not self.can_merge(then, orelse):
            if not any(is_alike(then, a) and is_alike(orelse, b) for a, b in self.choices):
                self.choices.append((then, orelse))
            return ir.Select(self.test, then, orelse, then.span, then.type)
        others = iter(children(orelse))
        merged = map_children(then, lambda operand: self.merge(operand, next(others)))
        self._share(then, orelse, merged)
        return merged

    def _share(self, then: ir.Expr, orelse: ir.Expr, merged: ir.Expr) -> None:
        """Record a merged operation if it is expensive; its rounding replaces it."""
        if all(map(_is_costly, (then, orelse, merged))):
            if _is_rounding(merged):
                self.shared.pop()
            self.shared.append((then, orelse, merged))

    def can_merge(self, then: ir.Expr, orelse: ir.Expr) -> bool:
        """True if both are the same operation, and operands that differ are floats of one type."""
        operands = children(orelse)
        if not _is_operation(then) or then.__class__ is not orelse.__class__ or len(children(then)) != len(operands):
            return False
        others = iter(operands)
        if not is_alike(map_children(then, lambda _: next(others)), orelse):  # rule: merge-operation
            return False
        pairs = [*zip(children(then), operands, strict=True)]
        if not all(is_alike(a, b) or (is_float(a.type) and a.type == b.type) for a, b in pairs):
            return False
        is_sum = isinstance(then, ir.Binary) and then.op in "+-"
        return not (is_sum and any(self.moves_product(a, b) for a, b in pairs))  # rule: merge-sum

    def moves_product(self, then: ir.Expr, orelse: ir.Expr) -> bool:
        """Whether merging two operands of a sum changes which product compilers contract with it."""
        if is_alike(then, orelse):
            return isinstance(then, ir.Name) and then.id in self.products
        if not self.can_merge(then, orelse):
            return is_product(then, self.products) or is_product(orelse, self.products)
        return _is_conversion(then) and any(map(self.moves_product, children(then), children(orelse)))

    @property
    def pays(self) -> bool:
        """Whether an expensive operation is merged, and neither branch keeps one of its own."""
        if not self.shared or len(self.choices) > _MOST_CHOICES:
            return False
        known = [[pair[side] for pair in self.shared] for side in (0, 1)]
        # rule: merge-pays
        return all(_is_cheap(side, of) for choice in self.choices for side, of in zip(choice, known, strict=True))

    def with_locals(self, merged: ir.Expr, saved: SavedValues, names: Values) -> ir.Expr:
        """The merged formula, with locals for a long test and for expensive operations that it uses more than once.

        A local of the branches, one of `names`, keeps its name.
        """
        named = [(value, name) for name, values in names.items() for value in values]
        if not _is_short(self.test) and self._choices_in(merged) > 1:
            condition = saved.save(self.test, "condition")
            merged = self._tested(merged, condition)
            self.shared = [(a, b, self._tested(each, condition)) for a, b, each in self.shared]
            self.test = condition
        while self.shared:
            costly, *others = self.shared
            uses = sum(part is _OPEN for part in walk(self._using(merged, _OPEN, costly)))
            if uses > 1:
                own = (name for value, name in named if any(is_alike(value, each) for each in costly[:2]))
                local = saved.save(costly[2], next(own, _name_of(costly[2])))
                merged = self._using(merged, local, costly)
                others = [
                    (_replaced(a, costly[0], local), _replaced(b, costly[1], local), self._using(c, local, costly))
                    for a, b, c in others
                ]
            self.shared = others
        return merged

    def _tested(self, expr: ir.Expr, condition: ir.Name) -> ir.Expr:
        """`expr`, in which the local `condition` replaces the test."""

        def change(part: ir.Expr) -> ir.Expr:
            return replace(part, test=condition) if isinstance(part, ir.Select) and part.test is self.test else part

        return rebuild(expr, change)

    def _using(self, expr: ir.Expr, local: ir.Name, costly: Shared) -> ir.Expr:
        """`expr`, in which `local` replaces the merged operation, and in the branches of a select their own ones."""
        of_then, of_orelse, of_both = costly

        def change(part: ir.Expr) -> ir.Expr:
            if isinstance(part, ir.Select) and part.test is self.test:
                then, orelse = _replaced(part.then, of_then, local), _replaced(part.orelse, of_orelse, local)
                return replace(part, then=then, orelse=orelse)
            return local if is_alike(part, of_both) else part

        return rebuild(expr, change)

    def _choices_in(self, expr: ir.Expr) -> int:
        return sum(isinstance(part, ir.Select) and part.test is self.test for part in walk(expr))


def _replaced(expr: ir.Expr, known: ir.Expr, local: ir.Name) -> ir.Expr:
    return rebuild(expr, lambda part: local if is_alike(part, known) else part)


def _name_of(costly: ir.Expr) -> str:
    if _is_rounding(costly):
        return _name_of(children(costly)[0])
    return f"{costly.function.rpartition('.')[2]}_value" if isinstance(costly, ir.Call) else "quotient"


def _is_short(test: ir.Expr) -> bool:
    """True for a test that reads as easily as the name of a local."""
    return all(map(is_duplicable, children(test))) if isinstance(test, ir.Compare) else is_duplicable(test)


def is_alike(one: ir.Expr, other: ir.Expr) -> bool:
    """True for equal expressions with equal bits: zeros of one sign, integers of one width."""
    return one == other and all(map(_has_same_bits, walk(one), walk(other)))


def _has_same_bits(one: ir.Expr, other: ir.Expr) -> bool:
    """True for equal nodes whose values have the same bits."""
    if isinstance(one, ir.Constant) and isinstance(other, ir.Constant):
        return math.copysign(1, one.value) == math.copysign(1, other.value)  # rule: merge-zeros
    widths = {each.type.width for each in (one, other) if isinstance(each.type, ir.PythonType)}
    return len(widths) < 2


def _is_operation(expr: ir.Expr) -> bool:
    """True for an operation on floats that evaluates all its operands."""
    match expr:
        case ir.Call(function=function):
            return is_float(expr.type) and (function in ROWS or _is_conversion(expr))
        case _:
            return is_float(expr.type) and isinstance(expr, ir.Unary | ir.Binary | ir.Convert)


def _is_conversion(expr: ir.Expr) -> bool:
    """True for an operation that changes only the sign or the rounding of its operand."""
    is_widening = isinstance(expr, ir.Call) and expr.function == TO_COMPUTE_TYPE
    return isinstance(expr, ir.Unary) or is_widening or _is_rounding(expr)


def _is_rounding(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.Convert) or (isinstance(expr, ir.Call) and expr.function == ROUND_TO)


def _is_costly(expr: ir.Expr) -> bool:
    """True for a mathematical function, and for a division that compilers cannot turn into a product."""
    match expr:
        case _ if _is_rounding(expr):
            return _is_costly(children(expr)[0])
        case ir.Binary(op="/", right=ir.Constant(value=divisor)):
            return is_float(expr.type) and math.frexp(divisor)[0] not in (0.5, -0.5)
        case ir.Binary(op="/"):
            return is_float(expr.type)
        case ir.Call(function=function) if function in ROWS:
            return ROWS[function].rule is Rule.FLOAT and function not in _CHEAP
        case _:
            return False


def _is_cheap(expr: ir.Expr, known: list[ir.Expr]) -> bool:
    """True if `known` has every expensive operation of the expression."""
    if any(is_alike(expr, each) for each in known):
        return True
    return not _is_costly(expr) and all(_is_cheap(child, known) for child in children(expr))


def is_product(expr: ir.Expr, products: frozenset[str]) -> bool:
    """True for an expression whose value may be a product; `products` are the names of such values."""
    match expr:
        case ir.Select(then=then, orelse=orelse):
            return is_product(then, products) or is_product(orelse, products)
        case _ if _is_conversion(expr):
            return any(is_product(child, products) for child in children(expr))
        case ir.Binary(op="*") | ir.DeviceCall() | ir.TupleItem():
            return True
        case ir.Call(function=function):
            return function not in ROWS
        case ir.Name(id=name):
            return name in products
        case _:
            return False


def products_of(function: ir.Kernel) -> frozenset[str]:
    """The locals that may hold a product, and the parameters of a device function."""
    products = frozenset(parameter.name for parameter in function.parameters if function.key)
    assigned = [stmt for stmt in statements(function.body) if isinstance(stmt, ir.Assign)]
    while not products >= (found := {stmt.name for stmt in assigned if is_product(stmt.value, products)}):
        products |= found
    return products
