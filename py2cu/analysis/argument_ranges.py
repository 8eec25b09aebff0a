"""Infers the ranges of the parameters and results of device functions from all their calls.

    def half(v): return v // 2        half(i) and half(4), with i in 0 … n - 1:  v is natural, and so is the result

In: a kernel whose functions are reachable and typed. Out: its functions with `argument_ranges` and `result_ranges`.
"""

from __future__ import annotations

from functools import reduce

from py2cu import ir
from py2cu.analysis.call_graph import in_recursive_scc
from py2cu.analysis.range_rules import range_of_type
from py2cu.analysis.ranges import Ranges
from py2cu.ir.intervals import Interval
from py2cu.ir.rewrite import with_fields
from py2cu.ir.visit import all_expressions, statements

_ROUNDS = 4


def functions_with_ranges(kernel: ir.Kernel) -> tuple[ir.Kernel, ...]:
    """The device functions with the ranges of their parameters and results.

    The iteration starts from the ranges of the types and only narrows them, so that it may stop after any round.
    Callers are visited before their callees: except in recursion, the ranges of arguments are known by then.
    """
    if not kernel.functions:
        return ()
    functions = {
        function.key: with_fields(function, argument_ranges=_initial_ranges(function)) for function in kernel.functions
    }
    callers = (kernel, *reversed(kernel.functions))
    recursive = in_recursive_scc(kernel.functions)
    for _ in range(_ROUNDS):
        before = dict(functions)
        ranges_by_key: dict[str, dict[str, Interval]] = {key: {} for key in functions}
        for caller in callers:
            if caller.key and caller.key not in recursive:
                functions[caller.key] = with_fields(caller, argument_ranges=tuple(ranges_by_key[caller.key].items()))
            _follow_calls_of(functions.get(caller.key, caller), functions, ranges_by_key)
        for key in recursive:
            functions[key] = with_fields(functions[key], argument_ranges=tuple(ranges_by_key[key].items()))
        for key, function in functions.items():
            functions[key] = with_fields(function, result_ranges=_result_ranges(function, tuple(functions.values())))
        if functions == before:
            break
    return tuple(functions.values())


def _follow_calls_of(
    caller: ir.Kernel, functions: dict[str, ir.Kernel], ranges_by_key: dict[str, dict[str, Interval]]
) -> None:
    """Join the ranges of the arguments of every call in `caller` into `ranges_by_key`."""
    ranges = Ranges(with_fields(caller, functions=tuple(functions.values())))
    for call in (node for node in all_expressions(caller.body) if isinstance(node, ir.DeviceCall)):
        joined, arguments = ranges_by_key[call.function], caller.bind(call, functions[call.function])
        for name, arg in arguments.items():
            if not isinstance(arg, ir.ArrayName):
                joined[name] = joined[name].union(ranges.of(arg)) if name in joined else ranges.of(arg)


def _initial_ranges(function: ir.Kernel) -> tuple[tuple[str, Interval], ...]:
    """The ranges of parameters and dimensions that follow from their types alone."""
    scalars = ((p.name, range_of_type(p.type)) for p in function.parameters if not p.is_array)
    return (*scalars, *((name, Interval(low=0)) for name in function.dims))


def _result_ranges(function: ir.Kernel, functions: tuple[ir.Kernel, ...]) -> tuple[Interval, ...]:
    """The range of the result, or of each item of a tuple."""
    ranges = Ranges(with_fields(function, functions=functions))
    values = [s.value for s in statements(function.body) if isinstance(s, ir.Return) and s.value is not None]
    results = [ranges.results_of(value) for value in values]
    return tuple(reduce(Interval.union, items) for items in zip(*results, strict=True))
