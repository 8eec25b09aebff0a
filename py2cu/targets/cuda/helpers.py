"""Lists the helpers that only CUDA text needs: atomic operations and warp reductions that some hardware lacks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from py2cu.builtins.memory import CACHE_HINTS, row_access
from py2cu.targets.cxx.helpers.catalogue import HELPERS as COMMON
from py2cu.targets.cxx.helpers.catalogue import TargetHelpers, atomic

_ATOMIC_64: Final = """\
// {what} atomically; returns the previous element.
template <typename T>
{prefix} T atomic_{name}(T* at, T value)
{{
    if constexpr (std::is_integral_v<T> && sizeof(T) == 8) {{
        using Word = {word};
        return static_cast<T>({function}(reinterpret_cast<Word*>(at), static_cast<Word>(value)));
    }} else {{
        return atomic_update(at, [=](T old) {{ return static_cast<T>({next}); }});
    }}
}}
"""


def _atomic(name: str, what: str, next_: str, function: str = "", word: str = "unsigned long long") -> str:
    """The helper for one atomic operation; `function` is CUDA's for 64 bits."""
    text = atomic(name, what, next_, _ATOMIC_64) if function else atomic(name, what, next_)
    return text.replace("{function}", function).replace("{word}", word)


# rule: reduction-active
_REDUCTION: Final = """\
// {what} over the lanes of a mask; sm_80 and later have an instruction for it.
template <typename T>
{prefix} T {name}(unsigned mask, T value)
{{
#if __CUDA_ARCH__ >= 800
    return __{name}(mask, {argument});
#else
    unsigned lanes = __ballot_sync(mask, true);  // the active ones
    T result = __shfl_sync(mask, value, __ffs(lanes) - 1);
    while (lanes &= lanes - 1) {{
        const T other = __shfl_sync(mask, value, __ffs(lanes) - 1);
        result = {next};
    }}
    return result;
#endif
}}
"""


def _reduction(name: str, what: str, next_: str, argument: str = "value") -> str:
    """The helper for one reduction over a warp; `argument` is the value as CUDA's function takes it."""
    text = _REDUCTION.replace("{name}", f"reduce_{name}_sync").replace("{what}", what)
    return text.replace("{next}", next_).replace("{argument}", argument)


_BITS: Final = "static_cast<unsigned>(value)"  # CUDA's bitwise reductions take unsigned numbers
_WORD_OF_SAME_SIGN: Final = "std::conditional_t<std::is_signed_v<T>, long long, unsigned long long>"

_OF_BITS: Final = """\
// {what}
template <typename T>
{prefix} {result} {name}(T value)
{{
    if constexpr (sizeof(T) == 8) return {function}ll(value);
    else return {function}(value);
}}
"""


def _of_bits(name: str, what: str, function: str, result: str = "int") -> str:
    """The helper for a function of bits that CUDA has for 32 and for 64 bits."""
    text = _OF_BITS.replace("{name}", name).replace("{what}", what)
    return text.replace("{function}", function).replace("{result}", result)


_WORD: Final = """\
    using Word = std::conditional_t<sizeof(Row) == 16, int4, std::conditional_t<sizeof(Row) == 8, int2,
                                    std::conditional_t<sizeof(Row) == 4, int, short>>>;
"""


def _load_row(hint: str) -> str:
    """The helper that loads a row by CUDA's function of this name."""
    return f"""\
// Loads a row of a view by one `__{hint}`.
template <typename Row>
{{prefix}} Row {hint}_row(const Row* from)
{{{{
{_WORD}\
    const Word word = __{hint}(reinterpret_cast<const Word*>(from));
    Row row;
    memcpy(&row, &word, sizeof(Row));
    return row;
}}}}
"""


HELPERS: Final[dict[str, str]] = {
    "ldg_row": _load_row("ldg"),
    "ldcs_row": _load_row("ldcs"),
    "stcs_row": f"""\
// Stores a row of a view by one `__stcs`.
template <typename Row>
{{prefix}} void stcs_row(Row* to, const Row& row)
{{{{
{_WORD}\
    Word word;
    memcpy(&word, &row, sizeof(Row));
    __stcs(reinterpret_cast<Word*>(to), word);
}}}}
""",
    "count_bits": _of_bits("count_bits", "The number of bits that are set.", "__popc"),
    "first_bit": _of_bits("first_bit", "The position of the lowest set bit, counted from 1; 0 for zero.", "__ffs"),
    "leading_zeros": _of_bits("leading_zeros", "The number of zeros above the highest bit that is set.", "__clz"),
    "reverse_bits": _of_bits("reverse_bits", "The bits in reverse order.", "__brev", "T"),
    "round_to": COMMON["round_to"].replace("{prefix}", "__host__ {prefix}"),  # launchers call it, too
    "lane_id": """\
// The lane of this thread in its warp.
{prefix} int lane_id()
{{
    int lane;
    asm("mov.u32 %0, %%laneid;" : "=r"(lane));
    return lane;
}}
""",
    "reduce_add_sync": _reduction("add", "The sum", "static_cast<T>(unsigned(result) + unsigned(other))"),
    "reduce_min_sync": _reduction("min", "The least value", "min(result, other)"),
    "reduce_max_sync": _reduction("max", "The greatest value", "max(result, other)"),
    "reduce_and_sync": _reduction("and", "The bitwise and", "result & other", _BITS),
    "reduce_or_sync": _reduction("or", "The bitwise or", "result | other", _BITS),
    "reduce_xor_sync": _reduction("xor", "The bitwise xor", "result ^ other", _BITS),
    "atomic_update": """\
// Replaces an element by `change(element)` atomically; returns the previous element.
template <typename T, typename Change>
{prefix} T atomic_update(T* at, Change change)
{{
    using Word = std::conditional_t<sizeof(T) == 8, unsigned long long,
                                    std::conditional_t<sizeof(T) == 2, unsigned short, unsigned>>;
    const unsigned offset = reinterpret_cast<uintptr_t>(at) % sizeof(Word);  // of the element in its word, in bytes
    Word* word = reinterpret_cast<Word*>(reinterpret_cast<unsigned char*>(at) - offset);
    const Word mask = static_cast<Word>(static_cast<Word>(-1) >> 8 * (sizeof(Word) - sizeof(T))) << 8 * offset;
    Word seen = *const_cast<volatile Word*>(word);
    while (true) {{
        T old;
        const Word before = (seen & mask) >> 8 * offset;
        memcpy(&old, &before, sizeof(T));
        const T value = change(old);
        Word after = 0;
        memcpy(&after, &value, sizeof(T));
        const Word current = atomicCAS(word, seen, static_cast<Word>((seen & ~mask) | after << 8 * offset));
        if (current == seen) return old;
        seen = current;
    }}
}}
""",
    "atomic_add": _atomic("add", "Adds to an element", "old + value", "atomicAdd"),
    "atomic_sub": """\
// Subtracts from an element atomically; returns the previous element.
template <typename T>
{prefix} T atomic_sub(T* at, T value)
{{
    if constexpr (std::is_floating_point_v<T>) {{
        return atomicAdd(at, -value);
    }} else if constexpr (sizeof(T) == 8) {{
        using Word = unsigned long long;
        return static_cast<T>(atomicAdd(reinterpret_cast<Word*>(at), 0 - static_cast<Word>(value)));
    }} else {{
        return atomic_update(at, [=](T old) {{ return static_cast<T>(old - value); }});
    }}
}}
""",
    "atomic_min": _atomic(
        "min",
        "Replaces an element by the lesser of it and `value`",
        "value < old ? value : old",
        "atomicMin",
        _WORD_OF_SAME_SIGN,
    ),
    "atomic_max": _atomic(
        "max",
        "Replaces an element by the greater of it and `value`",
        "value > old ? value : old",
        "atomicMax",
        _WORD_OF_SAME_SIGN,
    ),
    "atomic_nanmin": _atomic(
        "nanmin",
        "Replaces an element by the lesser of it and `value`, or by the one that is no NaN",
        "value < old || old != old ? value : old",
    ),
    "atomic_nanmax": _atomic(
        "nanmax",
        "Replaces an element by the greater of it and `value`, or by the one that is no NaN",
        "value > old || old != old ? value : old",
    ),
    "atomic_exch": _atomic("exch", "Replaces an element", "value", "atomicExch"),
    "atomic_and": _atomic("and", "Replaces an element by its bitwise and with `value`", "old & value", "atomicAnd"),
    "atomic_or": _atomic("or", "Replaces an element by its bitwise or with `value`", "old | value", "atomicOr"),
    "atomic_xor": _atomic("xor", "Replaces an element by its bitwise xor with `value`", "old ^ value", "atomicXor"),
    "atomic_inc": _atomic(
        "inc", "Increments an element, and resets it to 0 after `value`", "old >= value ? 0 : old + 1"
    ),
    "atomic_dec": _atomic(
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
}
HEADERS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("atomic_update", *map(row_access, CACHE_HINTS)), ("cstring", "type_traits")),
    **dict.fromkeys(
        ("round_to", *(f"atomic_{op}" for op in ("add", "sub", "min", "max", "exch", "and", "or", "xor"))),
        ("type_traits",),
    ),
}
"""The headers that the text of a helper needs, by its name."""
HELPERS_OF_CUDA: Final = TargetHelpers("__device__ inline", HELPERS, HEADERS)
