"""Statements about tuples: nested ones, starred targets, choices, arguments and results of functions, rows that take
them.
"""

from __future__ import annotations

from typing import Final

from py2cu.dtypes import BOOL, F32, Kind
from tests.fuzz.expressions import cast_name, condition, value
from tests.fuzz.statements import assignable, statement_of, unpack
from tests.fuzz.writer import DTYPES, Value, Writer

# Functions of a tuple `p` of three numbers and a pair of pairs `m`: each result, and how many numbers it holds.
RESULTS: Final = (
    ("p[2], p[0], p[1]", 3), ("p[1:]", 2), ("*p, m[0][1]", 4), ("m[1]", 2),
)  # fmt: skip


def numbers_of_one_type(w: Writer, count: int) -> list[Value]:
    """Numbers whose tuple a counter may index."""
    type_ = w.pick([type_ for type_ in w.types if type_ not in (Kind.BOOL, BOOL)])
    return [assignable(w, type_, 1) for _ in range(count)]


def display(numbers: list[Value]) -> str:
    return f"({', '.join(number.text for number in numbers)},)"


@statement_of()
def starred(w: Writer) -> None:
    """A tuple, taken apart with a star, and put together with one."""
    numbers, whole, rest = [assignable(w, w.pick(w.types), 1) for _ in range(3)], w.fresh(), w.fresh()
    w.add(f"{whole} = {display(numbers)}")
    first = w.declare(numbers[0]).text
    w.add(f"{first}, *{rest} = {w.pick([whole, display(numbers)])}")
    return unpack(w, [numbers[1], numbers[2], numbers[0]], f"(*{rest}, {first})")


@statement_of(2)
def nested_tuple(w: Writer) -> None:
    """Indexed by constants, and by the counters of loops over constants."""
    numbers, whole = numbers_of_one_type(w, 4), w.fresh()
    w.add(f"{whole} = ({display(numbers[:2])}, {display(numbers[2:])})")
    w.add(f"{w.declare(numbers[0]).text} = {whole}[{w.pick([0, -1])}][{w.pick([1, -2])}]")
    if w.chance(2):
        row, item, last = w.fresh(), w.fresh(), w.declare(numbers[1]).text
        w.add(f"{last} = {whole}[1][0]")
        with w.block(f"for {row} in {w.pick([whole, f'reversed({whole})'])}:"), w.block(f"for {item} in {row}:"):
            w.add(f"{last} = {item}")
        return
    outer, inner, last = w.fresh("k"), w.fresh("k"), w.declare(numbers[1]).text
    w.add(f"{last} = {whole}[1][0]")
    with w.block(f"for {outer} in range(2):"), w.block(f"for {inner} in range(1, -1, -1):"):
        w.add(f"{last} = {whole}[{w.pick([outer, f'1 - {outer}'])}][{inner}]")
    return


@statement_of(2)
def tuple_of_a_sequence(w: Writer) -> None:
    """Of a generator, of a tuple the other way round, of a `zip`; the name may be the tuple that the sequence has."""
    numbers, whole = numbers_of_one_type(w, 3), w.fresh()
    w.add(f"{whole} = {display(numbers)}")
    sequence = w.pick([
        f"reversed({whole})", f"(v for v in {whole})", f"({whole}[(k + 1) % 3] for k in range(3))",
        f"(v for v, _ in zip({whole}, range(5), strict=False))", f"(v for _, v in enumerate({display(numbers)}))",
        f"(v for v in {whole}[:1] for _ in range(3))", f"[v for v, u in zip({whole}, reversed({whole}), strict=True)]",
    ])  # fmt: skip
    made = f"tuple({sequence})"
    if sequence[0] == "(" and w.chance(2):
        made = f"tuple{sequence}"
    if w.chance(2):
        return unpack(w, numbers, w.pick([made, f"(*{made},)", f"reversed({made})"]))
    w.add(f"{whole} = {made}")
    return unpack(w, numbers, whole)


@statement_of()
def distance(w: Writer) -> None:
    """Of two points, whose coordinates are floats of one type."""
    type_ = w.pick([Kind.FLOAT, *(dtype for dtype in DTYPES if dtype.kind is Kind.FLOAT and dtype.variable is None)])
    one, other = (display([assignable(w, type_, 1) for _ in range(3)]) for _ in range(2))
    w.add(f"{w.declare(Value('', type_)).text} = math.dist({one}, {other})")


@statement_of()
def chosen_tuple(w: Writer) -> None:
    """One of two, kept or unpacked."""
    types = [w.pick(w.types) for _ in range(2)]
    one, other = ([assignable(w, type_, 1) for type_ in types] for _ in range(2))
    names = [w.fresh(), w.fresh()]
    w.add(f"{names[0]} = {display(one)}", f"{names[1]} = {display(other)}")
    choice = f"{w.pick([names[0], display(one)])} if {condition(w, 2)} else {names[1]}"
    if w.chance(2):
        return unpack(w, one, choice)
    w.add(f"{names[0]} = {choice}")
    return unpack(w, one, names[0])


@statement_of()
def function_of_tuples(w: Writer) -> None:
    """Called with displays, with locals, and with what another call returns."""
    if w.indent > 1 or w.is_function:
        return starred(w)
    numbers, function = numbers_of_one_type(w, 7), w.fresh("of_tuples")
    result, count = w.pick(RESULTS)
    w.add(f"def {function}(p, m):", f"    return {result}")
    vector, matrix, whole = w.fresh(), w.fresh(), w.fresh()
    w.add(f"{vector} = {display(numbers[:3])}")
    w.add(f"{matrix} = ({display(numbers[3:5])}, {display(numbers[5:])})")
    call = f"{function}({w.pick([vector, display(numbers[:3])])}, {matrix})"
    if count == 3 and w.chance(2):
        call = f"{function}({call}, {matrix})"
    if w.chance(2):
        return unpack(w, numbers[:count], call)
    w.add(f"{whole} = {call}")
    item, last = w.fresh(), w.declare(numbers[0]).text
    w.add(f"{last} = {whole}[0]")
    with w.block(f"for {item} in {w.pick([whole, call, f'reversed({whole})'])}:"):
        w.add(f"{last} = {item}")
    return None


@statement_of()
def row_of_a_tuple(w: Writer) -> None:
    """An array of the thread's own, whose rows take tuples; they may be what the array holds."""
    if w.indent > 1:
        return starred(w)
    dtype = w.pick([dtype for dtype in DTYPES if dtype.variable is None])
    array = w.fresh("v")
    w.add(f"{array} = local((2, 2), {cast_name(w, dtype)})")
    w.add(f"{array}[0] = {assignable(w, dtype, 1).text}, {assignable(w, dtype, 1).text}")
    w.add(f"{array}[1] = {array}[0, 1], {assignable(w, dtype, 1).text}")
    if w.chance(2):
        w.add(f"{array}[:] = ({array}[1, 1], {array}[0, 0]), ({array}[0, 1], {array}[1, 0])")
    w.add(f"{array}[{w.pick([0, -1])}] = {array}[0, 1], {array}[0, 0]")
    for _ in range(w.pick([0, 1, 2])):
        w.add(w.pick([
            f"{array}[{w.pick([0, -1])}] = {assignable(w, dtype, 1).text}", f"{array}[0] = {array}[1]",
            f"{array}[1, {w.pick(['1:', ':1', ':'])}] = {array}[0, 1]", f"{array}[:1] = {array}[1, 1]",
        ]))  # fmt: skip
    for at in ("0, 0", "0, 1", "1, 0", "1, 1"):
        w.add(f"{w.declare(Value('', dtype)).text} = {array}[{at}]")
    return None


@statement_of()
def comparison_of_tuples(w: Writer) -> None:
    """A comparison of two tuples, of equal or different length."""
    some, others = ([value(w, w.pick([Kind.INT, F32]), 1).text for _ in range(w.pick([2, 2, 3]))] for _ in range(2))
    if w.chance(2):
        others[0] = some[0]
    compared = w.pick(["==", "!=", "<", "<=", ">", ">="])
    test = f"({', '.join(some)}) {compared} ({', '.join(others)})"
    if w.chance(4):
        test = f"({', '.join(some)}) {w.pick(['in', 'not in'])} (({', '.join(others)}), (1, 2))"
    w.add(f"{w.declare(Value('', Kind.BOOL)).text} = {test}")
