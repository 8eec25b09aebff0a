"""The atomic operations: the elements that each supports, and CUDA's function where there is one (sm_75 and later).

Any other operation is a helper, `atomic_max`, that uses compare-and-swap (`targets/cxx/helpers/`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from py2cu.builtins.public import CUDA, F, placeholder, public
from py2cu.dtypes import DType, Kind

_WORDS: Final = ("int32_t", "uint32_t")
ElementIndex = int | tuple[int, ...]


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

ATOMICS: Final[dict[str, AtomicRow]] = {}
OPERATIONS: Final[dict[str, str]] = {}
"""The operation that each qualified name means: `numba.cuda.atomic.add`."""


def _atomic(
    kinds: frozenset[Kind], function: str = "", types: tuple[str, ...] = _WORDS, *, is_unsigned: bool = False
) -> Callable[[F], F]:
    """Enter the decorated method and its row; `function` is CUDA's for elements of the C types `types`."""

    def enter(method: F) -> F:
        op = method.__name__
        functions = dict.fromkeys(types, function) if function else {}
        ATOMICS[op] = AtomicRow(method.__code__.co_argcount - 3, kinds, functions, is_unsigned)
        OPERATIONS.update(dict.fromkeys((f"{library}.atomic.{op}" for library in CUDA), op))
        return placeholder(method, f"atomic.{op}")

    return enter


class Atomics:
    """Atomic operations on one element of a global or shared array.

    Each takes the array, an index (a tuple for several dimensions) and a value, and returns the old element.
    """

    __name__ = "atomic"

    def __reduce__(self) -> str:
        return self.__name__

    @_atomic(_NUMBERS, "atomicAdd", (*_WORDS, "float", "double", "__half"))
    def add(self, array: Any, index: ElementIndex, value: Any) -> Any:
        """`array[index] += value`."""

    @_atomic(_NUMBERS, "atomicSub")
    def sub(self, array: Any, index: ElementIndex, value: Any) -> Any:
        """`array[index] -= value`."""

    @_atomic(_NUMBERS, "atomicMin")
    def min(self, array: Any, index: ElementIndex, value: Any) -> Any:
        """Store the smaller of the element and the value."""

    @_atomic(_NUMBERS, "atomicMax")
    def max(self, array: Any, index: ElementIndex, value: Any) -> Any:
        """Store the larger of the element and the value."""

    @_atomic(_NUMBERS)
    def nanmin(self, array: Any, index: ElementIndex, value: Any) -> Any:
        """Store the smaller of the element and the value, the other one if one of them is NaN."""

    @_atomic(_NUMBERS)
    def nanmax(self, array: Any, index: ElementIndex, value: Any) -> Any:
        """Store the larger of the element and the value, the other one if one of them is NaN."""

    @_atomic(_ALL, "atomicExch", (*_WORDS, "float"))
    def exch(self, array: Any, index: ElementIndex, value: Any) -> Any:
        """`array[index] = value`."""

    @_atomic(_ALL, "atomicCAS")
    def cas(self, array: Any, index: ElementIndex, compare: Any, value: Any) -> Any:
        """`array[index] = value` if the element equals `compare`."""

    @_atomic(frozenset((Kind.INT,)), "atomicInc", ("uint32_t",), is_unsigned=True)
    def inc(self, array: Any, index: ElementIndex, limit: Any) -> Any:
        """Increment an unsigned element; from `limit` on, reset it to 0."""

    @_atomic(frozenset((Kind.INT,)), "atomicDec", ("uint32_t",), is_unsigned=True)
    def dec(self, array: Any, index: ElementIndex, limit: Any) -> Any:
        """Decrement an unsigned element; set 0 and anything above `limit` to `limit`."""

    @_atomic(_BITS, "atomicAnd")
    def and_(self, array: Any, index: ElementIndex, value: Any) -> Any:
        """`array[index] &= value`."""

    @_atomic(_BITS, "atomicOr")
    def or_(self, array: Any, index: ElementIndex, value: Any) -> Any:
        """`array[index] |= value`."""

    @_atomic(_BITS, "atomicXor")
    def xor(self, array: Any, index: ElementIndex, value: Any) -> Any:
        """`array[index] ^= value`."""


atomic = public(Atomics())


def atomic_function(op: str, dtype: DType) -> str:
    """The C++ function: CUDA's, or the helper."""
    return ATOMICS[op].functions.get(dtype.c) or atomic_helper(op)


def atomic_helper(op: str) -> str:
    """The name of the helper for operation `op`."""
    return f"atomic_{op.rstrip('_')}"
