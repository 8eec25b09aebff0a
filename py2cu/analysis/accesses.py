"""What a kernel indexes, and under which comparisons: by itself, and through the device functions that it calls.

    def put(out, j, v):
        if j < len(out):
            out[j] = v

    put(y, i, x[i])            x by i; y by i, where i < the extent of y

Not a pass but the analysis behind `add_guards`. A function's accesses are found once, in its own terms, and every call
says them in the caller's. The terms are what a thread's place can be passed as, and so few, however functions call each
other; of any other index or comparison a function tells nothing, only that something is reached.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from py2cu.ir.expressions import ArrayName, Atomic, BoolOp, Compare, DeviceCall, Expr, Load, Select, Unary
from py2cu.ir.kernels import Kernel
from py2cu.ir.rewrite import rebuild
from py2cu.ir.statements import Assert, Assign, Block, Break, Continue, For, If, Print, Return, Store, While
from py2cu.ir.types import Binary, Constant, Name
from py2cu.ir.visit import assigned_names, blocks, children, expressions, names_in, walk
from py2cu.source import Span


@dataclass(frozen=True, slots=True)
class UpperBound:
    """`index` was found to be less than `bound`; None where it was compared, and no more is known."""

    index: Expr
    bound: Expr | None


Facts = frozenset[UpperBound]


@dataclass(frozen=True, slots=True)
class Place:
    """One index of an array; without an index somewhere: an effect on no array, or a place that a caller cannot say."""

    array: str = ""
    dim: int = 0
    index: Expr | None = None


@dataclass(frozen=True, slots=True)
class Access:
    """A place that is reached, and the limits that hold where it is."""

    place: Place
    limits: Facts
    span: Span


Summary = Mapping[Place, Facts]
"""The places that a device function reaches, in its own terms, and the limits that hold wherever it does."""


def find_accesses(kernel: Kernel) -> tuple[Access, ...]:
    """Every access of `kernel`, in order; what a device function reaches is reached at the call."""
    functions = {function.key: function for function in kernel.functions}
    return tuple(_Finder(kernel, functions, _summarise(functions)).block(kernel.body, frozenset()))


def _summarise(functions: Mapping[str, Kernel]) -> dict[str, Summary]:
    """Every function's summary: over again until nothing changes, since they may call each other in circles."""
    found: dict[str, Summary] = {key: {} for key in functions}
    while True:
        before = dict(found)
        for key, function in functions.items():
            found[key] = _summary(function, _Finder(function, functions, found))
        if found == before:
            return found


def _summary(function: Kernel, finder: _Finder) -> Summary:
    fixed = ({p.name for p in function.parameters} | set(function.dims)) - set(assigned_names(function.body))
    found: dict[Place, Facts] = {}
    for access in finder.block(function.body, frozenset()):
        index = access.place.index
        place = access.place if index is not None and _can_be_global(index, fixed) else Place()
        limits = frozenset(limit for limit in access.limits if _can_be_said(limit, fixed))
        found[place] = found.get(place, limits) & limits
    return found


def _can_be_said(limit: UpperBound, fixed: set[str]) -> bool:
    match limit.bound:
        case Name(id=name):
            return name in fixed and _can_be_global(limit.index, fixed)
        case Constant() | None:
            return _can_be_global(limit.index, fixed)
        case _:
            return False


def _can_be_global(index: Expr, fixed: set[str]) -> bool:
    """True for `i` and `b * d + t`, of names that a call gives: some call can make a thread's place of it."""
    match index:
        case Name():
            pass
        case Binary(op="+", left=Name(), right=Binary(op="*", left=Name(), right=Name())):
            pass
        case Binary(op="+", left=Binary(op="*", left=Name(), right=Name()), right=Name()):
            pass
        case _:
            return False
    return set(names_in(index)) <= fixed


class _Finder:
    """Finds the accesses of a kernel or a device function, `caller`, of which some are in the summaries."""

    def __init__(self, caller: Kernel, functions: Mapping[str, Kernel], summaries: Mapping[str, Summary]) -> None:
        self.caller = caller
        self.functions = functions
        self.summaries = summaries
        self.told = _told_by_locals(caller.body)

    def block(self, block: Block, limits: Facts) -> Iterator[Access]:
        """Every access of `block`, in order. A test limits what stands under it; one that leaves, what follows."""
        for stmt in block:
            for expr in expressions(stmt):
                yield from self.expression(expr, limits)
            match stmt:
                case Store(array=array, indices=indices, span=span):
                    yield from self.element(array, indices, limits, span)
                case Print(span=span) | Assert(span=span):
                    yield Access(Place(), limits, span)  # threads past the end have no effect
                case If(test=test, body=body, orelse=orelse):
                    yield from self.block(body, limits | self.known_where(test, True))
                    yield from self.block(orelse, limits | self.known_where(test, False))
                    if body and isinstance(body[-1], Return | Continue | Break):
                        limits |= self.known_where(test, False)
                case While(test=test, body=body, orelse=orelse):
                    yield from self.block(body, limits | self.known_where(test, True))
                    yield from self.block(orelse, limits)
                case For(body=body, orelse=orelse):
                    yield from self.block(body, limits)
                    yield from self.block(orelse, limits)

    def expression(self, expr: Expr, limits: Facts) -> Iterator[Access]:
        match expr:
            case BoolOp(op=op):
                first, *rest = _terms_of(expr, op)
                yield from self.expression(first, limits)
                before = first
                for term in rest:
                    limits |= self.known_where(before, op == "and")
                    yield from self.expression(term, limits)
                    before = term
            case Select(test=test, then=then, orelse=orelse):
                yield from self.expression(test, limits)
                yield from self.expression(then, limits | self.known_where(test, True))
                yield from self.expression(orelse, limits | self.known_where(test, False))
            case _:
                for child in children(expr):
                    yield from self.expression(child, limits)
                if isinstance(expr, Atomic) and self.caller.is_kernel_local(expr.array):
                    yield Access(Place(), limits, expr.span)  # it counts who comes here
                if isinstance(expr, Load | Atomic):
                    yield from self.element(expr.array, expr.indices, limits, expr.span)
                if isinstance(expr, DeviceCall):
                    yield from self.call(expr, limits)

    def known_where(self, test: Expr, holds: bool) -> Facts:
        """What follows from a test; one of a local in which the user keeps a comparison is a guard of the user's."""
        return facts_from_test(test, holds).union(*(self.told.get(name, ()) for name in names_in(test)))

    def call(self, call: DeviceCall, limits: Facts) -> Iterator[Access]:
        """What the function reaches, in the caller's terms."""
        given = self.caller.bind(call, self.functions[call.function])

        def said(expr: Expr) -> Expr:
            return rebuild(expr, lambda node: given[node.id] if isinstance(node, Name) else node)

        for place, own in self.summaries[call.function].items():
            inner = limits.union(*(_below(said(limit.index), limit.bound and said(limit.bound)) for limit in own))
            if place.index is None:
                yield Access(place, inner, call.span)
                continue
            array = given[place.array]
            assert isinstance(array, ArrayName)
            if not self.caller.is_kernel_local(array.id):
                yield Access(Place(array.id, place.dim, said(place.index)), inner, call.span)

    def element(self, array: str, indices: tuple[Expr, ...], limits: Facts, span: Span) -> Iterator[Access]:
        """An access of an argument's element; what a thread does to its own arrays concerns nobody else."""
        if self.caller.is_kernel_local(array):
            return
        for dim, index in enumerate(indices):
            yield Access(Place(array, dim, index), limits, span)
        if not indices:
            yield Access(Place(), limits, span)


# --- locals -------------------------------------------------------------------------------------------------------


def _told_by_locals(body: Block) -> dict[str, Facts]:
    """The indices whose comparison with an end decides what a local is: `valid = i < n`, and what is made of it."""
    told: dict[str, Facts] = {}
    while True:
        before = dict(told)
        _tell(body, frozenset(), told)
        if told == before:
            return {name: limits for name, limits in told.items() if limits}


def _tell(block: Block, known: Facts, told: dict[str, Facts]) -> None:
    """Enter what `block` assigns; `known` is what decides whether it runs."""
    for stmt in block:
        match stmt:
            case Assign(name=name, value=value):
                told[name] = told.get(name, frozenset()) | known | _compared_in(value, told)
            case If(test=test) | While(test=test):
                for inner in blocks(stmt):
                    _tell(inner, known | _compared_in(test, told), told)
            case _:
                for inner in blocks(stmt):
                    _tell(inner, known, told)


def _compared_in(expr: Expr, told: Mapping[str, Facts]) -> Facts:
    found = set().union(*(told.get(name, ()) for name in names_in(expr)))
    for node in walk(expr):
        if isinstance(node, Compare) and node.op in ("<", "<=", ">", ">="):
            found |= {UpperBound(side, None) for side, end in _sides(node) if not _is_start(end)}
    return frozenset(found)


def _terms_of(expr: Expr, op: str) -> list[Expr]:
    """`a`, `b` and `c` of `a and b and c`."""
    terms: list[Expr] = []
    while isinstance(expr, BoolOp) and expr.op == op:
        terms.append(expr.right)
        expr = expr.left
    return [expr, *reversed(terms)]


def _sides(test: Compare) -> tuple[tuple[Expr, Expr], tuple[Expr, Expr]]:
    """Each side of a comparison, with the other one."""
    return (test.left, test.right), (test.right, test.left)


def _is_start(end: Expr) -> bool:
    """`0 < i`, `i >= 1`: where arrays begin."""
    return isinstance(end, Constant) and end.value <= 1


# --- limits -------------------------------------------------------------------------------------------------------


def facts_from_test(test: Expr, holds: bool) -> Facts:
    """The limits that follow from `test` being true, or false."""
    match test:
        case Compare(op="<" | "<=" | ">" | ">=" as op, left=left, right=right):
            small, large = (left, right) if op.startswith("<") is holds else (right, left)
            return _below(small, large) if op.endswith("=") is not holds else _up_to(small, large)
        case BoolOp(op=op, left=left, right=right) if (op == "and") is holds:
            return facts_from_test(left, holds) | facts_from_test(right, holds)
        case Unary(op="not", operand=operand):
            return facts_from_test(operand, not holds)
        case _:
            return frozenset()


def _up_to(small: Expr, large: Expr) -> Facts:
    """`i <= n - 1` is `i < n`; any other of the kind says nothing of `n` itself."""
    match large:
        case Binary(op="-", left=bound, right=Constant(value=1)):
            return _below(small, bound)
        case _:
            return _below(small, None)


def _below(small: Expr, bound: Expr | None) -> Facts:
    """`small` is less than `bound`, and so is what it adds a constant to; other names in it were just compared."""
    compared = (small, *(node for node in walk(small) if isinstance(node, Name)))
    return frozenset(UpperBound(index, None) for index in compared) | {
        UpperBound(index, bound) for index in _no_more_than(small)
    }


def _no_more_than(expr: Expr) -> Iterator[Expr]:
    """`i + 1` and `i`, for the one; whatever is certainly not greater than `expr`."""
    yield expr
    match expr:
        case Binary(op="+", left=left, right=Constant(value=value)) if value >= 0:
            yield from _no_more_than(left)
        case Binary(op="+", left=Constant(value=value), right=right) if value >= 0:
            yield from _no_more_than(right)
