"""Adapt a torch operator so that it takes a kernel's arguments by position and raises Python's errors.

In: an overload of an operator, and the kernel's parameters. Out: a function of one positional argument for each
parameter.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

from py2cu.ir.abi.parameters import Parameter
from py2cu.ir.types import is_complex

_ASSERTION: Final = ": assertion failed at "
"""Part of the message with which a CPU launcher reports a failed `assert`: the kernel, this text, and the place."""


def raise_assertions(op: Callable[..., Any]) -> Callable[..., Any]:
    """`op`, except that a failed `assert` of the kernel raises `AssertionError`, as in Python."""

    def call(*values: Any) -> Any:
        try:
            return op(*values)
        except RuntimeError as error:
            if _ASSERTION not in str(error):
                raise
            failure = AssertionError(str(error))
        raise failure

    return call


def take_positional(op: Any, parameters: Sequence[Parameter]) -> Callable[..., Any]:
    """`op` as a function of one positional argument for each of `parameters`, and then the grid and the block, if any.

    The op itself takes a complex number as two real ones. In its schema, arguments after a default are keyword-only.
    """
    names = [argument.name for argument in op._schema.arguments if argument.kwarg_only]
    if not names and not any(is_complex(parameter.type) for parameter in parameters):
        return op._op  # type: ignore[no-any-return]  # without the overload's own call: 0.2 microseconds
    count = len(op._schema.arguments) - len(names)

    def call(*values: Any) -> Any:
        flat: list[Any] = []
        for place, value in enumerate(values):
            has_parts = place < len(parameters) and is_complex(parameters[place].type)
            flat += (float(value.real), float(value.imag)) if has_parts else (value,)
        return op(*flat[:count], **dict(zip(names, flat[count:], strict=True)))

    return call
