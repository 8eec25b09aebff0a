"""The arguments of a kernel of the enumeration, as the oracle, the simulator and a compiled kernel take them.

A thread has a row of each array of its own. Which row is chosen for each thread, so that its Python raises nothing.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from tests.enumerate import oracle

THREADS: Final = 14
WIDTH: Final = 8
"""The elements of `y` that a thread has."""
X: Final = (
    -1, 0, 7, 2**31 + 5, 1, -(2**40) - 3, 300, 2**62 + 11, -9, 5, -(2**63), 2, 2**63 - 1, 3,
)  # fmt: skip
Z: Final = ((3, -2, 5, 1), (0, 1, 2, 9), (-1, 7, 4, -(2**31)), (6, 2, 0, 3))
Y0: Final = (0, 2, 5, 1, 3)
W: Final = (4, 1, 2, 7, 0, 3, 6, 5)
DTYPES: Final = {"x": "int64", "z": "int32", "w": "int64", "y": "int64"}
_C: Final = {"int64": ctypes.c_int64, "int32": ctypes.c_int32}


class Grid:
    """An array in memory, with what the simulator and a launcher ask a tensor for."""

    def __init__(self, numbers: Sequence[int], shape: tuple[int, ...], dtype: str) -> None:
        self.shape, self.dtype = shape, f"torch.{dtype}"
        self.memory = (_C[dtype] * len(numbers))(*numbers)

    def data_ptr(self) -> int:
        return ctypes.addressof(self.memory)

    def numel(self) -> int:
        return math.prod(self.shape)

    def flatten(self) -> Grid:
        return self

    def tolist(self) -> list[int]:
        return [*self.memory]


@dataclass(frozen=True, slots=True)
class Rows:
    """The row of `X` that each thread has, and with it those of `Z` and of `y`."""

    chosen: tuple[int, ...]

    def _numbers(self) -> dict[str, tuple[list[int], tuple[int, ...]]]:
        n = len(self.chosen)
        z = [number for row in self.chosen for number in Z[row % len(Z)]]
        y = [number for row in self.chosen for number in first_row(row)]
        x = [X[row] for row in self.chosen]
        return {"x": (x, (n,)), "z": (z, (n, 4)), "w": ([*W], (len(W),)), "y": (y, (n, WIDTH))}

    def in_memory(self) -> dict[str, Any]:
        """The arguments of a call."""
        return {name: Grid(numbers, shape, DTYPES[name]) for name, (numbers, shape) in self._numbers().items()}


def first_row(row: int) -> list[int]:
    """The elements of `y` before the launch."""
    return [Y0[row % len(Y0)], 1, 2, 3, 0, 0, 0, 0]


def of_thread(thread: int, row: int) -> list[Any]:
    """The arguments of one thread for the oracle: only the thread's own rows are there."""
    before = thread + 1

    def array(numbers: Sequence[int], width: int, bits: int) -> oracle.Array:
        data = [None] * (thread * width) + [*numbers]
        return oracle.Array(data, (before, width) if width > 1 else (before,), bits)

    w = oracle.Array([*W], (len(W),), 64)
    return [thread, array([X[row]], 1, 64), array(Z[row % len(Z)], 4, 32), w, array(first_row(row), WIDTH, 64)]


def candidates(thread: int) -> list[int]:
    """The rows of `X` in the order in which a thread tries them."""
    return [(5 * thread + k) % len(X) for k in range(len(X))]
