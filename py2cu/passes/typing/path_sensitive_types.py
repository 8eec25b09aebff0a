"""Tracks the types that a value has on the paths that reach it, where C++ gives it one type: locals, conditional
values.

    v = u[i]: uint8              →        v: int32, and on the paths: uint8, int32
    if c: v = w[i]: int32

`v + w[i]` has the same value on each path. `v * 100` has not: as uint8 it wraps around, so it is an error. A constant
stays a Python number on its path: after `v = 3` or `v = u[i]`, `v * 100` may be 300 in Python.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from itertools import chain
from typing import Final, TypeAlias

from py2cu.analysis.promotion import as_float, constant_as, constant_type, join, represents, rounded
from py2cu.dtypes import DType, Kind
from py2cu.ir.complex_numbers import is_literal
from py2cu.ir.expressions import BoolOp, Call, Convert, DeviceCall, Expr, Select, TupleItem
from py2cu.ir.operators import ARITHMETIC, EXACT
from py2cu.ir.types import (
    PY_BOOL,
    PY_COMPLEX,
    UNKNOWN,
    Constant,
    ElementType,
    Name,
    ParameterPath,
    PythonType,
    ReachingTypes,
    ScalarType,
    kind_of,
)

Number: TypeAlias = bool | int | float

_ZERO_STAYS: Final = frozenset(["*", "/", "//", "%", "&", "<<", ">>"])


def paths_of(expr: Expr, names: Mapping[str, ReachingTypes]) -> frozenset[ScalarType | Number]:
    """The types that a typed expression has on some path, and the Python constants that it is on others."""
    return known_types(reaching_types(expr, names))


def known_types(paths: ReachingTypes) -> frozenset[ScalarType | Number]:
    """The same without saying which argument a path leads to."""
    return frozenset(path.type if isinstance(path, ParameterPath) else path for path in paths)


def from_call(paths: ReachingTypes, args: Mapping[str, ReachingTypes]) -> ReachingTypes:
    """A result's paths for the caller, to whom `args` says what it has handed over."""
    types = (args[path.name] if isinstance(path, ParameterPath) else frozenset([path]) for path in paths)
    return frozenset(chain.from_iterable(types))


def reaching_types(expr: Expr, names: Mapping[str, ReachingTypes]) -> ReachingTypes:
    """What a typed expression may be; `names` says it of locals and parameters, and of a tuple's items as `t[0]`."""
    own = frozenset([expr.type] if isinstance(expr.type, ElementType | PythonType) else [])
    match expr:
        case Name(id=name):
            return names.get(name, own)
        case TupleItem(value=Name(id=name), at=at):
            return names.get(f"{name}[{at}]", own)
        case Select(then=a, orelse=b) | BoolOp(left=a, right=b, type=ElementType()):
            return reaching_types(a, names) | reaching_types(b, names)
        case DeviceCall(paths=paths) if paths:
            return paths
        case Convert(value=value, explicit=False):
            return reaching_types(value, names)
        case Call(args=parts, type=type_) if is_literal(expr):
            if not isinstance(type_, ElementType):
                return frozenset()
            rounds = not all(isinstance(p, Constant) and represents(type_.dtype.part, p.value) for p in parts)
            return frozenset([PY_COMPLEX]) if rounds else own
        case Constant(value=value, cast=cast):
            number = value if cast is None else cast
            return frozenset([number if number == number else math.nan])  # the one that equals itself in a set
        case _:
            return own


def holds(wide: DType, narrow: DType) -> bool:
    """True where every value of `narrow` is one of `wide`."""
    if narrow.kind >= Kind.FLOAT or wide.kind is Kind.BOOL:
        return (
            wide.kind >= narrow.kind
            and wide.part.precision >= narrow.part.precision
            and wide.part.bits >= narrow.part.bits
        )
    if wide.kind >= Kind.FLOAT:
        return narrow.bits - narrow.signed <= wide.part.precision
    return wide.low <= narrow.low and narrow.high <= wide.high


def ambiguous_operand(
    op: str, operand: Expr, others: Iterable[Expr], names: Mapping[str, ReachingTypes]
) -> ScalarType | Number | None:
    """What `operand` is on a path where `op` with `others` computes something else than with its type in C++."""
    type_, others = operand.type, tuple(others)
    if not isinstance(type_, ElementType):
        return None
    paths = paths_of(operand, names) - {type_}
    if not paths or UNKNOWN in [other.type for other in others]:
        return None
    met = _met(type_, [other.type for other in others if isinstance(other.type, ElementType | PythonType)])
    types = [_types(other, names) for other in others]
    for path in sorted(paths, key=str):
        if not isinstance(path, ElementType | PythonType):
            if _constant_differs(op, path, type_, others):
                return path
        elif op == "truth":
            if is_lossy(path, type_, PY_BOOL):
                return path
        elif (op == "compare" and _fit(others, path, type_)) or _is_small(path, type_):
            continue
        elif not all(_is_same(each, met) for each in joins(path, types)):
            return path
    return None


def is_lossy(path: ScalarType | Number, narrow: ElementType, type_: ScalarType) -> bool:
    """True where what is `path` in Python becomes another value of `type_` by way of `narrow`."""
    match path:
        case ElementType(dtype=dtype):
            return kind_of(type_) is not Kind.BOOL and type_ != narrow and not holds(narrow.dtype, dtype)
        case PythonType(kind=Kind.BOOL):
            return False
        case PythonType(kind=kind) if kind_of(type_) is Kind.BOOL:
            return not _is_exact(narrow) and (kind >= Kind.FLOAT or kind_of(narrow) is Kind.INT)
        case PythonType():
            return type_ != narrow and not _is_exact(narrow) and not _wraps(narrow, type_)
        case _:
            kept = as_float(narrow.dtype.part, path) if kind_of(narrow) >= Kind.FLOAT else path
            at_once, after = (rounded(type_, constant_as(number, type_)) for number in (path, kept))
            return at_once != after and at_once == at_once


def _types(expr: Expr, names: Mapping[str, ReachingTypes]) -> set[ScalarType]:
    """The types that `expr` has on its paths."""
    assert isinstance(expr.type, ElementType | PythonType)
    paths = paths_of(expr, names) or {expr.type}
    return {path if isinstance(path, ElementType | PythonType) else constant_type(path) for path in paths}


def _met(type_: ScalarType, others: Iterable[ScalarType]) -> ScalarType | None:
    met: ScalarType | None = type_
    for other in others:
        met = join(met, other) if met is not None else None
    return met


def joins(first: ScalarType, others: Iterable[Iterable[ScalarType]]) -> set[ScalarType | None]:
    """The types in which `first` and one of each of `others` may meet."""
    joined: set[ScalarType | None] = {first}
    for types in others:
        joined = {None if a is None else join(a, b) for a in joined for b in types}
    return joined


def _is_same(computed: ScalarType | None, met: ScalarType | None) -> bool:
    """True where what Python computes in `computed` is what C++ computes in `met`."""
    return computed == met or (isinstance(computed, PythonType) and isinstance(met, ElementType) and _is_exact(met))


def _is_exact(type_: ElementType) -> bool:
    """True for a type that holds what Python's own numbers do."""
    return type_.dtype.part.bits == 64 and type_.dtype.signed


def _wraps(wide: ElementType, narrow: ScalarType) -> bool:
    """True where the digits that `narrow` drops are all that can differ: the last ones are those of any integer."""
    return (
        isinstance(narrow, ElementType)
        and narrow.dtype.kind is Kind.INT
        and wide.dtype.kind is Kind.INT
        and narrow.dtype.bits <= wide.dtype.bits
    )


def _fit(others: Iterable[Expr], path: ScalarType, type_: ElementType) -> bool:
    """True for constants that compare with whole numbers of either type as they are."""
    return (
        isinstance(path, ElementType)
        and path.dtype.kind is type_.dtype.kind is Kind.INT
        and all(isinstance(other, Constant) and represents(path.dtype, other.value) for other in others)
    )


def _is_small(path: ScalarType, type_: ElementType) -> bool:
    """A truth value beside a type as wide as most of them are."""
    return path == PY_BOOL and _is_wide(type_.dtype)


def _is_wide(dtype: DType) -> bool:
    return dtype.kind >= Kind.FLOAT or (dtype.signed and dtype.bits >= 32)


def _constant_differs(op: str, value: Number, type_: ElementType, others: tuple[Expr, ...]) -> bool:
    if op == "truth":
        return is_lossy(value, type_, PY_BOOL)
    if op == "compare":
        return False  # in the type of the element that it meets
    types = [other.type for other in others if isinstance(other.type, ElementType | PythonType)]
    if any(isinstance(type_, ElementType) for type_ in types):
        return _met(constant_type(value), types) != _met(type_, types)  # where it becomes an element, of which type
    dtype = type_.dtype
    if kind_of(type_) is Kind.COMPLEX or dtype.kind is Kind.BOOL:
        return False
    if not others:
        return op in "-~" and not represents(dtype, -value if op == "-" else ~int(value))
    if not all(isinstance(other, Constant) for other in others):
        return not _is_wide(dtype) and not (value == 0 and op in _ZERO_STAYS)
    if op not in EXACT:
        return False
    (other,) = (other for other in others if isinstance(other, Constant))
    exact = ARITHMETIC[op](value, other.value)
    if dtype.kind is Kind.INT:
        return not represents(dtype, exact) or (exact < 0 and not dtype.signed)
    return as_float(dtype, exact) != as_float(
        dtype, ARITHMETIC[op](as_float(dtype, value), as_float(dtype, other.value))
    )
