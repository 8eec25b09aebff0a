"""The methods that every simulated array derives from its shape: `numel`, `size`, `dim`, `ndim`."""

from __future__ import annotations

import math
from typing import Any

from py2cu.simulator.state import THREAD


class _Size(int):
    """`x.size` and `x.size(0)`."""

    shape: tuple[int, ...]

    def __new__(cls, count: int, shape: tuple[int, ...]) -> _Size:
        size = super().__new__(cls, count)
        size.shape = shape
        return size

    def __call__(self, dim: int) -> int:
        return self.shape[dim]


class Shaped:
    """An array with a `shape`."""

    __slots__ = ()

    @property
    def shape(self) -> tuple[int, ...]:
        """The extents, as Python integers of the kernel."""
        raise NotImplementedError

    @property
    def ndim(self) -> Any:
        return THREAD.integer(len(self.shape))

    def dim(self) -> Any:
        return self.ndim

    def numel(self) -> Any:
        return THREAD.integer(math.prod(map(int, self.shape)))

    @property
    def size(self) -> Any:
        """The number of elements, as arrays of NumPy say it; called with an axis, the extent, as tensors do."""
        return _Size(math.prod(map(int, self.shape)), self.shape)
