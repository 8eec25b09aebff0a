"""Functions of the bits of integers: `popc`, `ffs`, `clz`, `brev`.

In: an integer element, of the width of its dtype, or a Python integer, of 64 bits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from py2cu.simulator.state import THREAD
from py2cu.simulator.values.integer_elements import IntElement

_PYTHON_BITS: Final = 64


def _pattern(value: Any) -> tuple[int, int]:
    """The bits of `value` as a natural number, and their count."""
    if not isinstance(value, int | IntElement):
        raise TypeError(f"{value!r} is not an integer")
    width = value.dtype.bits if isinstance(value, IntElement) else _PYTHON_BITS
    return int(value) & ((1 << width) - 1), width


def _element(value: Any) -> IntElement:
    if not isinstance(value, IntElement) or value.dtype.bits < 32:
        raise TypeError(f"{value!r} is not an integer element of 32 or 64 bits")
    return value


def _popc(value: Any) -> Any:
    return THREAD.integer(_pattern(value)[0].bit_count())


def _ffs(value: Any) -> Any:
    bits, _ = _pattern(value)
    return THREAD.integer((bits & -bits).bit_length())


def _clz(value: Any) -> Any:
    bits, width = _pattern(_element(value))
    return THREAD.integer(width - bits.bit_length())


def _brev(value: Any) -> Any:
    bits, width = _pattern(_element(value))
    return value.wrapped(int(f"{bits:0{width}b}"[::-1], 2))


BIT_FUNCTIONS: Final[dict[str, Callable[[Any], Any]]] = {"popc": _popc, "ffs": _ffs, "clz": _clz, "brev": _brev}
