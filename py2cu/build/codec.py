"""Translations as JSON, and back: only the classes listed here are ever created.

    Parameter("n", PythonType(Kind.INT))  ↔  ["Parameter", "n", ["PythonType", 1, "any"], "input", …]

In: a translation, or bytes of unknown origin. Out: bytes, or an equal translation.
Promises: every field has the type that its class declares. To cache another record, add its class to `_CLASSES`.
Errors: `Undecodable`, for any bytes that `encode` did not write.

A record is its class name and its fields, a tuple is a list, an enumeration its value, a dtype its name; a dtype of a
generic kernel also has its type variable. The decoder of a class is made from its annotations when it is first needed.
"""

from __future__ import annotations

import builtins
import dataclasses
import enum
import json
import sys
import types
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, Final, NoReturn, TypeVar, Union, get_args, get_origin

from py2cu.diagnostics import Diagnostic, InternalError, Related, Severity
from py2cu.dtypes import BY_NAME, DType, Kind, TypeVariable
from py2cu.ir.abi.launch import Bound, LaunchProgram, PackedLaunch, Passed, SharedArray, Source, Term
from py2cu.ir.abi.launch_values import LaunchValue, Operation
from py2cu.ir.abi.parameters import (
    BlockParameter,
    Constexpr,
    Default,
    Guard,
    IndexParameter,
    NegativeIndex,
    Parameter,
    PredicatedSite,
    Refusal,
    Role,
    Stride,
    TupleParameter,
)
from py2cu.ir.abi.signature import Dim, Signature
from py2cu.ir.types import (
    ArrayType,
    Binary,
    Constant,
    DimExpr,
    ElementType,
    Name,
    NamedConstant,
    PythonType,
    TupleType,
    UnknownType,
    Width,
)
from py2cu.source import SourceFile, Span
from py2cu.translation import Artifacts, CallText, CallTranslation, TargetName, Text, Translation

_CLASSES: Final[Mapping[str, type[Any]]] = {
    each.__name__: each
    for each in (
        CallTranslation, Translation, Artifacts, Text, Diagnostic, Related, SourceFile, Span, Signature, Dim, Parameter,
        TupleParameter,
        Constexpr, Refusal, Default, IndexParameter, BlockParameter, Guard, PredicatedSite, NegativeIndex, ArrayType,
        ElementType, PythonType, TupleType, UnknownType, Constant, NamedConstant, Name, Binary, TypeVariable, CallText,
        LaunchProgram, PackedLaunch, Passed, Term, Bound, SharedArray, Stride, LaunchValue, Operation,
    )
}  # fmt: skip
_ENUMERATIONS: Final = (TargetName, Severity, Role, Kind, Width, Source)
_PRIMITIVES: Final = (bool, int, float, str, types.NoneType)
_SUBTYPES: Final[Mapping[Any, frozenset[type]]] = {
    int: frozenset({int, bool}),
    float: frozenset({float, int, bool}),
    None: frozenset({types.NoneType}),
}
"""What else a field of a primitive type may hold, as type checkers see it."""

Decoder = Callable[[Any], Any]
Class = TypeVar("Class", CallTranslation, Translation)


class Undecodable(ValueError):
    """The bytes are no translation."""


def encode(translation: CallTranslation | Translation) -> bytes:
    """The translation as JSON.

    Raises:
        TypeError: a field has a type that is not listed here.
    """
    return json.dumps(_encoded(translation), separators=(",", ":")).encode()


def decode(data: bytes, class_: type[Class]) -> Class:
    """The translation that was encoded, of this class.

    Raises:
        Undecodable: the bytes are anything else.
    """
    try:
        translation: Class = _record((class_.__name__,))(json.loads(data))
    except (ValueError, RecursionError, InternalError) as error:
        raise Undecodable(str(error)) from error
    return translation


# --- encode ---


def _encoded(value: Any) -> Any:
    class_ = type(value)
    if class_ in _PRIMITIVES:
        return value
    if class_ is tuple:
        return [_encoded(item) for item in value]
    if class_ in _ENUMERATIONS:
        return value.value
    if class_ is DType:
        return value.name if value.variable is None else [value.name, _encoded(value.variable)]
    if class_ is dict:
        return {_encoded(key): _encoded(item) for key, item in value.items()}
    if class_ is complex:
        return ["complex", value.real, value.imag]
    if _CLASSES.get(class_.__name__) is not class_:
        raise TypeError(f"{class_.__name__} is not listed in {__name__}")
    return [class_.__name__, *map(_encoded, _fields_of(class_)(value))]


_getters: Final[dict[type[Any], Callable[[Any], tuple[Any, ...]]]] = {}


def _fields_of(class_: type[Any]) -> Callable[[Any], tuple[Any, ...]]:
    """A function that returns the fields of a record."""
    if class_ not in _getters:
        names = [field.name for field in dataclasses.fields(class_)]
        get = attrgetter(*names) if names else lambda _: ()
        _getters[class_] = get if len(names) != 1 else lambda record: (get(record),)
    return _getters[class_]


# --- decode ---

_records: Final[dict[str, tuple[type[Any], tuple[Decoder, ...]]]] = {}
_annotations: Final[dict[str, Decoder]] = {}


def _wrong(value: object) -> NoReturn:
    raise Undecodable(f"not expected here: {value!r:.40}")


def _record(names: tuple[str, ...]) -> Decoder:
    """Decode a record of one of these classes."""

    def decode_record(value: Any) -> Any:
        if type(value) is not list or not value or value[0] not in names:
            _wrong(value)
        class_, decoders = _records.get(value[0]) or _decoders_of(value[0])
        if len(value) != len(decoders) + 1:
            _wrong(value)
        return class_(*[decode(item) for decode, item in zip(decoders, value[1:], strict=True)])

    return decode_record


def _decoders_of(name: str) -> tuple[type[Any], tuple[Decoder, ...]]:
    """A class, and decoders of its fields."""
    class_ = _CLASSES[name]
    names = vars(sys.modules[class_.__module__])
    decoders = []
    for field in dataclasses.fields(class_):
        # Evaluating an annotation takes longer than decoding a field, and most of them are alike: by their text.
        text = str(field.type)
        if text not in _annotations:
            named = names.get(text) or vars(builtins).get(text)
            _annotations[text] = _decoder(eval(text, names) if named is None else named)
        decoders.append(_annotations[text])
    _records[name] = class_, tuple(decoders)
    return _records[name]


def _decoder(annotation: Any) -> Decoder:
    """The decoder of a declared type."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if isinstance(annotation, TypeVar):  # the operands of `Binary`: here these are extents
        return _decoder(DimExpr)
    if origin in (types.UnionType, Union):
        return _union(arguments)
    if origin is tuple:
        return _tuple(arguments)
    if origin is Mapping:
        return _mapping(*map(_decoder, arguments))
    if annotation is DType:
        return _dtype
    if annotation in _ENUMERATIONS:
        return _enumeration(annotation)
    if annotation in (*_PRIMITIVES, None, complex):
        return _primitive((annotation,))
    return _record(_subclasses(origin or annotation))


def _subclasses(class_: type[Any]) -> tuple[str, ...]:
    """The names of a listed class and of its listed subclasses."""
    if _CLASSES.get(class_.__name__) is not class_:
        raise TypeError(f"{class_} is not listed in {__name__}")
    return tuple(name for name, each in _CLASSES.items() if class_ in each.__mro__)


def _union(members: tuple[Any, ...]) -> Decoder:
    """Decode by what JSON shows: records by their names, anything else by its type."""
    plain = tuple(each for each in members if each in (*_PRIMITIVES, None, complex))
    others = tuple(each for each in members if each not in plain)
    decode_plain = _primitive(plain)
    if not others:
        return decode_plain
    if len(others) == 1:
        decode_other = _decoder(others[0])
    else:
        decode_other = _record(tuple(name for each in others for name in _subclasses(get_origin(each) or each)))
    is_plain = _accepted(plain).__contains__
    return lambda value: value if is_plain(type(value)) else decode_other(value)


def _accepted(classes: tuple[Any, ...]) -> frozenset[type]:
    return frozenset().union(*(_SUBTYPES.get(each, {each}) for each in classes))


def _primitive(classes: tuple[Any, ...]) -> Decoder:
    accepted = _accepted(classes)

    def decode_primitive(value: Any) -> Any:
        if type(value) in accepted:
            return value
        if complex in accepted and type(value) is list and [*map(type, value)] == [str, float, float]:
            return complex(value[1], value[2])
        return _wrong(value)

    return decode_primitive


def _tuple(items: tuple[Any, ...]) -> Decoder:
    decoders = [_decoder(item) for item in items if item is not ...]
    accepts = _accepted(items[:1]).issuperset

    def decode_plain(value: Any) -> Any:
        return tuple(value) if type(value) is list and accepts(map(type, value)) else _wrong(value)

    def decode_all(value: Any) -> Any:
        return tuple(map(decoders[0], value)) if type(value) is list else _wrong(value)

    def decode_each(value: Any) -> Any:
        if type(value) is not list or len(value) != len(decoders):
            _wrong(value)
        return tuple([decode(item) for decode, item in zip(decoders, value, strict=True)])

    if items[-1] is not ...:
        return decode_each
    return decode_plain if items[0] in _PRIMITIVES else decode_all


def _mapping(key: Decoder, item: Decoder) -> Decoder:
    def decode_mapping(value: Any) -> Any:
        return {key(name): item(each) for name, each in value.items()} if type(value) is dict else _wrong(value)

    return decode_mapping


def _enumeration(class_: type[enum.Enum]) -> Decoder:
    members = {(type(member.value), member.value): member for member in class_}

    def decode_member(value: Any) -> Any:
        return (
            members[type(value), value]
            if type(value) in (int, str) and (type(value), value) in members
            else _wrong(value)
        )

    return decode_member


def _dtype(value: Any) -> DType:
    """A row of `py2cu.dtypes`; for a generic kernel, a copy with its type variable."""
    name, variable = value if type(value) is list and len(value) == 2 else (value, None)
    row = BY_NAME.get(name) if type(name) is str else None
    if row is None:
        _wrong(value)
    return row if variable is None else dataclasses.replace(row, variable=_record(("TypeVariable",))(variable))
