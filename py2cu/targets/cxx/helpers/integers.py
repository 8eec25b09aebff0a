"""Helpers for integers, and for elements that may be integers: wrapping, floor division, powers, divisors."""

from __future__ import annotations

from typing import Final

_WRAPPING = """\
// {what} with wrap-around; signed overflow is undefined in C++.
template <typename T>
{prefix} T wrapping_{name}(T a, T b)
{{
    using Unsigned = std::make_unsigned_t<decltype(a {op} b)>;
    return static_cast<T>(static_cast<Unsigned>(a) {op} static_cast<Unsigned>(b));
}}
"""

_ELEMENTS: Final = """\
// {what} elements: integers wrap around, since signed overflow is undefined in C++.
template <typename T>
{prefix} T {name}_elements(T a, T b)
{{
    if constexpr (std::is_integral_v<T>) {{
        using Unsigned = std::make_unsigned_t<decltype(a {op} b)>;
        return static_cast<T>(static_cast<Unsigned>(a) {op} static_cast<Unsigned>(b));
    }} else {{
        return a {op} b;
    }}
}}
"""


INTEGER_HELPERS: Final[dict[str, str]] = {
    "add_elements": _ELEMENTS.replace("{what}", "Adds").replace("{name}", "add").replace("{op}", "+"),
    "subtract_elements": _ELEMENTS.replace("{what}", "Subtracts").replace("{name}", "subtract").replace("{op}", "-"),
    "multiply_elements": _ELEMENTS.replace("{what}", "Multiplies").replace("{name}", "multiply").replace("{op}", "*"),
    "wrapping_add": """\
// Adds with wrap-around; signed overflow is undefined in C++.
// The sign bit of int16 is computed separately: nvcc (13.0) turns `a + b == 0` into `a == -b`, which ptxas computes in
// 32 bits.
template <typename T>
{prefix} T wrapping_add(T a, T b)
{{
    using Unsigned = std::make_unsigned_t<decltype(a + b)>;
    const auto x = static_cast<Unsigned>(a), y = static_cast<Unsigned>(b);
    if constexpr (sizeof(T) == 2) return static_cast<T>(((x & 0x7fff) + (y & 0x7fff)) ^ ((x ^ y) & 0x8000));
    return static_cast<T>(x + y);
}}
""",
    "wrapping_sub": """\
// Subtracts with wrap-around; signed overflow is undefined in C++.
// The sign bit of int16 is computed separately: ptxas (13.0) negates in 32 bits, where -(-32768) is 32768.
template <typename T>
{prefix} T wrapping_sub(T a, T b)
{{
    using Unsigned = std::make_unsigned_t<decltype(a - b)>;
    const auto x = static_cast<Unsigned>(a), y = static_cast<Unsigned>(b);
    if constexpr (sizeof(T) == 2) return static_cast<T>(((x | 0x8000) - (y & 0x7fff)) ^ ((x ^ ~y) & 0x8000));
    return static_cast<T>(x - y);
}}
""",
    "wrapping_mul": _WRAPPING.replace("{what}", "Multiplies").replace("{name}", "mul").replace("{op}", "*"),
    "wrapping_shift": """\
// Shifts left with wrap-around; C++ leaves shifts of negative numbers and across the sign bit undefined.
template <typename T, typename Count>
{prefix} T wrapping_shift(T a, Count b)
{{
    using Unsigned = std::make_unsigned_t<decltype(a + 0)>;
    return static_cast<T>(static_cast<Unsigned>(a) << b);
}}
""",
    "wide_product": """\
// The product of two numbers of 32 bits by one instruction; nvcc (13.0) multiplies by large constants in 64 bits.
{prefix} uint64_t wide_product(uint32_t a, uint32_t b)
{{
#ifdef __CUDA_ARCH__
    uint64_t product;
    asm("mul.wide.u32 %0, %1, %2;" : "=l"(product) : "r"(a), "r"(b));
    return product;
#else
    return static_cast<uint64_t>(a) * b;
#endif
}}
""",
    "wrapping_abs": """\
// The absolute value with wrap-around: the least number of the type stays as it is.
// The smaller of `a` and `-a` as unsigned numbers, since ptxas (13.0) assumes that `a < 0 ? -a : a` is positive.
template <typename T>
{prefix} T wrapping_abs(T a)
{{
    using Unsigned = std::make_unsigned_t<T>;
    const Unsigned same = static_cast<Unsigned>(a), negated = static_cast<Unsigned>(0 - same);
    return static_cast<T>(std::is_signed_v<T> && negated < same ? negated : same);
}}
""",
    "negate_hidden": """\
// Negates with wrap-around, without a minus that ptxas (13.0) would drop inside a min or max of three operands.
template <typename T>
{prefix} T negate_hidden(T a)
{{
    using Unsigned = std::make_unsigned_t<decltype(-a)>;
    constexpr Unsigned sign = Unsigned(1) << (8 * sizeof(T) - 1);
    const auto x = static_cast<Unsigned>(a);
    return static_cast<T>((sign - (x & (sign - 1))) ^ (~x & sign));
}}
""",
    # rule: ceil-div
    "ceil_div": """\
// Python's `math.ceil(a / b)` of integers: rounds up; C++ rounds toward zero.
template <typename T>
{prefix} T ceil_div(T a, T b)
{{
    const T quotient = a / b;
    return a % b != 0 && (a < 0) == (b < 0) ? quotient + 1 : quotient;
}}
""",
    # rule: floor-div
    "floor_div": """\
// Python's `a // b`: rounds down; C++ rounds toward zero.
template <typename T>
{prefix} T floor_div(T a, T b)
{{
    if constexpr (std::is_floating_point_v<T>) {{
        if (b == 0) return a / b;
        const T rest = fmod(a, b);
        T quotient = (a - rest) / b;
        if (rest != 0 && (b < 0) != (rest < 0)) quotient -= 1;
        if (quotient == 0) return copysign(T(0), a / b);
        const T whole = floor(quotient);
        return quotient - whole > T(0.5) ? whole + 1 : whole;
    }} else {{
        using Unsigned = std::make_unsigned_t<T>;
        constexpr Unsigned sign = Unsigned(1) << (8 * sizeof(T) - 1);  // ptxas (13.0) drops a minus
        if (std::is_signed_v<T> && b == T(-1)) return static_cast<T>((sign - (a & (sign - 1))) ^ (~a & sign));
        const T quotient = a / b;
        return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
    }}
}}
""",
    "list_index": """\
// The place of `list[index]` in Python: a negative index counts from the end.
template <typename T>
{prefix} T list_index(T index, T length)
{{
    return index < 0 ? index + length : index;
}}
""",
    # rule: floor-mod
    "floor_mod": """\
// Python's `a % b`: the result has the sign of `b`; in C++ it has the sign of `a`.
template <typename T>
{prefix} T floor_mod(T a, T b)
{{
    if constexpr (std::is_floating_point_v<T>) {{
        const T rest = fmod(a, b);
        if (rest == 0) return copysign(rest, b);
        return (b < 0) != (rest < 0) ? rest + b : rest;
    }} else {{
        if (std::is_signed_v<T> && b == T(-1)) return 0;
        const T rest = a % b;
        return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
    }}
}}
""",
    # rule: int-pow
    "int_pow": """\
// Python's `base ** exponent` of integers, with wrap-around.
template <typename T>
{prefix} T int_pow(T base, T exponent)
{{
    using Unsigned = std::make_unsigned_t<decltype(base + 0)>;
    Unsigned result = 1, factor = static_cast<Unsigned>(base);
    for (; exponent > 0; exponent /= 2, factor *= factor)
        if (exponent % 2 != 0) result *= factor;
    return static_cast<T>(result);
}}
""",
    "gcd": """\
// The greatest common divisor; it is not negative.
template <typename T>
{prefix} T gcd(T a, T b)
{{
    using Unsigned = std::make_unsigned_t<T>;
    auto x = static_cast<Unsigned>(wrapping_abs(a)), y = static_cast<Unsigned>(wrapping_abs(b));
    while (y != 0) {{
        const Unsigned rest = x % y;
        x = y;
        y = rest;
    }}
    return static_cast<T>(x);
}}
""",
    "lcm": """\
// The least common multiple; it is not negative.
template <typename T>
{prefix} T lcm(T a, T b)
{{
    using Unsigned = std::make_unsigned_t<decltype(a + 0)>;
    const auto x = static_cast<Unsigned>(wrapping_abs(a)), y = static_cast<Unsigned>(wrapping_abs(b));
    const auto divisor = static_cast<Unsigned>(gcd(a, b));
    return divisor == 0 ? 0 : static_cast<T>(x / divisor * y);
}}
""",
    "isqrt": """\
// The square root of an integer, rounded down.
template <typename T>
{prefix} T isqrt(T n)
{{
    auto root = static_cast<std::make_unsigned_t<T>>(sqrt(static_cast<double>(n)));
    const auto square = static_cast<decltype(root)>(n);
    while (root * root > square) --root;
    while ((root + 1) * (root + 1) <= square) ++root;
    return static_cast<T>(root);
}}
""",
    "factorial": """\
// 1 * 2 * … * n.
template <typename T>
{prefix} T factorial(T n)
{{
    std::make_unsigned_t<T> product = 1;
    for (T factor = 2; factor <= n; ++factor) product *= factor;
    return static_cast<T>(product);
}}
""",
}
