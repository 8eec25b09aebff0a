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

from py2cu import ir
from py2cu.analysis.promotion import as_float, constant_as, constant_type, join, represents, rounded
from py2cu.dtypes import F32, F64, DType, Kind
from py2cu.ir.complex_numbers import is_literal
from py2cu.ir.names import list_elements
from py2cu.ir.operators import OPERATORS, Family
from py2cu.ir.visit import children

Number: TypeAlias = bool | int | float

_FLOAT64: Final = ir.ElementType(F64)


def possible_types(expr: ir.Expr, names: Mapping[str, ir.ReachingTypes]) -> frozenset[ir.ScalarType | Number]:
    """The types and Python constants that a typed expression may be on the paths that reach it."""
    return known_types(reaching_types(expr, names))


def known_types(reaching: ir.ReachingTypes) -> frozenset[ir.ScalarType | Number]:
    """Reaching types with the type in place of each `ParameterPath`."""
    return frozenset(each.type if isinstance(each, ir.ParameterPath) else each for each in reaching)


def from_call(reaching: ir.ReachingTypes, args: Mapping[str, ir.ReachingTypes]) -> ir.ReachingTypes:
    """The reaching types of a call's result; `args` holds those of its arguments by parameter."""
    # rule: two-types-parameter
    types = (args[each.name] if isinstance(each, ir.ParameterPath) else frozenset([each]) for each in reaching)
    return frozenset(chain.from_iterable(types))


def reaching_types(expr: ir.Expr, names: Mapping[str, ir.ReachingTypes]) -> ir.ReachingTypes:
    """The reaching types of a typed expression; `names` holds those of locals, parameters and items (`t[0]`)."""
    by_type = frozenset([expr.type] if isinstance(expr.type, ir.ElementType | ir.PythonType) else [])
    if isinstance(expr, ir.Binary):
        by_type |= _of_zero(expr.op, expr.left, expr.right, names) | _of_zero(expr.op, expr.right, expr.left, names)
    match expr:
        case ir.Name(id=name):
            return names.get(name, by_type)
        case ir.Load(array=name):
            return names.get(list_elements(name), by_type)
        case ir.TupleItem(value=ir.Name(id=name), at=at):
            return names.get(f"{name}[{at}]", by_type)
        case ir.Select(then=a, orelse=b) | ir.BoolOp(left=a, right=b, type=ir.ElementType()):
            return reaching_types(a, names) | reaching_types(b, names)
        case ir.DeviceCall(reaching=reaching) if reaching:
            return reaching
        case ir.Convert(value=value, type=ir.ElementType(), explicit=False):
            return reaching_types(value, names)
        case ir.Call(args=parts, type=type_) if is_literal(expr):
            if not isinstance(type_, ir.ElementType):
                return frozenset()
            rounds = not all(isinstance(p, ir.Constant) and represents(type_.dtype.part, p.value) for p in parts)
            return frozenset([ir.PY_COMPLEX]) if rounds else by_type
        case ir.Binary() | ir.Unary() | ir.Call() if expr.type == _FLOAT64 and _has_python_floats(names):
            types = [_types(operand, names) for operand in children(expr)]
            results = {joined for first in types[0] for joined in joins(first, types[1:])}
            return by_type | ({ir.PY_FLOAT} & results)  # rule: two-types-result
        case ir.Constant(value=value, cast=cast):
            number = value if cast is None else cast
            return frozenset([number if number == number else math.nan])  # one NaN object, so that sets recognise it
        case _:
            return by_type


def _of_zero(
    op: str, operand: ir.Expr, other: ir.Expr, names: Mapping[str, ir.ReachingTypes]
) -> frozenset[ir.ScalarType]:
    """The narrower float types that a sum or a difference has where the local `operand` is the Python number 0.

    The result is the same number there: `b[i] + total` is `b[i]`, a half, where `total` of float32 has no terms.
    """
    if op not in ("+", "-") or not isinstance(operand, ir.Name) or not isinstance(operand.type, ir.ElementType):
        return frozenset()
    if not any(each == 0 for each in possible_types(operand, names) if isinstance(each, int | float)):
        return frozenset()
    wide, types = operand.type.dtype, {ir.unconverted(other).type, *possible_types(other, names)} - {operand.type}
    elements = [each for each in types if isinstance(each, ir.ElementType)]
    # rule: zero-added
    return frozenset(
        each for each in elements if each.dtype.kind is wide.kind is Kind.FLOAT and holds(wide, each.dtype)
    )


def _has_python_floats(names: Mapping[str, ir.ReachingTypes]) -> bool:
    """True if a local is a Python float on some path."""
    return any(ir.PY_FLOAT in known_types(types) for types in names.values())


def holds(wide: DType, narrow: DType) -> bool:
    """True where every value of `narrow` is one of `wide`."""
    if narrow.kind >= Kind.FLOAT or wide.kind is Kind.BOOL:
        is_as_precise = wide.part.precision >= narrow.part.precision and wide.part.bits >= narrow.part.bits
        return wide.kind >= narrow.kind and is_as_precise
    if wide.kind >= Kind.FLOAT:
        return narrow.bits - narrow.signed <= wide.part.precision
    return wide.low <= narrow.low and narrow.high <= wide.high


def ambiguous_operand(
    op: str, operand: ir.Expr, others: Iterable[ir.Expr], names: Mapping[str, ir.ReachingTypes]
) -> ir.ScalarType | Number | None:
    """A reaching type of `operand` with which `op` and `others` give another result than with its C++ type.

    `op` is an operator, or "compare", "truth", "call", "print", "pass" (to a device function), or "value" for a use of
    the value in any type.
    """
    type_, others = operand.type, tuple(others)
    if type_ == ir.PY_INT:
        return _ambiguous_integer(op, operand, others, names)
    if not isinstance(type_, ir.ElementType):
        return None
    reaching = possible_types(operand, names) - {type_}
    if not reaching or ir.UNKNOWN in [other.type for other in others]:
        return None
    joined_type = _common(type_, [one.type for one in others if isinstance(one.type, ir.ElementType | ir.PythonType)])
    types = [_types(other, names) for other in others]
    for reached in sorted(reaching, key=str):
        if is_rounded(reached, type_.dtype) and op != "truth":
            plain = {_plain(each) for each in joins(ir.PY_FLOAT, types)}
            if plain != {_plain(joined_type)}:  # Python does not round it here, or to another type  # rule: join-plain
                return reached
        elif op == "value":
            if isinstance(reached, ir.PythonType) and not _is_exact(type_):
                return reached
        # rule: two-types-float64
        elif op == "pass" and reached == ir.PY_FLOAT:  # in Python the function would compute in another type
            return reached
        elif not isinstance(reached, ir.ElementType | ir.PythonType):
            if _constant_differs(op, reached, type_, others) and not (
                reached == 0 and _of_zero(op, operand, others[0], names)
            ):
                return reached
        elif op == "truth":
            if is_lossy(reached, type_, ir.PY_BOOL):  # rule: two-types-lossy
                return reached
        elif (op == "compare" and _fit(others, reached, type_)) or _is_bool_in_wide_type(reached, type_, others):
            continue
        elif not all(_is_same(each, joined_type) for each in joins(reached, types)):
            return reached
    return None


def _ambiguous_integer(
    op: str, operand: ir.Expr, others: tuple[ir.Expr, ...], names: Mapping[str, ir.ReachingTypes]
) -> ir.ElementType | None:
    """The type of an element that a Python integer is on one path, where `op` gives the element another result."""
    elements = [each for each in possible_types(operand, names) if isinstance(each, ir.ElementType)]
    if not elements or op in ("truth", "print") or ir.UNKNOWN in [other.type for other in others]:
        return None
    types = [_types(other, names) for other in others]
    numbers = joins(ir.PY_INT, types)
    for reached in sorted(elements, key=str):
        joined = joins(reached, types)
        # rule: join-integers
        if not (joined == numbers or (op == "compare" and joined == {reached} and numbers <= {ir.PY_INT, reached})):
            return reached
    return None


def is_rounded(value: ir.ScalarType | Number, dtype: DType) -> bool:
    """True for a constant that a float32 local holds rounded: each use must round it in Python, too."""
    return (
        isinstance(value, float)
        and dtype == F32  # rule: join-rounded-f32
        and not represents(dtype, value)
        and math.isfinite(as_float(F32, value))
    )


def is_lossy(reached: ir.ScalarType | Number, narrow: ir.ElementType, type_: ir.ScalarType) -> bool:
    """True if converting `reached` to `type_` through `narrow` may give another value than converting it directly."""
    match reached:
        case ir.ElementType(dtype=dtype):
            return ir.kind_of(type_) is not Kind.BOOL and type_ != narrow and not holds(narrow.dtype, dtype)
        case ir.PythonType(kind=Kind.BOOL):
            return False
        case ir.PythonType(kind=kind) if ir.kind_of(type_) is Kind.BOOL:
            return not _is_exact(narrow) and (kind >= Kind.FLOAT or ir.kind_of(narrow) is Kind.INT)  # rule: lossy-exact
        case ir.PythonType():
            return type_ != narrow and not _is_exact(narrow) and not _wraps(narrow, type_)
        case _:
            narrowed = as_float(narrow.dtype.part, reached) if ir.kind_of(narrow) >= Kind.FLOAT else reached
            direct, indirect = (rounded(type_, constant_as(number, type_)) for number in (reached, narrowed))
            return direct != indirect and direct == direct


def _types(expr: ir.Expr, names: Mapping[str, ir.ReachingTypes]) -> set[ir.ScalarType]:
    """The types that `expr` has on its paths."""
    assert isinstance(expr.type, ir.ElementType | ir.PythonType)
    reaching = possible_types(expr, names) or {expr.type}
    types = {each if isinstance(each, ir.ElementType | ir.PythonType) else constant_type(each) for each in reaching}
    return types | {ir.PY_INT} if _may_be_python(expr, names) else types  # rule: two-types-weak


def _may_be_python(expr: ir.Expr, names: Mapping[str, ir.ReachingTypes]) -> bool:
    """True for an element that is a Python number on some path: all its operands are Python numbers there."""
    if isinstance(expr, ir.Binary):
        return _may_be_python(expr.left, names) and _may_be_python(expr.right, names)
    return not all(isinstance(each, ir.ElementType) for each in possible_types(expr, names))


def _common(type_: ir.ScalarType, others: Iterable[ir.ScalarType]) -> ir.ScalarType | None:
    joined_type: ir.ScalarType | None = type_
    for other in others:
        joined_type = join(joined_type, other) if joined_type is not None else None
    return joined_type


def joins(first: ir.ScalarType, others: Iterable[Iterable[ir.ScalarType]]) -> set[ir.ScalarType | None]:
    """The common types of `first` with every choice of one type from each of `others`."""
    joined: set[ir.ScalarType | None] = {first}
    for types in others:
        joined = {None if a is None else join(a, b) for a in joined for b in types}  # rule: two-types-joined
    return joined


def _is_same(computed: ir.ScalarType | None, joined_type: ir.ScalarType | None) -> bool:
    """True if Python's arithmetic in `computed` and C++'s in `joined_type` give the same result."""
    return _plain(computed) == _plain(joined_type) or (  # rule: two-types-same
        isinstance(computed, ir.PythonType) and isinstance(joined_type, ir.ElementType) and _is_exact(joined_type)
    )


def _plain(reached: ir.ScalarType | Number | None) -> ir.ScalarType | Number | None:
    """The type without its type variable; both have the same arithmetic."""
    return ir.ElementType(reached.dtype.plain) if isinstance(reached, ir.ElementType) else reached


def _is_exact(type_: ir.ElementType) -> bool:
    """True for a type that holds what Python's own numbers do."""
    return type_.dtype.part.bits == 64 and type_.dtype.signed


def _wraps(wide: ir.ElementType, narrow: ir.ScalarType) -> bool:
    """True for integers of which `narrow` keeps only low bits: these do not depend on the width of `wide`."""
    return (
        isinstance(narrow, ir.ElementType)
        and narrow.dtype.kind is Kind.INT
        and wide.dtype.kind is Kind.INT
        and narrow.dtype.bits <= wide.dtype.bits
    )


def _fit(others: Iterable[ir.Expr], reached: ir.ScalarType, type_: ir.ElementType) -> bool:
    """True if `others` are constants that the integer type `reached` represents: comparisons then agree."""
    return (
        isinstance(reached, ir.ElementType)
        and reached.dtype.kind is type_.dtype.kind is Kind.INT
        and all(isinstance(other, ir.Constant) and represents(reached.dtype, other.value) for other in others)
    )


def _is_bool_in_wide_type(reached: ir.ScalarType, type_: ir.ElementType, others: tuple[ir.Expr, ...]) -> bool:
    """True for a Python bool joined into a type wide enough for its arithmetic; no integer of Python is computed."""
    has_integers = any(other.type == ir.PY_INT and not isinstance(other, ir.Constant) for other in others)
    return reached == ir.PY_BOOL and _is_wide(type_.dtype) and not has_integers  # rule: two-types-bool


def _is_wide(dtype: DType) -> bool:
    """True for a dtype in which the arithmetic of Python bools does not wrap."""
    return dtype.kind >= Kind.FLOAT or (dtype.signed and dtype.bits >= 32)


def _constant_differs(op: str, value: Number, type_: ir.ElementType, others: tuple[ir.Expr, ...]) -> bool:
    """True if `op` gives another result for the Python constant `value` than for its conversion to `type_`."""
    if op == "truth":
        return is_lossy(value, type_, ir.PY_BOOL)
    if op == "compare":
        return False  # compared in the type of the element
    types = [other.type for other in others if isinstance(other.type, ir.ElementType | ir.PythonType)]
    if any(isinstance(other, ir.ElementType) for other in types):
        reaching = _common(constant_type(value), types), _common(type_, types)
        return _plain(reaching[0]) != _plain(reaching[1])
    dtype = type_.dtype
    if ir.kind_of(type_) is Kind.COMPLEX or dtype.kind is Kind.BOOL:
        return False
    if not others:
        return op in "-~" and not represents(dtype, -value if op == "-" else ~int(value))
    if not all(isinstance(other, ir.Constant) for other in others):
        return not _is_wide(dtype) and not (value == 0 and op in OPERATORS and OPERATORS[op].zero_stays)
    if op not in OPERATORS or OPERATORS[op].family is not Family.RING:
        return False
    compute = OPERATORS[op].compute
    (other,) = (other for other in others if isinstance(other, ir.Constant))
    exact = compute(value, other.value)
    if dtype.kind is Kind.INT:
        return not represents(dtype, exact) or (exact < 0 and not dtype.signed)
    return as_float(dtype, exact) != as_float(dtype, compute(as_float(dtype, value), as_float(dtype, other.value)))
