"""Inserts a yield into every loop that spins on an atomic, so that other threads of the CPU can run.

    while atomic.cas(lock, 0, 0, 1) != 0:        while atomic.cas(lock, 0, 0, 1) != 0:
        pass                                →        yield_now()

Loops that spin on an element with a fence in their body yield as well, and `for` loops with a `break` that such a test
controls. In a loop around a barrier the block yields to other blocks.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, field

from py2cu import ir
from py2cu.analysis.call_graph import functions_with
from py2cu.analysis.effects import YIELD
from py2cu.diagnostics import Reporter
from py2cu.ir.rewrite import map_blocks, with_fields
from py2cu.ir.visit import all_expressions, blocks, expressions, statements, walk
from py2cu.targets.cpu.inline_collectives import is_cut


def insert_yields(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """The kernel and its device functions, with a yield in every spin loop."""
    asking = functions_with(kernel, _updates)
    functions = tuple(_with_calls(function, asking) for function in kernel.functions)
    return with_fields(_with_calls(kernel, asking), functions=functions)


def _updates(function: ir.Kernel) -> bool:
    return any(isinstance(node, ir.Atomic) for node in all_expressions(function.body))


def _with_calls(caller: ir.Kernel, asking: Collection[str]) -> ir.Kernel:
    if not any(isinstance(stmt, ir.For | ir.While) for stmt in statements(caller.body)):
        return caller
    return with_fields(caller, body=_block(caller.body, asking))


def _block(block: ir.Block, asking: Collection[str]) -> ir.Block:
    return tuple(_statement(stmt, asking) for stmt in block)


def _statement(stmt: ir.Stmt, asking: Collection[str]) -> ir.Stmt:
    stmt = map_blocks(stmt, lambda block: _block(block, asking))
    if isinstance(stmt, ir.For | ir.While) and _waits(stmt, asking):
        return with_fields(stmt, body=(ir.Sync(YIELD, span=stmt.span), *stmt.body))
    return stmt


def _waits(loop: ir.For | ir.While, asking: Collection[str]) -> bool:
    """True for a spin loop: it ends once it reads what another thread has written."""
    if is_cut((loop,)) and not _Outcomes(asking, has_fence=False).are_in(loop):
        return False
    has_fence = any(isinstance(stmt, ir.Sync) and stmt.function != YIELD for stmt in statements(loop.body))
    return _Outcomes(asking, has_fence).end(loop)


@dataclass(slots=True)
class _Outcomes:
    """What hangs on atomic operations in a loop, and on loads where it `has_fence`; `asking` functions make such."""

    asking: Collection[str]
    has_fence: bool
    names: set[str] = field(default_factory=set)

    def are_in(self, loop: ir.For | ir.While) -> bool:
        """True where there is any in `loop`."""
        return any(map(self.of, (*expressions(loop), *all_expressions(loop.body))))

    def end(self, loop: ir.For | ir.While) -> bool:
        """True where they end `loop`."""
        before = -1
        while before < len(self.names):
            before = len(self.names)
            leaves = self.block(loop.body, hangs=False, in_loop=True)
        return leaves or (isinstance(loop, ir.While) and self.of(loop.test))

    def of(self, expr: ir.Expr) -> bool:
        return any(map(self.tells, walk(expr)))

    def tells(self, node: ir.Expr) -> bool:
        match node:
            case ir.Atomic():
                return True
            case ir.Load():
                return self.has_fence
            case ir.DeviceCall(function=function):
                return function in self.asking
            case ir.Name(id=name):
                return name in self.names
            case _:
                return False

    def block(self, block: ir.Block, *, hangs: bool, in_loop: bool) -> bool:
        """Whether outcomes decide that the loop is left here, where they decide (`hangs`) whether this runs at all;
        enters the names that they decide about. `in_loop`: a `break` here is that of the loop.
        """
        leaves = False
        for stmt in block:
            match stmt:
                case ir.Assign(name=name, value=value) if hangs or self.of(value):
                    self.names.add(name)
                case ir.Break() if in_loop:
                    leaves |= hangs
                case ir.Return():
                    leaves |= hangs
            inside = hangs or (isinstance(stmt, ir.If | ir.While) and self.of(stmt.test))
            for inner in blocks(stmt):
                leaves |= self.block(inner, hangs=inside, in_loop=in_loop and not isinstance(stmt, ir.For | ir.While))
        return leaves
