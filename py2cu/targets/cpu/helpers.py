"""Lists the helpers that only CPU text needs: atomic operations by the compiler's builtins, and warp functions.

A warp function reads the lanes' operands from an array with one element for each thread of the block.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from py2cu import ir
from py2cu.builtins.atomics import atomic_helper
from py2cu.builtins.launch import WARP_SIZE
from py2cu.ir.visit import all_expressions
from py2cu.targets.cpu.hide_counters import HELPER as HIDE_COUNTER
from py2cu.targets.cpu.intrinsics import INTRINSIC_HEADERS, INTRINSIC_HELPERS
from py2cu.targets.cxx.calls import is_collective_builtin
from py2cu.targets.cxx.helpers.catalogue import TargetHelpers, atomic

_FETCH: Final = """\
// {what} atomically; returns the previous element.
template <typename T>
{prefix} T atomic_{name}(T* at, T value)
{{
    if constexpr (std::is_integral_v<T> && !std::is_same_v<T, bool>)
        return __atomic_fetch_{name}(at, value, __ATOMIC_RELAXED);
    else
        return atomic_update(at, [=](T old) {{ return static_cast<T>({next}); }});
}}
"""


_LANES: Final = f"""\
// The lanes of a thread's warp: the number of the first one in the block, and how many exist.
struct WarpLanes {{{{
    int64_t first, size;

    WarpLanes(int64_t thread, Dim3 block) : first(thread - thread % {WARP_SIZE})
    {{{{
        size = std::min<int64_t>({WARP_SIZE}, block.x * block.y * block.z - first);
    }}}}
}}}};
"""
_SHUFFLE: Final = """\
// The operand of {which}; the thread's own operand if its segment of `width` lanes has no such lane.
template <typename T>
{prefix} T {name}(const T* operands, int64_t thread, Dim3 block, int64_t {argument}, int64_t width = {warp})
{{
    const WarpLanes warp(thread, block);
    const int64_t lane = thread - warp.first, segment = lane - lane % width;
    const int64_t source = {source};
    const bool exists = source >= segment && source < segment + width && source < warp.size;
    return operands[exists ? warp.first + source : thread];
}}
"""
_VOTE: Final = """\
// {what}
template <typename T>
{prefix} {result} {name}(const T* operands, int64_t thread, Dim3 block, int64_t mask)
{{
    const WarpLanes warp(thread, block);
    {result} {result_name} = {start};
    for (int64_t lane = 0; lane < warp.size; ++lane)
        if (mask >> lane & 1 && {test}) {change};
    return {result_name};
}}
"""


# rule: reduction-lane
_REDUCTION: Final = """\
// {what} over the lanes of `mask`.
template <typename T>
{prefix} T {name}(const T* operands, int64_t thread, Dim3 block, int64_t mask)
{{
    const WarpLanes warp(thread, block);
    T result = operands[thread];
    for (int64_t lane = 0; lane < warp.size; ++lane) {{
        const T value = operands[warp.first + lane];
        if (mask >> lane & 1 && warp.first + lane != thread) result = {next};
    }}
    return result;
}}
"""


def _reduction(name: str, what: str, next_: str) -> str:
    return _REDUCTION.replace("{name}", name).replace("{what}", what).replace("{next}", next_)


def _shuffle(name: str, which: str, argument: str, source: str) -> str:
    text = _SHUFFLE.replace("{name}", name).replace("{which}", which).replace("{argument}", argument)
    return text.replace("{source}", source).replace("{warp}", str(WARP_SIZE))


def _vote(name: str, what: str, result: str, start: str, test: str, change: str) -> str:
    result_name = change.split()[0]
    text = _VOTE.replace("{name}", name).replace("{what}", what).replace("{result}", result).replace("{start}", start)
    return text.replace("{test}", test).replace("{change}", change).replace("{result_name}", result_name)


_OPERAND: Final = "operands[warp.first + lane]"
_SAME: Final = f"{_OPERAND} == operands[thread]"
_ENTER: Final = "lanes |= uint32_t(1) << lane"

HELPERS: Final[dict[str, str]] = {
    "atomic_update": """\
// Replaces an element by `change(element)` atomically; returns the previous element.
template <typename T, typename Change>
{prefix} T atomic_update(T* at, Change change)
{{
    T old;
    __atomic_load(at, &old, __ATOMIC_RELAXED);
    T value = change(old);
    while (!__atomic_compare_exchange(at, &old, &value, false, __ATOMIC_RELAXED, __ATOMIC_RELAXED))
        value = change(old);
    return old;
}}
""",
    "atomic_add": atomic("add", "Adds to an element", "old + value", _FETCH),
    "atomic_sub": atomic("sub", "Subtracts from an element", "old - value", _FETCH),
    "atomic_min": atomic("min", "Replaces an element by the lesser of it and `value`", "value < old ? value : old"),
    "atomic_max": atomic("max", "Replaces an element by the greater of it and `value`", "value > old ? value : old"),
    "atomic_nanmin": atomic(
        "nanmin",
        "Replaces an element by the lesser of it and `value`, or by the one that is no NaN",
        "value < old || old != old ? value : old",
    ),
    "atomic_nanmax": atomic(
        "nanmax",
        "Replaces an element by the greater of it and `value`, or by the one that is no NaN",
        "value > old || old != old ? value : old",
    ),
    "atomic_exch": """\
// Replaces an element atomically; returns the previous element.
template <typename T>
{prefix} T atomic_exch(T* at, T value)
{{
    return atomic_update(at, [=](T) {{ return value; }});
}}
""",
    "atomic_and": atomic("and", "Replaces an element by its bitwise and with `value`", "old & value"),
    "atomic_or": atomic("or", "Replaces an element by its bitwise or with `value`", "old | value"),
    "atomic_xor": atomic("xor", "Replaces an element by its bitwise xor with `value`", "old ^ value"),
    "atomic_inc": atomic(
        "inc", "Increments an element, and resets it to 0 after `value`", "old >= value ? 0 : old + 1"
    ),
    "atomic_dec": atomic(
        "dec", "Decrements an element, and resets it to `value` after 0", "old == 0 || old > value ? value : old - 1"
    ),
    "atomic_cas": """\
// Replaces an element atomically if it equals `compare`; returns the previous element.
template <typename T>
{prefix} T atomic_cas(T* at, T compare, T value)
{{
    return atomic_update(at, [=](T old) {{ return old == compare ? value : old; }});
}}
""",
    HIDE_COUNTER: """\
// Hides a loop counter from the compiler: gcc 12 vectorizes some searches for an index wrongly.
template <typename T>
{prefix} T hide_counter(T value)
{{
    asm("" : "+r"(value));
    return value;
}}
""",
    "WarpLanes": _LANES,
    "shfl_sync": _shuffle(
        "shfl_sync", "lane `from` of the segment", "from", "segment + (from % width + width) % width"
    ),
    "shfl_up_sync": _shuffle("shfl_up_sync", "the lane `by` below", "by", "lane - by"),
    "shfl_down_sync": _shuffle("shfl_down_sync", "the lane `by` above", "by", "lane + by"),
    "shfl_xor_sync": _shuffle("shfl_xor_sync", "the lane whose number differs in `bits`", "bits", "lane ^ bits"),
    "ballot_sync": _vote(
        "ballot_sync", "A mask of the lanes whose operand is true.", "uint32_t", "0", _OPERAND, _ENTER
    ),
    "activemask": _vote("activemask", "A mask of the active lanes.", "uint32_t", "0", _OPERAND, _ENTER),
    "any_sync": _vote(
        "any_sync", "True if the operand of a lane of `mask` is true.", "bool", "false", _OPERAND, "result = true"
    ),
    "all_sync": _vote(
        "all_sync",
        "True if the operands of all lanes of `mask` are true.",
        "bool",
        "true",
        f"!{_OPERAND}",
        "result = false",
    ),
    "match_any_sync": _vote(
        "match_any_sync",
        "A mask of the lanes whose operand equals that of this thread.",
        "uint32_t",
        "0",
        _SAME,
        _ENTER,
    ),
    "reduce_add_sync": _reduction("reduce_add_sync", "The sum", "static_cast<T>(uint32_t(result) + uint32_t(value))"),
    "reduce_min_sync": _reduction("reduce_min_sync", "The least value", "value < result ? value : result"),
    "reduce_max_sync": _reduction("reduce_max_sync", "The greatest value", "value > result ? value : result"),
    "reduce_and_sync": _reduction("reduce_and_sync", "The bitwise and", "result & value"),
    "reduce_or_sync": _reduction("reduce_or_sync", "The bitwise or", "result | value"),
    "reduce_xor_sync": _reduction("reduce_xor_sync", "The bitwise xor", "result ^ value"),
}
HEADERS: Final[Mapping[str, tuple[str, ...]]] = {
    "atomic_add": ("type_traits",),
    "atomic_sub": ("type_traits",),
    "WarpLanes": ("algorithm",),
}
"""The headers that the text of a helper needs, by its name."""
HELPERS_OF_CPU: Final = TargetHelpers("inline", HELPERS | INTRINSIC_HELPERS, {**HEADERS, **INTRINSIC_HEADERS})


def helpers_of_threads(kernel: ir.Kernel) -> tuple[str, ...]:
    """The helpers of this file that a kernel and its device functions need."""
    helpers: dict[str, None] = {}
    for each in (kernel, *kernel.functions):
        for node in all_expressions(each.body):
            match node:
                case ir.Atomic(op=op):
                    helpers |= {"atomic_update": None, atomic_helper(op): None}
                case ir.Call(function=function) if (
                    is_collective_builtin(function) and (name := function.rpartition(".")[2]) in HELPERS
                ):
                    helpers |= {"WarpLanes": None, name: None}
                case ir.Call(function=function) if function == HIDE_COUNTER:
                    helpers |= {HIDE_COUNTER: None}
    return tuple(helpers)
