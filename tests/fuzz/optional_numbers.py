"""Numbers that a call may leave out: values in their place, tests of them behind `and`, and assignments to them."""

from __future__ import annotations

from typing import Final

from py2cu.dtypes import Kind
from tests.fuzz.expressions import makes, python, value
from tests.fuzz.statements import assignable, new_local, statement_of
from tests.fuzz.writer import Type, Value, Writer

MOST: Final = 3  # a check leaves out each choice of so many
# Of each kind: the annotation, the name, and the bounds of the values that a check gives.
OPTIONAL: Final = {
    Kind.BOOL: ("bool | None = None", "opt_flag", 0, 1),
    Kind.INT: ("int | None = None", "opt_m", 0, 4),
    Kind.FLOAT: ("float | None = None", "opt_a", 0, 0),
}


def _parameter(w: Writer, kind: Kind, name: str = "") -> Value | None:
    """A number that may be None; None where there are enough of them, or in a device function."""
    annotation, usual, low, high = OPTIONAL[kind]
    known = [each for each, text in w.scalars.items() if text.endswith("None")]
    name = name or usual
    if w.is_function or (name not in known and len(known) == MOST):
        return None
    return w.scalar(annotation, Value(name, kind, low, high))


@makes(python(*OPTIONAL))
def given_or_another(w: Writer, type_: Type, depth: int) -> Value:
    assert isinstance(type_, Kind)
    other = value(w, type_, depth - 1)
    number = _parameter(w, type_)
    if number is None:
        return other
    low, high = min(number.low, other.low), max(number.high, other.high)
    test, name = w.pick(["is None", "is not None"]), number.text
    one, two = (other.text, name) if test == "is None" else (name, other.text)
    return Value(f"({one} if {name} {test} else {two})", type_, low, high)


@makes(python(Kind.BOOL))
def given_and_greater(w: Writer, type_: Type, depth: int) -> Value:
    kind = w.pick([*OPTIONAL])
    other = value(w, kind, depth - 1)
    number = _parameter(w, kind)
    if number is None:
        return Value(f"({other.text} != 0)", Kind.BOOL, 0, 1)
    name = number.text
    return Value(
        w.pick([f"({name} is not None and {name} > {other.text})", f"({name} is None or {name} <= {other.text})"]),
        Kind.BOOL, 0, 1,
    )  # fmt: skip


@statement_of()
def assigned_if_none(w: Writer) -> None:
    """A number of its own, which no test may follow, and no loop surround."""
    kind = w.pick([*OPTIONAL])
    number = _parameter(w, kind, w.fresh("o")) if w.loops == 0 else None
    if number is None:
        return new_local(w)
    with w.block(f"if {number.text} is None:"):
        w.add(f"{number.text} = {assignable(w, kind).text}")
    w.declare(number, number.text)
    return None
