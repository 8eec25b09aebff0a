"""Statements of the Python that have no code, each with the reason. Whoever drops a statement notes it.

`analysis/account.py` compares them with the IR: a statement that is in neither was lost.
"""

from __future__ import annotations

import enum

from py2cu.records import record
from py2cu.source import Span

__all__ = ["Elided", "Elision"]


class Elision(enum.Enum):
    """Why a statement has no code."""

    EMPTY = "it does nothing: `pass`, `...`, a docstring"
    DEFINITION = "a function, which is read where it is called"
    ANNOTATION = "the type of a local, without a value"
    BREAKPOINT = "a stop of the simulator"
    VIEW = "a name of part of an array"
    RANGE = "a name of a range"
    LAUNCH = "a name of a launch object"
    TABLE = "a name of an array in constant memory"
    GRID = "a name of Numba's group of all threads"
    RESTATEMENT = "it gives a dimension the name that it has"
    UNREACHABLE = "it is never executed"
    DTYPE = "a branch for other dtypes"
    LAUNCHER = "a number that the launcher computes"
    MERGED = "it is merged with the other branch"
    INLINED = "a call that is inlined"
    UNCHANGED = "an item of a tuple that keeps its value"
    UNREAD = "a tuple with items, or a length of rows, that nothing reads"
    CUT = "a barrier at which the body is split"
    PACKED = "a store or return of one element: the pack that holds it is stored"
    MASKED = "a `break` or `continue` that only some threads take: a flag replaces it"


@record(frozen=True, slots=True)
class Elided:
    """One statement that has no code."""

    span: Span
    why: Elision
