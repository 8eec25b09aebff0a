"""Numbers of a call: the types of Python that each kind accepts, and lines of a launcher that compute and pack them.

In: a `Signature`, a `LaunchProgram`. Out: lines of Python. Of a number `step` of the call they define `n_step`, and
`has_step` if it may be None; of a launch value `m_scale` they define `c_m_scale`, bit for bit as the emitted launcher
computes it. Python raises for some numbers where C has an infinity or NaN: those are computed once more, by libm.
"""

from __future__ import annotations

import ctypes
import functools
import math
import numbers
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

import torch

from py2cu.call.launchers.extents import ExtentLines
from py2cu.dtypes import BY_NAME, I64, DType, Kind
from py2cu.ir.abi.launch import Passed, Source
from py2cu.ir.abi.launch_values import OF_MATH, Operation, parts, value_in_python
from py2cu.ir.abi.parameters import Parameter
from py2cu.ir.abi.signature import Signature
from py2cu.ir.types import PY_FLOAT, ElementType, PythonType

SYMBOLS: Final = (torch.SymInt, torch.SymFloat)  # numbers while a call is traced
NUMBERS: Final[Mapping[Kind, tuple[str, tuple[type, ...]]]] = {
    Kind.BOOL: ("a bool", (bool, torch.SymBool)),
    Kind.INT: ("a whole number", (numbers.Integral, torch.SymInt)),
    Kind.FLOAT: ("a number", (numbers.Real, *SYMBOLS)),
    Kind.COMPLEX: ("a complex number", (numbers.Complex, *SYMBOLS)),
}
"""For each kind, its description and the types."""
_INTEGERS: Final = {8: "b", 16: "h", 32: "i", 64: "q"}
_RAISED: Final = (ZeroDivisionError, OverflowError, ValueError)
_FUNCTIONS: Final = {name: getattr(math, name) for name in OF_MATH}


def kind_of(parameter: Parameter) -> Kind:
    type_ = parameter.type
    return type_.kind if isinstance(type_, PythonType) else type_.dtype.kind


def integer_dtype(parameter: Parameter) -> DType:
    """The dtype of a whole number; of a Python integer, int64."""
    return parameter.type.dtype if isinstance(parameter.type, ElementType) else I64


def unpacked(signature: Signature, passed: Collection[str], names: dict[str, Any]) -> Iterator[str]:
    """Lines that define `v_f_0`, `v_f_1` of a tuple `f`, and refuse items of other types; `names` gets what they name.

    The form of a call says that there is a tuple, no more.
    """
    for name, items in signature.tuples:
        if name not in passed:
            continue
        yield f"{' '.join(f'v_{item},' for item in items)} = v_{name}"
        for item in items:
            kind = kind_of(signature.parameter(item))
            usual = kind.name.lower()  # the name of Python's type, for which a test by identity is enough
            names[f"accepted_{usual}"] = NUMBERS[kind][1]
            yield f"if v_{item}.__class__ is not {usual} and not isinstance(v_{item}, accepted_{usual}): raise misfit"


def value_lines(extents: ExtentLines, names: dict[str, Any]) -> Iterator[str]:
    """The lines that define the launch values; `names` gets what they refer to."""
    program = extents.program
    if not program.values:
        return
    names |= {**_FUNCTIONS, "raised": _RAISED, "divide": divide, "to_double": to_double}
    made = {value.name for value in program.values}
    floats = {p.name for p in extents.signature.parameters if p.type == PY_FLOAT}
    for name in dict.fromkeys(name for value in program.values for name in value.names if name not in made):
        passed, convert = extents.symbol(name), "float" if name in floats else "int"
        if name in extents.optional:
            yield f"has_{name} = {name in extents.given}"
        yield f"n_{name} = {convert}({'' if name in extents.optional - extents.given else passed})"

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


def packed(extents: ExtentLines, passed: Passed) -> tuple[str, list[str]]:
    """How `struct` spells an argument in a block, and the values that it packs there: of a half its bits.

    An index of either width has 64 bits there; the low half is the int32.
    """
    name = passed.name
    match passed.source:
        case Source.ARRAY:
            return "Q", [f"p_{name} or 1" if name in extents.optional & extents.given else f"p_{name}"]  # 0: left out
        case Source.PRESENCE:
            return "?", [str(name in extents.given)]
    value = f"c_{name}" if passed.source is Source.VALUE else extents.symbol(name)
    if name in extents.optional - extents.given:
        value = "0"
    dtype = BY_NAME.get(passed.type, I64)
    match dtype.kind:
        case Kind.BOOL:
            return "?", [value]
        case Kind.INT:
            return _INTEGERS[dtype.bits] if dtype.signed else _INTEGERS[dtype.bits].upper(), [value]
        case Kind.FLOAT if dtype.is_half:
            return "H", [f"half_bits({value}, torch.{dtype.name})"]
        case Kind.FLOAT:
            return ("f", [f"to_float32({value})"]) if dtype.bits == 32 else ("d", [value])
        case Kind.COMPLEX:
            parts = [f"complex({value}).real", f"complex({value}).imag"]
            return ("dd", parts) if dtype.bits == 128 else ("ff", [f"to_float32({part})" for part in parts])


def to_float32(value: Any) -> float:
    """A number rounded as C++ does it: one beyond the range of float32 becomes infinite."""
    return ctypes.c_float(value).value


def half_bits(value: Any, dtype: torch.dtype) -> int:
    """The bits of a number that is rounded to float32 and then to a 16-bit float."""
    rounded = torch.tensor(to_float32(value), dtype=torch.float32).to(dtype)
    return int(rounded.view(torch.int16).item()) & 0xFFFF


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
