"""Predicates accesses one by one in kernels with barriers, where no thread may return early. Past the end, a read gives
zero; a write or an atomic operation that depends on the index does nothing. `early_return` decides which accesses.

    s[t] = x[i]                           s[t] = x[i] if i < n else 0
    syncthreads()                    →    syncthreads()
    v = x[i] - s[0]                       if i < n:
    out[i] = v                                v = x[i] - s[0]
                                              out[i] = v

Adjacent accesses share one `if`, together with locals that only they need.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from py2cu import ir
from py2cu.analysis.accesses import IndexLimit
from py2cu.analysis.effects import is_collective, waiting_functions
from py2cu.analysis.evaluation_order import functions_with_effects
from py2cu.dtypes import Kind
from py2cu.ir.abi.parameters import Guard, PredicatedSite
from py2cu.ir.complex_numbers import of_real
from py2cu.ir.names import names_in_scope
from py2cu.ir.printer import print_expr
from py2cu.ir.rewrite import map_blocks, map_children, map_expressions, with_fields
from py2cu.ir.saved_values import SavedValues
from py2cu.ir.visit import all_expressions, assigned_names, blocks, expressions, statements, walk
from py2cu.source import Span

Needed = Mapping[Span, tuple[IndexLimit, ...]]
"""By span of an access, the limits that its predicate must test."""


def predicate_accesses(kernel: ir.Kernel, needed: Needed) -> ir.Kernel:
    """The kernel with every access of `needed` predicated on its limits."""
    effectful = frozenset(find_effects(kernel))
    saved = SavedValues(names_in_scope(kernel))
    predication = _Predication(needed, _mentions(kernel.body), waiting_functions(kernel), effectful, saved)
    body = predication.block(kernel.body, frozenset())
    locals_ = (*kernel.locals, *saved.locals)
    return with_fields(kernel, body=body, locals=locals_, predicated=_predicated_sites(kernel, needed))


def _predicated_sites(kernel: ir.Kernel, needed: Needed) -> tuple[PredicatedSite, ...]:
    """The predicated accesses, which the simulator skips past the end as well."""
    guards: dict[tuple[str, ir.Expr], Guard] = {(guard.index, guard.extent): guard for guard in kernel.guards}
    calls = {node.span: node for node in all_expressions(kernel.body) if isinstance(node, ir.DeviceCall)}
    origins: dict[Span, list[Span]] = {}
    for node in all_expressions(kernel.body):
        if isinstance(node, ir.Load) and node.origin is not None:
            origins.setdefault(node.span, []).append(node.origin)
    sites: dict[PredicatedSite, None] = {}
    for span, limits in needed.items():
        guards_of_access = tuple(guards[print_expr(limit.index), limit.bound] for limit in limits if limit.bound)
        type_ = calls[span].type if span in calls else None
        result = type_ if isinstance(type_, ir.ElementType | ir.PythonType | ir.TupleType) else None
        for each in (span, *origins.get(span, ())) if guards_of_access else ():
            sites[PredicatedSite(each.end_line, each.end_column, guards_of_access, result)] = None
    return tuple(sites)


def find_effects(kernel: ir.Kernel) -> dict[Span, ir.Atomic | ir.DeviceCall]:
    """By span, the expressions with side effects: atomic operations, and calls of functions that write or print.

    Functions with barriers are left out: all threads must call them.
    """
    effectful = functions_with_effects(kernel) - waiting_functions(kernel)
    nodes = [node for node in all_expressions(kernel.body) if isinstance(node, ir.Atomic | ir.DeviceCall)]
    return {node.span: node for node in nodes if isinstance(node, ir.Atomic) or node.function in effectful}


@dataclass(frozen=True, slots=True)
class _Predication:
    """Predicates the accesses of one kernel.

    `mentions` counts the occurrences of each local. `waiting` holds the functions with barriers or collectives,
    `effectful` the spans of expressions with side effects, `saved` the values that no guard may skip.
    """

    needed: Needed
    mentions: Counter[str]
    waiting: frozenset[str]
    effectful: frozenset[Span]
    saved: SavedValues

    def block(self, block: ir.Block, known: frozenset[IndexLimit]) -> ir.Block:
        """`block` with its accesses predicated; the limits in `known` hold already."""
        block = tuple(each for stmt in block for each in self.lifted(stmt, known))
        guarded_block: list[ir.Stmt] = []
        at = 0
        while at < len(block):
            end = self.widest_guardable_run(block, at, known)
            if end == at:
                guarded_block += self.statement(block[at], known)
            else:
                guarded_block.append(self.guarded(block[at:end], known))
            at = max(end, at + 1)
        return tuple(guarded_block)

    # --- collectives ---

    def waits(self, expr: ir.Expr) -> bool:
        """True if `expr` contains a collective, which threads past the end must execute too."""
        return any(n.function in self.waiting if isinstance(n, ir.DeviceCall) else is_collective(n) for n in walk(expr))

    def has_effects_beyond(self, value: ir.Expr, span: Span, known: frozenset[IndexLimit]) -> bool:
        """True if a call in `value` has side effects under other limits than the statement at `span`."""
        limits_here = set(self.limits(span, known))
        calls = (node.span for node in walk(value) if isinstance(node, ir.DeviceCall))
        return any(call in self.effectful and set(self.limits(call, known)) != limits_here for call in calls)

    def lifted(self, stmt: ir.Stmt, known: frozenset[IndexLimit]) -> ir.Block:
        """`stmt`, preceded by assignments of the values that its guard must not skip: those of collectives, and of
        calls with side effects under other limits.
        """

        def lift(value: ir.Expr) -> ir.Expr:
            if not self.waits(value) and not self.has_effects_beyond(value, stmt.span, known):
                return value
            return self.saved.save(value)

        match stmt:
            case ir.Store(value=value, span=span) if self.limits(span, known):
                lifted = lift(value)
                stmt = with_fields(stmt, value=lifted, augmented=stmt.augmented and lifted is value)
            case ir.ExprStmt(call=ir.Atomic(values=values, span=span) as call) if self.limits(span, known):
                stmt = with_fields(stmt, call=with_fields(call, values=tuple(map(lift, values))))
        return self.saved.ahead_of(stmt)

    # --- groups ---

    def widest_guardable_run(self, block: ir.Block, at: int, known: frozenset[IndexLimit]) -> int:
        """The end of the longest group from `at` that one guard can hold; `at` if there is none."""
        if not self.lacks(block[at], known):
            return at
        limits: tuple[IndexLimit, ...] = ()
        best = at
        for end, stmt in enumerate(block[at:], at + 1):
            effects = set(self.effects(stmt, known))
            if len(effects) > 1 or (limits and effects - {limits}) or () in effects:
                break
            limits = limits or next(iter(effects), ())
            if effects and self.is_closed(block[at:end]):
                best = end
        return best

    def lacks(self, stmt: ir.Stmt, known: frozenset[IndexLimit]) -> bool:
        """True if an access in `stmt` lacks a guard."""
        return any(self.limits(span, known) for span in _spans(stmt))

    def effects(
        self, stmt: ir.Stmt, known: frozenset[IndexLimit], in_loop: bool = False
    ) -> Iterator[tuple[IndexLimit, ...]]:
        """The limits of each side effect of `stmt`; () for an effect without limits."""
        if any(map(self.waits, expressions(stmt))):  # rule: guard-waits
            yield ()
        match stmt:
            case ir.Store(span=span) | ir.ExprStmt(call=ir.DeviceCall(span=span) | ir.Atomic(span=span)):
                yield self.limits(span, known)
                calls = (n.span for expr in expressions(stmt) for n in walk(expr) if isinstance(n, ir.DeviceCall))
                yield from (self.limits(call, known) for call in calls if call in self.effectful)
            case ir.Break() | ir.Continue() if in_loop:
                pass
            case ir.Assign() | ir.Comment() | ir.Delete() | ir.If() | ir.For() | ir.While():
                for expr in expressions(stmt):
                    yield from (self.limits(n.span, known) for n in walk(expr) if isinstance(n, ir.Atomic))
                    yield from (() for node in walk(expr) if isinstance(node, ir.DeviceCall))
                for inner in (inner for block in blocks(stmt) for inner in block):
                    yield from self.effects(inner, known, in_loop or isinstance(stmt, ir.For | ir.While))
            case _:
                yield ()

    def is_closed(self, group: ir.Block) -> bool:
        """True if the names that the group assigns occur nowhere else."""
        counts = _mentions(group)
        return all(counts[name] == self.mentions[name] for name in assigned_names(group))  # rule: guard-group

    def guarded(self, group: ir.Block, known: frozenset[IndexLimit]) -> ir.If:
        """`group` in an `if` on the limits of its side effects."""
        limits = next(limits_of_effect for stmt in group for limits_of_effect in self.effects(stmt, known))
        first, *rest = self.block(group, known | frozenset(limits))
        if isinstance(first, ir.If) and not (rest or first.orelse):
            return with_fields(first, test=ir.BoolOp("and", _test(limits), first.test, type=ir.PY_BOOL))
        comments = replace(first.trivia, beside="")
        first = replace(first, trivia=replace(first.trivia, above=()))
        return ir.If(_test(limits), (first, *rest), span=group[0].span, trivia=comments)

    # --- single statements ---

    def statement(self, stmt: ir.Stmt, known: frozenset[IndexLimit]) -> ir.Block:
        """One statement, guarded as a whole, or with its reads predicated."""
        match stmt:
            case ir.Store(span=span) | ir.ExprStmt(call=ir.DeviceCall(span=span) | ir.Atomic(span=span)) if self.limits(
                span, known
            ):
                return (self.guarded((stmt,), known),)
        stmt = map_expressions(stmt, lambda expr: self.expression(expr, known))
        return (map_blocks(stmt, lambda block: self.block(block, known)),)

    def expression(self, expr: ir.Expr, known: frozenset[IndexLimit]) -> ir.Expr:
        """`expr` with zero in place of every access past the end."""
        inner = map_children(expr, lambda child: self.expression(child, known))
        match inner:
            case ir.Load(span=span) | ir.DeviceCall(span=span) | ir.Atomic(span=span) if limits := self.limits(
                span, known
            ):
                return ir.Select(_test(limits), inner, _zero(inner.type, span), span, inner.type)
            case _:
                return merge_selects(inner)

    def limits(self, span: Span, known: frozenset[IndexLimit]) -> tuple[IndexLimit, ...]:
        return tuple(limit for limit in self.needed.get(span, ()) if limit not in known)


def merge_selects(expr: ir.Expr) -> ir.Expr:
    """Merge two selects with the same test: `x[i] * y[i] if i < n else 0`, since the operation keeps zeros zero."""
    match expr:
        case ir.Binary(op="+" | "-" | "*", left=ir.Select() as a, right=ir.Select() as b) if (
            a.test == b.test and _is_zero(a.orelse) and _is_zero(b.orelse)
        ):
            then = with_fields(expr, left=a.then, right=b.then)
            return ir.Select(a.test, then, _zero(expr.type, expr.span), expr.span, expr.type)
        case ir.Convert(value=ir.Select() as a) if _is_zero(a.orelse) and not ir.is_complex(expr.type):
            return ir.Select(a.test, with_fields(expr, value=a.then), _zero(expr.type, expr.span), expr.span, expr.type)
        case _:
            return expr


def _is_zero(expr: ir.Expr) -> bool:
    return isinstance(expr, ir.Constant) and expr.value == 0


def _zero(type_: object, span: Span) -> ir.Expr:
    """Zero of a scalar type, or a row of zeros."""
    if isinstance(type_, ir.TupleType):
        return ir.Tuple(tuple(_zero(item, span) for item in type_.items), span, type_)
    assert isinstance(type_, ir.ElementType | ir.PythonType), type_
    if ir.is_complex(type_):
        part: ir.ScalarType = ir.part_of(type_)
        return of_real(ir.Constant(0.0, span, part), type_)
    return ir.Constant({Kind.BOOL: False, Kind.FLOAT: 0.0}.get(ir.kind_of(type_), 0), span, type_)


def _test(limits: tuple[IndexLimit, ...]) -> ir.Expr:
    """`r < h and c < w`."""
    test: ir.Expr | None = None
    for limit in limits:
        assert limit.bound is not None, limit
        inside = ir.Compare("<", limit.index, limit.bound)
        test = inside if test is None else ir.BoolOp("and", test, inside, type=inside.type)
    assert test is not None
    return test


def _spans(stmt: ir.Stmt) -> Iterator[Span]:
    """The spans of the accesses and calls in `stmt` and its nested statements."""
    for inner in statements((stmt,)):
        if isinstance(inner, ir.Store):
            yield inner.span
        for expr in expressions(inner):
            yield from (node.span for node in walk(expr) if isinstance(node, ir.Load | ir.Atomic | ir.DeviceCall))


def _mentions(block: ir.Block) -> Counter[str]:
    """How often each local is assigned or read in `block`; the variable of a loop does not count inside it."""
    counts: Counter[str] = Counter()
    for stmt in block:
        counts.update(node.id for expr in expressions(stmt) for node in walk(expr) if isinstance(node, ir.Name))
        for inner in blocks(stmt):
            counts.update(_mentions(inner))
        match stmt:
            case ir.Assign(name=name) | ir.Delete(name=name):
                counts[name] += 1
            case ir.For(var=var, body=body) if var not in assigned_names(body):
                counts[var] -= _mentions(body)[var]
    return counts


def data_dependents(block: ir.Block, name: str) -> frozenset[str]:
    """`name`, and all locals whose values depend on it."""
    dependents = {name}
    while True:
        before = len(dependents)
        for stmt in statements(block):
            match stmt:
                case ir.Assign(name=target) | ir.For(var=target):
                    if any(isinstance(n, ir.Name) and n.id in dependents for e in expressions(stmt) for n in walk(e)):
                        dependents.add(target)
        if len(dependents) == before:
            return frozenset(dependents)


def as_limit(index: str, extent: ir.Expr) -> IndexLimit:
    """The limit `index < extent` of an element index."""
    return IndexLimit(ir.Name(index, type=ir.PY_INT), extent)
