"""Floats that a launcher computes from the numbers of a call, and passes to the kernel: `1 - beta1**step`.

`passes/compute_in_launcher.py` finds them. Two spellings compute the same bits, as doubles: the emitted launcher
(`targets/cxx/launcher/values.py`) and the launcher of calls (`call/launchers/values.py`), with the same libm.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from typing import Final, TypeAlias

from py2cu.ir.types import Constant, Name
from py2cu.records import record

OF_MATH: Final = (
    "sqrt", "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sin", "cos", "tan", "asin", "acos", "atan",
    "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "pow", "fabs",
)  # fmt: skip
"""The functions of `math` that CPython (3.11 and later) computes by the function of libm that has the same name."""

GIVEN: Final = "given"
"""`then if number is not None else otherwise`, of operands in this order."""

TO_DOUBLE: Final = "double"
"""An integer as a double."""

INTEGER: Final = {"integer +": "+", "integer -": "-", "integer *": "*"}
"""Operators of integers."""


@record(frozen=True, slots=True)
class Operation:
    """An operator of doubles, one of `INTEGER`, a function of `OF_MATH`, TO_DOUBLE or GIVEN; `-` of one is a sign."""

    function: str
    operands: tuple[HostExpr, ...]


HostExpr: TypeAlias = Constant | Name | Operation
"""Names are numbers of the call, dimensions, and launch values that come before."""


@record(frozen=True, slots=True)
class LaunchValue:
    """A double that a launcher computes under this name."""

    name: str
    value: HostExpr

    @property
    def names(self) -> tuple[str, ...]:
        """The names that the value is computed from, each once, in order."""
        return tuple(dict.fromkeys(node.id for node in parts(self.value) if isinstance(node, Name)))


def parts(value: HostExpr) -> tuple[HostExpr, ...]:
    """`value` and everything in it."""
    inner = value.operands if isinstance(value, Operation) else ()
    return (value, *(part for operand in inner for part in parts(operand)))


def only_converted(values: Iterable[LaunchValue]) -> set[str]:
    """The names that take part in no arithmetic of integers."""
    nodes = [part for value in values for part in parts(value.value)]
    computed = (node.operands for node in nodes if isinstance(node, Operation) and node.function in INTEGER)
    names = {node.id for node in nodes if isinstance(node, Name)}
    return names - {part.id for operand in chain(*computed) for part in parts(operand) if isinstance(part, Name)}


def value_in_python(value: HostExpr, symbol: Callable[[str], str], *, divide: str = "", prefix: str = "") -> str:
    """A value as an expression of Python; `symbol` spells names.

    `divide` is the function for `/`, if there is one; `prefix` stands before the names of functions of `math`. In the
    text, `to_double` converts an integer, which wraps at 64 bits as that of C++ does.
    """

    def spell(value: HostExpr) -> str:
        return value_in_python(value, symbol, divide=divide, prefix=prefix)

    match value:
        case Constant(value=number):
            return repr(number)
        case Name(id=name):
            return symbol(name)
        case Operation(function="/", operands=(left, right)) if divide:
            return f"{divide}({spell(left)}, {spell(right)})"
        case Operation(function="-", operands=(operand,)):
            return f"(-{spell(operand)})"
        case Operation(function=function, operands=(left, right)) if function not in OF_MATH:
            return f"({spell(left)} {INTEGER.get(function, function)} {spell(right)})"
        case Operation(function="given", operands=(Name(id=name), then, otherwise)):
            return f"({spell(then)} if has_{name} else {spell(otherwise)})"
        case Operation(function=function, operands=operands):
            name = "to_double" if function == TO_DOUBLE else f"{prefix}{function}"
            return f"{name}({', '.join(map(spell, operands))})"
        case _:
            raise AssertionError(value)
