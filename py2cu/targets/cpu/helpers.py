"""The small functions that only CPU texts need: atomic operations by the compiler's builtins, and what lanes of a
warp say to each other: each has said its part in an array with a place for every thread.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from py2cu.builtins.atomics import atomic_helper
from py2cu.builtins.threads import WARP_SIZE
from py2cu.ir.expressions import Atomic, Call
from py2cu.ir.kernels import Kernel
from py2cu.ir.visit import all_expressions
from py2cu.targets.cxx.calls import is_together
from py2cu.targets.cxx.helpers.catalogue import TargetHelpers, atomic

_FETCH: Final = """\
// {what}, in one step; the element before.
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
// The lanes beside a thread: the first one's number in the block, and how many there are.
struct Warp {{{{
    int64_t first, size;

    Warp(int64_t thread, Dim3 block) : first(thread - thread % {WARP_SIZE})
    {{{{
        size = std::min<int64_t>({WARP_SIZE}, block.x * block.y * block.z - first);
    }}}}
}}}};
"""
_SHUFFLE: Final = """\
// What the lane {which} says; what a thread says itself, where its part of `width` lanes has none such.
template <typename T>
{prefix} T {name}(const T* said, int64_t thread, Dim3 block, int64_t {argument}, int64_t width = {warp})
{{
    const Warp warp(thread, block);
    const int64_t lane = thread - warp.first, part = lane - lane % width;
    const int64_t source = {source};
    return source >= part && source < part + width && source < warp.size ? said[warp.first + source] : said[thread];
}}
"""
_VOTE: Final = """\
// {what}
template <typename T>
{prefix} {result} {name}(const T* said, int64_t thread, Dim3 block, int64_t mask)
{{
    const Warp warp(thread, block);
    {result} {found} = {start};
    for (int64_t lane = 0; lane < warp.size; ++lane)
        if (mask >> lane & 1 && {test}) {change};
    return {found};
}}
"""


_REDUCTION: Final = """\
// {what} over the lanes of `mask`.
template <typename T>
{prefix} T {name}(const T* said, int64_t thread, Dim3 block, int64_t mask)
{{
    const Warp warp(thread, block);
    T result = said[thread];
    for (int64_t lane = 0; lane < warp.size; ++lane) {{
        const T value = said[warp.first + lane];
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
    found = change.split()[0]
    text = _VOTE.replace("{name}", name).replace("{what}", what).replace("{result}", result).replace("{start}", start)
    return text.replace("{test}", test).replace("{change}", change).replace("{found}", found)


_SAID: Final = "said[warp.first + lane]"
_SAME: Final = f"{_SAID} == said[thread]"
_ENTER: Final = "lanes |= uint32_t(1) << lane"

HELPERS: Final[dict[str, str]] = {
    "atomic_update": """\
// Replaces an element by what `change` makes of it, in one step; the element before.
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
    "atomic_min": atomic("min", "Leaves the lesser of both", "value < old ? value : old"),
    "atomic_max": atomic("max", "Leaves the greater of both", "value > old ? value : old"),
    "atomic_exch": """\
// Replaces an element, in one step; the element before.
template <typename T>
{prefix} T atomic_exch(T* at, T value)
{{
    return atomic_update(at, [=](T) {{ return value; }});
}}
""",
    "atomic_and": atomic("and", "Keeps the bits that both have", "old & value"),
    "atomic_or": atomic("or", "Keeps the bits that one of both has", "old | value"),
    "atomic_xor": atomic("xor", "Keeps the bits in which both differ", "old ^ value"),
    "atomic_inc": atomic("inc", "Counts up, and from `value` to 0", "old >= value ? 0 : old + 1"),
    "atomic_dec": atomic("dec", "Counts down, and from 0 to `value`", "old == 0 || old > value ? value : old - 1"),
    "atomic_cas": """\
// Replaces an element where it equals `compare`, in one step; the element before.
template <typename T>
{prefix} T atomic_cas(T* at, T compare, T value)
{{
    return atomic_update(at, [=](T old) {{ return old == compare ? value : old; }});
}}
""",
    "Warp": _LANES,
    "shfl_sync": _shuffle("shfl_sync", "`from` of its part", "from", "part + (from % width + width) % width"),
    "shfl_up_sync": _shuffle("shfl_up_sync", "`by` before", "by", "lane - by"),
    "shfl_down_sync": _shuffle("shfl_down_sync", "`by` behind", "by", "lane + by"),
    "shfl_xor_sync": _shuffle("shfl_xor_sync", "whose number has other `bits`", "bits", "lane ^ bits"),
    "ballot_sync": _vote("ballot_sync", "The lanes that say yes, a bit each.", "uint32_t", "0", _SAID, _ENTER),
    "activemask": _vote("activemask", "The lanes that are active, a bit each.", "uint32_t", "0", _SAID, _ENTER),
    "any_sync": _vote("any_sync", "Whether a lane says yes.", "bool", "false", _SAID, "found = true"),
    "all_sync": _vote("all_sync", "Whether all lanes say yes.", "bool", "true", f"!{_SAID}", "found = false"),
    "match_any_sync": _vote(
        "match_any_sync",
        "The lanes that say the same, a bit each.",
        "uint32_t",
        "0",
        _SAME,
        _ENTER,
    ),
    "reduce_add_sync": _reduction("reduce_add_sync", "The sum", "static_cast<T>(uint32_t(result) + uint32_t(value))"),
    "reduce_min_sync": _reduction("reduce_min_sync", "The least value", "value < result ? value : result"),
    "reduce_max_sync": _reduction("reduce_max_sync", "The greatest value", "value > result ? value : result"),
    "reduce_and_sync": _reduction("reduce_and_sync", "The bits that all have,", "result & value"),
    "reduce_or_sync": _reduction("reduce_or_sync", "The bits that one has,", "result | value"),
    "reduce_xor_sync": _reduction("reduce_xor_sync", "The bits that an odd number has,", "result ^ value"),
}
HEADERS: Final[Mapping[str, tuple[str, ...]]] = {
    "atomic_add": ("type_traits",),
    "atomic_sub": ("type_traits",),
    "Warp": ("algorithm",),
}
"""What the text of a helper needs, by its name."""
HELPERS_OF_CPU: Final = TargetHelpers("static inline", HELPERS, HEADERS)


def helpers_of_threads(kernel: Kernel) -> tuple[str, ...]:
    """Those that a kernel and its device functions need."""
    found: dict[str, None] = {}
    for each in (kernel, *kernel.functions):
        for node in all_expressions(each.body):
            match node:
                case Atomic(op=op):
                    found |= {"atomic_update": None, atomic_helper(op): None}
                case Call(function=function) if (
                    is_together(function) and (name := function.rpartition(".")[2]) in HELPERS
                ):
                    found |= {"Warp": None, name: None}
    return tuple(found)
