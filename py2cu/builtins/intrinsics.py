"""Functions of CUDA's header that Python, NumPy and torch lack: only formulas call them, with elements of given types.

The end of a name says how the result is rounded, as in CUDA: `rn` to the nearest, `rd` down, `ru` up, `rz` to zero. The
errors are those that CUDA documents.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from py2cu.builtins.registry import EXACT, LOOSE, PART, Builtin, Rule
from py2cu.dtypes import DTYPES, F32, F64, I32, I64, U32, U64, DType

MODES: Final = ("rn", "rd", "ru", "rz")
OPERATIONS: Final = {"add": 2, "sub": 2, "mul": 2, "div": 2, "rcp": 1, "sqrt": 1, "fma": 3}
"""The operations that CUDA rounds in every mode, each with the number of its operands."""
BESSEL: Final = {"j0": 1, "j1": 1, "jn": 2, "y0": 1, "y1": 1, "yn": 2}
"""The Bessel functions, each with the number of its arguments: the order, if there are two, and the number."""
_OF_WORDS: Final = {I32.c: "int", U32.c: "uint", I64.c: "ll", U64.c: "ull"}


def _row(
    name: str, count: int, spelling: dict[str, str], reference: str, error: str, result: DType | None = None
) -> Builtin:
    names, arity = (PART + name,), (count, count)
    return Builtin(names, Rule.ELEMENTS, arity, spelling, result=result, reference=reference, error=error)


def _directed() -> Iterator[Builtin]:
    """The operations and conversions that CUDA rounds in a given mode."""
    for mode in MODES:
        for name, count in OPERATIONS.items():
            of_float, of_double = ("fmaf", "fma") if name == "fma" else (f"f{name}", f"d{name}")
            spelling = {F32.c: f"__{of_float}_{mode}"}
            if name != "sub":  # of doubles, Numba has none
                spelling[F64.c] = f"__{of_double}_{mode}"
            reference = f"typed.directed('{name}', '{mode}', {', '.join('abc'[:count])})"
            yield _row(f"{name}_{mode}", count, spelling, reference, EXACT)
        exact = (I32.c, U32.c) if mode == "rn" else ()  # CUDA has one mode for what needs no rounding
        for result, sources in ((F32, (*_OF_WORDS, F64.c)), (F64, (I64.c, U64.c, *exact))):
            spelling = {c: f"__{_OF_WORDS.get(c, c)}2{result.c}_{mode}" for c in sources}
            yield _row(f"{result}_{mode}", 1, spelling, f"typed.directed('{result}', '{mode}', a)", EXACT, result)


def _bessel() -> Iterator[Builtin]:
    """The Bessel functions. The error of those of any order grows with it; near zero, CUDA's recurrence overflows
    to NaN.
    """
    for c, suffix, near, far in ((F32.c, "f", 9, 19), (F64.c, "", 7, 23000)):
        for name, count in BESSEL.items():  # far from zero, up to 2.2e-6 and 5e-12
            error = f"{near} * max(1, abs(value)) if abs(a) < 8 else {far}"
            if count == 2:
                error = f"max({far}, (3 + 2.5 * a) * abs(value)) if abs(b) >= 1e-8 * (1 + a) else math.nan"
            reference = f"special.bessel('{name}', {', '.join('ab'[:count])})"
            yield _row(f"bessel_{name}{suffix}", count, {c: name + suffix}, reference, error)


ROWS: Final = (
    *_directed(),
    *_bessel(),
    *(
        _row(name, 1, {F32.c: f"{name}f", F64.c: name}, f"special.{name}(a)", LOOSE)
        for name in ("erfinv", "erfcinv", "erfcx", "normcdf", "normcdfinv")
    ),
    _row("high_product", 2, {I64.c: "__mul64hi", U64.c: "__umul64hi"}, "typed.high_product(a, b)", EXACT),
    _row("byte_perm", 3, {U32.c: "__byte_perm"}, "typed.byte_perm(a, b, c)", EXACT),
    Builtin(
        (f"{PART}quotient_bits",), Rule.ELEMENTS, (2, 2), helper="quotient_bits", result=I32,
        reference="typed.quotient_bits(a, b)",
    ),
)  # fmt: skip


def _calls() -> Iterator[tuple[str, str]]:
    """Each function of the rows, with the call of its row."""
    dtypes = {dtype.c: dtype.name for dtype in DTYPES}
    for row in ROWS:
        for c, function in row.spelling.items():
            first = I32.name if row.name.startswith(("bessel_jn", "bessel_yn")) else dtypes[c]  # the order
            types = (first, dtypes[c], dtypes[c])
            arguments = (f"{dtype}({name})" for dtype, name in zip(types, "abc"[: row.arity[1]], strict=False))
            yield function.removeprefix("__"), f"{row.key}({', '.join(arguments)})"


CALLS: Final = dict(_calls()) | {
    "float_as_int": "float32(a).view(int32)", "int_as_float": "int32(a).view(float32)",
    "double_as_longlong": "float64(a).view(int64)", "longlong_as_double": "int64(a).view(float64)",
    "double2hiint": "int32(float64(a).view(int64) >> 32)", "double2loint": "int32(float64(a).view(int64))",
    "hiloint2double": "(int64(int32(a)) << 32 | int64(uint32(b))).view(float64)",
    "float2half_rn": "float16(float32(a)).view(int16)", "half2float": "float32(int16(a).view(float16))",
}  # fmt: skip
"""Formulas of CUDA's functions, by their names without underscores; they convert their arguments, as C does."""
