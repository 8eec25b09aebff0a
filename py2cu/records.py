"""Dataclasses of which a translation makes tens of thousands: nodes, types, ranges, places, lines of text.

Type checkers take them as the frozen ones that they are declared as. Python is not asked to watch over that: a frozen
dataclass takes three times as long to make, which was a twentieth of the translator's time.
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
        """`@record(frozen=True, slots=True)`: what `dataclass` makes of it, compared and hashed by value."""
        assert frozen
        return dataclass(unsafe_hash=True, slots=slots, order=order)
