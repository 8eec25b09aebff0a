"""Element types: one row per dtype, and torch's promotion between them.

In: names as users write them (jaxtyping, torch, NumPy, numba). Out: `DType` rows.
Nothing here imports torch; `tests/unit/simulator/test_elements.py` compares the promotion with torch's.
"""

from __future__ import annotations

import enum
import math
from typing import Final

from py2cu.records import record


class Kind(enum.IntEnum):
    """Categories in torch's order: the operand of the higher category decides the dtype of a result."""

    BOOL = 0
    INT = 1
    FLOAT = 2
    COMPLEX = 3


@record(frozen=True, slots=True)
class TypeVariable:
    """The type variable of a generic kernel: its template parameter, its annotation, and the dtypes that it admits."""

    symbol: str  # C++: "T"
    annotation: str  # "Float"
    admits: tuple[DType, ...]

    @property
    def is_mixed(self) -> bool:
        """Whether it admits both integers and floats."""
        return len({row.kind for row in self.admits}) > 1

    @property
    def admits_halves(self) -> bool:
        return any(row.is_half for row in self.admits)


@record(frozen=True, slots=True)
class DType:
    """One element type: its names in torch, C++ and jaxtyping, and its range."""

    name: str  # torch and NumPy: "float32"
    c: str  # C++: "float"
    torch: str  # c10::ScalarType enumerator: "Float"
    jaxtyping: str  # annotation: "Float32"
    kind: Kind
    bits: int
    signed: bool = True
    precision: int = 0  # of a float, or of a complex number's parts: bits of the significand, the leading one included
    variable: TypeVariable | None = None  # in a generic kernel: the type variable that has this value in the instance

    def __str__(self) -> str:
        return self.name

    @property
    def plain(self) -> DType:
        """The dtype without its type variable."""
        return BY_NAME[self.name]

    @property
    def admitted(self) -> tuple[DType, ...]:
        """The dtypes that its type variable admits; the dtype itself without a type variable."""
        return (self,) if self.variable is None else self.variable.admits

    @property
    def itemsize(self) -> int:
        """The bytes of an element."""
        return max(self.bits, 8) // 8

    @property
    def low(self) -> float:
        """Least finite value; for a complex dtype, of the parts."""
        match self.kind:
            case Kind.BOOL:
                return 0
            case Kind.INT:
                return -(1 << (self.bits - 1)) if self.signed else 0
            case Kind.FLOAT | Kind.COMPLEX:
                return -self.high

    @property
    def high(self) -> float:
        """Greatest finite value; for a complex dtype, of the parts."""
        match self.kind:
            case Kind.BOOL:
                return 1
            case Kind.INT:
                return (1 << (self.bits - self.signed)) - 1
            case Kind.FLOAT:
                exponents = self.bits - self.precision  # bits
                return math.ldexp(2.0 - 2.0 ** (1 - self.precision), 2 ** (exponents - 1) - 1)
            case Kind.COMPLEX:
                return self.part.high

    def holds(self, value: float) -> bool:
        """Whether `value` is in range and, for an integer dtype, is an integer."""
        if self.kind >= Kind.FLOAT:
            return abs(value) <= self.high or value != value or abs(value) == math.inf
        return self.low <= value <= self.high and value == int(value)

    @property
    def epsilon(self) -> float:
        """Distance from 1.0 to the next float; 0 for other kinds."""
        return 2.0 ** (1 - self.precision) if self.precision else 0.0

    @property
    def part(self) -> DType:
        """The dtype of the real and imaginary parts; a real dtype is its own."""
        return {C64: F32, C128: F64}.get(self.plain, self)

    @property
    def is_half(self) -> bool:
        """Whether it is a 16-bit float, for which C++ has a class and no built-in arithmetic."""
        return self.kind is Kind.FLOAT and self.bits == 16

    @property
    def admits_halves(self) -> bool:
        """Whether it is a 16-bit float, or a float of a type variable that admits one."""
        return self.kind is Kind.FLOAT and (self.variable.admits_halves if self.variable else self.is_half)

    @property
    def opmath(self) -> DType:
        """The dtype in which torch computes with this float: float32 for halves."""
        return F64 if self.plain is F64 else F32

    @property
    def is_native(self) -> bool:
        """Whether C++ has the type built in, and it is no type variable."""
        return self.variable is None and not self.is_half

    @property
    def unsigned(self) -> DType:
        """The unsigned integer dtype of as many bits."""
        return next(row for row in _UNSIGNED if row.bits == self.bits)

    @property
    def is_bare(self) -> bool:
        """Whether it is an unsigned type of 16 bits or more: torch promotes these with floats alone."""
        return self.kind is Kind.INT and not self.signed and self.bits > 8


BOOL: Final = DType("bool", "bool", "Bool", "Bool", Kind.BOOL, 8, signed=False)
U8: Final = DType("uint8", "uint8_t", "Byte", "UInt8", Kind.INT, 8, signed=False)
I8: Final = DType("int8", "int8_t", "Char", "Int8", Kind.INT, 8)
I16: Final = DType("int16", "int16_t", "Short", "Int16", Kind.INT, 16)
I32: Final = DType("int32", "int32_t", "Int", "Int32", Kind.INT, 32)
I64: Final = DType("int64", "int64_t", "Long", "Int64", Kind.INT, 64)
U16: Final = DType("uint16", "uint16_t", "UInt16", "UInt16", Kind.INT, 16, signed=False)
U32: Final = DType("uint32", "uint32_t", "UInt32", "UInt32", Kind.INT, 32, signed=False)
U64: Final = DType("uint64", "uint64_t", "UInt64", "UInt64", Kind.INT, 64, signed=False)
F16: Final = DType("float16", "__half", "Half", "Float16", Kind.FLOAT, 16, precision=11)
BF16: Final = DType("bfloat16", "__nv_bfloat16", "BFloat16", "BFloat16", Kind.FLOAT, 16, precision=8)
F32: Final = DType("float32", "float", "Float", "Float32", Kind.FLOAT, 32, precision=24)
F64: Final = DType("float64", "double", "Double", "Float64", Kind.FLOAT, 64, precision=53)
C64: Final = DType(
    "complex64", "cuda::std::complex<float>", "ComplexFloat", "Complex64", Kind.COMPLEX, 64, precision=24
)
C128: Final = DType(
    "complex128", "cuda::std::complex<double>", "ComplexDouble", "Complex128", Kind.COMPLEX, 128, precision=53
)

DTYPES: Final = (BOOL, U8, I8, I16, I32, I64, U16, U32, U64, F16, BF16, F32, F64, C64, C128)
_SIGNED, _UNSIGNED, _FLOATS = (I8, I16, I32, I64), (U8, U16, U32, U64), (F32, F64, F16, BF16)
_COMPLEX = (C64, C128)
GENERIC: Final = {
    "Float": _FLOATS, "Complex": _COMPLEX, "Inexact": (*_FLOATS, *_COMPLEX), "Int": _SIGNED, "UInt": _UNSIGNED,
    "Integer": (*_SIGNED, *_UNSIGNED), "Num": (*_FLOATS, *_SIGNED, *_UNSIGNED, *_COMPLEX),
    "Real": (*_FLOATS, *_SIGNED, *_UNSIGNED), "Shaped": (*_FLOATS, *_SIGNED, *_UNSIGNED, *_COMPLEX, BOOL),
}  # fmt: skip
"""jaxtyping's annotations of several dtypes; messages show the first dtype of each."""

DEFAULT_FLOAT: Final = F32  # torch.get_default_dtype(): the result of an integer element and a Python float

BY_NAME: Final = {row.name: row for row in DTYPES}
BY_JAXTYPING: Final = {row.jaxtyping: row for row in DTYPES}
# Spellings other than `name` that torch, NumPy and numba use for the same type.
ALIASES: Final = {
    "bool_": BOOL, "boolean": BOOL, "byte": U8, "ubyte": U8, "short": I16, "intc": I32, "long": I64, "longlong": I64,
    "int_": I64, "intp": I64, "ushort": U16, "uintc": U32, "uint": U64, "ulong": U64, "ulonglong": U64, "uintp": U64,
    "half": F16, "float": F32, "single": F32, "double": F64, "float_": F64,
    "cfloat": C64, "csingle": C64, "cdouble": C128,
}  # fmt: skip
# Numba's further spellings: the codes of NumPy, and C's names.
SHORT: Final = {
    "b1": BOOL, "i1": I8, "i2": I16, "i4": I32, "i8": I64, "u1": U8, "u2": U16, "u4": U32, "u8": U64, "f2": F16,
    "f4": F32, "f8": F64, "c8": C64, "c16": C128, "char": I8, "uchar": U8, "long_": I64, "ulong_": U64,
}  # fmt: skip


def find_dtype(name: str) -> DType | None:
    """The dtype that torch, NumPy or numba calls `name`."""
    return BY_NAME.get(name) or ALIASES.get(name)


def promote(a: DType, b: DType) -> DType | None:
    """The common dtype of `a` and `b`, that of `torch.promote_types`.

    None if torch has none, and for a dtype that `is_bare` beside a float: there kernels need a cast.

    It is a type variable where that is what `a` or `b` is, unless all its dtypes have one common dtype with the other:
    instances whose types have one spelling share a text.
    """
    if (a.variable is None) is not (b.variable is None):  # rule: promoted-alike
        common = {promote(x, y) for x in a.admitted for y in b.admitted}
        if len(common) == 1:
            return common.pop()
    if a.plain is b.plain:
        return a if a.variable else b
    if a.is_bare or b.is_bare:  # rule: unsigned-bare
        return None
    if Kind.COMPLEX in (a.kind, b.kind):
        return C128 if F64 in (a.part.plain, b.part.plain) else C64
    if a.kind is not b.kind:
        return max(a, b, key=lambda row: row.kind)
    if a.is_half and b.is_half:
        return F32  # neither holds the other's values  # rule: half-and-bfloat
    if a.signed is b.signed:
        return max(a, b, key=lambda row: row.bits)
    unsigned, signed = (a, b) if b.signed else (b, a)
    return signed if signed.bits > unsigned.bits else _wider_signed(unsigned)  # rule: signed-and-unsigned


def _wider_signed(unsigned: DType) -> DType:
    """The smallest signed dtype that holds every value of `unsigned`: int16 for uint8."""
    return next(row for row in (I16, I32, I64) if row.bits > unsigned.bits)


def promote_weak(element: DType, kind: Kind) -> DType | None:
    """The common dtype of an element and a Python number of `kind`, which is weak.

    None for float16 and a complex number, since complex32 is not supported.
    """
    if element.kind >= kind:  # rule: weak-by-kind
        return element
    if kind is Kind.COMPLEX:
        return None if element.plain is F16 else C128 if element.plain is F64 else C64
    return {Kind.INT: I64, Kind.FLOAT: DEFAULT_FLOAT}[kind]  # rule: weak-default
