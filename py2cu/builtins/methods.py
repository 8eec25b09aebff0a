"""Functions as methods: torch's of elements, `x[i].exp()` for `torch.exp(x[i])`, and Python's `n.bit_count()`.

A method has the row or the formula of the function, whose first argument is the element.
"""

from __future__ import annotations

from typing import Final

from py2cu.builtins import formulas
from py2cu.builtins.registry import Builtin, Rule, lookup, names

_LIBRARY: Final = "torch."
_NO_METHODS: Final = {"celu", "real", "selu", "threshold", "where"}
"""Functions of torch that are no methods of tensors, or take other arguments as methods."""

RECEIVER: Final = "builtins.element.self"
BIT_COUNT: Final = "builtins.int.bit_count"

ROWS: Final = (
    Builtin((RECEIVER,), Rule.RECEIVER),
    Builtin((BIT_COUNT,), Rule.COUNT),
)


def function_behind(method: str) -> str | None:
    """The qualified name of the function that elements have as a method; None for any other name."""
    qualified = _LIBRARY + method
    row = lookup(qualified)
    is_function = row.rule is not Rule.CAST if row is not None else bool(formulas.ways_to_call(qualified))
    return qualified if is_function and method not in _NO_METHODS else None  # rule: method-none


def way_to_call(function: str, element: str) -> str:
    """A call of the formula `function` as a method, with all its parameters: `x[i].clamp(min, max)`."""
    row = next(row for row in formulas.ROWS if function in row.names)
    return f"{element}.{function.removeprefix(_LIBRARY)}({', '.join(row.parameters[1:])})"


def methods() -> tuple[str, ...]:
    """The names of the functions that elements have as methods."""
    qualified = (*names(), *(name for row in formulas.ROWS for name in row.names))
    found = (name.removeprefix(_LIBRARY) for name in qualified if name.startswith(_LIBRARY))
    return tuple(dict.fromkeys(name for name in found if name.isidentifier() and function_behind(name) is not None))
