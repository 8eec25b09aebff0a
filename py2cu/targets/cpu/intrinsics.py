"""Helpers that stand for functions of CUDA's header which C++ lacks: `builtins/intrinsics.py` lists their rows.

`INTRINSICS` names the helper for each function of CUDA.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from py2cu.builtins.intrinsics import BESSEL, MODES, OPERATIONS, ROWS
from py2cu.targets.cxx.includes import MATH

_ROUNDING: Final = "in_rounding"
_QUANTILE: Final = "normal_quantile"
_MODES: Final = {"rd": ("down", "FE_DOWNWARD"), "ru": ("up", "FE_UPWARD"), "rz": ("to zero", "FE_TOWARDZERO")}
_RESULTS: Final = {
    "add": "x + y", "sub": "x - y", "mul": "x * y", "div": "x / y", "rcp": "1 / x", "sqrt": "std::sqrt(x)",
    "fma": "std::fma(x, y, z)",
}  # fmt: skip

_NEAREST: Final = """\
// {what}, rounded to the nearest; the result is volatile, or the compiler may round a product and a sum at once.
template <typename T>
{{prefix}} T {name}_rn({parameters})
{{{{
    const volatile T result = {result};
    return result;
}}}}
"""


def _operation(name: str, mode: str) -> str:
    """The helper for an operation whose rounding has a mode."""
    result, count = _RESULTS[name], OPERATIONS[name]
    what, operands = result.removeprefix("std::"), ", ".join(f"T {x}" for x in "xyz"[:count])
    if mode not in _MODES:
        return _NEAREST.format(what=what, name=name, parameters=operands, result=result)
    how, constant = _MODES[mode]
    parameters = ", ".join(f"T {a}" for a in "abc"[:count])
    copies = ", ".join(f"{x} = {a}" for x, a in zip("xyz"[:count], "abc"[:count], strict=True))
    return f"""\
// {what}, rounded {how}.
template <typename T>
{{prefix}} T {name}_{mode}({parameters})
{{{{
    const volatile T {copies};
    return {_ROUNDING}({constant}, [&]() -> T {{{{ return {result}; }}}});
}}}}
"""


def _conversion(result: str, c: str, mode: str) -> str:
    """The helper for the conversion of a number to a float, whose rounding has a mode."""
    how, constant = _MODES.get(mode, ("to the nearest", ""))
    lines = f"return static_cast<{c}>(x);"
    if constant:
        lines = f"""const volatile T read = x;
    return {_ROUNDING}({constant}, [&] {{{{ return static_cast<{c}>(read); }}}});"""
    return f"""\
// A number as a {c}, rounded {how}.
template <typename T>
{{prefix}} {c} {result}_{mode}(T x)
{{{{
    {lines}
}}}}
"""


def _bessel(name: str, c: str, suffix: str) -> str:
    """The helper for a Bessel function: C's, of doubles."""
    call, order, guard = f"{name}(x)", "", ""
    if name.endswith("n"):
        call, order, guard = f"{name}(order, x)", "int order, ", f"order < 0 ? {c}(NAN) : "
    return f"""\
// CUDA's `{call.replace("(", f"{suffix}(")}`{", which is NaN for negative orders" if order else ""}.
{{prefix}} {c} bessel_{name}{suffix}({order}{c} x)
{{{{
    return {guard}static_cast<{c}>(::{call});
}}}}
"""


def _quantile(name: str, what: str, center: str, tail: str, value: str) -> str:
    """The helper for an inverse function of probabilities, by way of `normal_quantile`."""
    return f"""\
// {what}.
template <typename T>
{{prefix}} T {name}(T p)
{{{{
    const double x = p, value = {_QUANTILE}({center}, {tail});
    return static_cast<T>({value});
}}}}
"""


INTRINSIC_HELPERS: Final[dict[str, str]] = {
    _ROUNDING: """\
// `compute()` in a rounding mode of the processor. It reads volatile variables, and its result is one: the compiler
// leaves it between the calls that change the mode.
template <typename Compute>
{prefix} auto in_rounding(int mode, Compute compute)
{{
    std::fesetround(mode);
    const volatile auto result = compute();
    std::fesetround(FE_TONEAREST);
    return result;
}}
""",
    **{f"{name}_{mode}": _operation(name, mode) for mode in MODES for name in OPERATIONS},
    **{f"float32_{mode}": _conversion("float32", "float", mode) for mode in MODES},
    **{f"float64_{mode}": _conversion("float64", "double", mode) for mode in MODES},
    **{
        f"bessel_{name}{suffix}": _bessel(name, c, suffix)
        for name in BESSEL
        for c, suffix in (("float", "f"), ("double", ""))
    },
    _QUANTILE: """\
// The number z with erf(z / sqrt(2)) = `center`; `tail` is 1 - |center|. Wichura's algorithm AS 241, for twice its
// probabilities.
{prefix} double normal_quantile(double center, double tail)
{{
    const auto polynomial = [](const double (&factors)[8], double x) {{
        double sum = 0;
        for (double factor : factors) sum = sum * x + factor;
        return sum;
    }};
    if (!(std::fabs(center) > 0.85)) {{
        const double r = 0.180625 - 0.25 * center * center;
        return 0.5 * center *
               polynomial({{2509.0809287301226727, 33430.575583588128105, 67265.770927008700853, 45921.953931549871457,
                           13731.693765509461125, 1971.5909503065514427, 133.14166789178437745, 3.387132872796366608}},
                          r) /
               polynomial({{5226.495278852545925, 28729.085735721942674, 39307.89580009271061, 21213.794301586595867,
                           5394.1960214247511077, 687.1870074920579083, 42.313330701600911252, 1.0}},
                          r);
    }}
    double r = std::sqrt(0.6931471805599453 - std::log(tail));
    if (r <= 5) {{
        r -= 1.6;
        r = polynomial({{7.7454501427834140764e-4, 0.0227238449892691845833, 0.24178072517745061177,
                        1.27045825245236838258, 3.64784832476320460504, 5.7694972214606914055, 4.6303378461565452959,
                        1.42343711074968357734}},
                       r) /
            polynomial({{1.05075007164441684324e-9, 5.475938084995344946e-4, 0.0151986665636164571966,
                        0.14810397642748007459, 0.68976733498510000455, 1.6763848301838038494, 2.05319162663775882187,
                        1.0}},
                       r);
    }} else if (std::isfinite(r)) {{
        r -= 5;
        r = polynomial({{2.01033439929228813265e-7, 2.71155556874348757815e-5, 0.0012426609473880784386,
                        0.026532189526576123093, 0.29656057182850489123, 1.7848265399172913358, 5.4637849111641143699,
                        6.6579046435011037772}},
                       r) /
            polynomial({{2.04426310338993978564e-15, 1.4215117583164458887e-7, 1.8463183175100546818e-5,
                        7.868691311456132591e-4, 0.0148753612908506148525, 0.13692988092273580531,
                        0.59983220655588793769, 1.0}},
                       r);
    }}
    return std::copysign(r, center);
}}
""",
    "normcdfinv": _quantile(
        "normcdfinv", "The number below which a normal variable is with probability `p`", "2 * (x - 0.5)",
        "2 * (x < 0.5 ? x : 1 - x)", "value",
    ),
    "erfinv": _quantile(
        "erfinv", "The inverse of `erf`, which is a product near zero", "x", "1 - std::fabs(x)",
        "std::fabs(x) < 1e-300 ? x * 0.886226925452758 : value / 1.4142135623730951",
    ),
    "erfcinv": _quantile(
        "erfcinv", "The inverse of `erfc`", "1 - x", "x < 1 ? x : 2 - x", "value / 1.4142135623730951"
    ),
    "normcdf": """\
// The probability that a normal variable is below `a`; the root of a half has more digits than a double.
template <typename T>
{prefix} T normcdf(T a)
{{
    const double x = a;
    if (!(std::fabs(x) < 40)) return x != x ? a : T(x > 0);
    const double near = -x * 0.7071067811865476;
    const double rest = std::fma(-x, 0.7071067811865476, -near) + x * 4.833646656726457e-17;
    return static_cast<T>(0.5 * (std::erfc(near) - 1.1283791670955126 * std::exp(-near * near) * rest));
}}
""",
    "erfcx": """\
// exp(a * a) * erfc(a); for large numbers the asymptotic series of Abramowitz and Stegun, 7.1.23.
template <typename T>
{prefix} T erfcx(T a)
{{
    const double x = a, square = x * x;
    if (x > 26) {{
        double series = 1, term = 1;
        for (int k = 1; k < 8; ++k) series += term *= -(2 * k - 1) / (2 * square);
        return static_cast<T>(0.5641895835477563 * series / x);
    }}
    if (!(square < 709.5)) return x != x ? a : T(INFINITY);
    return static_cast<T>(std::exp(square) * (1 + std::fma(x, x, -square)) * std::erfc(x));
}}
""",
    "high_product": """\
// The upper half of the bits of a product.
template <typename T>
{prefix} T high_product(T a, T b)
{{
    using Wide = std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>;
    return static_cast<T>(static_cast<Wide>(a) * b >> 64);
}}
""",
    "byte_perm": """\
// Four of the eight bytes of `b` and `a`, as the digits of `selector` say.
{prefix} uint32_t byte_perm(uint32_t a, uint32_t b, uint32_t selector)
{{
    const uint64_t both = static_cast<uint64_t>(b) << 32 | a;
    uint32_t result = 0;
    for (int place = 0; place < 4; ++place)
        result |= static_cast<uint32_t>(both >> 8 * (selector >> 4 * place & 7) & 255) << 8 * place;
    return result;
}}
""",
}  # fmt: skip
_MODE_OF_PROCESSOR: Final = "cfenv"
INTRINSIC_HEADERS: Final[Mapping[str, tuple[str, ...]]] = {
    _ROUNDING: (_MODE_OF_PROCESSOR,),
    **{f"{name}_{mode}": (_MODE_OF_PROCESSOR,) for mode in _MODES for name in (*OPERATIONS, "float32", "float64")},
    **{f"{name}_{mode}": (_MODE_OF_PROCESSOR, MATH) for mode in _MODES for name in ("sqrt", "fma")},
    **dict.fromkeys(("sqrt_rn", "fma_rn", _QUANTILE, "erfinv", "normcdf", "erfcx"), (MATH,)),
    **{name: (MATH,) for name in INTRINSIC_HELPERS if name.startswith("bessel_")},
    "high_product": ("type_traits",),
}
"""The headers that the text of a helper needs, by its name."""
INTRINSICS: Final = {c: row.name for row in ROWS for c in row.spelling.values()}
"""The helper for each of CUDA's functions, by the function's name."""
