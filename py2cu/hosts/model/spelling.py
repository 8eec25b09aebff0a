"""The arguments of torch operators in C++."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from py2cu.hosts.model.table import Argument
from py2cu.hosts.model.values import Kind, Value

_DEFAULTS: Final = {"None": "{}", "False": "false", "True": "true"}
# Arguments whose numbers need no name beside them.
_PLAIN: Final = ("chunks", "dim0", "dim1", "other", "fill_value", "size", "index")


def spelled(arguments: Sequence[Argument], values: Sequence[Value | None]) -> str:
    """The arguments of a call in C++: in order, with names beside literals, and without defaults at the end."""
    texts = ["" if v is None else _argument(a, v) for a, v in zip(arguments, values, strict=True)]
    if any(argument.name == "device" for argument in arguments):  # behind a dtype, both at the end
        texts[-2:] = [_options(*values[-2:])]
    while texts and not texts[-1]:
        texts.pop()
    defaults = [_DEFAULTS.get(str(argument.default), str(argument.default)) for argument in arguments]
    return ", ".join(text or default for text, default in zip(texts, defaults, strict=False))


def _argument(argument: Argument, value: Value) -> str:
    """`/*dim=*/1`: a bare number says what it is."""
    if argument.type.startswith("int["):
        return value.text if value.kind is Kind.SIZES else f"{{{value.text}}}"
    is_named = value.known is not None and argument.type in ("int", "bool", "Scalar") and argument.name not in _PLAIN
    return f"/*{argument.name}=*/{value.text}" if is_named else value.text


def _options(dtype: Value | None, device: Value | None) -> str:
    """The dtype and the device as `TensorOptions`: `x.options()` where both are those of one tensor."""
    if dtype is not None and device is not None:
        tensor = dtype.text.removesuffix(".scalar_type()")
        if (dtype.text, device.text) == (f"{tensor}.scalar_type()", f"{tensor}.device()"):
            return f"{tensor}.options()"
    given = [f"{name}({each.text})" for name, each in (("dtype", dtype), ("device", device)) if each is not None]
    return f"at::{'.'.join(given)}" if given else ""
