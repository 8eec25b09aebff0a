"""Statements of random kernels: one production, a function that writes a random instance, for each construct.

`statement(writer)` writes a random statement. To add a construct, add a function under `@statement_of(...)`, with its
weight in the draw and where it can stand.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from py2cu.dtypes import BOOL, F32, F64, DType, Kind
from tests.fuzz.expressions import (
    FLOAT_DTYPES,
    INT_DTYPES,
    REAL_NUMBERS,
    cast_name,
    condition,
    convertible,
    hinted,
    index,
    kind_of,
    meeting,
    meets,
    odd,
    operands,
    own_element,
    pairs,
    value,
)  # fmt: skip
from tests.fuzz.shapes import EXTENT_LIMIT, limit, times
from tests.fuzz.writer import DTYPES, LIMIT, LOCAL_LIMIT, SYMBOLS, Array, Type, Value, Writer, fitted

Write = Callable[[Writer], None]

MOST_LOOPS: Final = 3  # around a statement
DEEPEST: Final = 5  # indent
WIDEST: Final = 2**40  # of the parameter `wide`
STEP_LIMIT: Final = 2**30  # what one update adds to an integer local


@dataclass(frozen=True, slots=True)
class Production:
    """One construct; `nests` where it holds a block, `loops` where it is a loop, `in_loop` where it needs one."""

    write: Write
    weight: int
    nests: bool
    loops: bool
    in_loop: bool


PRODUCTIONS: Final[list[Production]] = []


def statement_of(
    weight: int = 1, *, nests: bool = False, loops: bool = False, in_loop: bool = False
) -> Callable[[Write], Write]:
    def enter(write: Write) -> Write:
        PRODUCTIONS.append(Production(write, weight, nests, loops, in_loop))
        return write

    return enter


@functools.cache
def _productions(may_nest: bool, may_loop: bool, in_loop: bool) -> tuple[Write, ...]:
    found = (
        row
        for row in PRODUCTIONS
        if (may_nest or not row.nests) and (may_loop or not row.loops) and (in_loop or not row.in_loop)
    )
    return tuple(itertools.chain.from_iterable([row.write] * row.weight for row in found))


def statement(w: Writer) -> None:
    """A random statement, and what it needs around it."""
    may_nest = w.indent < DEEPEST
    w.apart(lambda: w.pick(_productions(may_nest, may_nest and w.loops < MOST_LOOPS, w.loops > 0))(w))


def body(w: Writer, most: int = 3) -> None:
    for _ in range(most):
        if w.pick([False, True, True]):
            statement(w)


def assignable(w: Writer, type_: Type, depth: int = 2) -> Value:
    """A value for a local of `type_`."""
    number = value(w, type_, depth)
    return fitted(number, -LOCAL_LIMIT, LOCAL_LIMIT) if type_ is Kind.INT else number


# --- assignments --------------------------------------------------------------------------------------------------


@statement_of(5)
def store(w: Writer) -> None:
    """Into an output or an array of the thread's own, any number."""
    dtype = w.pick(w.dtypes)
    array = w.writable(dtype)
    if array is None:
        return new_local(w)
    number, element = convertible(w, dtype, 3), own_element(w, array)
    if REAL_NUMBERS(dtype) and array in w.outputs and array.own and not w.is_function and w.chance(8):
        w.add(f"py2cu.stcs({hinted(array, element)}, {number.text})")
    else:
        w.add(f"{element} = {number.text}")
    return None


@statement_of(2)
def local_array(w: Writer) -> None:
    """Made outside loops and branches, and filled: its elements are unset."""
    if w.indent > 1:
        return store(w)
    extents = w.pick([("3",), ("2", "3"), ("1",), ("SIDE * 2",), *[("tile",), ("2", "tile")] * (not w.is_function)])
    if "tile" in extents:
        w.scalar("Constexpr[int]", Value("tile", Kind.INT))
    dtype, name = w.pick(w.dtypes), w.fresh("v")
    type_ = f"{w.input(dtype).name}.dtype" if dtype.variable else w.pick([cast_name(w, dtype), repr(dtype.name)])
    shape = extents[0] if len(extents) == 1 else f"({', '.join(extents)})"
    w.add(f"{name} = local({shape}, {type_})")
    array = Array(name, dtype, extents, tuple(w.pick(["0", "-1"]) for _ in extents), private=True)
    counters = [w.fresh("k") for _ in extents]
    with contextlib.ExitStack() as stack:
        for counter, extent in zip(counters, extents, strict=True):
            stack.enter_context(w.block(f"for {counter} in range({extent}):"))
            w.counters.append(Value(counter, Kind.INT, 0, EXTENT_LIMIT))
        w.add(f"{name}[{', '.join(counters)}] = {convertible(w, dtype, 2).text}")
    w.buffers.append(array)
    return None


@statement_of()
def view_in_rows(w: Writer) -> None:
    """Of an input of its own, whose row becomes locals, or of an output, where each thread has a row."""
    if w.indent > 1 or w.is_function:
        return new_local(w)
    dtype = w.pick([dtype for dtype in DTYPES if dtype.bits <= 64])
    row = w.pick([row for row in (2, 4, 8, 16) if row * max(dtype.bits, 8) <= 128])
    (extent, index), array, view = w.axes[-1], w.fresh("x"), w.fresh("r")
    found = Array(array, dtype, (times(row, extent),), (f"{row} * {index}",))
    is_stored = w.rank == 1 and w.chance(2)
    if is_stored:
        w.output(dtype)  # the first one is as large as the launch
    (w.outputs if is_stored else w.inputs).append(found)
    w.add(f"{view} = {array}.view(-1, {row})")
    if is_stored:
        w.add(f"{view}[{index}] = {', '.join(convertible(w, dtype, 1).text for _ in range(row))}")
    else:
        w.add(f"{', '.join(w.declare(Value('', dtype)).text for _ in range(row))} = {view}[{index}]")
        w.add(f"{w.declare(Value('', dtype)).text} = {view}[{index}, {w.pick(['-1', '0'])}]")
    return None


@statement_of()
def rows_of_16_bytes(w: Writer) -> None:
    """Rows of an input, read by a loop and by element, or of an output, each stored from a generator.

    Some accesses have a cache hint.
    """
    if w.indent > 1 or w.is_function:
        return new_local(w)
    dtype = w.pick([dtype for dtype in DTYPES if dtype.bits <= 64])
    row = 16 // dtype.itemsize
    (extent, index), array, view, length = w.axes[-1], w.fresh("x"), w.fresh("r"), w.fresh("w")
    found = Array(array, dtype, (times(row, extent),), (f"{row} * {index}",))
    is_stored = w.rank == 1 and w.chance(2)
    if is_stored:
        w.output(dtype)  # the first one is as large as the launch
    (w.outputs if is_stored else w.inputs).append(found)
    w.add(f"{length} = 16 // {array}.itemsize")
    w.add(f"{view} = {array}.view(-1, {length})")
    item, place = w.fresh("v"), w.fresh("k")
    if is_stored:
        value = convertible(w, dtype, 1).text
        row_values = f"tuple({value} for {place} in range({length}))"
        is_hinted = REAL_NUMBERS(dtype) and w.chance(2)
        w.add(f"py2cu.stcs({view}, {index}, {row_values})" if is_hinted else f"{view}[{index}] = {row_values}")
        return None
    last = w.declare(Value("", dtype)).text
    w.add(f"{last} = {view}[{index}, 0]")
    hint = w.pick(["", "ldg", "ldcs"]) if REAL_NUMBERS(dtype) else ""
    whole = f"py2cu.{hint}({view}, {index})" if hint else f"{view}[{index}]"
    w.add(w.pick([f"for {item} in {whole}:", f"for {place}, {item} in enumerate({whole}):"]))
    w.add(f"    {last} = {item}")
    w.add(f"for {place} in range({length}):")
    w.add(f"    {last} = {view}[{index}, {place}]")
    return None


@statement_of(6)
def new_local(w: Writer) -> None:
    """Annotated here and there, as what it is."""
    number = assignable(w, w.pick(w.types))
    annotation = ""
    if number.type not in SYMBOLS and w.chance(4):
        annotation = f": {cast_name(w, number.type) if isinstance(number.type, DType) else number.type.name.lower()}"
    w.add(f"{w.declare(number).text}{annotation} = {number.text}")


@statement_of()
def deleted_local(w: Writer) -> None:
    """One of this block, out of scope from here on."""
    own = [local for local in w.scope[w.outer :] if "[" not in local.text]
    if not own:
        return new_local(w)
    local = w.pick(own)
    w.scope.remove(local)
    w.add(f"del {local.text}")
    return None


@statement_of(3)
def assignment(w: Writer) -> None:
    if not w.scope:
        return new_local(w)
    local = w.pick(w.scope)
    w.add(f"{local.text} = {assignable(w, local.type).text}")
    return None


@statement_of()
def rounded_at_first(w: Writer) -> None:
    """A local that starts as a number that float32 rounds, and uses that round it."""
    if w.is_function:
        return new_local(w)
    name, other = w.fresh("r"), value(w, F32, 1).text
    w.add(f"{name} = {w.pick(['0.1', '0.7', '1e30', '-0.3', '1e-42', value(w, Kind.FLOAT, 1).text])}")
    with w.block(f"if {condition(w, 1)}:"):
        w.add(f"{name} = {value(w, F32, 2).text}")
    uses = [f"{name} * {other}", f"{other} - {name}", f"max({name}, {other})", f"({name} if {other} > 0 else {other})"]
    w.add(f"{w.output(F32).element} = {w.pick([name, *uses])}")
    if w.chance(2):
        w.add(f"{w.declare(Value('', Kind.BOOL)).text} = {name} {w.pick(['<', '>=', '=='])} {other}")
    return None


@statement_of()
def double_of_two_origins(w: Writer) -> None:
    """A local that is a Python float or zero on one path and a float64 element on another, and sums of it."""
    if w.is_function:
        return new_local(w)
    name, other = w.fresh("r"), value(w, w.pick([F64, F64, F32]), 1).text
    w.add(f"{name} = {w.pick(['0.0', '0', f'float({value(w, F32, 1).text})', value(w, Kind.FLOAT, 1).text])}")
    with w.block(f"if {condition(w, 1)}:"):
        w.add(f"{name} = {value(w, F64, 2).text}")
    w.add(f"{name} {w.pick(['+=', '-=', '*='])} {other}")
    uses = [name, f"{name} * {other}", f"-{name}", f"max({name}, {other})", f"({name} + 1.5) * {other}"]
    w.add(f"{w.output(F64).element} = {w.pick(uses)}")
    return None


@statement_of()
def integer_of_two_origins(w: Writer) -> None:
    """A local that is a Python integer on one path and an integer element on another, and a use with one result."""
    if w.is_function:
        return new_local(w)
    name, dtype = w.fresh("m"), w.pick([dtype for dtype in INT_DTYPES if dtype.bits < 64 or dtype.signed])
    other = value(w, dtype, 1).text
    w.add(f"{name} = {fitted(value(w, Kind.INT, 2), -WIDEST, WIDEST).text} + {index(w, Kind.INT, 1).text}")
    with w.block(f"if {condition(w, 1)}:"):
        w.add(f"{name} = {value(w, dtype, 2).text}")
    uses = [name, f"{name} if {name} else 7", f"np.int16({name})", f"{name} > 5", f"{name} == 7"]
    if w.chance(6):  # refused, unless no path gives another result
        uses = [f"{name} * 3", f"-{name}", f"{name} + {other}", f"{name} < {other}", f"{name} // 2"]
    w.add(f"{w.declare(Value('', Kind.INT, 0, 996)).text} = int({w.pick(uses)}) % 997")
    return None


# Numbers of the call that are no extents, and what they may become.
REBOUND: Final = {"a": Kind.FLOAT, "wide": Kind.INT, "flag": Kind.BOOL, "c": Kind.COMPLEX}


@statement_of()
def rebound_parameter(w: Writer) -> None:
    names = [name for name in w.scalars if name in REBOUND]
    if not names or w.is_function:
        return new_local(w)
    name = w.pick(names)
    w.add(f"{name} = {fitted(value(w, REBOUND[name], 2), -WIDEST, WIDEST).text}")
    return None


@statement_of(2)
def assignment_to_several(w: Writer) -> None:
    number = assignable(w, w.pick(w.types))
    w.add(f"{w.declare(number).text} = {w.declare(number).text} = {number.text}")


@statement_of(2)
def tuple_assignment(w: Writer) -> None:
    numbers = [assignable(w, w.pick(w.types)) for _ in range(w.pick([2, 3]))]
    unpack(w, numbers, ", ".join(number.text for number in numbers))


def unpack(w: Writer, numbers: Sequence[Value], whole: str) -> None:
    """Into new locals, and elements of arrays here and there."""
    targets = [_target(w, number.type) for number in numbers]
    w.add(f"{', '.join(targets)} = {whole}")
    for target, number in zip(targets, numbers, strict=True):
        if "[" not in target:
            w.declare(number, target)


def _target(w: Writer, type_: Type) -> str:
    array = w.writable(type_) if isinstance(type_, DType) and w.chance(4) else None
    return own_element(w, array) if array else w.fresh()


@statement_of()
def quotient_and_rest(w: Writer) -> None:
    type_ = w.pick([Kind.INT, *INT_DTYPES, *FLOAT_DTYPES])
    a, b = assignable(w, type_), value(w, type_, 1)
    divisor = str(w.pick([2, 3, 7])) if type_ is Kind.INT else b.text if type_ in FLOAT_DTYPES else odd(b).text
    unpack(w, [a, a], f"divmod({a.text}, {divisor})")


@statement_of()
def parts_of_a_float(w: Writer) -> None:
    number = assignable(w, w.pick([*FLOAT_DTYPES, Kind.FLOAT]))
    if w.chance(2):
        return unpack(w, [number, number], f"math.modf({number.text})")
    return unpack(w, [number, Value("", Kind.INT, -1073, 1024)], f"math.frexp({number.text})")


@statement_of(2)
def tuple_local(w: Writer) -> None:
    """Kept whole, reversed where its items are of one type, and unpacked or indexed."""
    numbers = [assignable(w, w.pick(w.types)) for _ in range(w.pick([2, 3]))]
    whole = w.fresh()
    w.add(f"{whole} = {', '.join(number.text for number in numbers)}")
    if len({number.type for number in numbers}) == 1:
        w.add(f"{whole} = {', '.join(f'{whole}[{at}]' for at in reversed(range(len(numbers))))}")
    if w.chance(2):
        return unpack(w, numbers, whole)
    for at, number in enumerate(numbers):
        w.add(f"{w.declare(number).text} = {whole}[{at - w.pick([0, len(numbers)])}]")
    return None


@statement_of(2)
def function_of_two(w: Writer) -> None:
    """A function in the kernel that returns a tuple, called at once."""
    if w.indent > 1 or w.is_function:
        return tuple_assignment(w)
    type_, function = w.pick(w.types), w.fresh("pair")
    test = "a == b" if kind_of(type_) is Kind.COMPLEX else "a < b"
    numbers = [assignable(w, type_), assignable(w, type_)]
    w.add(f"def {function}(a, b):")
    w.add(f"    return {w.pick(['b, a', f'(a, b) if {test} else (b, a)', f'a, b if {test} else a'])}")
    return unpack(w, numbers, f"{function}({', '.join(number.text for number in numbers)})")


@statement_of(2)
def function_of_what_is_around(w: Writer) -> None:
    """A function in the kernel that takes nothing, called before and after what it reads may have changed."""
    if w.indent > 1 or w.is_function:
        return tuple_assignment(w)
    w.is_closure = True
    number, function = assignable(w, w.pick(w.types), 3), w.fresh("around")
    w.is_closure = False
    w.add(f"def {function}():")
    w.add(f"    return {number.text}")
    w.add(f"{w.declare(number).text} = {function}()")
    if w.chance(2):
        update(w)
        w.add(f"{w.declare(number).text} = {function}()")
    return None


@statement_of(2)
def swap(w: Writer) -> None:
    """Of locals and elements of one type."""
    first = w.pick([*w.scope, *[Value(own_element(w, array), array.dtype) for array in w.buffers]] or [None])
    if first is None:
        return new_local(w)
    others = [local.text for local in w.locals_of(first.type) if local is not first]
    array = w.writable(first.type) if isinstance(first.type, DType) else None
    others += [own_element(w, array)] if array else []
    if not others:
        return new_local(w)
    pair = [first.text, w.pick(others)]
    w.add(f"{', '.join(pair)} = {', '.join(pair[::-1])}")
    return None


@statement_of()
def shape(w: Writer) -> None:
    """Extents, unpacked."""
    arrays = [array for array in w.arrays if len(array.extents) > 1]
    if not arrays:
        return new_local(w)
    array = w.pick(arrays)
    names = [w.fresh("extent") for _ in array.extents]
    w.add(f"{', '.join(names)} = {array.name}.shape")
    w.scope += [Value(name, Kind.INT, 1, limit(e)) for name, e in zip(names, array.extents, strict=True)]
    return None


@statement_of(4)
def update(w: Writer) -> None:
    """`+=` and its kin, of a local or of an element of an output."""
    places = [local for local in w.scope if local.type not in (Kind.BOOL, BOOL) and "extent" not in local.text]
    places += [Value(own_element(w, array), array.dtype) for array in w.outputs + w.buffers if array.dtype is not BOOL]
    if not places and w.is_function:
        return new_local(w)
    place = w.pick(places or [Value(w.output(F64).element, F64)])
    if place not in w.scope and kind_of(place.type) is Kind.FLOAT and w.chance(2):  # elements keep their type
        w.add(f"{place.text} {w.pick('+-*/')}= {value(w, w.pick(FLOAT_DTYPES), 2).text}")
    else:
        w.add(f"{place.text} {_operation(w, place)}")
    return None


def _operation(w: Writer, place: Value) -> str:
    """An operator and its right side that leave `place` its type."""
    type_, kind = place.type, kind_of(place.type)
    if type_ is Kind.INT:
        return w.pick([
            f"{w.pick('+-')}= {fitted(value(w, type_, 2), -STEP_LIMIT, STEP_LIMIT).text}",
            f"{w.pick(['//=', '>>=', '%='])} {w.pick([3, 1, 10])}",
        ])  # fmt: skip
    others = [b for a, b in pairs(type_) if a is type_]
    number = meets(value(w, w.pick(others), 2), type_)
    simple = f"{w.pick('+-*')}= {number.text}"
    if type_ in (Kind.FLOAT, Kind.COMPLEX):
        return simple
    if kind is Kind.COMPLEX:
        return w.pick([simple, f"/= {number.text}", f"**= {w.pick([2, 3])}"])
    if kind is Kind.FLOAT:
        return w.pick([simple, f"{w.pick(['/', '//', '%'])}= {number.text}", f"**= {w.pick([2, 0.5])}"])
    divisor = odd(value(w, type_, 1)).text
    return w.pick([
        simple, f"{w.pick('&|^')}= {number.text}", f"{w.pick(['//', '%'])}= {divisor}",
        f"{w.pick(['<<', '>>'])}= {w.pick([1, 0, 7])}", "**= 2",
    ])  # fmt: skip


# --- branches -----------------------------------------------------------------------------------------------------


@statement_of(4, nests=True)
def branch(w: Writer) -> None:
    """`if`, with `elif` and `else` or without."""
    with w.block(f"if {condition(w, 2)}:"):
        body(w)
    if w.chance(3):
        with w.block(f"elif {condition(w, 2)}:"):
            body(w)
    if w.chance(2):
        with w.block("else:"):
            body(w)


@statement_of(2, nests=True)
def named_value(w: Writer) -> None:
    """A local that `:=` assigns in a test, and behind another test here and there."""
    number, name = assignable(w, w.pick(w.types)), w.fresh()
    before = f"({condition(w, 1)}) and " if w.chance(2) else ""
    with w.block(f"if {before}({name} := {number.text}){w.pick(['', ' != 0'])}:"):
        w.declare(number, name)
        body(w)
    if not before:
        w.declare(number, name)


@statement_of(2, nests=True)
def local_of_both_branches(w: Writer) -> None:
    """Assigned on either path, so that it is known after them."""
    type_, name = w.pick(w.types), w.fresh()
    with w.block(f"if {condition(w, 2)}:"):
        w.add(f"{name} = {assignable(w, type_).text}")
    with w.block("else:"):
        w.add(f"{name} = {assignable(w, type_).text}")
    w.declare(Value(name, type_), name)


@statement_of(2, nests=True)
def branches_of_one_formula(w: Writer) -> None:
    """Branches that compute a value by one formula, whose operands differ here and there, or are parts of others."""
    type_ = w.pick([dtype for dtype in w.dtypes if kind_of(dtype) is Kind.FLOAT] or [F32])
    formula = w.pick(["{} / ({} + math.exp({}))", "math.tanh({}) + {} * math.tanh({})", "math.log1p({} + {} / {})"])
    operands_ = [value(w, type_, 1).text for _ in range(3)]
    others = [w.pick([a, a, f"(-{a})", value(w, type_, 1).text, f"math.exp({operands_[2]})"]) for a in operands_]
    then, orelse = formula.format(*operands_), formula.format(*others)
    target = w.declare(Value("", type_)).text
    if w.chance(2):
        w.add(f"{target} = {then} if {condition(w, 1)} else {orelse}")
        return
    with w.block(f"if {condition(w, 1)}:"):
        w.add(f"{target} = {then}")
    with w.block("else:"):
        w.add(f"{target} = {orelse}")


@statement_of()
def local_of_two_types(w: Writer) -> None:
    """A conditional value of two types, and a use of it: exact, or refused where it depends on which it is."""
    type_, name = (
        w.pick([dtype for dtype in w.dtypes if dtype.variable is None and dtype is not BOOL] or [F64]),
        w.fresh(),
    )
    a, b = operands(w, type_, 2)
    choice = w.pick([f"{a.text} if {condition(w, 1)} else {b.text}", f"{a.text} or {b.text}", f"{a.text} and {b.text}"])
    w.add(f"{name} = {choice}")
    other = value(w, type_, 1).text
    use, target = w.pick([name, f"{name} + {other}", f"{other} - {name}", f"({name} or {other}) + {other}"]), type_
    if w.chance(6):  # most of these are refused
        use = w.pick([f"{name} * {name}", f"{name} + 1", f"1 if {name} else 2", f"not {name}", f"{name} == {other}"])
    elif type_.kind is not Kind.COMPLEX and w.chance(6):
        target = w.pick(FLOAT_DTYPES)
    w.add(f"{w.declare(Value('', target)).text} = {cast_name(w, target)}({use})")


@statement_of()
def leave(w: Writer) -> None:
    with w.block(f"if {value(w, Kind.BOOL, 2).text} and {value(w, Kind.BOOL, 2).text}:"):
        w.add(leaving(w))


def leaving(w: Writer) -> str:
    """`return`, with a device function's result."""
    return "return" if w.result is None else f"return {assignable(w, w.result).text}"


@statement_of(3, in_loop=True)
def break_or_continue(w: Writer) -> None:
    with w.block(f"if {condition(w, 2)}:"):
        w.add(w.pick(["break", "continue"]))


# --- loops --------------------------------------------------------------------------------------------------------

# Start, stop and step of loops that run a few times, between the bounds given.
RANGES: Final = (
    ("3", 0, 2), ("1, 3", 1, 2), ("-2, 2", -2, 1), ("0, 7, 3", 0, 6), ("3, -2, -1", -1, 3), ("5, 0, -2", 1, 5),
    ("2147483646, 2147483649", 2**31 - 2, 2**31), ("-2147483649, -2147483647", -(2**31) - 1, -(2**31)),
    ("0x10000000000, WIDE + 2", 2**40, 2**40 + 1),
)  # fmt: skip


@statement_of(4, nests=True, loops=True)
def for_loop(w: Writer) -> None:
    """Over constants, or over bounds of any whole type; the variable may be rebound, and is known after some."""
    bounds, low, high = w.pick(RANGES)
    surely = not w.chance(2)
    if not surely:
        bounds, low, high = _bounds(w)
    var = w.pick([w.fresh("k"), *[local.text for local in w.counters]]) if w.loops == 0 else w.fresh("k")
    counter = Value(var, Kind.INT, min(low, -1009), max(high, 1009))
    _loop(w, f"for {var} in range({bounds}):", counter)
    if surely:
        w.counters.append(counter)


def _bounds(w: Writer) -> tuple[str, int, int]:
    whole = value(w, w.pick([Kind.INT, *INT_DTYPES]), 1)
    starts = [("0", 1), ("-1", 1), ("4", -1), *([("m", 2), ("m", -3)] if not w.is_function else [])]
    start, step = w.pick(starts)
    if start == "m":
        w.scalar("int", Value("m", Kind.INT, 0, 4))
    return f"{start}, {whole.text} % 5, {w.pick([str(step), f'{step} * 1'])}", -1, 4


def _loop(w: Writer, head: str, counter: Value) -> None:
    w.loops += 1
    with w.block(head):
        w.counters.append(counter)
        if w.chance(4):
            w.add(f"{counter.text} = {fitted(value(w, Kind.INT, 1), counter.low, counter.high).text}")
        body(w)
    w.loops -= 1
    _otherwise(w)


def _otherwise(w: Writer) -> None:
    """What is done after a loop that no `break` left."""
    if w.chance(4):
        with w.block("else:"):
            body(w)


@statement_of(2, nests=True, loops=True)
def while_loop(w: Writer) -> None:
    """Bounded by a counter of its own."""
    left = w.fresh("left")
    w.add(f"{left} = {w.pick([2, 1, 4])}")
    endless, counts = w.chance(3), w.chance(3)
    test = f"({left} := {left} - 1) >= 0" if counts else f"{left} > 0"
    head = "while True:" if endless else f"while {test}{w.pick(['', ' and ' + value(w, Kind.BOOL, 1).text])}:"
    w.loops += 1
    with w.block(head):
        if endless:
            with w.block(f"if {left} <= 0:"):
                w.add("break")
        if endless or not counts:
            w.add(f"{left} -= 1")
        body(w)
    w.loops -= 1
    _otherwise(w)


@statement_of(3, loops=True, nests=True)
def accumulation(w: Writer) -> None:
    """A Python number that becomes an element in a loop which surely runs."""
    dtype = w.pick(DTYPES)
    kind = Kind.INT if dtype.is_bare else w.pick([Kind.INT, Kind.FLOAT])
    name, type_ = w.fresh("sum"), meeting(dtype, kind)
    w.add(f"{name} = {'1' if kind is Kind.INT else '0.0'}")
    with w.block(f"for {w.fresh('k')} in range({w.pick([2, 1, 3])}):"):
        number = value(w, dtype, 2)
        texts = [f"{name} += {number.text}", f"{name} = max({name}, {number.text})"]
        w.add(texts[0] if dtype.kind is Kind.COMPLEX else w.pick(texts))
    w.declare(Value(name, type_), name)


# --- what changes nothing -----------------------------------------------------------------------------------------


@statement_of()
def assertion(w: Writer) -> None:
    """One that holds, with or without a message. In a function it would be an effect, which is refused beside much."""
    if w.is_function:
        return new_local(w)
    holds = f"{condition(w, 1)} or {index(w, Kind.INT, 0).text} > {-LIMIT}"
    number = index(w, Kind.INT, 1).text
    message = w.pick(["", ", 'as it is'", f", f'{{{number}:4d}} and {{{{}}}}'", f", {number}"])
    w.add(f"assert {holds}{message}")
    return None


@statement_of()
def idle(w: Writer) -> None:
    w.add(w.pick(["pass", "# a remark", "..."]), "pass")
