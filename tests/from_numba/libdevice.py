"""A kernel that calls functions of `cuda.libdevice` on edge values, and what tells right results from wrong ones.

`SIGNATURES` has the functions that are not plain formulas of others, and `fma`: the letters of NumPy's dtypes, results
before arguments.
"""

from __future__ import annotations

import math
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np

from py2cu.builtins import ROWS, intrinsics
from tests.support.modules import import_file

_MODES: Final = ("rn", "rd", "ru", "rz")
_OF_MODE: Final = {
    "fadd": "f:ff", "fsub": "f:ff", "fmul": "f:ff", "fdiv": "f:ff", "frcp": "f:f", "fsqrt": "f:f", "fmaf": "f:fff",
    "dadd": "d:dd", "dmul": "d:dd", "ddiv": "d:dd", "drcp": "d:d", "dsqrt": "d:d", "fma": "d:ddd",
    "int2float": "f:i", "uint2float": "f:i", "ll2float": "f:l", "ull2float": "f:l", "double2float": "f:d",
    "ll2double": "d:l", "ull2double": "d:l",
}  # fmt: skip
_OF_ORDER: Final = {"jnf": "f:if", "ynf": "f:if", "jn": "d:id", "yn": "d:id"}
_PLACES: Final = ("j0", "j1", "y0", "y1", "erfinv", "erfcinv", "erfcx", "normcdf", "normcdfinv")
_SMOOTH: Final = dict.fromkeys((f"{name}f" for name in _PLACES), "f:f") | dict.fromkeys(_PLACES, "d:d")
EXACT: Final = {f"{name}_{mode}": types for name, types in _OF_MODE.items() for mode in _MODES} | {
    "int2double_rn": "d:i", "uint2double_rn": "d:i", "fma": "d:ddd",
    "float_as_int": "i:f", "int_as_float": "f:i", "double_as_longlong": "l:d", "longlong_as_double": "d:l",
    "double2hiint": "i:d", "double2loint": "i:d", "hiloint2double": "d:ii", "byte_perm": "i:iii",
    "float2half_rn": "h:f", "half2float": "f:h", "mul64hi": "l:ll", "umul64hi": "l:ll", "remquof": "fi:ff",
    "remquo": "di:dd",
}  # fmt: skip
SIGNATURES: Final = EXACT | _SMOOTH | _OF_ORDER | {"fast_sincosf": "ff:f"}

_UNITS: Final = (
    0.0, 0.1, 1 / 3, 0.5, 0.75, 0.999, 1.0, 1.5, 1.9999, 2.0, 2.404825557695773, 3.0, 7.0, 9.3, 26.5, 3.3e5,
    2.0**24 + 2,
)  # fmt: skip
_OF_DTYPE: Final = {
    "f": (
        2.0**-149, 2.0**-127, 2.0**-126, 1.0 - 2.0**-24, 1.0 + 2.0**-23, 3e-20, 2.0**64, 3.4e38,
        (2 - 2.0**-23) * 2.0**127,
    ),
    "d": (
        2.0**-149, 2.0**-150, 3.1e-39, 5e-324, 2.0**-1023, 2.0**-1022, 1.0 - 2.0**-53, 1.0 + 2.0**-52, 3e-200,
        1e308, (2 - 2.0**-52) * 2.0**1023, (2 - 2.0**-23) * 2.0**127, (2 - 2.0**-24) * 2.0**127,
    ),
}  # fmt: skip
_WHOLE: Final = (0, 1, 2, 3, 7, 0x3254, 2**24 + 1, 2**24 + 3, 2**25 - 1, 123456789, 2**31 - 1)
_WIDE: Final = (2**31, 2**32 - 1, 2**40 + 1, 2**53 + 1, 2**53 + 3, 2**62 + 2**9, 2**63 - 2**8, 2**63 - 1)
_COUNT: Final = 1500
_LIMIT: Final = 3.14  # |argument| of `fast_sincosf`
_DTYPES: Final = "fdlih"
Results = dict[str, list[np.ndarray[Any, Any]]]


def _column(dtype: str, place: int) -> np.ndarray[Any, Any]:
    """Edge values of a dtype, among random ones; in each place their order is another one."""
    random = np.random.default_rng(place)
    if dtype in "fd":
        sizes = np.array([*_UNITS, *_OF_DTYPE[dtype]])
        edges = np.array([*sizes, *-sizes, np.inf, -np.inf, np.nan])
        others = random.standard_normal(_COUNT) * 2.0 ** random.integers(-6, 6, _COUNT)
    else:
        sizes = np.array(_WHOLE + _WIDE * (dtype == "l"), np.int64)
        edges = np.array([*sizes, *-sizes, ~sizes[-1]])
        bits = {"h": 15, "i": 31, "l": 63}[dtype]
        edges = edges[np.abs(edges) < 2**15] if dtype == "h" else edges
        others = random.integers(-(2**bits), 2**bits - 1, _COUNT) >> random.integers(0, bits, _COUNT)
    chosen = edges[np.arange(_COUNT) % len(edges)] if place == 0 else random.choice(edges, _COUNT)
    return np.where(random.random(_COUNT) < 0.8, chosen, others).astype(dtype)


def arrays() -> dict[str, np.ndarray[Any, Any]]:
    """The kernel's arguments, by name: three columns of each dtype, orders of Bessel functions, and results."""
    columns = {f"{dtype}{place}": _column(dtype, place) for dtype in _DTYPES for place in range(3)}
    orders = (np.arange(_COUNT) * 5 % 9 - 1).astype(np.int32)
    count = {dtype: sum(types.partition(":")[0].count(dtype) for types in SIGNATURES.values()) for dtype in _DTYPES}
    return columns | {"order": orders} | {f"out_{dtype}": np.zeros((_COUNT, n), dtype) for dtype, n in count.items()}


def _places() -> dict[str, list[tuple[str, int]]]:
    """Where the results of each function are: the dtype of the array, and the column."""
    used = dict.fromkeys(_DTYPES, 0)
    places: dict[str, list[tuple[str, int]]] = {}
    for name, types in SIGNATURES.items():
        for dtype in types.partition(":")[0]:
            places.setdefault(name, []).append((dtype, used[dtype]))
            used[dtype] += 1
    return places


def arguments(name: str) -> list[str]:
    """The columns that a function is called with."""
    names = [f"{dtype}{place}" for place, dtype in enumerate(SIGNATURES[name].partition(":")[2])]
    return ["order", *names[1:]] if name in _OF_ORDER else names


def module() -> str:
    """The text of the kernel `calls`."""
    lines = []
    for name, places in _places().items():
        texts = [f"{column}[i]" for column in arguments(name)]
        if name == "fast_sincosf":
            texts = [f"max(min({texts[0]}, np.float32({_LIMIT})), np.float32(-{_LIMIT}))"]
        targets = ", ".join(f"out_{dtype}[i, {column}]" for dtype, column in places)
        lines.append(f"        {targets} = cuda.libdevice.{name}({', '.join(texts)})\n")
    return (
        "import numpy as np\n\nimport py2cu.numba as cuda\n\n\n@cuda.jit\n"
        f"def calls({', '.join(arrays())}):\n    i = cuda.grid(1)\n    if i < order.size:\n{''.join(lines)}"
    )


def imported(folder: Path) -> ModuleType:
    """The kernel in a module of its own."""
    path = folder / "calls_of_libdevice.py"
    path.write_text(module(), encoding="utf-8")
    return import_file(path)


def results(kernels: ModuleType) -> Results:
    """What a launch computes, by function."""
    columns = arrays()
    kernels.calls[-(-_COUNT // 64), 64](*columns.values())
    return {
        name: [columns[f"out_{dtype}"][:, column] for dtype, column in places] for name, places in _places().items()
    }


def differences(ours: Results, theirs: Results) -> dict[str, list[tuple[object, ...]]]:
    """The first calls whose results differ by more than the row allows, by function: both results, the arguments."""
    columns, found = arrays(), {}
    for name in SIGNATURES:
        operands = [columns[column] for column in arguments(name)]
        for got, expected in zip(ours[name], theirs[name], strict=True):
            is_wrong = ~_agree(name, got, expected, operands)
            if name == "float2half_rn":  # which NaN is unspecified
                is_wrong &= ~np.isnan(operands[0])
            at = np.flatnonzero(is_wrong)
            if at.size:
                found[name] = [(got[k], expected[k], *(each[k] for each in operands)) for k in at[:3]]
    return found


def _agree(
    name: str, got: np.ndarray[Any, Any], expected: np.ndarray[Any, Any], operands: list[np.ndarray[Any, Any]]
) -> np.ndarray[Any, Any]:
    """Where two results agree: bit for bit, or within the error of the function's row."""
    if got.dtype.kind != "f":
        return got == expected
    is_same = (got == expected) & (np.signbit(got) == np.signbit(expected)) | (np.isnan(got) & np.isnan(expected))
    if name in EXACT:
        return is_same
    call = intrinsics.CALLS.get(name, "py2cu.fast.sin(")
    error = ROWS[call.partition("(")[0]].error
    unit, least = np.finfo(got.dtype).eps, np.finfo(got.dtype).smallest_subnormal
    with np.errstate(all="ignore"):
        allowed = [
            unit * eval(error, {"math": math, "value": value, "a": a, "b": b}) + 2 * least
            for value, a, b in zip(expected.tolist(), operands[0].tolist(), operands[-1].tolist(), strict=True)
        ]
        return is_same | (np.abs(got - expected) <= allowed) | np.isnan(allowed)
