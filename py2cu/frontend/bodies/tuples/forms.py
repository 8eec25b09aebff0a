"""The forms of tuples, and their numbers: in the IR, a tuple of tuples is one flat tuple of numbers.

p = (a, (b, c))    →    p = Tuple(a, b, c), of the form (None, (None, None))
p[1]               →    Tuple(TupleItem(p, 1), TupleItem(p, 2))
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import TypeAlias

from py2cu import ir

Form: TypeAlias = "tuple[Form, ...] | None"
"""The form of a value: None of a number, of a tuple the forms of its items."""


def count_numbers(form: Form) -> int:
    """How many numbers a value of this form holds."""
    return 1 if form is None else sum(map(count_numbers, form))


def spell_form(form: Form) -> str:
    """The form as the keys of device functions write it: `(,(,))`, and nothing for a number."""
    return "" if form is None else f"({','.join(map(spell_form, form))})"


def describe_form(form: Form) -> str:
    """The form in words, for messages."""
    if form is None:
        return "one number"
    inner = "" if all(item is None for item in form) else f": ({', '.join(map(describe_form, form))})"
    return f"a tuple of {len(form)}{inner}"


def numbers_of(value: ir.Expr) -> Iterator[ir.Expr]:
    """The numbers of nested tuples, in order."""
    if isinstance(value, ir.Tuple):
        for item in value.items:
            yield from numbers_of(item)
    else:
        yield value


def flatten(value: ir.Expr) -> ir.Expr:
    """Nested tuples as one tuple; any other value as it is."""
    if isinstance(value, ir.Tuple) and any(isinstance(item, ir.Tuple) for item in value.items):
        return ir.Tuple(tuple(numbers_of(value)), value.span)
    return value


def shape(form: Form, number: Callable[[int], ir.Expr]) -> ir.Expr:
    """A value of this form, whose numbers `number` makes of their places in the flat tuple."""
    places = itertools.count()

    def part(form: Form) -> ir.Expr:
        return number(next(places)) if form is None else ir.Tuple(tuple(map(part, form)))

    return part(form)
