"""Decides where the locals of a kernel live once it is split into regions: locals that one region alone mentions stay
local to it, indices are recomputed in every region that mentions them, and all others are kept for each thread.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import takewhile

from py2cu import ir
from py2cu.builtins import ROWS
from py2cu.dtypes import Kind
from py2cu.ir.rewrite import map_blocks, with_fields
from py2cu.ir.visit import blocks, expressions, names_in, statements, walk


def assigned_by(stmt: ir.Stmt) -> str | None:
    """The local or array that `stmt` defines."""
    match stmt:
        case ir.Assign(name=name) | ir.Alloc(array=name):
            return name
        case _:
            return None


def changed_by(stmt: ir.Stmt) -> Iterator[str]:
    """The locals and arrays that `stmt` itself may change, without its nested blocks."""
    match stmt:
        case ir.Assign(name=name) | ir.Alloc(array=name) | ir.Store(array=name):
            yield name
    for expr in expressions(stmt):
        for node in walk(expr):
            match node:
                case ir.ArrayName(id=name) | ir.Atomic(array=name):
                    yield name


def mentioned_by(stmt: ir.Stmt) -> Iterator[str]:
    """The locals and arrays that `stmt` itself assigns or reads, without its nested blocks."""
    for expr in expressions(stmt):
        for node in walk(expr):
            match node:
                case ir.Name(id=name) | ir.ArrayName(id=name) | ir.Load(array=name) | ir.Atomic(array=name):
                    yield name
    match stmt:
        case ir.Assign(name=name) | ir.Alloc(array=name) | ir.Store(array=name):
            yield name


# --- who mentions what ------------------------------------------------------------------------------------------------

RegionPath = tuple[int, ...]
"""The numbers of the loops at block scope around a region, and of the region; 0 is block scope itself."""


@dataclass(frozen=True, slots=True)
class _Definition:
    """An assignment or a view that every thread executes, and its place."""

    stmt: ir.Assign | ir.Alloc
    place: RegionPath

    @property
    def value(self) -> ir.Expr | None:
        return self.stmt.value if isinstance(self.stmt, ir.Assign) else self.stmt.start


@dataclass(slots=True)
class Uses:
    """Records where a split body mentions each local and array."""

    bases: Mapping[str, str]  # of views
    places: dict[str, set[RegionPath]] = field(default_factory=dict)
    definitions: dict[str, list[_Definition]] = field(default_factory=dict)
    hidden: set[str] = field(default_factory=set)  # assigned in nested blocks of a region
    counters: dict[str, RegionPath] = field(default_factory=dict)  # by loop variable of block scope: the loop's path
    count: int = 0

    @property
    def shared_between_regions(self) -> set[str]:
        """The names mentioned in more than one region, or in a region and at block scope."""
        return {name for name, places in self.places.items() if len({place[-1] for place in places}) > 1}

    @property
    def assigned_openly(self) -> set[str]:
        """The names that are assigned only at the top level of regions or at block scope."""
        return self.definitions.keys() - self.hidden

    def block(self, block: ir.Block, loops: RegionPath) -> None:
        for stmt in block:
            self.count += 1
            inner = (*loops, self.count)
            if isinstance(stmt, ir.EachThread):
                self.region(stmt.body, inner)
                continue
            self.mention(stmt, (*loops, 0))
            if isinstance(stmt, ir.For):
                self.counters[stmt.var] = inner
            for nested in blocks(stmt):
                self.block(nested, inner if isinstance(stmt, ir.For | ir.While) else loops)

    def region(self, region_body: ir.Block, place: RegionPath) -> None:
        for stmt in region_body:
            self.mention(stmt, place)
            for inner in (inner for nested in blocks(stmt) for inner in statements(nested)):
                self.mention(inner, place)
                self.hidden |= {assigned_by(inner) or ""}

    def mention(self, stmt: ir.Stmt, place: RegionPath) -> None:
        for name in mentioned_by(stmt):
            self.places.setdefault(name, set()).add(place)
        if isinstance(stmt, ir.Alloc) and stmt.array in self.bases:
            self.places.setdefault(self.bases[stmt.array], set()).add(place)
        if isinstance(stmt, ir.Assign | ir.Alloc):
            self.definitions.setdefault(assigned_by(stmt) or "", []).append(_Definition(stmt, place))

    def find_computed(self, wanted: set[str], assignable: set[str]) -> dict[str, ir.Assign | ir.Alloc]:
        """The names of `wanted` that each region can recompute, in the order of their definitions.

        `assignable` are the names that may change.
        """
        computed: dict[str, ir.Assign | ir.Alloc] = {}
        for name, (first, *more) in self.definitions.items():
            if name not in wanted or more or name in self.hidden or not (first.place[-1] and _is_cheap(first.value)):
                continue
            inputs = _names_in(first.value)
            if all(self.reaches(name, first.place, used, computed.keys(), assignable) for used in inputs):
                computed[name] = first.stmt
        return computed

    def reaches(self, name: str, place: RegionPath, used: str, computed: Collection[str], assignable: set[str]) -> bool:
        """True where `used` has the same value at every mention of `name` as at `place`, where `name` is computed."""
        if used in self.counters:
            around = self.counters[used]
        elif used not in assignable:
            around = ()
        elif used in computed:
            around = place[:-1]
        else:
            ((only, *more), is_hidden) = self.definitions[used], used in self.hidden
            if more or is_hidden or only.place[-1] != 0:
                return False
            around = only.place[:-1]
        within = self.places[name]
        loops = max((around, place[:-1]), key=len)
        return place[: len(around)] == around and all(each[: len(loops)] == loops for each in within)


def _is_cheap(value: ir.Expr | None) -> bool:
    """True for integers and bools that are cheap to recompute."""
    if value is None:
        return False
    is_integer = isinstance(value.type, ir.PythonType) and value.type.kind in (Kind.INT, Kind.BOOL)
    return is_integer and not any(
        isinstance(node, ir.Load | ir.DeviceCall | ir.ArrayName)
        or (isinstance(node, ir.Call) and node.function in ROWS)
        for node in walk(value)
    )


def _names_in(value: ir.Expr | None) -> tuple[str, ...]:
    return () if value is None else names_in(value)


# --- the start of each region -----------------------------------------------------------------------------------------


def place_computed(
    body: ir.Block,
    computed: Mapping[str, ir.Assign | ir.Alloc],
    types: Mapping[str, ir.ValueType],
    per_thread: frozenset[str],
) -> ir.Block:
    """The body with the names in `computed` defined at the start of each region that mentions them.

    Thread-local arrays in `per_thread` are declared elsewhere, as per-thread arrays.
    """
    placed: set[str] = set()

    def needed(region_body: ir.Block) -> ir.Block:
        names = {name for stmt in statements(region_body) for name in mentioned_by(stmt)}
        for name, stmt in reversed(list(computed.items())):
            if name in names:
                names |= set(mentioned_by(stmt))
        return tuple(definition(name, stmt) for name, stmt in computed.items() if name in names)

    def definition(name: str, stmt: ir.Assign | ir.Alloc) -> ir.Stmt:
        trivia = ir.BARE if name in placed else stmt.trivia
        placed.add(name)
        stmt = with_fields(stmt, trivia=trivia)
        return with_fields(stmt, declares=types[name]) if isinstance(stmt, ir.Assign) else stmt

    def change(stmt: ir.Stmt) -> ir.Block:
        if not isinstance(stmt, ir.EachThread):
            return () if isinstance(stmt, ir.Alloc) and stmt.array in per_thread else (map_blocks(stmt, change_all),)
        rest = tuple(
            stmt
            for stmt in stmt.body
            if assigned_by(stmt) not in computed and not (isinstance(stmt, ir.Alloc) and stmt.array in per_thread)
        )
        if all(isinstance(stmt, ir.Comment) for stmt in rest):
            return rest
        mask_count = sum(1 for _ in takewhile(is_mask, rest))
        return (with_fields(stmt, body=(*rest[:mask_count], *needed(rest), *rest[mask_count:])),)

    def is_mask(stmt: ir.Stmt) -> bool:
        match stmt:
            case ir.If(test=ir.Unary(op="not", operand=ir.Name(id=name)), body=(ir.Return(),), orelse=()):
                return name not in computed  # rule: guard-mask
            case _:
                return False

    def change_all(block: ir.Block) -> ir.Block:
        return tuple(done for stmt in block for done in change(stmt))

    return change_all(body)
