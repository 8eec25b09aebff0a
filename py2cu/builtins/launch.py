"""The launch as a kernel sees it: `blockIdx` and its like, the lane of a thread, the size of a warp."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from py2cu.builtins.public import CUDA, outside_kernel, public
from py2cu.builtins.registry import Builtin, Rule

WARP_SIZE: Final = 32
FULL_MASK: Final = 0xFFFFFFFF
LANE: Final = "py2cu.laneid"
LANE_HELPER: Final = "lane_id"  # its C++ helper
LANE_CALLS: Final = (LANE, LANE_HELPER)
ROWS: Final = (
    Builtin(
        tuple(f"{library}.laneid" for library in CUDA),
        Rule.VOTE,
        (0, 0),
        helper=LANE_HELPER,
        result="int",
        range=(0.0, 31.0),
    ),
)
CONSTANTS: Final = dict.fromkeys(("py2cu.warpSize", "numba.cuda.warpsize"), WARP_SIZE)
POSITIONS: Final = {
    "numba.cuda.grid": ("blockIdx", "blockDim", "threadIdx"),
    "numba.cuda.gridsize": ("gridDim", "blockDim"),
}
"""Numba's place of a thread in the grid, and the threads of a grid: for each axis the product of the first two launch
objects, to which the third is added."""


@dataclass(frozen=True)
class LaunchNumber:
    """`laneid` or `warpSize`: an integer."""

    name: str

    @property
    def __name__(self) -> str:
        return self.name

    def __index__(self) -> int:
        raise outside_kernel(self.name)

    def __reduce__(self) -> str:
        return self.name  # the simulator replaces the one object of this name


@dataclass(frozen=True)
class LaunchObject(LaunchNumber):
    """`blockIdx`, `threadIdx`, `blockDim` or `gridDim`: integers `x`, `y` and `z`; the bare object means its `x`."""

    @property
    def x(self) -> int:
        raise outside_kernel(self.name)

    @property
    def y(self) -> int:
        raise outside_kernel(self.name)

    @property
    def z(self) -> int:
        raise outside_kernel(self.name)


blockIdx = public(LaunchObject("blockIdx"))
threadIdx = public(LaunchObject("threadIdx"))
blockDim = public(LaunchObject("blockDim"))
gridDim = public(LaunchObject("gridDim"))

if TYPE_CHECKING:
    warpSize: int
    laneid: int
else:
    warpSize = public(LaunchNumber("warpSize"))
    laneid = public(LaunchNumber("laneid"))
