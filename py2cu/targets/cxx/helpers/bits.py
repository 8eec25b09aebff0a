"""Helpers for the bits of numbers, by the builtins of GCC and Clang where CUDA's text has its own."""

from __future__ import annotations

from typing import Final

BIT_HELPERS: Final[dict[str, str]] = {
    "bits_as": """\
// The bits of a number as a number of another type.
template <typename To, typename From>
{prefix} To bits_as(From value)
{{
    static_assert(sizeof(To) == sizeof(From));
    To result;
    std::memcpy(static_cast<void*>(&result), &value, sizeof(To));
    return result;
}}
""",
    "count_bits": """\
// The number of bits that are set.
template <typename T>
{prefix} int64_t count_bits(T value)
{{
    return __builtin_popcountll(static_cast<std::make_unsigned_t<T>>(value));
}}
""",
    "first_bit": """\
// The position of the lowest set bit, counted from 1; 0 for zero.
template <typename T>
{prefix} int64_t first_bit(T value)
{{
    return __builtin_ffsll(value);
}}
""",
    "leading_zeros": """\
// The number of zeros above the highest bit that is set.
template <typename T>
{prefix} int64_t leading_zeros(T value)
{{
    constexpr int bits = 8 * sizeof(T);
    return value == 0 ? bits : __builtin_clzll(static_cast<std::make_unsigned_t<T>>(value)) - (64 - bits);
}}
""",
    "reverse_bits": """\
// The bits in reverse order.
template <typename T>
{prefix} T reverse_bits(T value)
{{
    std::make_unsigned_t<T> result = 0;
    for (unsigned bit = 0; bit < 8 * sizeof(T); ++bit)
        result = result << 1 | (value >> bit & 1);
    return static_cast<T>(result);
}}
""",
}
