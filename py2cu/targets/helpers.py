"""The small functions that a kernel may need where C's operators differ from Python's, written above it when it does.

`{prefix}` is what the target puts before a device function.
"""

from __future__ import annotations

from typing import Final

_WRAPPING = """\
// {what} as Python elements do: wraps around, where C++ leaves signed overflow undefined.
template <typename T>
{prefix} T wrapping_{name}(T a, T b)
{{
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(static_cast<Unsigned>(a) {op} static_cast<Unsigned>(b));
}}
"""

HELPERS: Final[dict[str, str]] = {
    "wrapping_add": _WRAPPING.replace("{what}", "Adds").replace("{name}", "add").replace("{op}", "+"),
    "wrapping_sub": _WRAPPING.replace("{what}", "Subtracts").replace("{name}", "sub").replace("{op}", "-"),
    "wrapping_mul": _WRAPPING.replace("{what}", "Multiplies").replace("{name}", "mul").replace("{op}", "*"),
    "wrapping_shift": """\
// Shifts left as Python does: also negative numbers and across the sign bit, where C++ leaves it undefined.
template <typename T, typename Count>
{prefix} T wrapping_shift(T a, Count b)
{{
    using Unsigned = std::make_unsigned_t<decltype(a + 0)>;
    return static_cast<T>(static_cast<Unsigned>(a) << b);
}}
""",
    "wrapping_abs": """\
// The absolute value as of Python elements: the least number, which has none, stays as it is.
template <typename T>
{prefix} T wrapping_abs(T a)
{{
    return a < 0 ? static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(a)) : a;
}}
""",
    "floor_div": """\
// Python's `a // b`: rounds down, where C++ rounds toward zero.
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
        if (b == -1) return static_cast<T>(0 - static_cast<std::make_unsigned_t<T>>(a));
        const T quotient = a / b;
        return a % b != 0 && (a < 0) != (b < 0) ? quotient - 1 : quotient;
    }}
}}
""",
    "floor_mod": """\
// Python's `a % b`: has the sign of `b`, where C++ takes that of `a`.
template <typename T>
{prefix} T floor_mod(T a, T b)
{{
    if constexpr (std::is_floating_point_v<T>) {{
        const T rest = fmod(a, b);
        if (rest == 0) return copysign(rest, b);
        return (b < 0) != (rest < 0) ? rest + b : rest;
    }} else {{
        if (b == -1) return 0;
        const T rest = a % b;
        return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
    }}
}}
""",
    "int_pow": """\
// Python's `base ** exponent` of whole numbers; wraps around.
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
    "python_min": """\
// Python's `min(a, b)`: the first unless the second is less, also for NaN.
template <typename T>
{prefix} T python_min(T a, T b)
{{
    return b < a ? b : a;
}}
""",
    "python_max": """\
// Python's `max(a, b)`: the first unless the second is greater, also for NaN.
template <typename T>
{prefix} T python_max(T a, T b)
{{
    return b > a ? b : a;
}}
""",
}


def helper_text(name: str, prefix: str) -> str:
    """The definition of helper `name` for a target."""
    return HELPERS[name].format(prefix=prefix)
