"""Functions of the bits of integers, under CUDA's names without underscores.

`popc` and `ffs` of a Python integer count 64 bits. `clz` and `brev` depend on the width, which Python integers lack.
A reference computes with `bits`, a natural number, and `width`, the number of bits.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Final

from py2cu.builtins.public import PY2CU, builtin
from py2cu.builtins.registry import ROWS, Rule, register

_COUNT: Final = (0.0, 64.0)


@builtin(Rule.BITS, helper="count_bits", result="int", range=_COUNT, reference="bits.bit_count()")
def popc(value: Any) -> int:
    """The number of bits that are set in an int32, uint32, int64, uint64 or Python integer."""


@builtin(Rule.BITS, helper="first_bit", result="int", range=_COUNT, reference="(bits & -bits).bit_length()")
def ffs(value: Any) -> int:
    """The position of the lowest set bit, counted from 1; 0 for zero."""


@builtin(Rule.WORD, helper="leading_zeros", result="int", range=_COUNT, reference="width - bits.bit_length()")
def clz(value: Any) -> int:
    """The number of zeros above the highest bit that is set, in an int32, uint32, int64 or uint64."""


@builtin(Rule.WORD, PY2CU, helper="reverse_bits", reference="int(f'{bits:0{width}b}'[::-1], 2)")
def brev(value: Any) -> Any:
    """The bits of an int32, uint32, int64 or uint64 in reverse order."""


register([replace(ROWS["py2cu.brev"], names=("numba.cuda.brev",), result="unsigned")])
