"""Expressions of every type: one production a construct.

`value(writer, type, depth)` writes a random expression of exactly that type. To add a construct, add a function under
`@makes(...)`: which types it can make, and its weight in the draw among the productions of such a type.

What Python would refuse at run time is kept out by construction: integers are divided by odd numbers, floats become
integers within bounds, indices are taken modulo the extent. `or` and conditional expressions have operands of one type,
since in CPython they return one of them as it is.
"""

from __future__ import annotations

import cmath
import functools
import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import py2cu
from py2cu.builtins import ROWS, Builtin, Rule
from py2cu.builtins.casts import METHODS
from py2cu.builtins.formulas import ROWS as FORMULAS
from py2cu.builtins.methods import function_behind
from py2cu.dtypes import BOOL, C64, C128, DEFAULT_FLOAT, F32, F64, DType, Kind, promote, promote_weak
from tests.fuzz.shapes import EXTENT_LIMIT, grid_rank, limit
from tests.fuzz.writer import (
    ALL,
    DTYPES,
    LIMIT,
    NUMBERS,
    SYMBOLS,
    TILES,
    Array,
    Type,
    Value,
    Writer,
    fitted,
)

Write = Callable[[Writer, Type, int], Value]
Test = Callable[[Type], bool]

# What the module of every kernel defines.
CONSTANTS: Final = {
    "FULL": (0xFF, "0xFF"), "WIDE": (2**40, "0x10000000000"), "RATE": (0.125, "0.125"), "ON": (True, "True"),
    "TURN": (0.6 - 0.8j, "0.6 - 0.8j"), "SIDE": (2, "2"),
}  # fmt: skip
MEMBERS: Final = {"Gate.FIRST": 1, "Gate.LAST": 2, "Gate.LAST.value": 2, "Option.ALL": 3, "Config.SIDE": -3}
RATES: Final = {"Config.RATE": -0.375, "Kind.HALF.value": 0.5}
CLASSES: Final = {
    "Gate": "class Gate(IntEnum):\n    FIRST = auto()\n    LAST = auto()",
    "Option": "class Option(IntFlag):\n    ONE = auto()\n    TWO = auto()\n    ALL = ONE | TWO",
    "Kind": "class Kind(Enum):\n    HALF = 0.5",
    "Config": "class Config:\n    RATE: float = -RATE * 3\n    SIDE = -3",
}
TABLES: Final[dict[str, tuple[Any, ...]]] = {
    "STEPS": (3, -7, 0, 2**31, 100), "GRID": ((1, -2, 4), (0, 8, -5)), "WEIGHTS": (0.25, -1.5, 0.0, 0.1),
    "ROWS": ((0.5, 2.0), (1e30, -0.0), (3.0, 1e-3)), "MASK": (True, False, True),
    "LEVELS": (-0.75, 0.1, 3.0, -2.0, 0.0, 1e-3, 0.5, -0.1),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Production:
    """One construct; a leaf needs no expression in it."""

    write: Write
    makes: Test
    weight: int
    leaf: bool


PRODUCTIONS: Final[list[Production]] = []


def makes(types: Test, weight: int = 1, leaf: bool = False) -> Callable[[Write], Write]:
    def enter(write: Write) -> Write:
        PRODUCTIONS.append(Production(write, types, weight, leaf))
        return write

    return enter


@functools.cache
def _productions(type_: Type, only_leaves: bool) -> tuple[Write, ...]:
    found = (row for row in PRODUCTIONS if row.makes(type_) and row.leaf >= only_leaves)
    return tuple(itertools.chain.from_iterable([row.write] * row.weight for row in found))


def value(w: Writer, type_: Type, depth: int = 2) -> Value:
    """A random expression of `type_`."""
    return w.apart(lambda: w.pick(_productions(type_, depth <= 0))(w, type_, depth))


# --- types --------------------------------------------------------------------------------------------------------


def kind_of(type_: Type) -> Kind:
    return type_.kind if isinstance(type_, DType) else type_


def any_type(type_: Type) -> bool:
    return True


def element(type_: Type) -> bool:
    return isinstance(type_, DType)


def named(type_: Type) -> bool:
    """Elements that a cast can name."""
    return isinstance(type_, DType) and type_.variable is None


def of_kinds(*kinds: Kind) -> Test:
    """Elements of these kinds."""
    return lambda type_: isinstance(type_, DType) and type_.kind in kinds


def python(*kinds: Kind) -> Test:
    """Python numbers of these kinds."""
    return lambda type_: isinstance(type_, Kind) and type_ in kinds


INTS, FLOATS, COMPLEX = of_kinds(Kind.INT), of_kinds(Kind.FLOAT), of_kinds(Kind.COMPLEX)
REAL_NUMBERS: Final = of_kinds(Kind.INT, Kind.FLOAT)
INT_DTYPES: Final = tuple(filter(INTS, DTYPES))
SOCIAL_INTS: Final = tuple(row for row in INT_DTYPES if not row.is_bare)  # those that meet other elements
FLOAT_DTYPES: Final = tuple(filter(FLOATS, DTYPES))
HALVES: Final = tuple(row for row in FLOAT_DTYPES if row.is_half)
WHOLE: Final = (*INT_DTYPES, BOOL, Kind.INT, Kind.BOOL)


def meeting(a: Type, b: Type) -> Type:
    """The type in which two numbers compute."""
    match a, b:
        case DType(), DType():
            return promote(a, b)
        case (DType() as dtype, kind) | (kind, DType() as dtype):
            return promote_weak(dtype, Kind.INT if kind is Kind.BOOL else kind)
        case _:
            return max(a, b, Kind.INT)


@functools.cache
def pairs(type_: Type) -> tuple[tuple[Type, Type], ...]:
    """The types of two operands that meet in `type_`, first the type itself twice."""
    among = (type_, *NUMBERS) if type_ in SYMBOLS else ALL
    found = (pair for pair in itertools.product(among, among) if pair != (BOOL, BOOL) and meeting(*pair) is type_)
    return tuple(sorted(found, key=lambda pair: sum(operand is not type_ for operand in pair)))


def operands(w: Writer, type_: Type, depth: int) -> list[Value]:
    """Two expressions that meet in `type_`; Python integers among them fit it."""
    return [meets(value(w, operand, depth - 1), type_) for operand in w.pick(pairs(type_))]


def meets(number: Value, type_: Type) -> Value:
    """`number` so that an element of `type_` can hold it, where it is a Python integer."""
    is_integer = number.type in (Kind.INT, Kind.BOOL)
    return fitted(number, type_.low, type_.high) if is_integer and isinstance(type_, DType) else number


# --- leaves -------------------------------------------------------------------------------------------------------


@makes(element, weight=6, leaf=True)
def load(w: Writer, type_: Type, depth: int) -> Value:
    assert isinstance(type_, DType)
    array = w.readable(type_)
    if array is None:
        return local(w, type_, depth)
    if depth > 0 and w.chance(2 if array.private else 4):
        return Value(anywhere(w, array, depth - 1), type_)
    return Value(array.element, type_)


@makes(REAL_NUMBERS, leaf=True)
def load_with_hint(w: Writer, type_: Type, depth: int) -> Value:
    """An element of an input, with a cache hint."""
    assert isinstance(type_, DType)
    array = None if w.is_function else w.input(type_)
    if array is None or not array.own:
        return load(w, type_, depth)
    element = anywhere(w, array, depth - 1) if depth > 0 else array.element
    return Value(f"py2cu.{w.pick(['ldg', 'ldcs'])}({hinted(array, element)})", type_)


def hinted(array: Array, element: str) -> str:
    """The array and the index of an element as `ldg` takes them."""
    return f"{array.name}, ({element[len(array.name) + 1 : -1]},)"


@makes(element, weight=1)
def load_if_given(w: Writer, type_: Type, depth: int) -> Value:
    """An element of an array that may be None, where it is given."""
    assert isinstance(type_, DType)
    if w.is_function or w.is_closure or type_ in SYMBOLS or not w.chance(3):
        return load(w, type_, depth)
    other, array = load(w, type_, depth - 1).text, w.may_be_none(type_)
    choices = (
        f"{array.element} if {array.name} is not None else {other}",
        f"{other} if {array.name} is None else {array.element}",
    )
    return Value(f"({w.pick(choices)})", type_)


@makes(element, weight=1)
def load_by_dtype(w: Writer, type_: Type, depth: int) -> Value:
    """An element that a test of a dtype chooses; in a generic kernel it has two outcomes."""
    assert isinstance(type_, DType)
    if w.is_function or w.is_closure or not w.chance(3):
        return load(w, type_, depth)
    array = w.input(type_)
    dtype = w.pick([each.name for each in (type_.variable.admits if type_.variable else (type_, F64))])
    test = w.pick([f"== torch.{dtype}", f"!= torch.{dtype}", f"is torch.{dtype}", f"in (torch.{dtype}, torch.int16)"])
    then, other = load(w, type_, depth - 1).text, load(w, type_, depth - 1).text
    return Value(f"({then} if {array.name}.dtype {test} else {other})", type_)


def anywhere(w: Writer, array: Array, depth: int) -> str:
    """Any element of an array."""
    return f"{array.name}[{', '.join(subscript(w, array, axis, depth) for axis in range(len(array.extents)))}]"


def own_element(w: Writer, array: Array) -> str:
    """An element of an array that is this thread's own."""
    if array.private:
        return anywhere(w, array, 1)
    if not array.free or w.chance(2):
        return array.element
    fixed = len(array.own) - array.free
    row = [subscript(w, array, axis, 1) for axis in range(fixed, len(array.own))]
    return f"{array.name}[{', '.join([*array.own[:fixed], *row])}]"


# Each of them is below EXTENT_LIMIT.
PLACES: Final = (
    "blockIdx.x", "threadIdx.x", "blockIdx.x * blockDim.x + threadIdx.x", "blockIdx.x * 4 + threadIdx.x",
    "63 - threadIdx.x",
)  # fmt: skip


def subscript(w: Writer, array: Array, axis: int, depth: int) -> str:
    """Any element of an axis: this thread's own, the last one, or one computed from anything whole."""
    extent = w.pick([f"{array.name}.shape[{axis}]", f"{array.name}.shape[{axis - len(array.extents)}]"])
    extent = f"len({array.name})" if axis == 0 and w.chance(2) else extent
    extent = w.pick([extent, array.extents[axis]]) if array.extents[axis].isdigit() else extent
    index = value(w, w.pick([Kind.INT, *INT_DTYPES]), depth)
    return w.pick([array.own[axis], "-1", f"{index.text} % {extent}", *places(w, array.extents[axis])])


def places(w: Writer, extent: str) -> list[str]:
    """What lies within an extent that is a number, and the launch says or a loop counts."""
    most = int(extent) if extent.isdigit() else 0
    counted = [counter.text for counter in w.counters if counter.low >= 0 and counter.high < most]
    return [*counted, *[index for _, index in w.axes], *PLACES] if most >= EXTENT_LIMIT else counted


@makes(element, weight=2, leaf=True)
def load_in_place(w: Writer, type_: Type, depth: int) -> Value:
    """An element that this thread may write as well, or one of a row that none writes."""
    known = [array for array in w.outputs if array.dtype is type_]
    if not known:
        return load(w, type_, depth)
    array = w.pick(known)
    if array.still and not w.chance(4):
        return Value(
            f"{array.name}[{', '.join(['0', *(subscript(w, array, a, depth - 1) for a in range(1, len(array.own)))])}]",
            type_,
        )
    return Value(own_element(w, array), type_)


@makes(element)
def end_of_a_slice(w: Writer, type_: Type, depth: int) -> Value:
    """The last element of a part, by a constant from its end."""
    assert isinstance(type_, DType)
    array = w.readable(type_)
    if array is None:
        return local(w, type_, depth)
    *rows, _ = (subscript(w, array, axis, depth - 1) for axis in range(len(array.extents)))
    part = f"{array.name}[{', '.join([*rows, w.pick([':1', ':', '0:1'])])}]"
    return Value(f"{part}{w.pick(['', '[:1]'])}[-1]", type_)


@makes(any_type, weight=3, leaf=True)
def local(w: Writer, type_: Type, depth: int) -> Value:
    return w.pick(w.locals_of(type_) or [constant(w, type_, 0)])


# Of each kind: annotation, name and bounds.
PARAMETERS: Final = {
    Kind.BOOL: (("bool", "flag", 0, 1), ("Constexpr[bool]", "both", 0, 1)),
    Kind.INT: (("int", "m", 0, 4), ("int", "wide", -(2**40), 2**40), ("Constexpr[int]", "tile", 1, max(TILES))),
    Kind.FLOAT: (("float", "a", 0, 0),),
    Kind.COMPLEX: (("complex", "c", 0, 0),),
}


@makes(lambda type_: type_ not in SYMBOLS, weight=2, leaf=True)
def parameter(w: Writer, type_: Type, depth: int) -> Value:
    if w.is_function:
        return local(w, type_, depth)
    if isinstance(type_, DType):
        return w.scalar(cast_name(w, type_), Value(f"s_{type_.name}", type_))
    annotation, name, low, high = w.pick(PARAMETERS[type_])
    return w.scalar(annotation, Value(name, type_, low, high))


WHOLE_LITERALS: Final = (
    1, 0, 2, -1, 3, 7, -5, 10, 127, 128, -128, 255, 256, 1000, 2**15 - 1, -(2**15), 2**31 - 1, -(2**31), 2**31, 2**32,
    -(2**33), 2**53 + 1, 2**61, -(2**61),
)  # fmt: skip
FLOAT_LITERALS: Final = (
    "0.5", "1.0", "0.0", "-0.0", "2.0", "-0.75", "0.1", "1e-3", "3.14159", "100.0", "16777217.0", "1e30", "-1e-30",
    "1e-40", "5e-324",
)  # fmt: skip
COMPLEX_LITERALS: Final = ("1j", "(1 - 2j)", "0j", "(0.5 + 0.1j)", "(-3 + 1e-3j)", "-2j", "(1e30 + 7j)", "TURN")


@makes(any_type, weight=2, leaf=True)
def constant(w: Writer, type_: Type, depth: int) -> Value:
    """A literal, a name of one, or a cast of one."""
    match type_:
        case Kind.BOOL:
            text = w.pick(["True", "False", "ON"])
            return Value(text, type_, text != "False", text != "False", True)
        case Kind.INT:
            number = w.pick(WHOLE_LITERALS)
            text, number = w.pick(
                [
                    (f"({number})" if number < 0 else str(number), number),
                    ("FULL", 255),
                    ("WIDE", 2**40),
                    ("len(STEPS)", 5),
                    w.pick([*MEMBERS.items()]),
                ]
            )
            return Value(text, type_, number, number, True)
        case Kind.FLOAT:
            text = w.pick([w.pick(FLOAT_LITERALS), "RATE", "math.pi", "math.inf", "math.nan", *RATES])
            named = {"RATE": 0.125, "math.pi": math.pi, "math.inf": math.inf, "math.nan": math.nan, **RATES}
            bound = named[text] if text in named else float(text)
            return Value(f"({text})", type_, bound, bound, True)
        case Kind.COMPLEX:
            return Value(f"({w.pick(COMPLEX_LITERALS)})", type_, constant=True)
        case _ if type_ in SYMBOLS:
            return load(w, type_, 0)
        case _ if COMPLEX(type_):
            return Value(f"{cast_name(w, type_)}({w.pick(COMPLEX_LITERALS)})", type_, constant=True)
        case _:
            whole = ("1", "0", str(int(type_.high)), str(int(type_.low)))
            literal = w.pick(FLOAT_LITERALS if type_.kind is Kind.FLOAT else whole)
            return Value(f"{cast_name(w, type_)}({literal})", type_, float(literal), float(literal), True)


def cast_name(w: Writer, dtype: DType) -> str:
    return f"{w.pick(['np', 'torch'])}.{dtype.name}"


@makes(python(Kind.BOOL, Kind.INT, Kind.FLOAT))
def look_up(w: Writer, type_: Type, depth: int) -> Value:
    """In a table of the module, by constants from either end or by anything whole."""
    kinds = {bool: Kind.BOOL, int: Kind.INT, float: Kind.FLOAT}
    text, found = w.pick([(name, [table]) for name, table in TABLES.items() if kinds[type(_first(table))] is type_])
    is_constant = True
    while isinstance(found[0], tuple):
        extent = len(found[0])
        if w.chance(2):
            at = w.pick(range(-extent, extent))
            text, found = f"{text}[{at}]", [row[at] for row in found]
        else:
            text = f"{text}[{value(w, w.pick([Kind.INT, *INT_DTYPES]), depth - 1).text} % {extent}]"
            found, is_constant = [item for row in found for item in row], False
    return Value(text, type_, min(found), max(found), is_constant)


def _first(table: Any) -> Any:
    return _first(table[0]) if isinstance(table, tuple) else table


def launched(w: Writer) -> Value:
    """What the launch says, which CUDA has as unsigned numbers."""
    name, low = w.pick([("threadIdx", 0), ("blockIdx", 0), ("blockDim", 1), ("gridDim", 1)])
    return Value(f"{name}.{w.pick('xyz'[: grid_rank(w.launch)])}", Kind.INT, low, EXTENT_LIMIT)


@makes(python(Kind.INT), weight=4, leaf=True)
def index(w: Writer, type_: Type, depth: int) -> Value:
    """An element index, an extent, a loop variable, or what the launch says."""
    if w.chance(6):
        return launched(w)
    indices = w.indices if w.is_function else [Value(name, type_, 0, EXTENT_LIMIT) for _, name in w.axes[::-1]]
    if w.arrays and w.chance(4):
        array = w.pick(w.arrays)
        axis = w.pick(range(len(array.extents)))
        whole, one = (f"len({array.name})", array.extents[0]), (f"{array.name}.shape[{axis}]", array.extents[axis])
        text, extent = w.pick([whole, one])
        return Value(text, type_, 1, limit(extent))
    return w.pick([*indices, *w.counters] or [constant(w, type_, 0)])


# --- arithmetic ---------------------------------------------------------------------------------------------------


def bounded(text: str, low: float, high: float, otherwise: Value) -> Value:
    """A Python integer, unless 64 bits might not hold it."""
    return Value(text, Kind.INT, low, high) if -LIMIT <= low <= high <= LIMIT else otherwise


def corners(a: Value, b: Value, compute: Callable[[float, float], float]) -> tuple[float, float]:
    found = [compute(x, y) for x in (a.low, a.high) for y in (b.low, b.high)]
    return min(found), max(found)


_COMPUTE: Final[dict[str, Callable[[float, float], float]]] = {
    "+": lambda x, y: x + y, "-": lambda x, y: x - y, "*": lambda x, y: x * y,
}  # fmt: skip


@makes(of_kinds(Kind.INT, Kind.FLOAT, Kind.COMPLEX), weight=5)
@makes(python(Kind.INT, Kind.FLOAT, Kind.COMPLEX), weight=3)
def arithmetic(w: Writer, type_: Type, depth: int) -> Value:
    a, b = operands(w, type_, depth)
    op = w.pick("+-*")
    text = f"({a.text} {op} {b.text})"
    if type_ is Kind.INT:
        return bounded(text, *corners(a, b, _COMPUTE[op]), a if a.type is type_ else index(w, type_, 0))
    return Value(text, type_)


@makes(REAL_NUMBERS, weight=2)
@makes(python(Kind.INT, Kind.FLOAT))
def sign(w: Writer, type_: Type, depth: int) -> Value:
    a = value(w, type_, depth - 1)
    op = w.pick(["-", "+", "abs"])
    low, high = {
        "-": (-a.high, -a.low), "+": (a.low, a.high), "abs": (0, max(abs(a.low), abs(a.high))),
    }[op]  # fmt: skip
    return Value(f"({op}{a.text})" if op != "abs" else f"abs({a.text})", type_, low, high, a.constant)


@makes(REAL_NUMBERS, weight=2)
@makes(python(Kind.INT, Kind.FLOAT))
def extremum(w: Writer, type_: Type, depth: int) -> Value:
    """`min` and `max` of two or three; among Python's own numbers they return one as it is, so that all have a type."""
    items = operands(w, type_, depth) if isinstance(type_, DType) else [value(w, type_, depth - 1) for _ in range(2)]
    if w.chance(3):
        items.append(value(w, type_, depth - 1))
    if not w.chance(8):  # the others are refused
        items = [item if is_kept(item, type_) else value(w, type_, depth - 1) for item in items]
    name = w.pick(["min", "max"])
    choose = min if name == "min" else max
    low, high = choose(item.low for item in items), choose(item.high for item in items)
    return Value(f"{name}({', '.join(item.text for item in items)})", type_, low, high)


def is_kept(number: Value, type_: Type) -> bool:
    """True where a float type, if it is one, holds every whole number that an element may be."""
    given = number.type
    if not isinstance(given, DType) or not isinstance(type_, DType) or kind_of(type_) is not Kind.FLOAT:
        return True
    return kind_of(given) is Kind.FLOAT or (type_ not in SYMBOLS and given.bits - given.signed <= type_.precision)


def odd(number: Value) -> Value:
    """A divisor: a whole number that is not zero."""
    return Value(f"({number.text} | 1)", number.type, number.low - 1, number.high + 1)


@makes(INTS, weight=3)
def integer_division(w: Writer, type_: Type, depth: int) -> Value:
    a, b = operands(w, type_, depth)
    if BOOL in (a.type, b.type) or w.chance(2):  # `bool | 1` is an int64
        a, b = value(w, type_, depth - 1), Value(str(w.pick([1, 2, 3, 7, 100, *[-1, -5] * type_.signed])), type_)
    else:
        b = odd(b)
    return Value(f"({a.text} {w.pick(['//', '%'])} {b.text})", type_)


@makes(python(Kind.INT), weight=3)
def python_division(w: Writer, type_: Type, depth: int) -> Value:
    a = value(w, type_, depth - 1)
    b = w.pick([Value(str(c), type_, c, c) for c in (2, 3, 1, 10, 1000, -1, -4)])
    b = w.pick([b, b, odd(value(w, type_, depth - 1))])
    if w.chance(2):
        return Value(f"({a.text} % {b.text})", type_, min(0, b.low + 1), max(0, b.high - 1))
    reach = max(abs(a.low), abs(a.high)) + 1
    return Value(f"({a.text} // {b.text})", type_, *((0, reach) if a.low >= 0 and b.low > 0 else (-reach, reach)))


@makes(FLOATS, weight=3)
def float_division(w: Writer, type_: Type, depth: int) -> Value:
    a, b = operands(w, type_, depth)
    return Value(f"({a.text} {w.pick(['/', '//', '%'])} {b.text})", type_)


@makes(lambda type_: type_ is DEFAULT_FLOAT)
def true_division_of_integers(w: Writer, type_: Type, depth: int) -> Value:
    """Of integer elements, in the default float type."""
    a = value(w, w.pick(SOCIAL_INTS), depth - 1)
    b = value(w, w.pick(SOCIAL_INTS), depth - 1)
    return Value(f"({a.text} / {odd(b).text})", type_)


@makes(lambda type_: type_ is F32)
def quotient_by_a_power(w: Writer, type_: Type, depth: int) -> Value:
    """A Python integer divided by a power of two, and rounded."""
    whole = value(w, Kind.INT, depth - 1).text
    return Value(f"{cast_name(w, F32)}({whole} / {w.pick(['2', '4096', '2**24', '2**53'])})", type_)


@makes(python(Kind.FLOAT), weight=2)
def python_true_division(w: Writer, type_: Type, depth: int) -> Value:
    a, b = (value(w, w.pick([Kind.INT, Kind.FLOAT]), depth - 1) for _ in range(2))
    divisor = odd(b).text if b.type is Kind.INT else f"(abs({b.text}) + 1.0)"
    op = w.pick(["/", "//", "%"]) if Kind.FLOAT in (a.type, b.type) else "/"
    return Value(f"({a.text} {op} {divisor})", type_)


@makes(INTS)
def integer_power(w: Writer, type_: Type, depth: int) -> Value:
    return Value(f"({value(w, type_, depth - 1).text} ** {w.pick([2, 3, 0, 1, 5, 64])})", type_)


@makes(python(Kind.INT))
def python_power(w: Writer, type_: Type, depth: int) -> Value:
    a, exponent = value(w, type_, depth - 1), w.pick([2, 3, 0, 1])
    low, high = a.low**exponent, a.high**exponent
    if exponent % 2 == 0:
        low, high = min(low, high) if a.low > 0 else 0, max(low, high, 1)
    return bounded(f"({a.text} ** {exponent})", min(low, 0), high, a)


@makes(FLOATS)
def float_power(w: Writer, type_: Type, depth: int) -> Value:
    a = value(w, type_, depth - 1)
    exponent = w.pick(["2", "0.5", "3", "-1", "-2", "0", "1.5", None])
    return Value(f"({a.text} ** {exponent or meets(value(w, w.pick([type_, Kind.FLOAT]), 0), type_).text})", type_)


# --- complex numbers ----------------------------------------------------------------------------------------------


@makes(COMPLEX, weight=3)
def complex_division(w: Writer, type_: Type, depth: int) -> Value:
    a, b = operands(w, type_, depth)
    return Value(f"({a.text} / {b.text})", type_)


@makes(python(Kind.COMPLEX))
def python_complex_division(w: Writer, type_: Type, depth: int) -> Value:
    """By a constant: Python raises where it is zero."""
    return Value(f"({value(w, type_, depth - 1).text} / {w.pick(['2', '-0.5', '1j', '(3 - 4j)'])})", type_)


@makes(COMPLEX, weight=2)
@makes(python(Kind.COMPLEX))
def complex_sign(w: Writer, type_: Type, depth: int) -> Value:
    a = value(w, type_, depth - 1)
    return Value(w.pick([f"(-{a.text})", f"(+{a.text})", f"{a.text}.conjugate()"]), type_)


@makes(COMPLEX, weight=2)
@makes(python(Kind.COMPLEX))
def complex_power(w: Writer, type_: Type, depth: int) -> Value:
    return Value(f"({value(w, type_, depth - 1).text} ** {w.pick([2, 1, 3, 6])})", type_)


@makes(python(Kind.COMPLEX), weight=2)
def of_parts(w: Writer, type_: Type, depth: int) -> Value:
    parts = [value(w, w.pick(w.real_types), depth - 1).text for _ in range(w.pick([2, 1]))]
    return Value(f"complex({', '.join(parts)})", type_)


@makes(lambda type_: type_ in (F32, F64, Kind.FLOAT), weight=2)
def part(w: Writer, type_: Type, depth: int) -> Value:
    """The real or the imaginary part, or the magnitude, at which a Python number can overflow."""
    whole = value(w, {F32: C64, F64: C128}.get(type_, Kind.COMPLEX), depth - 1).text
    texts = [f"{whole}.real", f"{whole}.imag", *[f"abs({whole})"] * isinstance(type_, DType)]
    return Value(w.pick(texts), type_)


# --- bits ---------------------------------------------------------------------------------------------------------


@makes(INTS, weight=2)
def bits(w: Writer, type_: Type, depth: int) -> Value:
    a, b = operands(w, type_, depth)
    if {a.type, b.type} == {BOOL, Kind.BOOL}:  # which stay bool, where sums would count them
        a = value(w, type_, depth - 1)
    return Value(f"({a.text} {w.pick('&|^')} {b.text})", type_)


@makes(lambda type_: type_ is BOOL, weight=4)
def bits_of_bools(w: Writer, type_: Type, depth: int) -> Value:
    a, b = value(w, BOOL, depth - 1), value(w, w.pick([BOOL, Kind.BOOL]), depth - 1)
    return Value(f"({a.text} {w.pick('&|^')} {b.text})", type_)


@makes(python(Kind.INT), weight=2)
def python_bits(w: Writer, type_: Type, depth: int) -> Value:
    a, b = operands(w, type_, depth)
    if a.type is b.type is Kind.BOOL:
        a = Value(f"int({a.text})", type_, 0, 1)
    op = w.pick("&|^")
    bound = 2 ** max(int(max(abs(v.low), abs(v.high) + 1)).bit_length() for v in (a, b))
    low = 0 if min(a.low, b.low) >= 0 or (op == "&" and max(a.low, b.low) >= 0) else -bound
    return bounded(f"({a.text} {op} {b.text})", low, bound, a if a.type is type_ else index(w, type_, 0))


@makes(of_kinds(Kind.BOOL, Kind.INT))
def inverted(w: Writer, type_: Type, depth: int) -> Value:
    return Value(f"(~{value(w, type_, depth - 1).text})", type_)


@makes(python(Kind.INT))
def python_inverted(w: Writer, type_: Type, depth: int) -> Value:
    a = value(w, type_, depth - 1)
    return Value(f"(~{a.text})", type_, -a.high - 1, -a.low - 1)


@makes(INTS, weight=2)
def shift(w: Writer, type_: Type, depth: int) -> Value:
    """By a constant, or by an element of the same type that is cut to its width."""
    a, b = value(w, type_, depth - 1), value(w, type_, depth - 1)
    count = str(w.pick([1, 0, 3, type_.bits - 1]))
    count = w.pick([count, f"({b.text} & {type_.bits - 1})", f"({value(w, Kind.INT, depth - 1).text} & 7)"])
    return Value(f"({a.text} {w.pick(['<<', '>>'])} {count})", type_)


def narrow(w: Writer, depth: int) -> Value:
    """A Python integer that C++ has in fewer bits."""
    dtype = w.pick([dtype for dtype in INT_DTYPES if dtype.bits < 64])
    if w.chance(3):
        return Value(f"int({condition(w, depth - 1)})", Kind.INT, 0, 1)
    return Value(f"int({value(w, dtype, depth - 1).text})", Kind.INT, dtype.low, dtype.high)


@makes(python(Kind.INT))
def python_shift(w: Writer, type_: Type, depth: int) -> Value:
    a, count = narrow(w, depth) if w.chance(2) else value(w, type_, depth - 1), w.pick([1, 0, 3, 31, 40, 63])
    if w.chance(2):
        return Value(f"({a.text} >> {count})", type_, min(0, a.low), max(0, a.high))
    return bounded(f"({a.text} << {count})", min(0, a.low * 2**count), max(0, a.high * 2**count), a)


# --- choices ------------------------------------------------------------------------------------------------------


@makes(any_type, weight=2)
def conditional(w: Writer, type_: Type, depth: int) -> Value:
    a, b = value(w, type_, depth - 1), value(w, type_, depth - 1)
    low, high = min(a.low, b.low), max(a.high, b.high)
    return Value(f"({a.text} if {condition(w, depth - 1)} else {b.text})", type_, low, high)


@makes(any_type)
def junction(w: Writer, type_: Type, depth: int) -> Value:
    a, b = value(w, type_, depth - 1), value(w, type_, depth - 1)
    low, high = min(a.low, b.low, 0), max(a.high, b.high, 0)
    return Value(f"({a.text} {w.pick(['and', 'or'])} {b.text})", type_, low, high)


@makes(named)
def mixed_junction(w: Writer, type_: Type, depth: int) -> Value:
    """`or` of two types gives the one in which they meet; CPython gives either, so that a cast makes it one."""
    a, b = operands(w, type_, depth) if type_ is not BOOL else [value(w, BOOL, depth - 1)] * 2
    text = w.pick(
        [f"{a.text} or {b.text}", f"{a.text} and {b.text}", f"{a.text} if {condition(w, depth - 1)} else {b.text}"]
    )
    return Value(f"{cast_name(w, type_)}({text})", type_)


def condition(w: Writer, depth: int) -> str:
    """Anything whose truth counts."""
    first = value(w, w.pick([Kind.BOOL, Kind.BOOL, *w.types]), depth)
    if depth > 0 and w.chance(6):
        second = value(w, w.pick([Kind.BOOL, first.type]), depth - 1)
        return f"({first.text} {w.pick(['and', 'or'])} {second.text})"
    return first.text


# --- truth --------------------------------------------------------------------------------------------------------


@makes(python(Kind.BOOL), weight=6)
def comparison(w: Writer, type_: Type, depth: int) -> Value:
    """Of two, or chained of three; a Python number is one that the element type holds."""
    common = w.pick([t for t in w.types if t not in (BOOL, Kind.BOOL)])
    first, *rest = operands(w, common, depth)
    if w.chance(5):
        rest.append(value(w, common, depth - 1))
    signs = ["==", "!="] if kind_of(common) is Kind.COMPLEX else ["<", "<=", "==", "!=", ">", ">="]
    links = [f"{w.pick(signs)} {item.text}" for item in rest]
    return Value(f"({first.text} {' '.join(links)})", type_, 0, 1)


@makes(python(Kind.BOOL))
def negation(w: Writer, type_: Type, depth: int) -> Value:
    return Value(f"(not {value(w, w.pick(w.types), depth - 1).text})", type_, 0, 1)


@makes(python(Kind.BOOL))
def predicate(w: Writer, type_: Type, depth: int) -> Value:
    name = w.pick([row.key.replace("numpy.", "np.") for row in ROWS.values() if row.rule is Rule.PREDICATE])
    return Value(f"{name}({value(w, w.pick([*FLOAT_DTYPES, Kind.FLOAT]), depth - 1).text})", type_, 0, 1)


@makes(python(Kind.BOOL))
def truth(w: Writer, type_: Type, depth: int) -> Value:
    return Value(f"bool({value(w, w.pick(w.types), depth - 1).text})", type_, 0, 1)


# --- functions and casts ------------------------------------------------------------------------------------------


def usable_names(row: Builtin) -> list[str]:
    """The names of a row that a kernel can call under this Python: as the row says, or as its library has it."""
    libraries = {"math": math, "cmath": cmath, "py2cu": py2cu, "py2cu.fast": py2cu.fast}
    split = [(name, *name.rpartition(".")) for name in row.names]
    return [name for name, library, _, function in split if hasattr(libraries.get(library), function)]


_FUNCTIONS: Final = tuple(row for row in ROWS.values() if row.rule is Rule.FLOAT and usable_names(row))
_OF_BITS: Final = tuple(row for row in ROWS.values() if row.rule in (Rule.BITS, Rule.WORD) and usable_names(row))
_FORMULAS: Final = tuple(row for row in FORMULAS if row.in_float32)
_ANALYTIC: Final = tuple(row for row in ROWS.values() if row.rule is Rule.ANALYTIC)
_OF_CMATH: Final = tuple(row for row in ROWS.values() if row.rule is Rule.COMPLEX)
_TOTAL_OF_CMATH: Final = ("sqrt",)
# Python's own raise outside their domain; these have none within the bounds of `clamped`.
_TOTAL: Final = ("sin", "cos", "tanh", "atan", "cbrt", "erf", "erfc", "fabs", "asinh", "atan2", "hypot", "copysign")


@makes(FLOATS, weight=3)
@makes(python(Kind.FLOAT))
def function(w: Writer, type_: Type, depth: int) -> Value:
    """A function of `math`; integer elements count as the default float."""
    rows = _FUNCTIONS if isinstance(type_, DType) else [r for r in _FUNCTIONS if r.key.removeprefix("math.") in _TOTAL]
    row = w.pick(rows)
    types = [type_, *SOCIAL_INTS] if type_ is DEFAULT_FLOAT else [type_]
    arguments = [value(w, w.pick(types), depth - 1) for _ in range(row.arity[0])]
    arguments = [clamped(w, a) if isinstance(type_, Kind) else a for a in arguments]
    return Value(called(w, row.names, w.pick(usable_names(row)), arguments), type_)


def called(w: Writer, names: Sequence[str], name: str, arguments: Sequence[Value], options: Sequence[str] = ()) -> str:
    """A call of `name`; one of torch's `names` as a method of an element here and there."""
    first, *others = arguments
    methods = [method for each in names if function_behind(method := each.rpartition(".")[2]) == each]
    rest = [*(other.text for other in others), *options]
    if methods and isinstance(first.type, DType) and w.chance(3):
        return f"({first.text}).{w.pick(methods)}({', '.join(rest)})"
    return f"{name}({', '.join([first.text, *rest])})"


@makes(python(Kind.INT))
def bit_count(w: Writer, type_: Type, depth: int) -> Value:
    return Value(f"({value(w, w.pick(WHOLE), depth - 1).text}).bit_count()", type_, 0, 64)


@makes(lambda type_: named(type_) and REAL_NUMBERS(type_))
def bits_of_another_dtype(w: Writer, type_: Type, depth: int) -> Value:
    """The bits of an element of another dtype."""
    assert isinstance(type_, DType)
    source = w.pick([dtype for dtype in (*INT_DTYPES, *FLOAT_DTYPES) if dtype.bits == type_.bits])
    return Value(f"({value(w, source, depth - 1).text}).view({cast_name(w, type_)})", type_)


@makes(of_kinds(Kind.INT))
def function_of_bits(w: Writer, type_: Type, depth: int) -> Value:
    """A function of the bits of an element, whose result is cast."""
    number = value(w, w.pick([dtype for dtype in INT_DTYPES if dtype.bits >= 32]), depth - 1)
    return Value(f"np.{type_}({w.pick(usable_names(w.pick(_OF_BITS)))}({number.text}))", type_)


@makes(FLOATS)
def formula(w: Writer, type_: Type, depth: int) -> Value:
    """A function that is a formula of several steps, which whole numbers and halves take in float32."""
    row = w.pick(_FORMULAS)
    whole = INT_DTYPES if len(row.parameters) == 1 else SOCIAL_INTS
    types = [type_, *whole] if type_ is DEFAULT_FLOAT else [type_]
    arguments = [value(w, w.pick(types), depth - 1) for name in row.parameters if name not in row.defaults]
    options = [f"{name}={text!r}" for name, text in row.options.items()]
    names = [name.replace("numpy.", "np.") for name in row.names if not name.startswith("py2cu.")]
    return Value(called(w, row.names, w.pick(names), arguments, options), type_)


@makes(FLOATS)
def scaled(w: Writer, type_: Type, depth: int) -> Value:
    """An element times a power of two, which may be far off."""
    number = value(w, w.pick([type_, *SOCIAL_INTS] if type_ is DEFAULT_FLOAT else [type_]), depth - 1)
    return Value(f"math.ldexp({number.text}, {value(w, w.pick(WHOLE), depth - 1).text})", type_)


@makes(of_kinds(Kind.FLOAT, Kind.COMPLEX))
def analytic_function(w: Writer, type_: Type, depth: int) -> Value:
    """NumPy's or torch's, which take complex numbers too."""
    row = w.pick(_ANALYTIC)
    name = w.pick(row.names).replace("numpy.", "np.")
    return Value(called(w, row.names, name, [value(w, type_, depth - 1)]), type_)


@makes(lambda type_: type_ in (C64, C128), weight=2)
@makes(python(Kind.COMPLEX))
def complex_function(w: Writer, type_: Type, depth: int) -> Value:
    """`cmath`'s, which make complex numbers of real ones; of Python numbers those that neither raise nor overflow."""
    is_element = isinstance(type_, DType)
    name = w.pick([row.key for row in _OF_CMATH] if is_element else [f"cmath.{name}" for name in _TOTAL_OF_CMATH])
    argument = value(w, w.pick([type_, {C64: F32, C128: F64}.get(type_, Kind.FLOAT)]), depth - 1)
    return Value(f"{name}({argument.text})", type_)


def clamped(w: Writer, number: Value) -> Value:
    """A float within bounds and no NaN, which `max` leaves behind as its second argument."""
    bound = w.pick(["30000.0", "2.0", "1e12"])
    bound = bound if number.type is Kind.FLOAT or number.type.bits > 16 else "30000.0"
    return Value(f"min({bound}, max(-{bound}, {number.text}))", number.type, -float(bound), float(bound))


@makes(python(Kind.INT), weight=2)
def rounded(w: Writer, type_: Type, depth: int) -> Value:
    """A float as a Python integer."""
    number = clamped(w, value(w, w.pick([*FLOAT_DTYPES, Kind.FLOAT]), depth - 1))
    name = w.pick(["int", "round", "math.floor", "math.ceil", "math.trunc"])
    return Value(f"{name}({number.text})", type_, number.low, number.high)


@makes(python(Kind.INT), weight=2)
def whole(w: Writer, type_: Type, depth: int) -> Value:
    """A whole number of any type as a Python integer."""
    number = value(w, w.pick([t for t in WHOLE if not isinstance(t, DType) or t.bits < 64]), depth - 1)
    low, high = (number.type.low, number.type.high) if isinstance(number.type, DType) else (number.low, number.high)
    return Value(f"{w.pick(['int', 'round'])}({number.text})", type_, low, high)


@makes(python(Kind.FLOAT), weight=2)
def as_float(w: Writer, type_: Type, depth: int) -> Value:
    return Value(f"float({value(w, w.pick(w.real_types), depth - 1).text})", type_)


@makes(named, weight=3)
def cast(w: Writer, type_: Type, depth: int) -> Value:
    assert isinstance(type_, DType)
    return Value(f"{cast_name(w, type_)}({convertible(w, type_, depth).text})", type_)


@makes(any_type)
def in_opmath(w: Writer, type_: Type, depth: int) -> Value:
    """A number in the type that torch computes in; a half is cast back, also to the dtype of a generic array."""
    number = value(w, w.pick([type_, *HALVES]) if type_ is F32 else type_, depth - 1)
    generic = [array.name for array in w.inputs if array.dtype is type_]
    is_half = isinstance(type_, DType) and type_.admits_halves
    if number.constant or (is_half and not named(type_) and not generic):
        return number
    text = f"py2cu.opmath({number.text})"
    if is_half:
        text = f"{cast_name(w, type_) if named(type_) else f'{w.pick(generic)}.dtype'}({text})"
    return replace(number, text=text, type=type_)


@makes(named)
def method(w: Writer, type_: Type, depth: int) -> Value:
    """A cast that is a method of an element."""
    operand = convertible(w, type_, depth)
    names = [f"{name}()" for name, dtype in METHODS.items() if dtype is type_]
    if not isinstance(operand.type, DType):
        return Value(f"{cast_name(w, type_)}({operand.text})", type_)
    return Value(f"({operand.text}).{w.pick([*names, f'to({cast_name(w, type_)})'])}", type_)


def convertible(w: Writer, dtype: DType, depth: int) -> Value:
    """Any number, which `dtype` takes: a constant that fits; mostly a float that does, since C++ leaves others open."""
    number = value(w, w.pick(w.types if dtype.kind is Kind.COMPLEX else w.real_types), depth - 1)
    if number.constant:
        return number if number.fits(dtype) else constant(w, dtype, 0)
    if dtype.kind is Kind.INT and kind_of(number.type) is Kind.FLOAT and not w.chance(6):
        bound = min(30000, int(dtype.high))
        return Value(f"min({bound}, max({-bound if dtype.signed else 0}, {number.text}))", number.type)
    return number
