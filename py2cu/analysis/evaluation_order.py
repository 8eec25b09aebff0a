"""Which device functions have effects, and whose calls stand where C++ leaves the order of evaluation open."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain

from py2cu import ir
from py2cu.analysis.call_graph import functions_with
from py2cu.analysis.effects import Footprint, footprint, footprint_of_function, is_block_vote, waiting_functions
from py2cu.ir.visit import all_expressions, children, expressions, statements, walk


def functions_with_effects(kernel: ir.Kernel) -> frozenset[str]:
    """The keys of the device functions that write, print or assert."""
    functions = {function.key: function for function in kernel.functions}
    return frozenset(key for key in functions if footprint_of_function(key, functions).has_effects)


def asserting_functions(kernel: ir.Kernel) -> frozenset[str]:
    """The keys of the device functions that assert, and neither write nor print nor wait for other threads."""
    functions = {function.key: function for function in kernel.functions}
    writing = {key for key in functions if footprint_of_function(key, functions).stores}
    printing = functions_with(kernel, lambda function: any(isinstance(s, ir.Print) for s in statements(function.body)))
    return functions_with_effects(kernel) - writing - printing - waiting_functions(kernel)


def unordered_calls(stmt: ir.Stmt, effectful: frozenset[str]) -> Iterator[ir.Expr]:
    """The calls of `effectful` functions in `stmt` that an operand may observe, where C++ leaves their order open."""

    def acts(node: ir.Expr) -> bool:
        return isinstance(node, ir.DeviceCall) and node.function in effectful

    def observes(operand: ir.Expr) -> bool:
        return any(isinstance(node, ir.Load | ir.ArrayName) or acts(node) for node in walk(operand))

    yield from _Operands(acts, observes).statement(stmt)


def unordered_waits(caller: ir.Kernel, functions: Sequence[ir.Kernel]) -> Iterator[ir.Expr]:
    """Calls that wait for other threads, beside operands that read what those may write: C++ leaves the order open."""
    by_key = {function.key: function for function in functions}
    waiting = {key for key in by_key if footprint_of_function(key, by_key).waits}

    def does(*values: ir.Expr, block: ir.Block = ()) -> Footprint:
        return footprint(block, values, by_key, caller.base_array)

    def waits(node: ir.Expr) -> bool:
        return node.function in waiting if isinstance(node, ir.DeviceCall) else is_block_vote(node)

    if not any(map(waits, all_expressions(caller.body))):
        return
    private = {decl.name for decl in caller.array_decls if decl.space is ir.Space.LOCAL}
    written = does(block=caller.body).stores - private

    def observes(operand: ir.Expr) -> bool:
        effect = does(operand)
        others = effect.loads - private  # parameters of a device function may be arrays that another one writes
        return effect.has_effects or bool(others if caller.key else others & written)  # rule: wait-observed

    yield from chain.from_iterable(map(_Operands(waits, observes).statement, statements(caller.body)))


@dataclass(frozen=True, slots=True)
class _Operands:
    """Finds nodes that act beside operands that observe it."""

    acts: Callable[[ir.Expr], bool]
    observes: Callable[[ir.Expr], bool]

    def statement(self, stmt: ir.Stmt) -> Iterator[ir.Expr]:
        match stmt:
            case ir.Store(indices=indices, value=value):  # `evaluate_once` keeps the value before the indices
                yield from self.unsequenced(indices)
                yield from self.expression(value)
            case ir.ExprStmt(call=call):
                yield from self.expression(call)
            case _:
                yield from self.unsequenced(expressions(stmt))

    def expression(self, expr: ir.Expr) -> Iterator[ir.Expr]:
        """The nodes in the operands of `expr`, recursively."""
        if isinstance(expr, ir.BoolOp | ir.Select):
            for child in children(expr):
                yield from self.expression(child)
        else:
            yield from self.unsequenced(children(expr))

    def unsequenced(self, operands: Sequence[ir.Expr]) -> Iterator[ir.Expr]:
        """The nodes in operands whose evaluation order C++ leaves open."""
        for operand in operands:
            if (node := next(filter(self.acts, walk(operand)), None)) is None:
                continue
            yield from self.expression(operand)
            if any(self.observes(other) for other in operands if other is not operand):
                yield node
