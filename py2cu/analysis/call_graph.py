"""The call graph of a kernel and its device functions."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from py2cu import ir
from py2cu.ir.visit import all_expressions, cached_by_block, statements


def callees(block: ir.Block) -> tuple[str, ...]:
    """The keys of the device functions that `block` calls, each once."""
    return tuple(_callees(block))


@cached_by_block
def _callees(block: ir.Block) -> Iterator[str]:
    calls = (node.function for node in all_expressions(block) if isinstance(node, ir.DeviceCall))
    return iter(dict.fromkeys(calls))


def reachable_functions(kernel: ir.Kernel) -> tuple[ir.Kernel, ...]:
    """Device functions reachable from the kernel body, in definition order."""
    functions = {function.key: function for function in kernel.functions}
    reached: set[str] = set()
    waiting = [*callees(kernel.body)]
    while waiting:
        key = waiting.pop()
        if key not in reached:
            reached.add(key)
            waiting += callees(functions[key].body)
    return tuple(function for function in kernel.functions if function.key in reached)


def launch_objects_by_function(kernel: ir.Kernel) -> dict[str, frozenset[str]]:
    """By key, the launch objects that the kernel and each device function read, directly or through callees."""
    callers = (kernel, *kernel.functions)
    seen = {each.key: _launch_objects(each.body) for each in callers}
    while True:
        # rule: launch-of-callees
        further = {c.key: seen[c.key].union(*map(seen.__getitem__, callees(c.body))) for c in callers}
        if further == seen:
            return seen
        seen = further


def _launch_objects(block: ir.Block) -> frozenset[str]:
    return frozenset(node.object for node in all_expressions(block) if isinstance(node, ir.LaunchIndex))


def functions_with(kernel: ir.Kernel, predicate: Callable[[ir.Kernel], bool]) -> frozenset[str]:
    """The keys of the device functions that satisfy `predicate`, or call one that does, directly or not."""
    keys = {function.key for function in kernel.functions if predicate(function)}
    while keys:
        more = {f.key for f in kernel.functions if not keys.isdisjoint(callees(f.body))}
        if more <= keys:
            break
        keys |= more
    return frozenset(keys)


def assertions(kernel: ir.Kernel) -> tuple[ir.Assert, ...]:
    """Every `assert` of a kernel and of its device functions."""
    blocks = (each.body for each in (kernel, *kernel.functions))
    return tuple(stmt for block in blocks for stmt in statements(block) if isinstance(stmt, ir.Assert))


def in_recursive_scc(functions: Iterable[ir.Kernel], *, itself: bool = True) -> set[str]:
    """The keys of recursive functions: those on a cycle of the call graph.

    `itself`: a function that only calls itself counts, too.
    """
    calls = {f.key: set(callees(f.body)) - (set() if itself else {f.key}) for f in functions}
    reached = calls
    while True:
        further = {key: others.union(*(calls[other] for other in others)) for key, others in reached.items()}
        if further == reached:
            return {key for key, others in reached.items() if key in others}
        reached = further
