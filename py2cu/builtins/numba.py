"""Functions that Numba has under `cuda.fp16` and `cuda.libdevice`, each with its formula.

They take one type, and convert their arguments: `fp16` halves, `libdevice.sinf` float32, `libdevice.sin` float64.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import product
from typing import Final

from py2cu.builtins import intrinsics, math
from py2cu.builtins.registry import Rule

_HALVES: Final = {
    "hadd": "a + b", "hsub": "a - b", "hmul": "a * b", "hdiv": "a / b", "hfma": "math.fma(a, b, c)", "hneg": "-a",
    "habs": "abs(a)", "heq": "a == b", "hne": "a != b", "hge": "a >= b", "hgt": "a > b", "hle": "a <= b",
    "hlt": "a < b", "hmax": "b if a < b or a != a else a", "hmin": "b if a > b or a != a else a",
    "hsin": "math.sin(a)", "hcos": "math.cos(a)", "hlog": "math.log(a)", "hlog2": "math.log2(a)",
    "hlog10": "math.log10(a)", "hexp": "math.exp(a)", "hexp2": "math.exp2(a)", "hexp10": "10.0 ** a",
    "hsqrt": "math.sqrt(a)", "hrsqrt": "1 / math.sqrt(a)", "hrcp": "1 / a", "hfloor": "floor(a)", "hceil": "ceil(a)",
    "htrunc": "trunc(a)", "hrint": "rint(a)",
}  # fmt: skip
_TURN: Final = "math.remainder({a}, 1.0)"
_HALF_TURNS: Final = f"(1 - 2 * abs(math.fmod({{a}} - {_TURN}, 2.0)))"  # 1, or -1 if they are odd
_AWAY: Final = "trunc({a}) + math.copysign(1.0, {a}) if abs({a} - trunc({a})) >= 0.5 else trunc({a})"
_FLOATS: Final = {
    "floor{f}": "floor({a})", "ceil{f}": "ceil({a})", "trunc{f}": "trunc({a})", "rint{f}": "rint({a})",
    "nearbyint{f}": "rint({a})", "fmax{f}": "{b} if {a} < {b} or {a} != {a} else {a}",
    "fmin{f}": "{b} if {a} > {b} or {a} != {a} else {a}", "fdim{f}": "{zero} if {a} <= {b} else {a} - {b}",
    "rsqrt{f}": "1 / math.sqrt({a})", "rcbrt{f}": "1 / math.cbrt({a})", "exp10{f}": "math.pow(10.0, {a})",
    "ldexp{f}": "math.ldexp({a}, b)", "scalbn{f}": "math.ldexp({a}, b)", "powi{f}": "math.pow({a}, b)",
    "isnan{p}": "math.isnan({a})", "isinf{p}": "math.isinf({a})", "signbit{p}": "int32(math.copysign(1.0, {a}) < 0)",
    "round{f}": _AWAY, "llround{f}": f"int64({_AWAY})", "llrint{f}": "int64(rint({a}))",
    "sinpi{f}": f"math.sin(math.pi * {_TURN}) * {_HALF_TURNS}",
    "cospi{f}": f"math.sin(math.pi * (0.5 - abs({_TURN}))) * {_HALF_TURNS}",
    "logb{f}": "-math.inf if {a} == 0 else (abs({a}) if not math.isfinite({a}) else {zero} + (part.exponent({a}) - 1))",
    "ilogb{f}":
        "-2147483648 if {a} == 0 or {a} != {a} else (2147483647 if math.isinf({a}) else part.exponent({a}) - 1)",
}  # fmt: skip
"""Of both float types: `f` is the end of the name of float32's function, `p` the letter of the type, `a`, `b` and `c`
the converted arguments.
"""
_OTHERS: Final = {
    "abs": "abs(int32(a))", "llabs": "abs(int64(a))", "mulhi": "int32(int64(int32(a)) * int64(int32(b)) >> 32)",
    "umulhi": "uint32(uint64(uint32(a)) * uint64(uint32(b)) >> 32)",
    "hadd": "int32(int64(int32(a)) + int64(int32(b)) >> 1)",
    "rhadd": "int32(int64(int32(a)) + int64(int32(b)) + 1 >> 1)",
    "uhadd": "uint32(uint64(uint32(a)) + uint64(uint32(b)) >> 1)",
    "urhadd": "uint32(uint64(uint32(a)) + uint64(uint32(b)) + 1 >> 1)",
    "mul24": "int32(int64(int32(a) << 8 >> 8) * int64(int32(b) << 8 >> 8))",
    "umul24": "(uint32(a) & 16777215) * (uint32(b) & 16777215)",
    "sad": "int32(int64(int32(c)) + abs(int64(int32(a)) - int64(int32(b))))",
    "usad": "uint32(c) + (uint32(a) - uint32(b) if uint32(a) > uint32(b) else uint32(b) - uint32(a))",
    "finitef": "math.isfinite(float32(a))", "isfinited": "math.isfinite(float64(a))",
    "saturatef": "float32(0) if not a > 0 else (float32(1) if a > 1 else float32(a))",
    "frsqrt_rn": "float32(1 / math.sqrt(float64(float32(a))))",
    "fast_powf": "py2cu.fast.pow(float32(a), float32(b))", "fast_fdividef": "py2cu.fast.div(float32(a), float32(b))",
    "fast_tanf": "py2cu.fast.sin(float32(a)) / py2cu.fast.cos(float32(a))",
    "fast_log2f": "py2cu.fast.log(float32(a)) * 1.4426950408889634",
    "fast_log10f": "py2cu.fast.log(float32(a)) * 0.4342944819032518",
    "fast_exp10f": "py2cu.fast.exp(float32(a) * 2.302585092994046)",
}  # fmt: skip
_INTEGERS: Final = {"int": "int32", "ll": "int64", "uint": "uint32", "ull": "uint64"}
_ROUNDING: Final = {"rn": "rint", "rz": "trunc", "rd": "floor", "ru": "ceil"}
_WORDS: Final = {"": "int32", "ll": "int64", "u": "uint32", "ull": "uint64"}


def _libdevice() -> Iterator[tuple[str, str]]:
    """The names of `libdevice`, each with its formula."""
    for row in math.ROWS:
        if row.rule is Rule.FLOAT and not row.is_part and "float" in row.spelling:
            for c, dtype in (("float", "float32"), ("double", "float64")):
                arguments = ", ".join(f"{dtype}({name})" for name in "abc"[: row.arity[1]])
                yield row.spelling[c], f"{row.key}({arguments})"
    yield from intrinsics.CALLS.items()
    for source, suffix, dtype in (("float", "f", "float32"), ("double", "", "float64")):
        converted = {name: f"{dtype}({name})" for name in "abc"}
        for name, text in _FLOATS.items():
            yield name.format(f=suffix, p=suffix or "d"), text.format(**converted, zero=f"{dtype}(0)")
        for (target, integer), (mode, function) in product(_INTEGERS.items(), _ROUNDING.items()):
            yield f"{source}2{target}_{mode}", f"{integer}({function}({dtype}(a)))"
    for prefix, dtype in _WORDS.items():
        yield f"{prefix}max", f"{dtype}(a) if {dtype}(a) >= {dtype}(b) else {dtype}(b)"
        yield f"{prefix}min", f"{dtype}(a) if {dtype}(a) <= {dtype}(b) else {dtype}(b)"
    for suffix, dtype in (("", "int32"), ("ll", "int64")):
        yield from ((f"{name}{suffix}", f"{name}({dtype}(a))") for name in ("popc", "clz", "ffs", "brev"))
    for name in ("exp", "log", "sin", "cos"):
        yield f"fast_{name}f", f"py2cu.fast.{name}(float32(a))"
    yield from _OTHERS.items()


def parameters(text: str) -> tuple[str, ...]:
    """The names `a`, `b` and `c` up to the last one in a formula."""
    used = compile(text, "", "eval").co_names
    return tuple("abc"[: max("abc".find(name) for name in used) + 1])


FORMULAS: Final = tuple(
    (f"numba.cuda.{name}", parameters(text), text)
    for name, text in (
        *((f"fp16.{name}", re.sub(r"\b([abc])\b", r"float16(\1)", text)) for name, text in _HALVES.items()),
        *((f"libdevice.{name}", text) for name, text in dict(_libdevice()).items()),
    )
)
"""The qualified name, the parameters and the formula of each function."""

_PAIRS: Final = {
    "sincos{f}": ("math.sin({a})", "math.cos({a})"), "sincospi{f}": (_FLOATS["sinpi{f}"], _FLOATS["cospi{f}"]),
    "frexp{f}": ("part.mantissa({a})", "part.exponent({a})"), "modf{f}": ("part.fraction({a})", "part.whole({a})"),
    "remquo{f}": ("math.remainder({a}, {b})", "part.quotient_bits({a}, {b})"),
    "fast_sincosf": ("py2cu.fast.sin(float32(a))", "py2cu.fast.cos(float32(a))"),
}  # fmt: skip
PAIRS: Final = {
    f"numba.cuda.libdevice.{name.format(f=suffix)}": (
        first.format(a=f"{dtype}(a)", b=f"{dtype}(b)"), second.format(a=f"{dtype}(a)", b=f"{dtype}(b)")
    )
    for suffix, dtype in (("f", "float32"), ("", "float64"))
    for name, (first, second) in _PAIRS.items()
}  # fmt: skip
"""The qualified name of each function that has two results, and their formulas."""
