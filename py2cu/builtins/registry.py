"""The row behind every builtin, and lookup by qualified name.

A row is data: which Python names mean it, how its type follows from its arguments, and how each element type spells it.
To add a builtin, add a row in a sibling file and one case under `tests/cases`.
"""

from __future__ import annotations

import builtins
import cmath
import enum
import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from py2cu.dtypes import DType

EXACT: Final = "0"
"""The error of functions that every library rounds correctly."""
USUAL: Final = "4 * abs(value)"
"""The error of most functions: 4 ulps."""
LOOSE: Final = "16 * abs(value)"
"""The error of functions for which CUDA documents up to 11 ulps."""


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
    INDEX = "a whole number in, the same number as a Python integer out"
    PREDICATE = "a float in, a bool out"
    SAME = "numbers in, their common type out"
    CHOICE = "numbers in, one of them out, in their common type"
    MAGNITUDE = "a number in, its magnitude out, in the same real type"
    BITS = "a whole number of 32 or 64 bits in, a Python integer out; Python integers have 64"
    WORD = 'an integer element of 32 or 64 bits in, `result` out: the same type if None, or "unsigned"'
    SHUFFLE = "a mask, a number and a lane in, the number of another lane out"
    VOTE = "a thread's predicate in, `result` for all threads out"
    MATCH = "a mask and a number in, `result` out"
    REDUCE = "a mask and an int32 or uint32 in, the same out"
    SYNC = "a mask of lanes or nothing in, nothing out: a statement"
    CAST = "one number in, `result` out"
    OPMATH = "a number in, the same number in the type that torch computes in out: float32 for halves"
    METHOD = "an element in, `result` out: its own Python number, or an element of a given array's dtype, if None"
    VIEW = "an element in, its bits as an element of `result` out"
    ELEMENTS = "elements of the types of a C function in, one of `result`, or of the last one's type, out"
    RECEIVER = "an element, of which a function is called as a method, in; the same out"
    COUNT = "a whole number in, the number of bits that are set in its magnitude out"
    CACHE = "an array, an index and, of a store, a value in; the element or nothing out: read by the front end"
    LIKE = "a number and an array in, the number as an element of the array's dtype out"
    ARGUMENT = "an argument and all arguments of a formula in, the first as the float type of the formula out"
    RESULT = "the value and all arguments of a formula in, the value as the arguments' common float type out"


class Bound(enum.Enum):
    """How the range of a result follows from the ranges of the arguments."""

    MAGNITUDE = "the distances from zero"
    LEAST = "the least argument; NaN only if the first one is"
    GREATEST = "the greatest argument; NaN only if the first one is"
    WHOLE = "the argument, rounded to a whole number"


class ThreadScope(enum.Enum):
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

    together: ThreadScope | None = None
    waits: bool = False
    fence: ThreadScope | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Builtin:
    """One function of the language.

    `names` are qualified Python names, the first one the key by which IR nodes refer to the row. `arity` is the least
    and greatest number of arguments. `spelling` maps an element type's C name to the C function; for a type without an
    entry the call is C's `operator`, or lowered to `helper` (`targets/cxx/helpers/`); where `of_integers` names another
    row, the helper is for floats, and the other row's spelling for integers. For ELEMENTS, the last argument's type
    decides, and a target that lacks CUDA's function has a helper of the row's name. `parameters` are the names by which
    arguments may be passed, in order. `range` bounds the result.

    `folds`: Python's function of the key's name computes constants. `reference` is what the simulator computes,
    as a text: of the arguments `a`, `b` and `c` as numbers of Python, or as elements if it calls a function of the
    simulator, `typed.copy_sign(a, b)`; the modules of other rules say what their texts are about. If it is empty, the
    key names a function of Python that computes it. `beyond` is C's result where that function raises; if it is empty,
    torch's function computes it. `error` bounds the error of `value`, C's result, in units of the type's epsilon; NaN
    if the result is unspecified. `domain`: the least and greatest first argument of which
    the library documents an error.
    """

    names: tuple[str, ...]
    rule: Rule
    arity: tuple[int, int] = (1, 1)
    spelling: Mapping[str, str] = field(default_factory=dict)
    helper: str = ""
    result: DType | str | None = None  # where the rule says so: an element type, or "int", "float", … for Python's
    parameters: tuple[str, ...] = ()
    effects: Effects = Effects()
    range: tuple[float, float] | Bound | None = None
    of_integers: str = ""
    operator: str = ""
    folds: bool = True
    reference: str = ""
    beyond: str = ""
    error: str = USUAL
    domain: tuple[float, float] | None = None

    @property
    def key(self) -> str:
        return self.names[0]

    @property
    def name(self) -> str:
        """The key without its library."""
        return self.key.rpartition(".")[2]

    @property
    def python(self) -> Callable[..., Any] | None:
        """The function of Python that the key names; None if this Python lacks it."""
        library, _, name = self.key.rpartition(".")
        return getattr(_PYTHON.get(library), name, None)

    @property
    def is_part(self) -> bool:
        """True for a builtin that only formulas use: Python has no such function."""
        return self.key.startswith(PART)


_PYTHON: Final = {"math": math, "cmath": cmath, "builtins": builtins}
PART: Final = "part."  # the prefix of functions that only formulas call
ARGUMENT: Final = f"{PART}argument"
RESULT: Final = f"{PART}result"

ROWS: Final[dict[str, Builtin]] = {}
_BY_NAME: Final[dict[str, Builtin]] = {}
_BY_HELPER: Final[dict[str, Builtin]] = {}


def register(rows: Iterable[Builtin]) -> None:
    """Enter rows; two rows must not share a name."""
    for row in rows:
        ROWS[row.key] = row
        if row.helper:
            _BY_HELPER[row.helper] = row
        for name in row.names:
            if name in _BY_NAME:
                raise ValueError(f"two builtins are called {name}")
            _BY_NAME[name] = row


def row_behind(function: str) -> Builtin | None:
    """The row of a call in the IR, whose function is a key, or the helper that the row is lowered to."""
    return ROWS.get(function) or _BY_HELPER.get(function)


def lookup(qualified: str) -> Builtin | None:
    """The row that the qualified Python name means, if any."""
    return _BY_NAME.get(qualified)


def names() -> tuple[str, ...]:
    """Every qualified name that means a builtin."""
    return tuple(_BY_NAME)
