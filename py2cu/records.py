"""The decorator `record`: dataclasses that type checkers treat as frozen, and that Python creates fast.

A translation creates tens of thousands of nodes, types, ranges, places and lines. Creating a frozen dataclass takes
three times as long, which was 5 % of the translator's time, so immutability is checked by mypy only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

__all__ = ["record"]

Class = TypeVar("Class")

if TYPE_CHECKING:
    from dataclasses import dataclass as record
else:

    def record(*, frozen: bool, slots: bool, order: bool = False) -> Callable[[type[Class]], type[Class]]:
        """`@record(frozen=True, slots=True)`: a dataclass that is compared and hashed by value."""
        assert frozen
        return dataclass(unsafe_hash=True, slots=slots, order=order)
