"""Splits a kernel body at its barriers for the CPU, where one OS thread runs a block: every thread of the block runs a
region before any runs the next one.

    s[t] = x[t]                      each thread: s[t] = x[t]
    for k in range(n):               for k in range(n):
        syncthreads()           →        each thread: v = s[t + k]
        v = s[t + k]                     each thread: s[t] = v
        syncthreads()
        s[t] = v                     v is kept for each thread

Uniform loops and conditions around barriers move to block scope, and so do uniform locals; `region_liveness` places the
other locals. Where control flow around a barrier diverges, as the warps of a block may around `syncwarp`, each thread
keeps a mask that says whether it takes part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from py2cu import ir
from py2cu.analysis.account import elided_in
from py2cu.analysis.call_graph import callees, functions_with
from py2cu.analysis.effects import (
    YIELD,
    contains_yield,
    is_active_mask,
    is_block_vote,
    is_collective,
    is_grid_barrier,
    is_wait,
)
from py2cu.diagnostics import Reporter
from py2cu.ir.names import free_name, names_in_scope
from py2cu.ir.rewrite import map_blocks, rebuild_statements, with_fields
from py2cu.ir.visit import all_expressions, blocks, expressions, names_in, statements
from py2cu.passes.lowering.index_arithmetic import without_indices
from py2cu.targets.cpu.divergent_loops import has_next_round, replace_exits, statements_of_loop, with_variable
from py2cu.targets.cpu.inline_collectives import CannotSplit, contains_barrier, lift_waiting_calls
from py2cu.targets.cpu.private_values import find_private, find_private_views, with_private_parameters
from py2cu.targets.cpu.region_liveness import Uses, assigned_by, changed_by, mentioned_by, place_computed


def split_at_barriers(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """The kernel split into regions, without its barriers; `per_thread` lists the locals that each thread keeps.

    Raises:
        CannotSplit: threads wait where the body cannot be split.
    """
    kernel = with_private_parameters(lift_waiting_calls(without_indices(kernel)))
    names, varies = find_private(kernel)
    views = find_private_views(kernel, varies)
    bases = {decl.name: decl.base for decl in kernel.array_decls if decl.base}
    waiting = functions_with(kernel, lambda function: contains_yield(function.body))
    asserting = functions_with(
        kernel, lambda function: any(isinstance(s, ir.Assert) for s in statements(function.body))
    )
    scalars = frozenset(name for name, _ in kernel.row_lengths)
    while True:  # an assignment at block scope splits regions, which may separate the uses of other locals
        splitter = BarrierSplitter(kernel, varies, scalars, views, waiting, asserting)
        body = splitter.split_body()
        uses = Uses(bases)
        uses.block(body, ())
        uniform = scalars | (
            uses.shared_between_regions & uses.assigned_openly - names - splitter.locals.keys() - splitter.scalars
        )
        if uniform == scalars:
            break
        scalars = uniform
    types: dict[str, ir.ValueType] = dict(kernel.locals) | splitter.locals
    wanted = (uses.shared_between_regions | splitter.locals.keys()) - splitter.scalars
    computed = uses.find_computed(wanted - splitter.locals.keys(), {*types, *views})
    candidates = [
        *(name for name in types if name in uses.definitions),
        *(decl.name for decl in kernel.array_decls if decl.space is ir.Space.LOCAL),
    ]
    per_thread = tuple(name for name in candidates if name in wanted - computed.keys())
    for decl in kernel.array_decls:
        if decl.name in views & (wanted - computed.keys()):
            what = f"`{decl.name}`, which begins elsewhere for each thread, is used before and after a wait"
            raise CannotSplit(what, decl.span)
    body = place_computed(body, computed, types, frozenset(per_thread))
    elided = kernel.elided + tuple(splitter.elided)
    return with_fields(kernel, body=body, locals=tuple(types.items()), per_thread=per_thread, elided=elided)


# --- cuts -------------------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class BarrierSplitter:
    """Splits one kernel body; `scalars` are the locals at block scope, `locals` those that splitting adds."""

    kernel: ir.Kernel
    varies: Callable[[ir.Expr], bool]
    scalars: frozenset[str]
    views: frozenset[str]
    waiting: frozenset[str]  # functions in which a thread may wait for any other
    asserting: frozenset[str]  # functions in which an `assert` may fail
    locals: dict[str, ir.ValueType] = field(default_factory=dict)
    stays: ir.Name | None = None  # the mask of threads that have not returned, if later regions need it
    returning: int = 0  # the number of regions in which threads return
    ends_returning: bool = False  # whether threads return in the last region
    elided: list[ir.Elided] = field(default_factory=list)  # the barriers

    def split_body(self) -> ir.Block:
        """The body as regions and statements at block scope."""
        *most, last = self.block(self.kernel.body, (), in_loop=False)
        if self.returning == (isinstance(last, ir.EachThread) and self.ends_returning):
            return (*most, last)
        self.stays = self.local("stays")
        everyone = ir.Assign(self.stays.id, ir.Constant(True, type=ir.PY_BOOL))
        body = rebuild_statements(self.kernel.body, self.returned)
        return (ir.EachThread((everyone,)), *self.block(body, (self.stays,), in_loop=False))

    def block(self, block: ir.Block, masks: tuple[ir.Name, ...], *, in_loop: bool) -> Iterator[ir.Stmt]:
        """Split a block into regions and statements at block scope, for the threads whose `masks` are all true.

        Grid barriers and yields stay at block scope. `in_loop`: the block is in a loop at block scope.
        """
        piece: list[ir.Stmt] = []
        for stmt in block:
            if is_wait(stmt):
                yield from self.region(piece, masks)
                self.elided += elided_in((stmt,), ir.Elision.CUT)
                if is_grid_barrier(stmt):  # rule: blocks-cut
                    yield stmt
                elif stmt.trivia != ir.BARE:
                    yield ir.Comment(stmt.span, stmt.trivia)
            elif isinstance(stmt, ir.Sync) and stmt.function == YIELD:  # of a loop around barriers
                yield stmt
            elif isinstance(stmt, ir.Assign) and is_collective(stmt.value):
                yield from self.exchange(stmt, piece, masks)
            elif self.is_block_wide(stmt, masks, in_loop):
                yield from self.region(piece, masks)
                yield map_blocks(stmt, partial(self.nested, masks, in_loop or isinstance(stmt, ir.For | ir.While)))
            elif self.is_shared(stmt):
                if self.conflicts(stmt, piece):
                    yield from self.region(piece, masks)
                yield stmt
            elif contains_barrier((stmt,)):
                yield from self.split_divergent(stmt, piece, masks)
            else:
                piece.append(stmt)
        yield from self.region(piece, masks)

    def nested(self, masks: tuple[ir.Name, ...], in_loop: bool, block: ir.Block) -> ir.Block:
        return tuple(self.block(block, masks, in_loop=in_loop))

    def is_block_wide(self, stmt: ir.Stmt, masks: tuple[ir.Name, ...], in_loop: bool) -> bool:
        """True for uniform loops and conditions around barriers, and for the exits of such loops."""
        match stmt:
            case ir.Break() | ir.Continue():
                return in_loop
            case ir.Return():
                return contains_barrier(self.kernel.body) and not masks
            case ir.If(test=test, body=body, orelse=orelse):
                leaves = any(self.is_block_wide(inner, masks, in_loop) for inner in (*body, *orelse))
                return (leaves or contains_barrier((stmt,))) and not self.differs(test)
            case ir.For() | ir.While():
                is_uniform = not any(map(self.differs, expressions(stmt)))
                return is_uniform and contains_barrier((stmt,)) and not self.has_divergent_exit(stmt.body)
            case _:
                return False

    def differs(self, expr: ir.Expr) -> bool:
        """True where the value of `expr` may differ between threads."""
        private = self.locals.keys() - self.scalars
        return self.varies(expr) or not private.isdisjoint(names_in(expr))

    def has_divergent_exit(self, body: ir.Block) -> bool:
        """True for a loop body with a `break` or `continue` under a divergent condition."""
        for stmt in body:
            match stmt:
                case ir.If(test=test):
                    leaves = any(isinstance(inner, ir.Break | ir.Continue) for inner in statements_of_loop((stmt,)))
                    if leaves and (self.differs(test) or any(map(self.has_divergent_exit, blocks(stmt)))):
                        return True
        return False

    def is_shared(self, stmt: ir.Stmt) -> bool:
        """True for statements at block scope: the allocation of a shared array, an assignment to a uniform local."""
        match stmt:
            case ir.Assign(name=name):
                return name in self.scalars
            case ir.Alloc(array=name):
                decl = self.kernel.array_decl(name)
                return decl is not None and decl.space is not ir.Space.LOCAL and name not in self.views
            case _:
                return False

    def conflicts(self, stmt: ir.Stmt, piece: list[ir.Stmt]) -> bool:
        """True where moving `stmt` before `piece` would change a value that either reads."""
        others = [*statements(tuple(piece))]
        used = {self.kernel.base_array(name) for name in mentioned_by(stmt)}
        changing = {self.kernel.base_array(name) for other in others for name in changed_by(other)}
        # rule: shared-cut
        return bool(used & changing) or any(assigned_by(stmt) in set(mentioned_by(other)) for other in others)

    def region(self, piece: list[ir.Stmt], masks: tuple[ir.Name, ...]) -> Iterator[ir.Stmt]:
        """Empty `piece` into a loop over the threads."""
        done, piece[:] = tuple(piece), []
        first = next((stmt for stmt in done if not isinstance(stmt, ir.Comment)), None)
        if first is None:
            yield from done
            return
        self.ends_returning = _returns(done)
        self.returning += self.ends_returning
        yield ir.EachThread((*map(_leave_unless, masks), *done), self.turns(done), first.span)

    def turns(self, block: ir.Block, *, counts: bool = False) -> ir.ThreadOrder:
        """The order in which threads run `block`: any, sequential (which `counts` asks for), or as fibers."""
        if contains_yield(block) or not self.waiting.isdisjoint(callees(block)):
            return ir.ThreadOrder.WAITING
        # rule: assert-in-block
        counts = counts or any(isinstance(node, ir.Atomic) for node in all_expressions(block)) or self.asserts(block)
        return ir.ThreadOrder.IN_ORDER if counts else ir.ThreadOrder.ANY

    def asserts(self, block: ir.Block) -> bool:
        """True where a thread may fail an `assert`: later threads of its block do not run then."""
        asserts_itself = any(isinstance(stmt, ir.Assert) for stmt in statements(block))
        return asserts_itself or not self.asserting.isdisjoint(callees(block))

    def returned(self, stmt: ir.Stmt) -> ir.Block:
        """Clears the thread's mask before it returns."""
        assert self.stays is not None
        if not isinstance(stmt, ir.Return):
            return (stmt,)
        return (
            ir.Assign(self.stays.id, ir.Constant(False, type=ir.PY_BOOL), stmt.span, stmt.trivia),
            replace(stmt, trivia=ir.BARE),
        )

    # --- collective operations ---

    def exchange(self, stmt: ir.Assign, piece: list[ir.Stmt], masks: tuple[ir.Name, ...]) -> Iterator[ir.Stmt]:
        """A vote or a shuffle: each thread stores its operand, and reads the others' in the next region."""
        call = stmt.value
        assert isinstance(call, ir.Call)
        if is_block_vote(call):
            yield from self.region(piece, masks)
            yield from self.vote(stmt, call, masks)
            return
        if is_active_mask(call):
            yield from self.region(piece, masks)
            active = self.local("active")
            yield ir.EachThread((ir.Assign(active.id, ir.Constant(False, type=ir.PY_BOOL)),), span=stmt.span)
            piece.append(ir.Assign(active.id, ir.Constant(True, type=ir.PY_BOOL), stmt.span, stmt.trivia))
            call = with_fields(call, args=(ir.Constant(0xFFFFFFFF, call.span, ir.PY_INT), active))
        else:
            value = call.args[1]
            assert not isinstance(value.type, ir.ArrayType | ir.UnknownType)
            operands = self.local("operands", value.type)
            piece.append(ir.Assign(operands.id, value, stmt.span, stmt.trivia))
            call = with_fields(call, args=(call.args[0], operands, *call.args[2:]))
        yield from self.region(piece, masks)
        piece.append(replace(stmt, value=call, trivia=ir.BARE))

    def vote(self, stmt: ir.Assign, call: ir.Call, masks: tuple[ir.Name, ...]) -> Iterator[ir.Stmt]:
        """A vote of the block: a sequential loop over its threads."""
        answer = ir.Name(stmt.name, stmt.span, call.type)
        self.scalars |= {stmt.name}
        (test,) = call.args
        start: int
        condition: ir.Expr = test
        result: ir.Expr = ir.Constant(True, stmt.span, call.type)
        match call.function.rpartition("_")[2]:
            case "count":
                start, result = 0, ir.Binary("+", answer, ir.Constant(1, type=call.type), stmt.span, call.type)
            case "and":
                start, condition, result = (
                    True,
                    ir.Unary("not", test, test.span, ir.PY_BOOL),
                    ir.Constant(False, type=call.type),
                )
            case _:
                start = False
        answered = ir.Assign(stmt.name, result, stmt.span, augmented=isinstance(result, ir.Binary))
        yield ir.Assign(stmt.name, ir.Constant(start, stmt.span, call.type), stmt.span, stmt.trivia)
        body = (*map(_leave_unless, masks), ir.If(condition, (answered,), span=stmt.span))
        yield ir.EachThread(body, self.turns(body, counts=True), stmt.span)

    # --- divergent control flow ---

    def split_divergent(self, stmt: ir.Stmt, piece: list[ir.Stmt], masks: tuple[ir.Name, ...]) -> Iterator[ir.Stmt]:
        """A divergent condition or loop around barriers."""
        if masks and self.awaits_block(stmt):
            # Those threads run only after the loop.
            raise CannotSplit("threads wait for those of another branch of their block", stmt.span)
        match stmt:
            case ir.If(test=test, body=body, orelse=orelse, span=span):
                mask = self.local("takes_part")
                piece.append(ir.Assign(mask.id, test, span, stmt.trivia))
                yield from self.region(piece, masks)
                yield from self.block(body, (*masks, mask), in_loop=False)
                if orelse:
                    piece.append(ir.Assign(mask.id, ir.Unary("not", mask, span, ir.PY_BOOL), span))
                    yield from self.region(piece, masks)
                    yield from self.block(orelse, (*masks, mask), in_loop=False)
            case ir.While(test=test, body=body, span=span):
                yield from self.region(piece, masks)
                yield from self.loop(stmt, test, body, None, masks)
            case ir.For(var=var, start=start, stop=stop, step=step, span=span):
                counter = self.local(var, stmt.type)
                piece.append(ir.Assign(counter.id, start, span, stmt.trivia))
                yield from self.region(piece, masks)
                body = with_variable(stmt.body, var, counter)
                advance = ir.Assign(counter.id, ir.Binary("+", counter, step, span, stmt.type), span, augmented=True)
                yield from self.loop(stmt, has_next_round(counter, stop, step, stmt.direction), body, advance, masks)
            case _:
                raise CannotSplit("threads wait where only some of them come", stmt.span)

    def awaits_block(self, stmt: ir.Stmt) -> bool:
        """True for a loop that spins on shared memory of its block."""
        decls = (self.kernel.array_decl(node.array) for node in all_expressions((stmt,)) if isinstance(node, ir.Atomic))
        shares = any(decl is not None and decl.space is ir.Space.SHARED for decl in decls)
        return shares and isinstance(stmt, ir.For | ir.While) and contains_yield(stmt.body)

    def loop(
        self,
        stmt: ir.For | ir.While,
        test: ir.Expr,
        body: ir.Block,
        advance: ir.Assign | None,
        masks: tuple[ir.Name, ...],
    ) -> Iterator[ir.Stmt]:
        """A loop that threads leave in different rounds: the block runs rounds until the last thread has left."""
        stays, someone = self.local("goes_on"), self.local("someone")
        self.scalars |= {someone.id}
        yes, no = ir.Constant(True, type=ir.PY_BOOL), ir.Constant(False, type=ir.PY_BOOL)
        inside = (*masks, stays)
        left = (inner for inner in statements_of_loop(body) if isinstance(inner, ir.Break | ir.Continue))
        self.elided += (ir.Elided(inner.span, ir.Elision.MASKED) for inner in left)
        leaving: dict[type[ir.Stmt], ir.Block] = {ir.Break: (ir.Assign(stays.id, no), ir.Return())}
        around = inside
        if any(isinstance(inner, ir.Continue) for inner in statements_of_loop(body)):
            this_round = self.local("in_round")
            around = (*inside, this_round)
            leaving[ir.Continue] = (ir.Assign(this_round.id, no), ir.Return())
        first: list[ir.Stmt] = [ir.Assign(this_round.id, yes)] if around != inside else []
        rounds: list[ir.Stmt] = [ir.Assign(someone.id, no)]
        asks = (ir.Assign(stays.id, test, test.span), ir.If(stays, (ir.Assign(someone.id, yes),)))
        turns = self.turns(asks, counts=True)
        rounds.append(ir.EachThread((*map(_leave_unless, inside), *first, *asks), turns, stmt.span))
        rounds.append(ir.If(ir.Unary("not", someone, type=ir.PY_BOOL), (ir.Break(),)))
        rounds += self.block(replace_exits(body, leaving), around, in_loop=False)
        rounds += self.region([advance], inside) if advance else ()
        yield ir.EachThread((*map(_leave_unless, masks), ir.Assign(stays.id, yes)), span=stmt.span)
        yield ir.While(yes, tuple(rounds), stmt.span, replace(stmt.trivia, above=()))

    def local(self, name: str, type_: ir.ScalarType | ir.TupleType = ir.PY_BOOL) -> ir.Name:
        """A new local for the split body."""
        name = free_name(name, names_in_scope(self.kernel) | self.locals.keys())
        self.locals[name] = type_
        return ir.Name(name, type=type_)


def _leave_unless(mask: ir.Name) -> ir.If:
    return ir.If(ir.Unary("not", mask, type=ir.PY_BOOL), (ir.Return(),))


def _returns(block: ir.Block) -> bool:
    return any(isinstance(stmt, ir.Return) for stmt in statements(block))
