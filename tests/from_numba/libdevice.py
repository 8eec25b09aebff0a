"""A kernel that calls functions of `cuda.libdevice` on edge values, with what tells right results from wrong ones.

`SIGNATURES` has the functions that are not plain formulas of others: the letters of NumPy's dtypes, results before
arguments.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np

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
    "int2double_rn": "d:i", "uint2double_rn": "d:i",
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
_COUNT: Final = 1600
_LIMIT: Final = 9.0  # |value| of `fast_sincosf`
_BITS: Final = {"f": np.int32, "d": np.int64}


def _column(dtype: str, stride: int) -> np.ndarray[Any, Any]:
    """Edge values of a dtype, and random ones; of another stride the order is another one."""
    random = np.random.default_rng(stride)
    if dtype in "fd":
        sizes = np.array([*_UNITS, *_OF_DTYPE[dtype]])
        edges = np.array([*sizes, *-sizes, np.inf, -np.inf, np.nan])
        filler = random.standard_normal(_COUNT) * 2.0 ** random.integers(-6, 6, _COUNT)
    else:
        sizes = np.array(_WHOLE + _WIDE * (dtype == "l"), np.int64)
        edges = np.array([*sizes, *-sizes, *(~sizes[-1:])])
        edges = edges[np.abs(edges) < 2**15] if dtype == "h" else edges
        filler = random.integers(-(2**15), 2**15, _COUNT) * random.integers(
            1, 2 ** (48 if dtype == "l" else 15), _COUNT
        )
    count = len(edges)
    places = np.arange(_COUNT)
    chosen = edges[
        (places if stride == 0 else places // count ** min(stride, 1) + places % count * (stride - 1)) % count
    ]
    with np.errstate(over="ignore"):
        return np.where(random.random(_COUNT) < 0.8, chosen, filler).astype(dtype)


def arrays() -> dict[str, np.ndarray[Any, Any]]:
    """The kernel's arguments, by name: three columns of each dtype, orders of Bessel functions, and results."""
    columns = {f"{dtype}{place}": _column(dtype, place) for dtype in "fdlih" for place in range(3)}
    orders = (np.arange(_COUNT) * 5 % 9 - 1).astype(np.int32)
    count = {dtype: sum(types.partition(":")[0].count(dtype) for types in SIGNATURES.values()) for dtype in "fdlih"}
    return columns | {"order": orders} | {f"out_{dtype}": np.zeros((_COUNT, n), dtype) for dtype, n in count.items()}


def module() -> str:
    """The text of the kernel `calls`."""
    lines, used = [], dict.fromkeys("fdlih", 0)
    for name, types in SIGNATURES.items():
        results, _, arguments = types.partition(":")
        texts = [f"{dtype}{place}[i]" for place, dtype in enumerate(arguments)]
        if name in _OF_ORDER:
            texts[0] = "order[i]"
        if name == "fast_sincosf":
            texts[0] = f"max(min({texts[0]}, np.float32({_LIMIT})), np.float32(-{_LIMIT}))"
        targets = []
        for dtype in results:
            targets.append(f"out_{dtype}[i, {used[dtype]}]")
            used[dtype] += 1
        lines.append(f"        {', '.join(targets)} = cuda.libdevice.{name}({', '.join(texts)})\n")
    return (
        "import numpy as np\n\nimport py2cu.numba as cuda\n\n\n@cuda.jit\n"
        f"def calls({', '.join(arrays())}):\n    i = cuda.grid(1)\n    if i < order.size:\n{''.join(lines)}"
    )


def imported(folder: Path) -> ModuleType:
    """The kernel as a module of its own."""
    path = folder / "calls_of_libdevice.py"
    path.write_text(module(), encoding="utf-8")
    return import_file(path)


def results(kernels: ModuleType) -> dict[str, tuple[np.ndarray[Any, Any], ...]]:
    """What a launch computes, by function."""
    columns = arrays()
    kernels.calls[-(-_COUNT // 64), 64](*columns.values())
    used = dict.fromkeys("fdlih", 0)
    found = {}
    for name, types in SIGNATURES.items():
        columns_of_name = []
        for dtype in types.partition(":")[0]:
            columns_of_name.append(columns[f"out_{dtype}"][:, used[dtype]])
            used[dtype] += 1
        found[name] = tuple(columns_of_name)
    return found
