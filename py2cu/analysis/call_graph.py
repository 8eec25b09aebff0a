"""Which device functions call which."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from py2cu.ir.expressions import DeviceCall, LaunchIndex
from py2cu.ir.kernels import Kernel
from py2cu.ir.statements import Assert, Block
from py2cu.ir.visit import all_expressions, statements


def callees(block: Block) -> tuple[str, ...]:
    """The keys of the device functions that `block` calls, each once."""
    return tuple(dict.fromkeys(node.function for node in all_expressions(block) if isinstance(node, DeviceCall)))


def reachable_functions(kernel: Kernel) -> tuple[Kernel, ...]:
    """The device functions that a run of `kernel` may come to: what only code that was left out called is none."""
    functions = {function.key: function for function in kernel.functions}
    reached: set[str] = set()
    waiting = [*callees(kernel.body)]
    while waiting:
        key = waiting.pop()
        if key not in reached:
            reached.add(key)
            waiting += callees(functions[key].body)
    return tuple(function for function in kernel.functions if function.key in reached)


def launch_objects_by_function(kernel: Kernel) -> dict[str, frozenset[str]]:
    """The launch objects that `kernel` and each of its device functions see, by key: what they call sees is theirs."""
    callers = (kernel, *kernel.functions)
    seen = {each.key: _launch_objects(each.body) for each in callers}
    while True:
        further = {c.key: seen[c.key].union(*map(seen.__getitem__, callees(c.body))) for c in callers}
        if further == seen:
            return seen
        seen = further


def _launch_objects(block: Block) -> frozenset[str]:
    return frozenset(node.object for node in all_expressions(block) if isinstance(node, LaunchIndex))


def functions_with(kernel: Kernel, does: Callable[[Kernel], bool]) -> frozenset[str]:
    """The keys of the device functions of `kernel` that do something, by themselves or in others that they call."""
    found = {function.key for function in kernel.functions if does(function)}
    while found:
        more = {f.key for f in kernel.functions if not found.isdisjoint(callees(f.body))}
        if more <= found:
            break
        found |= more
    return frozenset(found)


def asserts(kernel: Kernel) -> bool:
    """True for a kernel with an `assert`, in itself or in a device function."""
    return any(isinstance(stmt, Assert) for each in (kernel, *kernel.functions) for stmt in statements(each.body))


def in_recursive_scc(functions: Iterable[Kernel], *, itself: bool = True) -> set[str]:
    """The keys of functions that call each other, so that no order has each before its callers.

    `itself`: one that only calls itself is a ring, too.
    """
    calls = {f.key: set(callees(f.body)) - (set() if itself else {f.key}) for f in functions}
    reached = calls
    while True:
        further = {key: found.union(*(calls[other] for other in found)) for key, found in reached.items()}
        if further == reached:
            return {key for key, found in reached.items() if key in found}
        reached = further
