"""Stores into parts of arrays: of tuples, of one number for all elements, and of other parts.

state[i] = pos, vel                      state[i, 0] = pos; state[i, 1] = vel
cov[i] = (a, b), (c, d)                  cov[i, 0, 0] = a; cov[i, 0, 1] = b; cov[i, 1, 0] = c; cov[i, 1, 1] = d
state[i] = state[i, 1], state[i, 0]      new_value = state[i, 0]; state[i, 0] = state[i, 1]; state[i, 1] = new_value
out[i, :n] = 0.0                         for k in range(n): out[i, k] = 0.0
out[i] = x[i]                            assert out.shape[1] == x.shape[1]
                                         for k in range(out.shape[1]): out[i, k] = x[i, k]

In: the target and a value. Out: the statements. An extent that only the launch knows is checked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace

import libcst as cst

from py2cu import ir
from py2cu.frontend.bodies.parts import read_part
from py2cu.frontend.bodies.scope import Scope
from py2cu.frontend.bodies.sequences.ranges import ONE
from py2cu.frontend.bodies.sequences.unpacking import dimension, known_extent
from py2cu.frontend.bodies.tables import Read
from py2cu.frontend.bodies.tuples.forms import describe_form
from py2cu.frontend.bodies.views import ZERO, View
from py2cu.ir.visit import is_duplicable
from py2cu.source import Span


def store_part(target: cst.Subscript, value: ir.Expr | View, scope: Scope, read: Read) -> ir.Block:
    """The statements that store `value` into the part `target`; some are left out after a diagnostic."""
    part = read_part(target, scope, read)
    if part is None:
        return ()
    store = _PartStore(target, scope)
    if isinstance(value, View):
        return store.copy(part, value)
    return store.fill(part, value) if scope.form(value) is None else store.read(part, value)


@dataclass(slots=True)
class _PartStore:
    target: cst.Subscript
    scope: Scope
    before: list[ir.Stmt] = field(default_factory=list)

    @property
    def span(self) -> Span:
        return self.scope.span_of(self.target)

    def kept(self, part: View) -> View:
        return part.kept(frozenset(), lambda index: self.save(index, "index"))

    def fill(self, part: View, value: ir.Expr) -> ir.Block:
        """One number for all elements, which is computed once."""
        if not isinstance(value, ir.Constant | ir.Name):  # rule: row-saved
            value = self.save(value, "value")
        return self.loops(self.kept(part), lambda _: value)

    def copy(self, part: View, other: View) -> ir.Block:
        """The elements of another part of the same shape."""
        if part.rank != other.rank:
            what = f"`{part.array}` has {part.rank} dimensions here, and `{other.array}` has {other.rank}"
            self.scope.error("P312", what, self.target, "store parts of as many dimensions, or write a loop")
            return ()
        if self.may_overlap(part, other):
            what = f"these are two parts of `{part.array}`, which may overlap"
            self.scope.error("P401", what, self.target, "write a loop, in the order that is right for both")
            return ()
        for axis in range(part.rank):
            match [dimension(each.extent(axis), self.scope) for each in (part, other)]:
                case [ir.Constant(value=int(one)), ir.Constant(value=int(two))] if one != two:
                    what = f"`{part.array}` has {one} elements on this axis, and `{other.array}` has {two}"
                    self.scope.error("P312", what, self.target, "store parts of one length")
                    return ()
                case [one, two] if one != two:  # rule: row-copied
                    is_same = ir.Compare("==", one, two, self.span)
                    self.before.append(ir.Assert(is_same, ("the parts have one shape",), "", self.span))
        part, other = self.kept(part), self.kept(other)
        return self.loops(part, lambda places: other.load(places, other.origin or self.span))

    def may_overlap(self, part: View, other: View) -> bool:
        """True for slices of one array: whole rows are the same one, or two that share no element."""
        base = self.scope.base_array
        if base(part.array) != base(other.array):  # rule: parts-overlap
            return False
        return part.array != other.array or any(
            bound is not None for view in (part, other) for bound in (view.start, view.stop)
        )

    def loops(self, part: View, value: Callable[[tuple[ir.Expr, ...]], ir.Expr]) -> ir.Block:
        """A store into each element of `part`, of the value at its place."""
        places = tuple(ir.Name(self.scope.fresh("k"), self.span) for _ in range(part.rank))
        stmt: ir.Stmt = ir.Store(part.array, part.indices(places), value(places), self.span)
        for axis, place in reversed([*enumerate(places)]):
            stmt = ir.For(place.id, ZERO, part.extent(axis), ONE, (stmt,), self.span)
        return (*self.before, stmt)

    def read(self, part: View, value: ir.Expr) -> ir.Block:
        """A tuple, number by number."""
        if not isinstance(value, ir.Tuple | ir.Name):
            value = self.save(value, "result")
        if isinstance(value, ir.Name):
            value = self.scope.variable(value.id, value.span)
        part = self.kept(part)
        stores = [*self.stores(part, value)]
        effects = [self.scope.footprint((), store.value) for store in stores]
        depends = [self.scope.memory(part.array) in effect.loads | effect.stores for effect in effects]
        last = max((at for at, depend in enumerate(depends) if at and depend), default=0)
        for at in range(0 if any(effect.acts for effect in effects) else 1, last + 1):
            if not is_duplicable(stores[at].value) or depends[at]:
                stores[at] = replace(stores[at], value=self.save(stores[at].value, "new_value"))
        return (*self.before, *stores)

    def save(self, value: ir.Expr, name: str) -> ir.Name:
        fresh = self.scope.fresh(name)
        self.before.append(self.scope.assign(fresh, value, value.span))
        return ir.Name(fresh, value.span)

    def stores(self, part: View, value: ir.Expr) -> Iterator[ir.Store]:
        """A store for each number of `value`, a tuple of as many items as `part` has elements or rows."""
        span, form = self.span, self.scope.form(value)
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
