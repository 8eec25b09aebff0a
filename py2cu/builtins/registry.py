"""The row behind every builtin, and lookup by qualified name.

A row is data: which Python names mean it, how its type follows from its arguments, and how each element type spells it.
To add a builtin, add a row in a sibling file and one case under `tests/cases`.
"""

from __future__ import annotations

import enum
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from py2cu.dtypes import DType


class Rule(enum.Enum):
    """How a builtin's type follows from its arguments' types."""

    FLOAT = "floats in, the same float out; integer elements count as float32"
    ANALYTIC = "floats or complex numbers in, the same out; integer elements count as float32"
    COMPLEX = "numbers in, a complex number out"
    PART = "a complex number in, its real or imaginary part out"
    SCALED = "a float and a whole number in, the same float out; an integer element counts as float32"
    INTEGRAL = "a float in, a Python integer out"
    ROUNDED = "a float in, the same float out; whole numbers stay as they are"
    WHOLE = "whole numbers in, a Python integer out"
    PREDICATE = "a float in, a bool out"
    SAME = "numbers in, their common type out"
    BITS = "a whole number of 32 or 64 bits in, a Python integer out; Python integers have 64"
    WORD = "an integer element of 32 or 64 bits in, `result` out: the same type if None"
    SHUFFLE = "a mask, a number and a lane in, the number of another lane out"
    VOTE = "a thread's predicate in, `result` for all threads out"
    MATCH = "a mask and a number in, `result` out"
    REDUCE = "a mask and an int32 or uint32 in, the same out"
    SYNC = "a mask of lanes or nothing in, nothing out: a statement"
    CAST = "one number in, `result` out"
    METHOD = "an element in, `result` out: its own Python number, or an element of a given array's dtype, if None"
    LIKE = "a number and an array in, the number as an element of the array's dtype out"
    ARGUMENT = "an argument and all arguments of a formula in, the first as the float type of the formula out"
    RESULT = "the value and all arguments of a formula in, the value as the arguments' common float type out"


class Scope(enum.Enum):
    """A set of threads that cooperate."""

    WARP = "the lanes of a mask"
    BLOCK = "the threads of a block"
    GRID = "all threads of a launch"


@dataclass(frozen=True, slots=True)
class Effects:
    """How a builtin makes threads depend on each other.

    `together`: the threads that make the call together; `waits` if none goes on before all have reached it.
    `fence`: the threads to which earlier writes of the calling thread become visible before later ones.
    """

    together: Scope | None = None
    waits: bool = False
    fence: Scope | None = None


@dataclass(frozen=True, slots=True)
class Builtin:
    """One function of the language.

    `names` are qualified Python names, the first one the key by which IR nodes refer to the row. `arity` is the least
    and greatest number of arguments. `spelling` maps an element type's C name to the C function; for a type without an
    entry the call is lowered, to `helper` if there is one (`targets/cxx/helpers/`). `parameters` are the names by which
    arguments may be passed, in order.
    """

    names: tuple[str, ...]
    rule: Rule
    arity: tuple[int, int] = (1, 1)
    spelling: Mapping[str, str] = field(default_factory=dict)
    helper: str = ""
    result: DType | str | None = None  # CAST and METHOD: an element type, or "int", "float", … for Python's
    parameters: tuple[str, ...] = ()
    effects: Effects = Effects()

    @property
    def key(self) -> str:
        return self.names[0]

    @property
    def name(self) -> str:
        """The key without its library."""
        return self.key.rpartition(".")[2]

    @property
    def is_part(self) -> bool:
        """True for a builtin that only formulas use: Python has no such function."""
        return self.key.startswith(PART)


PART: Final = "part."  # the prefix of functions that only formulas call
ARGUMENT: Final = f"{PART}argument"
RESULT: Final = f"{PART}result"

ROWS: Final[dict[str, Builtin]] = {}
_BY_NAME: Final[dict[str, Builtin]] = {}


def register(rows: Iterable[Builtin]) -> None:
    """Enter rows; two rows must not share a name."""
    for row in rows:
        ROWS[row.key] = row
        for name in row.names:
            if name in _BY_NAME:
                raise ValueError(f"two builtins are called {name}")
            _BY_NAME[name] = row


def lookup(qualified: str) -> Builtin | None:
    """The row that the qualified Python name means, if any."""
    return _BY_NAME.get(qualified)


def names() -> tuple[str, ...]:
    """Every qualified name that means a builtin."""
    return tuple(_BY_NAME)
