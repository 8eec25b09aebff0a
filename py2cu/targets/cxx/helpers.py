"""The small functions that a kernel may need where C's operators differ from Python's, written above it when it does.

`{prefix}` is what the target puts before a device function.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from py2cu.targets.cxx.includes import MATH

_WRAPPING = """\
// {what} as Python elements do: wraps around, where C++ leaves signed overflow undefined.
template <typename T>
{prefix} T wrapping_{name}(T a, T b)
{{
    using Unsigned = std::make_unsigned_t<decltype(a {op} b)>;
    return static_cast<T>(static_cast<Unsigned>(a) {op} static_cast<Unsigned>(b));
}}
"""

_ELEMENTS: Final = """\
// {what} elements: whole numbers wrap around, where C++ leaves signed overflow undefined.
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


_UPDATE: Final = """\
// {what}, in one step; the element before.
template <typename T>
{prefix} T atomic_{name}(T* at, T value)
{{
    return atomic_update(at, [=](T old) {{ return static_cast<T>({next}); }});
}}
"""


def atomic(name: str, what: str, next_: str, text: str = _UPDATE) -> str:
    """The helper for one atomic operation, by `atomic_update`, which each target has in its own way, or by `text`."""
    return text.replace("{what}", what).replace("{name}", name).replace("{next}", next_)


def _vector(count: int) -> str:
    """The struct of a row of so many elements."""
    return f"""\
// {count} neighbouring elements, which one instruction loads or stores.
template <typename T>
struct alignas({count} * sizeof(T)) Vector{count} {{{{
    T {", ".join(f"x{at}" for at in range(count))};
}}}};
"""


HELPERS: Final[dict[str, str]] = {
    **{f"Vector{count}": _vector(count) for count in (2, 4, 8, 16)},
    "add_elements": _ELEMENTS.replace("{what}", "Adds").replace("{name}", "add").replace("{op}", "+"),
    "subtract_elements": _ELEMENTS.replace("{what}", "Subtracts").replace("{name}", "subtract").replace("{op}", "-"),
    "multiply_elements": _ELEMENTS.replace("{what}", "Multiplies").replace("{name}", "multiply").replace("{op}", "*"),
    "widened": """\
// What functions compute in: float for a half, else the value itself.
template <typename T>
{prefix} auto widened(T value)
{{
    return static_cast<std::conditional_t<sizeof(T) == 2, float, T>>(value);
}}
""",
    "narrowed": """\
// The number as T: a half by way of float, as torch makes it.
template <typename T, typename Value>
{prefix} T narrowed(Value value)
{{
    return static_cast<T>(static_cast<std::conditional_t<sizeof(T) == 2, float, Value>>(value));
}}
""",
    "wrapping_add": """\
// Adds as Python elements do: wraps around, where C++ leaves signed overflow undefined. Of int16 the sign bit is kept
// apart, since nvcc (13.0) makes `a + b == 0` into `a == -b`, which ptxas computes in 32 bits.
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
// Subtracts as Python elements do: wraps around, where C++ leaves signed overflow undefined. Of int16 the sign bit is
// kept apart, since ptxas (13.0) negates in 32 bits, where -(-32768) is 32768.
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
// Shifts left as Python does: also negative numbers and across the sign bit, where C++ leaves it undefined.
template <typename T, typename Count>
{prefix} T wrapping_shift(T a, Count b)
{{
    using Unsigned = std::make_unsigned_t<decltype(a + 0)>;
    return static_cast<T>(static_cast<Unsigned>(a) << b);
}}
""",
    "wrapping_abs": """\
// The absolute value as of Python elements: the least number, which has none, stays as it is. The smaller of `a` and
// `-a` as unsigned numbers, since ptxas (13.0) takes `a < 0 ? -a : a` for positive.
template <typename T>
{prefix} T wrapping_abs(T a)
{{
    using Unsigned = std::make_unsigned_t<T>;
    const Unsigned same = static_cast<Unsigned>(a), negated = static_cast<Unsigned>(0 - same);
    return static_cast<T>(std::is_signed_v<T> && negated < same ? negated : same);
}}
""",
    "negated": """\
// `-a`, which wraps around, its sign bit apart: ptxas (13.0) forgets the minus where an extreme of three is sought.
template <typename T>
{prefix} T negated(T a)
{{
    using Unsigned = std::make_unsigned_t<decltype(-a)>;
    constexpr Unsigned sign = Unsigned(1) << (8 * sizeof(T) - 1);
    const auto x = static_cast<Unsigned>(a);
    return static_cast<T>((sign - (x & (sign - 1))) ^ (~x & sign));
}}
""",
    "to_uint64": """\
// A float as uint64: one below zero wraps around, where C++ leaves it undefined.
{prefix} uint64_t to_uint64(double value)
{{
    return value < 0 ? static_cast<uint64_t>(static_cast<int64_t>(value)) : static_cast<uint64_t>(value);
}}
""",
    "ceil_div": """\
// Python's `math.ceil(a / b)` of whole numbers: rounds up, where C++ rounds toward zero.
template <typename T>
{prefix} T ceil_div(T a, T b)
{{
    const T quotient = a / b;
    return a % b != 0 && (a < 0) == (b < 0) ? quotient + 1 : quotient;
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
        using Unsigned = std::make_unsigned_t<T>;
        constexpr Unsigned sign = Unsigned(1) << (8 * sizeof(T) - 1);  // kept apart, as ptxas (13.0) loses it
        if (std::is_signed_v<T> && b == T(-1)) return static_cast<T>((sign - (a & (sign - 1))) ^ (~a & sign));
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
        if (std::is_signed_v<T> && b == T(-1)) return 0;
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
    "complex_mul": """\
// Python's and torch's `a * b` of complex numbers: the formula as it stands, where C++ repairs infinite products.
template <typename T>
{prefix} T complex_mul(T a, T b)
{{
    return T(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
}}
""",
    "complex_div": """\
// Python's `a / b` of complex numbers: Smith's method; by zero, each part is divided by it.
template <typename T>
{prefix} T complex_div(T a, T b)
{{
    const auto width = b.real() > 0 ? b.real() : 0 - b.real(), height = b.imag() > 0 ? b.imag() : 0 - b.imag();
    if (width == 0 && height == 0) return T(a.real() / width, a.imag() / height);
    if (width >= height) {{
        const auto ratio = b.imag() / b.real(), divisor = b.real() + b.imag() * ratio;
        return T((a.real() + a.imag() * ratio) / divisor, (a.imag() - a.real() * ratio) / divisor);
    }}
    const auto ratio = b.real() / b.imag(), divisor = b.real() * ratio + b.imag();
    return T((a.real() * ratio + a.imag()) / divisor, (a.imag() * ratio - a.real()) / divisor);
}}
""",
    "complex_pow": """\
// `base ** exponent` of a complex number, the exponent being positive: by squaring.
template <typename T>
{prefix} T complex_pow(T base, int exponent)
{{
    for (; exponent % 2 == 0; exponent /= 2) base = complex_mul(base, base);
    T result = base;
    while (exponent /= 2) {{
        base = complex_mul(base, base);
        if (exponent % 2 != 0) result = complex_mul(result, base);
    }}
    return result;
}}
""",
    "nan_min": """\
// torch's `minimum`: NaN where one of the two is.
template <typename T>
{prefix} T nan_min(T a, T b)
{{
    return a < b || a != a ? a : b;
}}
""",
    "nan_max": """\
// torch's `maximum`: NaN where one of the two is.
template <typename T>
{prefix} T nan_max(T a, T b)
{{
    return a > b || a != a ? a : b;
}}
""",
    "sign": """\
// -1, 0 or 1; torch's sign of NaN is 0.
template <typename T>
{prefix} T sign(T a)
{{
    return static_cast<T>((a > 0) - (a < 0));
}}
""",
    "sign_or_nan": """\
// -1, 0 or 1; NumPy's sign of NaN is NaN.
template <typename T>
{prefix} T sign_or_nan(T a)
{{
    return a != a ? a : static_cast<T>((a > 0) - (a < 0));
}}
""",
    "gcd": """\
// The greatest common divisor, which is not negative.
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
// The least common multiple, which is not negative.
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
// The square root of a whole number, rounded down.
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
    "fraction": """\
// What Python's `math.modf` splits off first: the digits behind the point, with the sign of `a`.
template <typename T>
{prefix} T fraction(T a)
{{
    return copysign(a == trunc(a) ? T(0) : a - trunc(a), a);
}}
""",
    "mantissa": """\
// What Python's `math.frexp` splits off first: `a` times a power of two, so that it is between a half and one.
template <typename T>
{prefix} T mantissa(T a)
{{
    int exponent;
    return frexp(a, &exponent);
}}
""",
    "exponent": """\
// What Python's `math.frexp` splits off last: the power of two that the mantissa lacks.
template <typename T>
{prefix} int exponent(T a)
{{
    int result = 0;
    frexp(a, &result);
    return a - a == 0 ? result : 0;
}}
""",
    "ldexp_by_any": """\
// `a` times two to the `power`, whatever that is: far ones make 0 or an infinity.
template <typename T>
{prefix} T ldexp_by_any(T a, int64_t power)
{{
    return ldexp(a, static_cast<int>(power < -5000 ? -5000 : power > 5000 ? 5000 : power));
}}
""",
    "round_decimals": """\
// Python's `round(a, digits)`, `power` being 10 to the digits: what lies half way is told by the product's lost bits.
template <typename T>
{prefix} T round_decimals(T a, T power)
{{
    const double scaled = static_cast<double>(a) * power;
    if (!(fabs(scaled) < 9007199254740992.0)) return a;
    const double lost = fma(static_cast<double>(a), static_cast<double>(power), -scaled);
    const double below = floor(scaled), above = ceil(scaled);
    double whole = rint(scaled);
    if (below + above == 2 * scaled && lost != 0) whole = lost > 0 ? above : below;
    return static_cast<T>(whole / power);
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


_TRAITS: Final = "type_traits"
HEADERS: Final[Mapping[str, tuple[str, ...]]] = {
    **dict.fromkeys(("add_elements", "subtract_elements", "multiply_elements", "widened", "narrowed"), (_TRAITS,)),
    **dict.fromkeys(("wrapping_add", "wrapping_sub", "wrapping_mul", "wrapping_shift", "wrapping_abs"), (_TRAITS,)),
    **dict.fromkeys(("negated", "int_pow", "gcd", "lcm", "factorial"), (_TRAITS,)),
    **dict.fromkeys(("floor_div", "floor_mod", "isqrt"), (MATH, _TRAITS)),
    **dict.fromkeys(("fraction", "mantissa", "exponent", "ldexp_by_any", "round_decimals"), (MATH,)),
}
"""What the text of a helper needs, by its name."""


def takes_one_type(name: str) -> bool:
    """True where all arguments of the helper have the type of its result."""
    return name not in ("to_uint64", "widened", "complex_pow", "lane_id", "exponent", "ldexp_by_any")


@dataclass(frozen=True, slots=True)
class TargetHelpers:
    """The helpers of a target: the common ones, and its `own`, of which some replace a common one."""

    prefix: str  # goes before a function
    own: Mapping[str, str]
    own_headers: Mapping[str, tuple[str, ...]]

    def text(self, name: str) -> str:
        """The definition of helper `name`."""
        text = self.own[name] if name in self.own else HELPERS[name]
        return text.format(prefix=self.prefix)

    def headers(self, name: str) -> tuple[str, ...]:
        """What it needs."""
        return (self.own_headers if name in self.own else HEADERS).get(name, ())
