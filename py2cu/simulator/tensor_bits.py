"""The bits of a tensor's elements, so that NaN patterns are copied and compared like any other value.

In: a tensor. Out: `as_bits`, a view of the same memory as integers.
"""

from __future__ import annotations

from typing import Final

import torch

_INTEGERS: Final = {1: torch.uint8, 2: torch.int16, 4: torch.int32, 8: torch.int64}  # by width in bytes


def as_bits(tensor: torch.Tensor) -> torch.Tensor:
    """View `tensor` as integers of its width; a complex tensor as those of its parts, along one more dimension."""
    parts = torch.view_as_real(tensor) if tensor.is_complex() else tensor
    return parts.view(_INTEGERS[parts.element_size()])
