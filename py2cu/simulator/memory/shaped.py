"""The methods that every simulated array derives from its shape: `numel`, `size`, `dim`, `ndim`."""

from __future__ import annotations

import math
from typing import Any

from py2cu.simulator.state import THREAD


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

    def size(self, dim: int) -> int:
        return self.shape[dim]
