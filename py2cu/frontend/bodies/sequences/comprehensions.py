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
from py2cu.ir.rewrite import rebuild_block


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
        with binding(self.target, self.part.item(at), self.scope):
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
def binding(target: cst.BaseExpression, item: Item, scope: Scope) -> Iterator[None]:
    """The variables of a comprehension, while an expression with them is read."""
    values, views = dict(scope.bindings), dict(scope.views.views)
    _bind(target, item, scope)
    yield
    scope.bindings.clear()
    scope.bindings.update(values)
    scope.views.views.clear()
    scope.views.views.update(views)


def read_first(item: Item, block: ir.Block, scope: Scope) -> ir.Block:
    """`block`, the round of a loop, with locals for the numbers of `item` that it changes: Python reads them once."""
    effect = scope.footprint(block)
    parts = {number: scope.footprint((), number) for number in _numbers(item)}
    changed = (number for number, part in parts.items() if not part.acts and effect.disturbs(part))
    saved = {number: ir.Name(scope.fresh("value"), number.span) for number in changed}
    if not saved:
        return block
    before = (scope.assign(name.id, number, number.span) for number, name in saved.items())
    return (*before, *rebuild_block(block, lambda expr: saved.get(expr, expr)))


def _numbers(item: Item) -> Iterator[ir.Expr]:
    """The numbers of an item; the elements of a part of an array are read where they are used, in Python, too."""
    if isinstance(item, tuple):
        for each in item:
            yield from _numbers(each)
    elif not isinstance(item, View):
        yield item


def _bind(target: cst.BaseExpression, item: Item, scope: Scope) -> None:
    checks: list[ir.Assert] = []
    scope.bindings.update({name.value: ZERO for name in name_nodes(target)})
    for part, value in unpack(target, item, scope, checks):
        if not isinstance(part, cst.Name):
            scope.error("P104", "the variables of a comprehension are names", part, "write a loop")
        elif isinstance(value, View):
            scope.bindings.pop(part.value, None)
            scope.views.views[part.value] = value
        else:
            scope.views.views.pop(part.value, None)
            scope.bindings[part.value] = scope.computed_once(value)  # rule: generator-once
    scope.hoist(tuple(checks), scope.span_of(target))
