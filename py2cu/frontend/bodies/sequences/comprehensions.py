"""Generators and list comprehensions: their variables, and the sequence of their values.

The variables of a comprehension are no locals: where the comprehension reads one, the IR has the item that it stands
for.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import libcst as cst

from py2cu import ir
from py2cu.frontend.bodies.scope import Scope
from py2cu.frontend.bodies.sequences.kinds import Elements, Enumerate, Reversed, Sequence, Zip
from py2cu.frontend.bodies.sequences.unpacking import known_rounds, unpack
from py2cu.frontend.bodies.tables import Read
from py2cu.frontend.bodies.tuples.items import Item, as_item
from py2cu.frontend.bodies.tuples.values import open_tuple
from py2cu.frontend.bodies.views import ZERO, View
from py2cu.frontend.names.syntax import name_nodes


@dataclass(frozen=True, slots=True)
class Mapped:
    """`elt for target in part`: an expression, read for each item."""

    scope: Scope
    read: Read
    elt: cst.BaseExpression
    target: cst.BaseExpression
    part: Sequence

    @property
    def rounds(self) -> ir.Expr:
        return self.part.rounds

    def item(self, at: ir.Expr) -> Item:
        with bound(self.target, self.part.item(at), self.scope):
            return as_item(open_tuple(self.read(self.elt), self.elt, self.scope))


def is_of_arrays(sequence: Sequence, scope: Scope) -> bool:
    """True where whole parts of arrays give the number of items, which is an extent then, or a constant."""
    match sequence:
        case Elements(view=view):
            return view.start is None and view.stop is None
        case Mapped(part=part) | Enumerate(part=part) | Reversed(part=part):
            return is_of_arrays(part, scope)
        case Zip(parts=parts):
            return all(is_of_arrays(part, scope) for part in parts)
        case _:
            return known_rounds(sequence, scope) is not None


def clauses(node: cst.BaseExpression) -> tuple[cst.BaseExpression, cst.CompFor] | None:
    """The expression and the loops of a generator or of a list comprehension; None for anything else."""
    match node:
        case cst.GeneratorExp(elt=elt, for_in=head) | cst.ListComp(elt=elt, for_in=head):
            return elt, head
        case _:
            return None


@contextmanager
def bound(target: cst.BaseExpression, item: Item, scope: Scope) -> Iterator[None]:
    """The variables of a comprehension, while an expression with them is read."""
    values, views = dict(scope.bound), dict(scope.views.views)
    _bind(target, item, scope)
    yield
    scope.bound.clear()
    scope.bound.update(values)
    scope.views.views.clear()
    scope.views.views.update(views)


def _bind(target: cst.BaseExpression, item: Item, scope: Scope) -> None:
    checks: list[ir.Assert] = []
    scope.bound.update({name.value: ZERO for name in name_nodes(target)})
    for part, value in unpack(target, item, scope, checks):
        if not isinstance(part, cst.Name):
            scope.error("P104", "the variables of a comprehension are names", part, "write a loop")
        elif isinstance(value, View):
            scope.bound.pop(part.value, None)
            scope.views.views[part.value] = value
        else:
            scope.views.views.pop(part.value, None)
            scope.bound[part.value] = scope.save(value) if scope.footprint((), value).acts else value
    scope.hoist(tuple(checks), scope.span_of(target))
