"""Stores of tuples into parts of arrays: each number into its element, after all numbers are computed.

state[i] = pos, vel                      state[i, 0] = pos; state[i, 1] = vel
cov[i] = (a, b), (c, d)                  cov[i, 0, 0] = a; cov[i, 0, 1] = b; cov[i, 1, 0] = c; cov[i, 1, 1] = d
state[i] = state[i, 1], state[i, 0]      new_value = state[i, 0]; state[i, 0] = state[i, 1]; state[i, 1] = new_value

In: the target and a value that is a tuple. Out: the statements. An extent that only the launch knows is checked.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import libcst as cst

from py2cu import ir
from py2cu.frontend.bodies.parts import read_part
from py2cu.frontend.bodies.scope import Scope
from py2cu.frontend.bodies.sequences.unpacking import known_extent
from py2cu.frontend.bodies.tables import Read
from py2cu.frontend.bodies.tuples.forms import describe_form
from py2cu.frontend.bodies.views import View
from py2cu.ir.visit import is_duplicable, walk


def store_row(target: cst.Subscript, value: ir.Expr, scope: Scope, read: Read) -> ir.Block:
    """The statements that store `value` into `target`; some are left out after a diagnostic."""
    part = read_part(target, scope, read)
    return () if part is None else _RowStore(target, scope).read(part, value)


@dataclass(slots=True)
class _RowStore:
    target: cst.Subscript
    scope: Scope
    before: list[ir.Stmt] = field(default_factory=list)

    def read(self, part: View, value: ir.Expr) -> ir.Block:
        if not isinstance(value, ir.Tuple | ir.Name):
            value = self.save(value, "result")
        if isinstance(value, ir.Name):
            value = self.scope.variable(value.id, value.span)
        part = part.kept(frozenset(), lambda index: self.save(index, "index"))
        stores = [*self.stores(part, value)]
        acts = any(isinstance(node, ir.DeviceCall | ir.Atomic) for store in stores for node in walk(store.value))
        last = max((at for at, store in enumerate(stores) if at and self.may_depend(store.value, part)), default=0)
        for at in range(0 if acts else 1, last + 1):
            if not is_duplicable(stores[at].value) or self.may_depend(stores[at].value, part):
                stores[at] = replace(stores[at], value=self.save(stores[at].value, "new_value"))
        return (*self.before, *stores)

    def save(self, value: ir.Expr, name: str) -> ir.Name:
        fresh = self.scope.fresh(name)
        self.before.append(self.scope.assign(fresh, value, value.span))
        return ir.Name(fresh, value.span)

    def stores(self, part: View, value: ir.Expr) -> Iterator[ir.Store]:
        """A store for each number of `value`, a tuple of as many items as `part` has elements or rows."""
        span, form = self.scope.span_of(self.target), self.scope.form(value)
        extent = known_extent(part, self.scope)
        if not isinstance(value, ir.Tuple) or extent not in (None, len(value.items)):
            parts = f"{'rows' if part.rank > 1 else 'elements'} of `{part.array}`"
            what = f"{'' if extent is None else f'{extent} '}{parts} take as many values, not "
            self.scope.error("P312", what + describe_form(form), self.target, "a value for each")
            return
        if extent is None:
            count = ir.Constant(len(value.items), span, ir.PY_INT)
            is_count = ir.Compare("==", part.extent(0), count, span)
            self.before.append(ir.Assert(is_count, (f"{len(value.items)} values are stored",), "", span))
        for place, item in enumerate(value.items):
            at = (ir.Constant(place, span, ir.PY_INT),)
            if part.rank > 1:
                yield from self.stores(part.at(at), item)
            elif isinstance(item, ir.Tuple):
                what = f"an element of `{part.array}` takes one number, not {describe_form(self.scope.form(item))}"
                self.scope.error("P312", what, self.target, "store one number in each")
            else:
                yield ir.Store(part.array, part.indices(at), item, span)

    def may_depend(self, value: ir.Expr, part: View) -> bool:
        """True where a store into `part` may change `value`."""
        base = self.scope.base_array
        for node in walk(value):
            if isinstance(node, ir.Load | ir.Atomic) and base(node.array) == base(part.array):
                return True
            if isinstance(node, ir.ArrayName) and base(node.id) == base(part.array):
                return True
        return False
