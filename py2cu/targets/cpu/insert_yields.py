"""Inserts a yield into every loop that spins on an atomic, so that other threads of the CPU can run.

    while atomic.cas(lock, 0, 0, 1) != 0:        while atomic.cas(lock, 0, 0, 1) != 0:
        pass                                →        yield_now()

A loop that spins on a load, with a fence in its body, yields as well, and so does a `for` loop whose `break` depends on
such a test. In a loop around a barrier the block yields to other blocks.
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
from py2cu.targets.cpu.inline_collectives import contains_barrier


def insert_yields(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """The kernel and its device functions, with a yield in every spin loop."""
    atomic_functions = functions_with(kernel, _has_atomic)
    functions = tuple(_with_yields(function, atomic_functions) for function in kernel.functions)
    return with_fields(_with_yields(kernel, atomic_functions), functions=functions)


def _has_atomic(function: ir.Kernel) -> bool:
    return any(isinstance(node, ir.Atomic) for node in all_expressions(function.body))


def _with_yields(caller: ir.Kernel, atomic_functions: Collection[str]) -> ir.Kernel:
    if not any(isinstance(stmt, ir.For | ir.While) for stmt in statements(caller.body)):
        return caller
    return with_fields(caller, body=_block(caller.body, atomic_functions))


def _block(block: ir.Block, atomic_functions: Collection[str]) -> ir.Block:
    return tuple(_statement(stmt, atomic_functions) for stmt in block)


def _statement(stmt: ir.Stmt, atomic_functions: Collection[str]) -> ir.Stmt:
    stmt = map_blocks(stmt, lambda block: _block(block, atomic_functions))
    if isinstance(stmt, ir.For | ir.While) and _is_spin_loop(stmt, atomic_functions):
        return with_fields(stmt, body=(ir.Sync(YIELD, span=stmt.span), *stmt.body))
    return stmt


def _is_spin_loop(loop: ir.For | ir.While, atomic_functions: Collection[str]) -> bool:
    """True for a spin loop: it ends once it reads what another thread has written."""
    if contains_barrier((loop,)) and not _Dependence(atomic_functions, has_fence=False).is_in(loop):
        return False
    has_fence = any(isinstance(stmt, ir.Sync) and stmt.function != YIELD for stmt in statements(loop.body))
    return _Dependence(atomic_functions, has_fence).ends(loop)


@dataclass(slots=True)
class _Dependence:
    """Finds what depends on atomic operations in a loop, and on loads if the loop `has_fence`.

    `atomic_functions` are the device functions that contain atomic operations; `names` are the dependent locals so far.
    """

    atomic_functions: Collection[str]
    has_fence: bool
    names: set[str] = field(default_factory=set)

    def is_in(self, loop: ir.For | ir.While) -> bool:
        """True if an expression of `loop` is dependent."""
        return any(map(self.depends, (*expressions(loop), *all_expressions(loop.body))))

    def ends(self, loop: ir.For | ir.While) -> bool:
        """True if a dependent condition controls an exit of `loop`."""
        before = -1
        while before < len(self.names):
            before = len(self.names)
            leaves = self.block(loop.body, controlled=False, in_loop=True)
        return leaves or (isinstance(loop, ir.While) and self.depends(loop.test))

    def depends(self, expr: ir.Expr) -> bool:
        return any(map(self.is_source, walk(expr)))

    def is_source(self, node: ir.Expr) -> bool:
        match node:
            case ir.Atomic():
                return True
            case ir.Load():
                return self.has_fence
            case ir.DeviceCall(function=function):
                return function in self.atomic_functions
            case ir.Name(id=name):
                return name in self.names
            case _:
                return False

    def block(self, block: ir.Block, *, controlled: bool, in_loop: bool) -> bool:
        """True if a dependent condition controls an exit of the loop in `block`; adds the dependent `names`.

        `controlled`: such a condition controls `block` itself. `in_loop`: a `break` in `block` leaves the loop.
        """
        leaves = False
        for stmt in block:
            match stmt:
                case ir.Assign(name=name, value=value) if controlled or self.depends(value):
                    self.names.add(name)
                case ir.Break() if in_loop:
                    leaves |= controlled
                case ir.Return():
                    leaves |= controlled
            inside = controlled or (isinstance(stmt, ir.If | ir.While) and self.depends(stmt.test))
            for inner in blocks(stmt):
                leaves |= self.block(
                    inner, controlled=inside, in_loop=in_loop and not isinstance(stmt, ir.For | ir.While)
                )
        return leaves
