"""The values that a launcher packs, and the lines that compute launch values, bit for bit as the emitted launcher does.

In: a `LaunchProgram`. Out: lines of Python. Of a number `step` of the call they define `n_step`, and `has_step` if it
may be None; of a value `m_scale` they define `c_m_scale`. Python raises for some numbers where C has an infinity or
NaN: those are computed once more, by libm.
"""

from __future__ import annotations

import ctypes
import functools
import math
from collections.abc import Iterator
from typing import Any, Final

from py2cu.call.launchers.extents import ExtentLines
from py2cu.dtypes import BY_NAME, Kind
from py2cu.ir.abi.launch import LaunchProgram, Passed, Source
from py2cu.ir.abi.launch_values import OF_MATH, Operation, parts, value_in_python
from py2cu.ir.abi.signature import Signature
from py2cu.ir.types import PY_FLOAT

_RAISED: Final = (ZeroDivisionError, OverflowError, ValueError)
_FUNCTIONS: Final = {name: getattr(math, name) for name in OF_MATH}


def value_lines(
    signature: Signature, program: LaunchProgram, extents: ExtentLines, names: dict[str, Any]
) -> Iterator[str]:
    """The lines that define the values; `names` gets what they refer to."""
    if not program.values:
        return
    names |= {**_FUNCTIONS, "raised": _RAISED, "divide": divide, "to_double": to_double}
    made = {value.name for value in program.values}
    used = dict.fromkeys(name for value in program.values for name in value.names if name not in made)
    types = {p.name: p for p in signature.parameters}
    for name in used:
        parameter, passed = types.get(name), extents.symbol(name)
        convert = "float" if parameter is not None and parameter.type == PY_FLOAT else "int"
        if parameter is not None and parameter.may_be_none:
            yield f"has_{name} = {passed} is not None"
            yield f"n_{name} = {convert}({passed}) if has_{name} else {convert}()"
        else:
            yield f"n_{name} = {convert}({passed})"

    def symbol(name: str) -> str:
        return f"c_{name}" if name in made else f"n_{name}"

    for value in program.values:
        plain = f"c_{value.name} = {value_in_python(value.value, symbol)}"
        functions = {part.function for part in parts(value.value) if isinstance(part, Operation)}
        if not functions & {"/", *OF_MATH}:
            yield plain
            continue
        names.update((f"c_{each}", _of_libm(each)) for each in functions & {*OF_MATH})
        text = value_in_python(value.value, symbol, divide="divide", prefix="c_")
        yield "try: " + plain
        yield f"except raised: c_{value.name} = {text}"


def packed(signature: Signature, extents: ExtentLines, passed: Passed) -> list[str]:
    """The values that a block packs for one argument; of an index of either width the low half is an int32."""
    name, dtype = passed.name, BY_NAME.get(passed.type)
    match passed.source:
        case Source.ARRAY:
            is_optional = signature.parameter(name).may_be_none
            return [f"p_{name} or v_{name} is not None" if is_optional else f"p_{name}"]  # null: left out
        case Source.PRESENCE:
            return [f"v_{name} is not None"]
        case Source.STRIDE:
            return [f"t_{name}"]
    value = f"c_{name}" if passed.source is Source.VALUE else extents.symbol(name)
    if any(p.name == name and p.may_be_none for p in signature.parameters):
        value = f"(0 if {value} is None else {value})"  # `or` would lose the sign of -0.0
    if dtype is None:
        return [value]
    if dtype.kind is Kind.COMPLEX:
        parts = [f"complex({value}).real", f"complex({value}).imag"]
        return parts if dtype.bits == 128 else [f"to_float32({part})" for part in parts]
    if dtype.is_half:
        return [f"half_bits({value}, torch.{dtype.name})"]
    return [f"to_float32({value})" if dtype.name == "float32" else value]


def to_double(integer: int) -> float:
    """An integer, less what lies beyond 64 bits, as a double."""
    return float(ctypes.c_int64(integer).value)  # rule: launcher-overflow


def divide(a: float, b: float) -> float:
    """IEEE's quotient; of 0 and 0 the processor's own NaN, as in C, whose sign may differ from that of `math.nan`."""
    return a / b if b else a * math.copysign(math.inf, b)  # rule: launcher-quotient


@functools.cache
def _of_libm(name: str) -> Any:
    """C's function, which raises nothing."""
    function = getattr(ctypes.CDLL(None), name)
    function.restype = ctypes.c_double
    function.argtypes = [ctypes.c_double] * (2 if name in ("pow", "atan2") else 1)
    return function
