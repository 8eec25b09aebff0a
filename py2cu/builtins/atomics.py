"""The atomic operations: the elements that each supports, and CUDA's function where there is one (sm_75 and later).

Any other operation is a helper, `atomic_max`, that uses compare-and-swap (`targets/cxx/helpers/`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from py2cu.dtypes import DType, Kind

_WORDS: Final = ("int32_t", "uint32_t")


@dataclass(frozen=True, slots=True)
class AtomicRow:
    """One operation; `values` counts the arguments behind the index, `functions` maps C types to CUDA's functions."""

    values: int
    kinds: frozenset[Kind]
    functions: Mapping[str, str] = field(default_factory=dict)
    is_unsigned: bool = False  # supports unsigned elements only

    def takes(self, dtype: DType) -> bool:
        """True if elements of `dtype` support the operation."""
        return dtype.kind in self.kinds and not (self.is_unsigned and dtype.signed)


_NUMBERS: Final = frozenset((Kind.INT, Kind.FLOAT))
_BITS: Final = frozenset((Kind.BOOL, Kind.INT))
_ALL: Final = _BITS | _NUMBERS

ATOMICS: Final[dict[str, AtomicRow]] = {
    "add": AtomicRow(1, _NUMBERS, dict.fromkeys((*_WORDS, "float", "double", "__half"), "atomicAdd")),
    "sub": AtomicRow(1, _NUMBERS, dict.fromkeys(_WORDS, "atomicSub")),
    "min": AtomicRow(1, _NUMBERS, dict.fromkeys(_WORDS, "atomicMin")),
    "max": AtomicRow(1, _NUMBERS, dict.fromkeys(_WORDS, "atomicMax")),
    "exch": AtomicRow(1, _ALL, dict.fromkeys((*_WORDS, "float"), "atomicExch")),
    "cas": AtomicRow(2, _ALL, dict.fromkeys(_WORDS, "atomicCAS")),
    "inc": AtomicRow(1, frozenset((Kind.INT,)), {"uint32_t": "atomicInc"}, is_unsigned=True),
    "dec": AtomicRow(1, frozenset((Kind.INT,)), {"uint32_t": "atomicDec"}, is_unsigned=True),
    "and_": AtomicRow(1, _BITS, dict.fromkeys(_WORDS, "atomicAnd")),
    "or_": AtomicRow(1, _BITS, dict.fromkeys(_WORDS, "atomicOr")),
    "xor": AtomicRow(1, _BITS, dict.fromkeys(_WORDS, "atomicXor")),
}


def atomic_function(op: str, dtype: DType) -> str:
    """The C++ function: CUDA's, or the helper."""
    return ATOMICS[op].functions.get(dtype.c) or atomic_helper(op)


def atomic_helper(op: str) -> str:
    """The name of the helper for operation `op`."""
    return f"atomic_{op.rstrip('_')}"
