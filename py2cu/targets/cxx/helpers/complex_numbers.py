"""Helpers for complex numbers: products, quotients and powers by the formulas of Python and torch."""

from __future__ import annotations

from typing import Final

COMPLEX_HELPERS: Final[dict[str, str]] = {
    "complex_mul": """\
// Python's and torch's `a * b` of complex numbers: the plain formula; C++ corrects infinite products.
template <typename T>
{prefix} T complex_mul(T a, T b)
{{
    return T(a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real());
}}
""",
    "complex_div": """\
// Python's `a / b` of complex numbers by Smith's method; a divisor of zero divides each part.
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
// `base ** exponent` of a complex number by repeated squaring; `exponent` is positive.
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
}
