"""Translations as JSON, and back: nothing but plain records is ever created.

    PythonType(Kind.INT)  ↔  {"PythonType": [{"Kind": [1]}, {"Width": ["any"]}]}

In: a translation, or bytes of unknown origin. Out: bytes, or an equal translation.
Promises: bytes make records and enumerations of `_MODULES`, tuples, dictionaries, numbers and texts, whatever they are.
The cache vouches that `encode` wrote them, and the same version of the classes.

An object of JSON is a class and the values of its fields, a list is a tuple; a dtype is its name, and in a generic
kernel its type variable.
"""

from __future__ import annotations

import enum
import json
import types
from collections.abc import Callable
from dataclasses import is_dataclass, replace
from typing import Any, Final, TypeVar

import py2cu.ir.types as ir_types
from py2cu import diagnostics, dtypes, source, translation
from py2cu.diagnostics import InternalError
from py2cu.dtypes import BY_NAME, DType, TypeVariable
from py2cu.ir.abi import launch, launch_values, parameters, signature
from py2cu.translation import CallTranslation, Translation

_MODULES: Final = (diagnostics, dtypes, ir_types, launch, launch_values, parameters, signature, source, translation)
_CLASSES: Final[dict[str, type[Any]]] = {
    name: each
    for module in _MODULES
    for name, each in vars(module).items()
    if isinstance(each, type) and (is_dataclass(each) or issubclass(each, enum.Enum))
}
_PRIMITIVES: Final = (bool, int, float, str, types.NoneType)

Class = TypeVar("Class", CallTranslation, Translation)


def encode(made: CallTranslation | Translation) -> bytes:
    """The translation as JSON.

    Raises:
        TypeError: a field has a value of another class.
    """
    return json.dumps(_encoded(made), separators=(",", ":")).encode()


def _encoded(value: Any) -> Any:
    class_ = type(value)
    if class_ in _PRIMITIVES:
        return value
    if class_ is tuple:
        return [_encoded(item) for item in value]
    if class_ is dict:
        parts: Any = value.items()
    elif class_ is complex:
        parts = value.real, value.imag
    elif class_ is DType:
        parts = value.name, value.variable
    elif _CLASSES.get(class_.__name__) is not class_:
        raise TypeError(f"{class_.__name__} is in no module that {__name__} lists")
    elif isinstance(value, enum.Enum):
        parts = (value.value,)
    else:
        parts = [getattr(value, name) for name in class_.__match_args__]
    return {class_.__name__: [_encoded(part) for part in parts]}


def decode(data: bytes, class_: type[Class]) -> Class | None:
    """The translation that was encoded, of this class; None of other bytes."""
    try:
        made = json.loads(data, object_hook=_made)
    except (ValueError, TypeError, LookupError, AttributeError, RecursionError, InternalError):
        return None
    return made if type(made) is class_ else None


def _made(described: dict[str, Any]) -> Any:
    """What an object of JSON describes."""
    ((name, values),) = described.items()
    return _MAKERS[name](*_as_tuple(values))


def _as_tuple(values: list[Any]) -> tuple[Any, ...]:
    return tuple([_as_tuple(value) if type(value) is list else value for value in values])


def _dtype(name: str, variable: TypeVariable | None) -> DType:
    """A row of `py2cu.dtypes`; for a generic kernel, a copy with its type variable."""
    row = BY_NAME[name]
    return row if variable is None else replace(row, variable=variable)


_MAKERS: Final[dict[str, Callable[..., Any]]] = {
    **_CLASSES, "DType": _dtype, "complex": complex, "dict": lambda *items: dict(items),
}  # fmt: skip
