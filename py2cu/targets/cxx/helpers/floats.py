"""Helpers for floats: powers, rounding to halves, NaN in extrema, the parts of a float, rounding to decimals."""

from __future__ import annotations

from typing import Final

FLOAT_HELPERS: Final[dict[str, str]] = {
    "square": """\
// Python's `value ** 2`, a product as in torch.
template <typename T>
{prefix} T square(T value)
{{
    return value * value;
}}
""",
    "cube": """\
// Python's `value ** 3`, a product as in torch.
template <typename T>
{prefix} T cube(T value)
{{
    return value * value * value;
}}
""",
    "quotient": """\
// x / divisor. The product of a float16 with the inverse rounds to the same bits for these divisors.
template <typename T>
{prefix} T quotient(T x, T divisor, float inverse)
{{
    if constexpr (std::is_same_v<T, __half>)
        return static_cast<T>(static_cast<float>(x) * inverse);
    else
        return x / divisor;
}}
""",
    "to_compute_type": """\
// Converts half types to float before a math function; other types are unchanged.
template <typename T>
{prefix} auto to_compute_type(T value)
{{
    return static_cast<std::conditional_t<sizeof(T) == 2, float, T>>(value);
}}
""",
    "round_to": """\
// Rounds a number to T; to a half type by way of float, as torch does.
template <typename T, typename Value>
{prefix} T round_to(Value value)
{{
    return static_cast<T>(static_cast<std::conditional_t<sizeof(T) == 2, float, Value>>(value));
}}
""",
    # rule: to-uint64
    "to_uint64": """\
// Converts a float to uint64; negative numbers wrap around, which C++ leaves undefined.
{prefix} uint64_t to_uint64(double value)
{{
    return value < 0 ? static_cast<uint64_t>(static_cast<int64_t>(value)) : static_cast<uint64_t>(value);
}}
""",
    "nan_min": """\
// torch's `minimum`: NaN if an operand is NaN.
template <typename T>
{prefix} T nan_min(T a, T b)
{{
    return a < b || a != a ? a : b;
}}
""",
    "nan_max": """\
// torch's `maximum`: NaN if an operand is NaN.
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
    # rule: fraction
    "fraction": """\
// The first result of Python's `math.modf`: the fractional part, with the sign of `a`.
template <typename T>
{prefix} T fraction(T a)
{{
    return copysign(a == trunc(a) ? T(0) : a - trunc(a), a);
}}
""",
    "mantissa": """\
// The first result of Python's `math.frexp`: `a` scaled by a power of two to a magnitude from 0.5 to 1.
template <typename T>
{prefix} T mantissa(T a)
{{
    int exponent;
    return frexp(a, &exponent);
}}
""",
    "exponent": """\
// The second result of Python's `math.frexp`: the exponent of the power of two that scales the mantissa to `a`.
template <typename T>
{prefix} int exponent(T a)
{{
    int result = 0;
    frexp(a, &result);
    return a - a == 0 ? result : 0;
}}
""",
    "quotient_bits": """\
// The second result of C's `remquo`: the sign and the last three bits of the quotient that is nearest `a / b`.
template <typename T>
{prefix} int quotient_bits(T a, T b)
{{
    int quotient = 0;
    const T rest = remquo(a, b, &quotient);
    return rest == rest ? quotient % 8 : 0;
}}
""",
    "ldexp_by_any": """\
// `a` times two to the `power`, which may lie outside int: the result is 0 or an infinity then.
template <typename T>
{prefix} T ldexp_by_any(T a, int64_t power)
{{
    return ldexp(a, static_cast<int>(power < -5000 ? -5000 : power > 5000 ? 5000 : power));
}}
""",
    # rule: round-decimals
    "round_decimals": """\
// Python's `round(a, digits)` with `power` = 10 ** digits; the rounding error of the product breaks ties.
template <typename T>
{prefix} T round_decimals(T a, T power)
{{
    const double scaled = static_cast<double>(a) * power;
    if (!(fabs(scaled) < 9007199254740992.0)) return a;
    const double error = fma(static_cast<double>(a), static_cast<double>(power), -scaled);
    const double below = floor(scaled), above = ceil(scaled);
    double rounded = rint(scaled);
    if (below + above == 2 * scaled && error != 0) rounded = error > 0 ? above : below;
    return static_cast<T>(rounded / power);
}}
""",
    # rule: python-min
    "python_min": """\
// Python's `min(a, b)`: `a` unless `b` is less, also for NaN.
template <typename T>
{prefix} T python_min(T a, T b)
{{
    return b < a ? b : a;
}}
""",
    # rule: python-max
    "python_max": """\
// Python's `max(a, b)`: `a` unless `b` is greater, also for NaN.
template <typename T>
{prefix} T python_max(T a, T b)
{{
    return b > a ? b : a;
}}
""",
}
