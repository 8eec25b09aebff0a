"""Whether a thread of an index kernel may compute neighbouring elements, which it loads and stores 16 bytes at a time.

In: a lowered kernel. Out: `Packs`, the elements that lie side by side for neighbouring indices, or an `Obstacle`.

    out[i] = x[i] + b[k[i]]    x, k and out in packs; b element by element

The index that runs fastest is added to an offset that all elements of a pack have in common. A kernel with several
indices, or with offsets such as `n + i`, takes packs where the rows are multiples of a pack.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass
from itertools import chain
from typing import Final

from py2cu import ir
from py2cu.analysis.effects import observes_launch
from py2cu.ir.abi.launch import FEW_ELEMENTS
from py2cu.ir.abi.parameters import IndexParameter
from py2cu.ir.abi.signature import evaluate
from py2cu.ir.operators import OF_HELPERS
from py2cu.ir.visit import (
    all_expressions,
    always_evaluated,
    assigned_names,
    blocks,
    children,
    expressions,
    names_in,
    statements,
    walk,
)
from py2cu.source import Span

BYTES: Final = 16
"""Of a pack: what one instruction loads or stores."""
_MOST_TURNS: Final = 16
_MOST_NODES: Final = 4000
"""The expressions of all elements of a pack: more would be a kernel that takes long to compile, and spills."""

Monomial = tuple[tuple[str, ...], int]
Place = tuple[str, frozenset[Monomial]]
"""An array, and the offset of its elements less the index."""


@dataclass(frozen=True, slots=True)
class Obstacle:
    """Why a kernel gets no packs: a clause for a message, and the place in the Python."""

    reason: str
    span: Span


@dataclass(frozen=True, slots=True)
class Packs:
    """The elements that a thread loads at its start and stores at its end, as one access of the body for each place."""

    index: IndexParameter
    loads: tuple[ir.Load, ...]
    stores: tuple[ir.Store, ...]
    is_whole: bool  # rows are multiples of a pack, so that no elements are left over

    def place(self, access: ir.Load | ir.Store) -> Place:
        """The place of one of these accesses."""
        place = place_of(access, self.index.name)
        assert place is not None, access
        return place

    def find(self, load: ir.Load) -> Place | None:
        """The place of any load, if it is that of one of these accesses."""
        place = place_of(load, self.index.name)
        known = {*map(self.place, self.loads), *map(self.place, self.stores)}
        return place if place in known else None


def find_packs(kernel: ir.Kernel) -> Packs | Obstacle:
    """The packs of an index kernel, or why it gets none."""
    index = next((index for index in kernel.indices if index.axis == "x"), None)
    assert index is not None, kernel.name
    try:
        return _Finder(kernel, index).find()
    except _Found as found:
        return found.obstacle


class _Found(Exception):
    def __init__(self, reason: str, span: Span) -> None:
        super().__init__(reason)
        self.obstacle = Obstacle(reason, span)


class _Finder:
    def __init__(self, kernel: ir.Kernel, index: IndexParameter) -> None:
        self._kernel = kernel
        self._index = index
        self._written = {stmt.array for stmt in statements(kernel.body) if isinstance(stmt, ir.Store)}

    def find(self) -> Packs:
        kernel, index = self._kernel, self._index
        if kernel.coarsen == 1:
            raise _Found("`coarsen=1` asks for one element a thread", kernel.span)
        self._refuse_kernel()
        self._refuse_effects()
        self._refuse_nodes()
        self._refuse_loops(kernel.body, 1, {index.name, *(name for name, _ in kernel.locals)})
        loads = {place: node for node in self._loads() if (place := self._place(node)) is not None}
        stores = {self._stored(stmt): stmt for stmt in statements(kernel.body) if isinstance(stmt, ir.Store)}
        if not stores:
            raise _Found("it stores nothing", kernel.span)
        self._refuse_places(loads.keys() | stores.keys())
        flow = _Flow(index.name, stores.keys())
        flow.run(kernel.body)
        loads = {place: load for place, load in loads.items() if place not in stores or place in flow.read}
        for place in flow.unset - loads.keys():  # rule: pack-stored
            raise _Found(f"some elements of `{place[0]}` are not stored", stores[place].span)
        is_whole = len(kernel.indices) > 1 or any(offset for _, offset in (*loads, *stores))
        if is_whole:
            self._refuse_row()
        self._refuse_size([*stores.values()])
        return Packs(index, tuple(loads.values()), tuple(stores.values()), is_whole)

    # --- what a thread with several elements cannot do ---

    def _refuse_kernel(self) -> None:
        kernel = self._kernel
        if kernel.flat_indices:
            raise _Found("more than three indices are computed from one", kernel.flat_indices[-1].span)
        if len(kernel.indices) > 1:
            self._refuse_row()
        extents = [evaluate(index.extent, {}) for index in kernel.indices if not names_in(index.extent)]
        if len(extents) == len(kernel.indices) and (elements := math.prod(extents)) <= FEW_ELEMENTS:  # rule: pack-few
            raise _Found(f"{elements} elements are too few to fill a GPU", self._index.span)
        if kernel.constexprs or kernel.optional_parameters:
            raise _Found("it has template arguments, or parameters that may be None", kernel.span)
        if kernel.strided:
            raise _Found("elements of strided arrays may lie apart", kernel.span)
        if kernel.has_open_block:
            raise _Found("its block depends on arguments", kernel.span)
        for decl in kernel.array_decls:
            if decl.space is not ir.Space.CONSTANT:
                raise _Found(f"`{decl.name}` is an array of its own", decl.span)

    def _refuse_row(self) -> None:
        extent = self._index.extent
        if isinstance(extent, ir.Constant) and int(extent.value) % BYTES:
            raise _Found(f"a row of {extent.value} elements is no multiple of {BYTES}", self._index.span)

    def _refuse_effects(self) -> None:
        """What depends on the thread that computes an element, or is seen before the element is stored."""
        if (span := observes_launch(self._kernel)) is not None:
            raise _Found("a thread meets others, or reads its place in the launch", span)
        for function in (self._kernel, *self._kernel.functions):
            for node in chain(statements(function.body), all_expressions(function.body)):
                if isinstance(node, ir.Print | ir.Assert | ir.Atomic):  # rule: pack-effects
                    raise _Found("it prints, asserts, or uses an atomic operation", node.span)

    def _refuse_nodes(self) -> None:
        """What the function of one element has no form for, and what would be slower in it."""
        kernel = self._kernel
        for node in chain(statements(kernel.body), all_expressions(kernel.body)):
            match node:
                case ir.Load(hint=hint) | ir.Store(hint=hint) if hint:  # rule: pack-hint
                    raise _Found(f"`{hint}` accesses one element", node.span)
                case ir.ExprStmt() | ir.Alloc():
                    raise _Found("it calls a function for its effect, or makes an array", node.span)
                case ir.While():
                    raise _Found("it has a `while` loop", node.span)
                case ir.ArrayName(id=name) if kernel.parameter(name) is not None:
                    raise _Found(f"it passes `{name}` to a function", node.span)
                case ir.Binary(op="/" | "%") | ir.Call() if _divides_indices(node):  # rule: pack-quotient
                    raise _Found("it divides integers that may need 64 bits: that takes longer", node.span)

    def _refuse_loops(self, block: ir.Block, turns: int, changing: set[str]) -> None:
        """Loops are short and of constant length, and what they load is the same for all elements of a pack."""
        for stmt in block:
            if not isinstance(stmt, ir.For):
                for inner in blocks(stmt):
                    self._refuse_loops(inner, turns, changing)
                continue
            bounds = (stmt.start, stmt.stop, stmt.step)
            values = [int(each.value) for each in bounds if isinstance(each, ir.Constant)]
            count = turns * len(range(*values)) if len(values) == len(bounds) else _MOST_TURNS + 1
            if count > _MOST_TURNS:
                raise _Found("it has a long loop", stmt.span)
            for load in (node for node in all_expressions(stmt.body) if isinstance(node, ir.Load)):
                is_own = self._kernel.parameter(load.array) is not None
                if is_own and not changing.isdisjoint(*map(names_in, children(load))):
                    raise _Found(f"a loop reads elements of `{load.array}`", load.span)
            self._refuse_loops(stmt.body, count, changing)

    def _refuse_size(self, stores: list[ir.Store]) -> None:
        bits = max(self._bits(stmt.array) for stmt in stores)
        if bits >= 8 * BYTES:
            raise _Found(f"an element has {BYTES} bytes", stores[0].span)
        nodes = sum(1 for each in (self._kernel, *self._kernel.functions) for _ in all_expressions(each.body))
        if nodes * 8 * BYTES // bits > _MOST_NODES:
            raise _Found("its body is too long to be repeated", self._kernel.span)

    def _bits(self, array: str) -> int:
        return max(self._kernel.array_type(array).dtype.bits, 8)

    # --- where elements lie ---

    def _loads(self) -> list[ir.Load]:
        loads = [node for node in all_expressions(self._kernel.body) if isinstance(node, ir.Load)]
        return [node for node in loads if self._kernel.parameter(node.array) is not None]

    def _place(self, load: ir.Load) -> Place | None:
        """The place of a load in packs; None for one that is read element by element."""
        name = self._index.name
        place = place_of(load, name)
        if place is not None and self._is_aligned(place[1]):
            return place
        if load.array in self._written:
            raise _Found(f"it writes `{load.array}`, and reads it elsewhere", load.span)
        polynomial = polynomial_of(load.indices[0])
        for names, scale in polynomial or ():
            if name in names and (scale == 1 or len(names) > 1):  # rule: pack-neighbours
                raise _Found(f"`{load.array}` is read beside the element, or across rows", load.span)
        return None

    def _stored(self, stmt: ir.Store) -> Place:
        place = place_of(stmt, self._index.name)
        if place is None or not self._is_aligned(place[1]):
            raise _Found(f"`{stmt.array}` is not written where the index says", stmt.span)
        return place

    def _is_aligned(self, offset: frozenset[Monomial]) -> bool:
        """Whether an offset is a multiple of a pack if the rows are, and the same for all elements of a pack."""
        known = {*self._kernel.dims, *(index.name for index in self._kernel.indices)}
        known |= {p.name for p in self._kernel.parameters if not p.is_array}
        known -= {self._index.name, *assigned_names(self._kernel.body)}  # rule: pack-assigned
        row = polynomial_of(self._index.extent) or frozenset()
        ((factors, unit),) = row if len(row) == 1 and next(iter(row))[0] else (((), BYTES),)
        return all(
            known.issuperset(names) and Counter(names) >= Counter(factors) and scale % unit == 0  # rule: pack-rows
            for names, scale in offset
        )

    def _refuse_places(self, places: Iterable[Place]) -> None:
        """A whole pack is accessed where one element was: in bounds, and nothing that another thread writes."""
        certain = {*_unconditional(self._kernel.body, self._index.name)}
        for array in self._written:
            own = [place for place in places if place[0] == array]
            if len(own) > 1 and len(self._kernel.indices) > 1:
                raise _Found(f"`{array}` is written in several places", self._kernel.span)
        for place in places:
            if place not in certain and not self._covers(place):  # rule: pack-bounds
                raise _Found(f"`{place[0]}` is accessed under a condition", self._kernel.span)

    def _covers(self, place: Place) -> bool:
        """Whether the indices run over all elements of an array, so that the accesses are in bounds."""
        array, offset = place
        dims = self._kernel.array_type(array).dims
        indices = sorted(self._kernel.indices, key=lambda index: index.axis, reverse=True)[-len(dims) :]
        if [index.extent for index in indices] != [*dims]:
            return False
        flat: ir.Expr = ir.Constant(0)
        for index in indices:
            flat = ir.Binary("+", ir.Binary("*", flat, index.extent), ir.Name(index.name))
        return polynomial_of(flat) == offset | {((self._index.name,), 1)}


class _Flow:
    """Finds the stored places that are read before they are set, and those that some path leaves unset."""

    def __init__(self, index: str, stored: Set[Place]) -> None:
        self._index = index
        self._stored = stored
        self.read: set[Place] = set()
        self.unset: set[Place] = set()

    def run(self, body: ir.Block) -> None:
        end = self._block(body, frozenset())
        self._leave(end)

    def _place(self, access: ir.Load | ir.Store) -> Place | None:
        return place_of(access, self._index)

    def _leave(self, known: frozenset[Place] | None) -> None:
        """A thread ends here; None: it does not come here."""
        self.unset |= set() if known is None else self._stored - known

    def _block(self, block: ir.Block, known: frozenset[Place]) -> frozenset[Place] | None:
        """The places that are set behind a block; None if the block is left before its end."""
        for stmt in block:
            loads = (node for node in walk(*expressions(stmt)) if isinstance(node, ir.Load))
            found = {place for load in loads if (place := self._place(load)) is not None}
            self.read |= found & (self._stored - known)
            match stmt:
                case ir.Store():
                    known |= {place for place in self._stored if place == self._place(stmt)}
                case ir.Return():
                    self._leave(known)
                    return None
                case ir.Break() | ir.Continue():
                    return None
                case ir.If(body=body, orelse=orelse):
                    ends = [end for part in (body, orelse) if (end := self._block(part, known)) is not None]
                    if not ends:
                        return None
                    known = frozenset.intersection(*ends)
                case ir.For(body=body):
                    self._block(body, known)  # it may run no times
        return known


def place_of(access: ir.Load | ir.Store, index: str) -> Place | None:
    """The place of an access whose offset is a sum of the index and of other terms; None for others."""
    polynomial = polynomial_of(access.indices[0]) if len(access.indices) == 1 else None
    own: Monomial = ((index,), 1)
    if polynomial is None or own not in polynomial:
        return None
    return access.array, polynomial - {own}


def polynomial_of(expr: ir.Expr) -> frozenset[Monomial] | None:
    """An integer expression of names as a sum of products, each with its factor; None for other expressions."""
    sums = _sums(expr)
    return None if sums is None else frozenset((names, scale) for names, scale in sums.items() if scale)


def _sums(expr: ir.Expr) -> Counter[tuple[str, ...]] | None:
    match expr:
        case ir.Constant(value=int(value)):
            return Counter({(): value})
        case ir.Name(id=name):
            return Counter({(name,): 1})
        case ir.Convert(value=value) if expr.type == value.type == ir.PY_INT:  # rule: pack-integers
            return _sums(value)
        case ir.Binary(op="+" | "-" | "*" as op, left=left, right=right) if not isinstance(expr.type, ir.ElementType):
            one, other = _sums(left), _sums(right)
            if one is None or other is None:
                return None
            result: Counter[tuple[str, ...]] = Counter()
            if op == "*":
                for (names, scale), (more, factor) in ((a, b) for a in one.items() for b in other.items()):
                    result[tuple(sorted((*names, *more)))] += scale * factor
                return result
            result.update(one)
            for names, scale in other.items():
                result[names] += scale if op == "+" else -scale
            return result
        case _:
            return None


def _divides_indices(expr: ir.Binary[ir.Expr] | ir.Call) -> bool:
    """True for a quotient or a power in 32 bits if the extents fit, where packs would take 64."""
    is_index = isinstance(expr.type, ir.PythonType) and expr.type.width is ir.Width.INDEX  # rule: pack-width
    return is_index and (isinstance(expr, ir.Binary) or expr.function in (*OF_HELPERS, "ceil_div"))


def _unconditional(block: ir.Block, index: str) -> Iterator[Place]:
    """The places that each thread accesses."""
    for stmt in block:
        accesses: list[ir.Load | ir.Store] = [stmt] if isinstance(stmt, ir.Store) else []
        evaluated = chain.from_iterable(map(always_evaluated, expressions(stmt)))
        accesses += [node for node in evaluated if isinstance(node, ir.Load)]
        yield from filter(None, (place_of(access, index) for access in accesses))
        if any(isinstance(each, ir.Return) for inner in blocks(stmt) for each in statements(inner)):
            return
