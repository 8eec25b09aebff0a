"""`threadIdx`, `blockIdx`, `blockDim` and `gridDim` of a simulated thread, as integers with an x, y and z."""

from __future__ import annotations

from typing import Self

from py2cu.simulator.launch import Triple
from py2cu.simulator.state import THREAD
from py2cu.simulator.values.checked_int import CheckedInt


class Coordinate(int):
    """A launch object of one thread: `.x`, `.y`, `.z` are integers; bare, it is its x."""

    x: int
    y: int
    z: int

    def __new__(cls, x: int, y: int = 1, z: int = 1) -> Self:
        bare = super().__new__(cls, x)
        bare.x, bare.y, bare.z = map(THREAD.integer, (x, y, z))
        return bare


class CheckedCoordinate(Coordinate, CheckedInt):
    """A launch object whose integers are checked against 64 bits."""


def coordinate(place: Triple) -> Coordinate:
    """A launch object at `place`, of the class of the launch's integers."""
    return (Coordinate if THREAD.integer is int else CheckedCoordinate)(*place)
