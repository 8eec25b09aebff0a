"""Classes of the user's in a simulated kernel: their constants are typed as those of a module are.

In: a class, an enum, or one of its members. Out: an object with the same attributes, whose whole numbers, members of
`IntEnum` and `IntFlag` among them, are the Python integers of the launch.
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Final

from py2cu.live import is_integer_member, is_library, live_attribute
from py2cu.simulator.state import THREAD
from py2cu.simulator.values.checked_int import CheckedInt


class ClassSubstitute:
    """A class, or a member of an enum, whose attributes are substituted by `substitute` at their first use."""

    def __init__(self, original: object, substitute: Callable[[object], object]) -> None:
        self._original = original
        self._substitute = substitute

    def __getattr__(self, name: str) -> object:
        found = live_attribute(self._original, name)
        value = getattr(self._original, name) if found is None else self._substitute(found)
        setattr(self, name, value)
        return value


def substitute_class(value: object, substitute: Callable[[object], object]) -> object:
    """The substitute for a class of the user's or a member of such an enum; None for any other value."""
    home = value if isinstance(value, type) else type(value)
    if not isinstance(value, type | enum.Enum) or is_library(home.__module__):
        return None
    if is_integer_member(value):
        return _MEMBERS[THREAD.integer](value)
    return ClassSubstitute(value, substitute)


def _with_value(integer: type[int]) -> type[int]:
    """A class of integers that compute as `integer` does, with the attribute `value` of members of enums."""
    return type("IntMember", (integer,), {"__slots__": (), "value": property(integer)})


_MEMBERS: Final = {integer: _with_value(integer) for integer in (int, CheckedInt)}
