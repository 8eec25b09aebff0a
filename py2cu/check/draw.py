"""Draw the values of a case: elements of arrays, and scalars that are no dimension.

In: a flavour (random, tame, small, extreme or non-finite), a seed, a dtype and a shape. Out: tensors on the CPU, the
same for the same seed. Extreme values include the limits of the dtype, non-finite ones also infinities and NaN.
"""

from __future__ import annotations

import math
from typing import Final

import torch

from py2cu.dtypes import DType, Kind
from py2cu.ir.abi.parameters import Parameter
from py2cu.ir.types import PythonType
from py2cu.simulator.tensor_bits import as_bits

RANDOM: Final = "random"
TAME: Final = "tame"  # integers are valid indices of every array
SMALL: Final = "small"  # integers are valid shifts of every type, too
EXTREME: Final = "extreme"
NON_FINITE: Final = "non-finite"
WIDTH: Final = 3.0  # the standard deviation of random floats
FLOATS: Final = (0.5, -1.25, 2.0, 0.1, 3.75, 1e-3, 1.0)
INTEGERS: Final = (1, 2, 3, 1, 4, 2, 0)
# Doubles that round to another half directly than by way of float32.
BETWEEN_HALVES: Final = (1 + 2**-11 + 2**-40, 1 + 2**-8 + 2**-40)


def scalar(parameter: Parameter, number: int) -> int | float | bool | complex:
    """The value of a scalar parameter that is no dimension; `number` picks among a few."""
    kind = parameter.type.kind if isinstance(parameter.type, PythonType) else Kind.INT
    if kind is Kind.BOOL:
        return number % 2 == 0
    if kind is Kind.COMPLEX:
        return complex(FLOATS[number % len(FLOATS)], FLOATS[(number + 1) % len(FLOATS)])
    choices: tuple[int | float, ...] = FLOATS if kind is Kind.FLOAT else INTEGERS
    return choices[number % len(choices)]


class ValueGenerator:
    """Draw elements of one flavour, from a seed."""

    def __init__(self, flavour: str, seed: int, bound: int) -> None:
        self._flavour = flavour
        self._bound = bound  # tame integers stay below, so that they are valid indices
        self._generator = torch.Generator().manual_seed(seed)

    def array(self, dtype: DType, shape: list[int], domain: tuple[float, float] | None = None) -> torch.Tensor:
        """A fresh contiguous tensor; floats that are not extreme lie within `domain`."""
        if dtype.kind is Kind.COMPLEX:
            return torch.view_as_complex(self.array(dtype.part, [*shape, 2]))
        kind: torch.dtype = getattr(torch, dtype.name)
        if self._flavour in (TAME, SMALL):
            return self._tame(dtype, shape).to(kind)
        drawn = self._random(dtype, shape)
        if domain is not None:
            low, high = max(domain[0], -WIDTH), min(domain[1], WIDTH)
            inside = low + (high - low) * torch.rand(
                shape, generator=self._generator, dtype=torch.float64, device="cpu"
            )
            drawn = torch.where((drawn >= domain[0]) & (drawn <= domain[1]), drawn, inside)
        drawn = drawn.to(kind)
        if self._flavour == RANDOM or not drawn.numel():
            return drawn
        special = torch.tensor(self._special(dtype), dtype=kind, device="cpu")
        picked = special[self._integers(0, len(special), shape)]
        # As bits, since torch has few operations on its wide unsigned types.
        return torch.where(self._integers(0, 4, shape) > 0, as_bits(picked), as_bits(drawn)).view(kind)

    def _integers(self, low: int, high: int, shape: list[int]) -> torch.Tensor:
        return torch.randint(low, high, shape, generator=self._generator, device="cpu")

    def _random(self, dtype: DType, shape: list[int]) -> torch.Tensor:
        if dtype.kind is Kind.FLOAT:
            return WIDTH * torch.randn(shape, generator=self._generator, dtype=torch.float64, device="cpu")
        # Wide integers stay moderate: they are more often counts and indices than bit patterns.
        reach = 1 << 16 if dtype.bits <= 16 else 1000
        return self._integers(max(int(dtype.low), -reach), min(int(dtype.high), reach) + 1, shape)

    def _tame(self, dtype: DType, shape: list[int]) -> torch.Tensor:
        if dtype.kind is Kind.FLOAT:
            return 0.5 + 1.5 * torch.rand(shape, generator=self._generator, dtype=torch.float64, device="cpu")
        if dtype.kind is Kind.BOOL:
            return self._integers(0, 2, shape)
        # Positive if possible, as divisors; below every extent, as indices; SMALL ones below 8, as shifts.
        limit = 8 if self._flavour == SMALL else 128
        return self._integers(min(1, self._bound - 1), min(self._bound, limit), shape)

    def _special(self, dtype: DType) -> list[float]:
        if dtype.kind is not Kind.FLOAT:
            return [dtype.low, dtype.high, 0, 1] + ([-1] if dtype.signed else [])
        tiny = torch.finfo(getattr(torch, dtype.name)).smallest_normal
        finite = [0.0, -0.0, 1.0, -1.0, dtype.high, dtype.low, tiny, -tiny, tiny / 4, *BETWEEN_HALVES]
        return finite if self._flavour == EXTREME else [*finite, math.inf, -math.inf, math.nan]
