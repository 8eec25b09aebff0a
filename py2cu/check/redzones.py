"""Tensors that tell what a kernel did to them: poison where nothing was written, fences on both sides.

In: a CPU tensor. Out: `Fenced`, a copy of it in the middle of a larger buffer on the device, whose surroundings hold a
pattern that no correct kernel touches. Everything is compared bit by bit, so NaN patterns count as patterns.
"""

from __future__ import annotations

import math
from typing import Final

import torch

from py2cu.tensor_bits import as_bits

MARGIN: Final = 4096  # elements on each side, and never less than the array itself
_FENCE: Final = 0xA5
_READ_FENCE: Final = 0xC3


def bit_patterns(tensor: torch.Tensor) -> list[int] | list[tuple[int, int]]:
    """What every element holds, bit by bit; of a complex one, what its parts do."""
    bits: list[int] = as_bits(tensor).flatten().tolist()
    return list(zip(bits[::2], bits[1::2], strict=True)) if tensor.is_complex() else bits


def poison_pattern(dtype: torch.dtype) -> int | tuple[int, int]:
    """The pattern of an element that nobody wrote, as `bit_patterns` has it."""
    bits = poison_bits(dtype)
    return (bits, bits) if dtype.is_complex else bits


def poison_bits(dtype: torch.dtype) -> int:
    """The pattern of a number that nobody wrote: for floats a NaN that arithmetic does not make."""
    dtype = dtype.to_real() if dtype.is_complex else dtype
    if dtype is torch.bool:
        return 1  # a bool must stay 0 or 1, or reading it is undefined
    return _nan(dtype, _FENCE) if dtype.is_floating_point else _repeated(dtype, _FENCE)


def fence_bits(dtype: torch.dtype, is_read: bool) -> int:
    """The pattern around an array.

    Around an input, floats are NaN, so that reading past its end shows in the result; around an output they are none,
    so that such a result, written past its end, shows there. It is another NaN than poison, or what a kernel computes
    from it would look like an element that it did not write.
    """
    dtype = dtype.to_real() if dtype.is_complex else dtype
    if is_read and dtype.is_floating_point:
        return _nan(dtype, _READ_FENCE)
    return _repeated(dtype, _FENCE)


def _repeated(dtype: torch.dtype, byte: int) -> int:
    """Every byte the same; bytes are unsigned in `as_bits`, wider integers signed."""
    return int.from_bytes(bytes([byte] * dtype.itemsize), "little", signed=dtype.itemsize > 1)


def _nan(dtype: torch.dtype, byte: int) -> int:
    """A quiet NaN whose payload is `byte` over and over."""
    fraction = -round(math.log2(torch.finfo(dtype).eps))  # bits; the first one says that it is quiet
    exponent = 8 * dtype.itemsize - 1 - fraction
    payload = int.from_bytes(bytes([byte] * dtype.itemsize), "little") & ((1 << (fraction - 1)) - 1)
    return ((1 << exponent) - 1) << fraction | 1 << (fraction - 1) | payload


def poison(tensor: torch.Tensor) -> torch.Tensor:
    """Fill `tensor` with poison and return it."""
    as_bits(tensor).fill_(poison_bits(tensor.dtype))
    return tensor


def is_poisoned(tensor: torch.Tensor) -> bool:
    """Whether nothing has been written to `tensor` since `poison`."""
    return bool((as_bits(tensor) == poison_bits(tensor.dtype)).all())


class Redzone:
    """A copy of `tensor` on `device` between two fences; `step` 2 leaves a fenced gap after every element.

    `is_read`: the kernel only reads it.
    """

    def __init__(self, tensor: torch.Tensor, device: str, step: int = 1, is_read: bool = False) -> None:
        self._margin = max(MARGIN, tensor.numel())
        length = tensor.numel() * step + 2 * self._margin
        self._pattern = fence_bits(tensor.dtype, is_read)
        self._elements = torch.empty(length, dtype=tensor.dtype, device=device)
        self._buffer = as_bits(self._elements).fill_(self._pattern)
        self.view = self._window(tensor, step)
        self.view.copy_(tensor)

    def _window(self, tensor: torch.Tensor, step: int) -> torch.Tensor:
        inside = self._elements[self._margin : self._margin + tensor.numel() * step]
        if step == 1 or tensor.dim() == 0:
            return inside[: tensor.numel()].view(tensor.shape)
        *outer, last = tensor.shape
        return inside.view(*outer, last * step)[..., ::step]

    def read(self) -> torch.Tensor:
        """What the array holds now, on the CPU."""
        return self.view.detach().contiguous().cpu().clone()

    def first_write_outside(self) -> int | None:
        """The first element outside the array that was written, counted from the array's start. Destroys the array."""
        if self.view.numel():
            as_bits(self.view).fill_(self._pattern)
        touched = (self._buffer != self._pattern).nonzero()
        return int(touched[0][0]) - self._margin if len(touched) else None
