"""Detect unwritten elements and writes outside an array: poison inside, redzones on both sides.

In: a CPU tensor. Out: `Redzone`, a copy of the tensor in the middle of a larger buffer on the device. The rest of the
buffer holds a pattern that no correct kernel changes. Elements are compared bit by bit, so NaNs count by their bits.
"""

from __future__ import annotations

import math
from typing import Final

import torch

from py2cu.simulator.tensor_bits import as_bits

MARGIN: Final = 4096  # elements on each side, and never less than the array itself
CONTIGUOUS: Final = ""
SLICED: Final = "sliced"  # a gap after every element
TRANSPOSED: Final = "transposed"  # the first axis runs fastest
EXPANDED: Final = "expanded"  # the first axis has one element, which repeats
_BYTE: Final = 0xA5
_BYTE_AROUND_INPUTS: Final = 0xC3


def bit_patterns(tensor: torch.Tensor) -> list[int] | list[tuple[int, int]]:
    """The bits of every element as an integer; of a complex one, those of its parts."""
    bits: list[int] = as_bits(tensor).flatten().tolist()
    return list(zip(bits[::2], bits[1::2], strict=True)) if tensor.is_complex() else bits


def poison_pattern(dtype: torch.dtype) -> int | tuple[int, int]:
    """The bits of an unwritten element, in the form of `bit_patterns`."""
    bits = poison_bits(dtype)
    return (bits, bits) if dtype.is_complex else bits


def poison_bits(dtype: torch.dtype) -> int:
    """The bits of an unwritten number: for floats, a NaN that arithmetic does not produce."""
    dtype = dtype.to_real() if dtype.is_complex else dtype
    if dtype is torch.bool:
        return 1  # reading a bool other than 0 and 1 is undefined
    return _nan(dtype, _BYTE) if dtype.is_floating_point else _repeated(dtype, _BYTE)


def redzone_bits(dtype: torch.dtype, is_read: bool) -> int:
    """The pattern around an array.

    Around an input, floats are NaN, so that reading past the end shows in the result. Around an output, floats are
    numbers, so that a NaN written past the end shows. The NaN differs from poison: a result computed from it must not
    look like an unwritten element.
    """
    dtype = dtype.to_real() if dtype.is_complex else dtype
    if is_read and dtype.is_floating_point:
        return _nan(dtype, _BYTE_AROUND_INPUTS)
    return _repeated(dtype, _BYTE)


def _repeated(dtype: torch.dtype, byte: int) -> int:
    """An integer of equal bytes; in `as_bits`, bytes are unsigned and wider integers signed."""
    return int.from_bytes(bytes([byte] * dtype.itemsize), "little", signed=dtype.itemsize > 1)


def _nan(dtype: torch.dtype, byte: int) -> int:
    """A quiet NaN whose payload repeats `byte`."""
    fraction = -round(math.log2(torch.finfo(dtype).eps))  # bits; the first one marks a quiet NaN
    exponent = 8 * dtype.itemsize - 1 - fraction
    payload = int.from_bytes(bytes([byte] * dtype.itemsize), "little") & ((1 << (fraction - 1)) - 1)
    return ((1 << exponent) - 1) << fraction | 1 << (fraction - 1) | payload


def poison(tensor: torch.Tensor) -> torch.Tensor:
    """Fill `tensor` with poison and return it."""
    as_bits(tensor).fill_(poison_bits(tensor.dtype))
    return tensor


def is_poisoned(tensor: torch.Tensor) -> bool:
    """Whether every element of `tensor` holds poison."""
    return bool((as_bits(tensor) == poison_bits(tensor.dtype)).all())


class Redzone:
    """A copy of `tensor` on `device` between two redzones.

    The elements lie in one of the layouts above; gaps hold the pattern, too. The elements of an expanded tensor repeat
    along its first axis. `is_read`: the kernel only reads the array.
    """

    def __init__(self, tensor: torch.Tensor, device: str, layout: str = CONTIGUOUS, is_read: bool = False) -> None:
        self._margin = max(MARGIN, tensor.numel())
        length = tensor.numel() * 2 + 2 * self._margin
        self._pattern = redzone_bits(tensor.dtype, is_read)
        self._elements = torch.empty(length, dtype=tensor.dtype, device=device)
        self._buffer = as_bits(self._elements).fill_(self._pattern)
        is_expanded = layout == EXPANDED and tensor.dim() > 0
        self._distinct = self._window(tensor[:1] if is_expanded else tensor, layout)
        self._distinct.copy_(tensor[:1] if is_expanded else tensor)
        self.view = self._distinct.expand(tensor.shape) if is_expanded and len(tensor) else self._distinct

    def _window(self, tensor: torch.Tensor, layout: str) -> torch.Tensor:
        step = 2 if layout == SLICED and tensor.dim() else 1
        inside = self._elements[self._margin : self._margin + tensor.numel() * step]
        if layout == TRANSPOSED:
            return inside.view(tensor.shape[::-1]).permute([*reversed(range(tensor.dim()))])
        if step == 1:
            return inside.view(tensor.shape)
        *outer, last = tensor.shape
        return inside.view(*outer, last * step)[..., ::step]

    def read(self) -> torch.Tensor:
        """A copy of the array on the CPU."""
        return self.view.detach().contiguous().cpu().clone()

    def first_write_outside(self) -> int | None:
        """The position of the first changed element outside the array, from the array's start. Overwrites the array."""
        if self.view.numel():
            as_bits(self._distinct).fill_(self._pattern)
        touched = (self._buffer != self._pattern).nonzero()
        return int(touched[0][0]) - self._margin if len(touched) else None
