"""Functions of the bits of integers, under CUDA's names without underscores.

`popc` and `ffs` of a Python integer count 64 bits. `clz` and `brev` depend on the width, which Python integers lack.
"""

from __future__ import annotations

from typing import Any

from py2cu.builtins.public import builtin
from py2cu.builtins.registry import Rule


@builtin(Rule.BITS, helper="count_bits", result="int")
def popc(value: Any) -> int:
    """The number of bits that are set in an int32, uint32, int64, uint64 or Python integer."""


@builtin(Rule.BITS, helper="first_bit", result="int")
def ffs(value: Any) -> int:
    """The position of the lowest set bit, counted from 1; 0 for zero."""


@builtin(Rule.WORD, helper="leading_zeros", result="int")
def clz(value: Any) -> int:
    """The number of zeros above the highest bit that is set, in an int32, uint32, int64 or uint64."""


@builtin(Rule.WORD, helper="reverse_bits")
def brev(value: Any) -> Any:
    """The bits of an int32, uint32, int64 or uint64 in reverse order."""
