"""Kernels that call functions of `cuda.libdevice`, and what tells right results from wrong ones.

`SIGNATURES` has the functions that are not plain formulas of others, and `fma`, which `EDGES` calls on edge values: the
letters of NumPy's dtypes, results before arguments. `tame` calls any functions on numbers where all are defined.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
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
_OF_POWER: Final = ("ldexp", "scalbn", "powi")
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
Array = np.ndarray[Any, Any]
Results = dict[str, list[Array]]


@dataclass(frozen=True)
class Calls:
    """A kernel that calls each function of `signatures` with columns of numbers; `texts` are other arguments."""

    signatures: Mapping[str, str]
    columns: Mapping[str, Array]
    texts: Mapping[str, str]

    def arrays(self) -> dict[str, Array]:
        """The kernel's arguments, by name."""
        made = "".join(types.partition(":")[0] for types in self.signatures.values())
        outputs = {f"out_{dtype}": np.zeros((_COUNT, made.count(dtype)), dtype) for dtype in _DTYPES if dtype in made}
        return {**self.columns, **outputs}

    def places(self) -> dict[str, list[tuple[str, int]]]:
        """Where the results of each function are: the array, and its column."""
        used = dict.fromkeys(_DTYPES, 0)
        places: dict[str, list[tuple[str, int]]] = {}
        for name, types in self.signatures.items():
            for dtype in types.partition(":")[0]:
                places.setdefault(name, []).append((f"out_{dtype}", used[dtype]))
                used[dtype] += 1
        return places

    def arguments(self, name: str) -> list[str]:
        """The columns that a function is called with."""
        names = [f"{dtype}{place}" for place, dtype in enumerate(self.signatures[name].partition(":")[2])]
        if name in _OF_ORDER:
            names[0] = "order"
        if name.removesuffix("f") in _OF_POWER:
            names[1] = "order"
        return names

    def imported(self, folder: Path) -> ModuleType:
        """The kernel `calls` in a module of its own."""
        lines = []
        for name, places in self.places().items():
            text = self.texts.get(name) or ", ".join(f"{column}[i]" for column in self.arguments(name))
            targets = ", ".join(f"{array}[i, {column}]" for array, column in places)
            lines.append(f"        {targets} = cuda.libdevice.{name}({text})\n")
        path = folder / "calls_of_libdevice.py"
        path.write_text(
            "import numpy as np\n\nimport py2cu.numba as cuda\n\n\n@cuda.jit\n"
            f"def calls({', '.join(self.arrays())}):\n    i = cuda.grid(1)\n    if i < order.size:\n{''.join(lines)}",
            encoding="utf-8",
        )
        return import_file(path)

    def results(self, kernels: ModuleType) -> Results:
        """What a launch computes, by function."""
        arrays = self.arrays()
        kernels.calls[-(-_COUNT // 64), 64](*arrays.values())
        return {name: [arrays[array][:, column] for array, column in places] for name, places in self.places().items()}

    def differences(self, ours: Results, theirs: Results) -> dict[str, list[tuple[object, ...]]]:
        """The first calls whose results differ too much, by function: both results, the arguments."""
        found = {}
        for name in self.signatures:
            operands = [self.columns[column] for column in self.arguments(name)]
            for got, expected in zip(ours[name], theirs[name], strict=True):
                is_wrong = ~_agree(name, got, expected, operands)
                if name == "float2half_rn":  # which NaN is unspecified
                    is_wrong &= ~np.isnan(operands[0])
                at = np.flatnonzero(is_wrong)
                if at.size:
                    found[name] = [(got[k], expected[k], *(each[k] for each in operands)) for k in at[:3]]
        return found


def _column(dtype: str, place: int) -> Array:
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


EDGES: Final = Calls(
    SIGNATURES,
    {f"{dtype}{place}": _column(dtype, place) for dtype in _DTYPES for place in range(3)}
    | {"order": (np.arange(_COUNT) * 5 % 9 - 1).astype(np.int32)},
    {"fast_sincosf": f"max(min(f0[i], np.float32({_LIMIT})), np.float32(-{_LIMIT}))"},
)


def tame(signatures: Mapping[str, str]) -> Calls:
    """Calls with floats between 0 and 1, or 1 and 2, with naturals, and small powers."""
    random = np.random.default_rng(3)
    columns: dict[str, Array] = {
        "order": random.integers(-5, 5, _COUNT).astype(np.int32),
        "h0": random.integers(0, 2**14, _COUNT).astype(np.int16),
    }
    for place in range(3):
        columns |= {f"{dtype}{place}": (random.random(_COUNT) * 0.98 + 0.01).astype(dtype) for dtype in "fd"}
        columns |= {f"i{place}": random.integers(0, 2**30 if place < 2 else 1000, _COUNT).astype(np.int32)}
        columns |= {f"l{place}": random.integers(0, 2**62, _COUNT)}
    return Calls(signatures, columns, {"acosh": "1 + d0[i]", "acoshf": "1 + f0[i]"})


def _agree(name: str, got: Array, expected: Array, operands: list[Array]) -> Array:
    """Where two results agree: bit for bit, or within the error of the function's row."""
    if got.dtype.kind != "f":
        return got == expected
    is_same = (got == expected) & (np.signbit(got) == np.signbit(expected)) | (np.isnan(got) & np.isnan(expected))
    if name in EXACT:
        return is_same
    fast = "py2cu.fast.sin" if name == "fast_sincosf" else ""
    row = ROWS.get(fast or intrinsics.CALLS.get(name, "").partition("(")[0])
    error = row.error if row else "16 * (1 + abs(value))"  # the sum of the errors of the functions in a formula
    unit, least = np.finfo(got.dtype).eps, np.finfo(got.dtype).smallest_subnormal
    with np.errstate(all="ignore"):
        allowed = [
            unit * eval(error, {"math": math, "value": value, "a": a, "b": b}) + 2 * least
            for value, a, b in zip(expected.tolist(), operands[0].tolist(), operands[-1].tolist(), strict=True)
        ]
        return is_same | (np.abs(got - expected) <= allowed) | np.isnan(allowed)
