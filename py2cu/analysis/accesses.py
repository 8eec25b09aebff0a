"""Finds the array accesses of a kernel and the comparisons that hold at each, device functions included.

    def put(out, j, v):
        if j < len(out):
            out[j] = v

    put(y, i, x[i])            accesses x[i], and y[i] where i < the extent of y

The analysis behind `add_guards`. Each function is summarised once, in terms of its parameters; a call translates the
summary into the caller's terms. A summary keeps only indices that can be a thread's global index; other indices are
summarised as unknown, so that summaries stay small however functions call each other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from py2cu import ir
from py2cu.ir.rewrite import rebuild
from py2cu.ir.visit import assigned_names, blocks, children, expressions, names_in, walk
from py2cu.source import Span


@dataclass(frozen=True, slots=True)
class IndexLimit:
    """The fact `index < bound`; `bound` is None where `index` was compared with a value that is not an extent."""

    index: ir.Expr
    bound: ir.Expr | None

    def follows_from(self, facts: Facts) -> bool:
        """True if a fact implies it: `i < n // 8` implies `i < n // 4`."""
        return self in facts or any(each.index == self.index and _is_quotient(each.bound, self.bound) for each in facts)


Facts = frozenset[IndexLimit]


@dataclass(frozen=True, slots=True)
class AccessedIndex:
    """One index of an access. `index` is None for an effect without one, or if a caller cannot express it."""

    array: str = ""
    dim: int = 0
    index: ir.Expr | None = None


@dataclass(frozen=True, slots=True)
class Access:
    """An access, and the facts that hold where it happens."""

    place: AccessedIndex
    limits: Facts
    span: Span


Summary = Mapping[AccessedIndex, Facts]
"""The accesses of a device function in terms of its parameters, and the facts that hold at each."""


def find_accesses(kernel: ir.Kernel) -> tuple[Access, ...]:
    """Every access of `kernel`, in order; the accesses of a device function have the span of its call."""
    functions = {function.key: function for function in kernel.functions}
    return tuple(_Finder(kernel, functions, _summarise(functions)).block(kernel.body, frozenset()))


def _summarise(functions: Mapping[str, ir.Kernel]) -> dict[str, Summary]:
    """The summary of every function, iterated to a fixpoint, since functions may be recursive."""
    summaries: dict[str, Summary] = {key: {} for key in functions}
    while True:
        before = dict(summaries)
        for key, function in functions.items():
            summaries[key] = _summary(function, _Finder(function, functions, summaries))
        if summaries == before:
            return summaries


def _summary(function: ir.Kernel, finder: _Finder) -> Summary:
    """The summary of one function, in terms of parameters and dimensions that it never assigns."""
    unassigned = ({p.name for p in function.parameters} | set(function.dims)) - set(assigned_names(function.body))
    facts_by_place: dict[AccessedIndex, Facts] = {}
    for access in finder.block(function.body, frozenset()):
        index = access.place.index
        place = access.place if index is not None and _can_be_global(index, unassigned) else AccessedIndex()
        limits = frozenset(limit for limit in access.limits if _is_expressible(limit, unassigned))
        facts_by_place[place] = facts_by_place.get(place, limits) & limits
    return facts_by_place


def _is_expressible(limit: IndexLimit, unassigned: set[str]) -> bool:
    match limit.bound:
        case ir.Name(id=name):
            return name in unassigned and _can_be_global(limit.index, unassigned)
        case ir.Constant() | None:
            return _can_be_global(limit.index, unassigned)
        case _:
            return False


def _can_be_global(index: ir.Expr, unassigned: set[str]) -> bool:
    """True for `i` and `b * d + t` of parameters: a call may pass a thread's global index in them."""
    match index:
        case ir.Name():
            pass
        case ir.Binary(op="+", left=ir.Name(), right=ir.Binary(op="*", left=ir.Name(), right=ir.Name())):
            pass
        case ir.Binary(op="+", left=ir.Binary(op="*", left=ir.Name(), right=ir.Name()), right=ir.Name()):
            pass
        case _:
            return False
    return set(names_in(index)) <= unassigned


class _Finder:
    """Finds the accesses of `caller`, a kernel or a device function, given the summaries of what it calls."""

    def __init__(self, caller: ir.Kernel, functions: Mapping[str, ir.Kernel], summaries: Mapping[str, Summary]) -> None:
        self.caller = caller
        self.functions = functions
        self.summaries = summaries
        self.facts_by_local = _facts_by_local(caller.body)

    def block(self, block: ir.Block, limits: Facts) -> Iterator[Access]:
        """Every access of `block`, in order. A test adds facts to its branches, and after a branch that jumps away."""
        for stmt in block:
            for expr in expressions(stmt):
                yield from self.expression(expr, limits)
            match stmt:
                case ir.Store(array=array, indices=indices, span=span):
                    yield from self.element(array, indices, limits, span)
                case ir.Print(span=span) | ir.Assert(span=span):
                    yield Access(AccessedIndex(), limits, span)  # an effect that threads past the end must not have
                case ir.If(test=test, body=body, orelse=orelse):
                    yield from self.block(body, limits | self.known_where(test, True))
                    yield from self.block(orelse, limits | self.known_where(test, False))
                    if body and isinstance(body[-1], ir.Return | ir.Continue | ir.Break):
                        limits |= self.known_where(test, False)
                case ir.While(test=test, body=body, orelse=orelse):
                    yield from self.block(body, limits | self.known_where(test, True))
                    yield from self.block(orelse, limits)
                case ir.For(body=body, orelse=orelse):
                    yield from self.block(body, limits)
                    yield from self.block(orelse, limits)

    def expression(self, expr: ir.Expr, limits: Facts) -> Iterator[Access]:
        match expr:
            case ir.BoolOp(op=op):
                first, *rest = _terms_of(expr, op)
                yield from self.expression(first, limits)
                before = first
                for term in rest:
                    limits |= self.known_where(before, op == "and")
                    yield from self.expression(term, limits)
                    before = term
            case ir.Select(test=test, then=then, orelse=orelse):
                yield from self.expression(test, limits)
                yield from self.expression(then, limits | self.known_where(test, True))
                yield from self.expression(orelse, limits | self.known_where(test, False))
            case _:
                for child in children(expr):
                    yield from self.expression(child, limits)
                if isinstance(expr, ir.Atomic) and self.caller.is_kernel_local(expr.array):
                    yield Access(AccessedIndex(), limits, expr.span)  # depends on the threads that execute it
                if isinstance(expr, ir.Load | ir.Atomic):
                    yield from self.element(expr.array, expr.indices, limits, expr.span)
                if isinstance(expr, ir.DeviceCall):
                    yield from self.call(expr, limits)

    def known_where(self, test: ir.Expr, holds: bool) -> Facts:
        """The facts that follow from a test. A local that holds a comparison counts as the comparison."""
        # rule: guard-in-local
        return facts_from_test(test, holds).union(*(self.facts_by_local.get(name, ()) for name in names_in(test)))

    def call(self, call: ir.DeviceCall, limits: Facts) -> Iterator[Access]:
        """The accesses of the called function, translated into the caller's terms."""
        arguments = self.caller.bind(call, self.functions[call.function])

        def translate(expr: ir.Expr) -> ir.Expr:
            return rebuild(expr, lambda node: arguments[node.id] if isinstance(node, ir.Name) else node)

        for place, facts in self.summaries[call.function].items():
            translated = (_below(translate(fact.index), fact.bound and translate(fact.bound)) for fact in facts)
            inner = limits.union(*translated)
            if place.index is None:
                yield Access(place, inner, call.span)
                continue
            array = arguments[place.array]
            assert isinstance(array, ir.ArrayName)
            if not self.caller.is_kernel_local(array.id):
                yield Access(AccessedIndex(array.id, place.dim, translate(place.index)), inner, call.span)

    def element(self, array: str, indices: tuple[ir.Expr, ...], limits: Facts, span: Span) -> Iterator[Access]:
        """The accesses of an element, one per index; arrays that the kernel declares need no guard."""
        if self.caller.is_kernel_local(array):  # rule: view-local
            return
        for dim, index in enumerate(indices):
            yield Access(AccessedIndex(array, dim, index), limits, span)
        if not indices:
            yield Access(AccessedIndex(), limits, span)


# --- locals -------------------------------------------------------------------------------------------------------


def _facts_by_local(body: ir.Block) -> dict[str, Facts]:
    """The comparisons that the value of each local depends on: `valid = i < n`, and locals computed from `valid`."""
    facts: dict[str, Facts] = {}
    while True:
        before = dict(facts)
        _add_facts(body, frozenset(), facts)
        if facts == before:
            return {name: limits for name, limits in facts.items() if limits}


def _add_facts(block: ir.Block, known: Facts, facts: dict[str, Facts]) -> None:
    """Add the facts of the locals that `block` assigns; `known` are the facts of the conditions around it."""
    for stmt in block:
        match stmt:
            case ir.Assign(name=name, value=value):
                facts[name] = facts.get(name, frozenset()) | known | _compared_in(value, facts)  # rule: guard-known
            case ir.If(test=test) | ir.While(test=test):
                for inner in blocks(stmt):
                    _add_facts(inner, known | _compared_in(test, facts), facts)
            case _:
                for inner in blocks(stmt):
                    _add_facts(inner, known, facts)


def _compared_in(expr: ir.Expr, facts: Mapping[str, Facts]) -> Facts:
    """The indices that `expr` compares, itself or through locals."""
    compared = set().union(*(facts.get(name, ()) for name in names_in(expr)))
    for node in walk(expr):
        if isinstance(node, ir.Compare) and node.op in ("<", "<=", ">", ">="):
            compared |= {IndexLimit(side, None) for side, end in _sides(node) if not _is_start(end)}  # rule: from-start
    return frozenset(compared)


def _terms_of(expr: ir.Expr, op: str) -> list[ir.Expr]:
    """`a`, `b` and `c` of `a and b and c`."""
    terms: list[ir.Expr] = []
    while isinstance(expr, ir.BoolOp) and expr.op == op:
        terms.append(expr.right)
        expr = expr.left
    return [expr, *reversed(terms)]


def _sides(test: ir.Compare) -> tuple[tuple[ir.Expr, ir.Expr], tuple[ir.Expr, ir.Expr]]:
    """Both sides of a comparison, each with the other side."""
    return (test.left, test.right), (test.right, test.left)


def _is_start(end: ir.Expr) -> bool:
    """True for the bound of `0 < i` and `i >= 1`, which compare with the start of an array."""
    return isinstance(end, ir.Constant) and end.value <= 1


# --- limits -------------------------------------------------------------------------------------------------------


def facts_from_test(test: ir.Expr, holds: bool) -> Facts:
    """The facts that follow where `test` is true (`holds`) or false."""
    match test:
        case ir.Compare(op="<" | "<=" | ">" | ">=" as op, left=left, right=right):
            small, large = (left, right) if op.startswith("<") is holds else (right, left)
            return _below(small, large) if op.endswith("=") is not holds else _up_to(small, large)
        case ir.BoolOp(op=op, left=left, right=right) if (op == "and") is holds:
            return facts_from_test(left, holds) | facts_from_test(right, holds)
        case ir.Unary(op="not", operand=operand):
            return facts_from_test(operand, not holds)
        case _:
            return frozenset()


def _up_to(small: ir.Expr, large: ir.Expr) -> Facts:
    """The facts of `small <= large`: `i <= n - 1` is `i < n`; other bounds prove nothing about an extent."""
    match large:
        case ir.Binary(op="-", left=bound, right=ir.Constant(value=1)):
            return _below(small, bound)
        case _:
            return _below(small, None)


def _below(small: ir.Expr, bound: ir.Expr | None) -> Facts:
    """The facts of `small < bound`: `i + 1 < n` also bounds `i`; other names in `small` count as compared."""
    compared = (small, *(node for node in walk(small) if isinstance(node, ir.Name)))
    return frozenset(IndexLimit(index, None) for index in compared) | {
        IndexLimit(index, bound) for index in _no_more_than(small)
    }


def _is_quotient(small: ir.Expr | None, large: ir.Expr | None) -> bool:
    """True if both divide one extent, `small` by the greater number."""
    match small, large:
        case (
            ir.Binary(op="//", left=ir.Name() as extent, right=ir.Constant(value=by)),
            ir.Binary(op="//", left=other, right=ir.Constant(value=less)),
        ):
            return extent == other and by >= less > 0  # rule: guard-quotient
        case _:
            return False


def _no_more_than(expr: ir.Expr) -> Iterator[ir.Expr]:
    """Expressions that are certainly not greater than `expr`: `i + 1` and `i` for `i + 1`."""
    yield expr
    match expr:
        case ir.Binary(op="+", left=left, right=ir.Constant(value=value)) if value >= 0:
            yield from _no_more_than(left)
        case ir.Binary(op="+", left=ir.Constant(value=value), right=right) if value >= 0:
            yield from _no_more_than(right)
