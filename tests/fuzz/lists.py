"""Statements about lists: displays, repeated ones, comprehensions, lists of lists; their elements, and other lists for
their names.

An element at a constant index is a local like any other, `v[0]` or `m[1][-1]`, for as long as its list is in scope.
"""

from __future__ import annotations

import contextlib
import itertools

from py2cu.dtypes import BOOL, Kind
from tests.fuzz.expressions import INT_DTYPES, cast_name, value
from tests.fuzz.statements import assignable, body, new_local, statement_of
from tests.fuzz.writer import List, Type, Value, Writer

SHAPES = (("3",), ("2",), ("4",), ("2", "2"), ("3", "2"), ("tile",), ("tile + 1",))


@statement_of(4)
def new_list(w: Writer) -> None:
    shape = w.pick([shape for shape in SHAPES if not (w.is_function and "tile" in shape[0])])
    if "tile" in shape[0]:
        w.scalar("Constexpr[int]", Value("tile", Kind.INT))
    found = List(w.fresh("v"), w.pick(w.types), shape)
    w.add(f"{found.name} = {display(w, found.type, shape)}")
    w.lists.append(found)
    for place in itertools.product(*(_constants(extent) for extent in shape)):
        if w.chance(2):
            w.declare(Value("", found.type), f"{found.name}{''.join(f'[{index}]' for index in place)}")


def _constants(extent: str) -> tuple[str, ...]:
    return (*map(str, range(int(extent))), "-1") if extent.isdigit() else ("0", "-1")


def display(w: Writer, type_: Type, shape: tuple[str, ...]) -> str:
    """A list of values that a local of this type takes."""
    extent, *inner = shape
    count = int(extent) if extent.isdigit() else 0
    row = (lambda: display(w, type_, tuple(inner))) if inner else (lambda: assignable(w, type_).text)
    forms = [f"[{', '.join(row() for _ in range(count))}]"] * (count > 0)
    forms += [f"[{row()}] * {extent if extent.isdigit() else f'({extent})'}"] * (not inner)
    forms += [f"[{row()}, {row()}] * {count // 2}"] * (not inner and count in (2, 4))
    counter = w.fresh("k")
    w.scope.append(Value(counter, Kind.INT, 0, 4))
    forms += [f"[{row()} for {counter} in range({extent})]"]
    w.scope.pop()
    forms += [f"[{row()} for _ in (0, 2) for _ in range(2)]"] * (count == 4)
    return w.pick(forms)


def place(w: Writer, found: List) -> str:
    """An element at indices of either sign."""
    indices = []
    for extent in found.shape:
        length = extent if extent.isdigit() else f"({extent})"
        index = f"{value(w, w.pick([Kind.INT, *INT_DTYPES]), 1).text} % {length}"
        indices.append(w.pick([index, f"{index} - {length}", "-1", "0"]))
    return f"{found.name}{''.join(f'[{index}]' for index in indices)}"


@statement_of(3)
def element_of_a_list(w: Writer) -> None:
    """Read into a local, assigned, or exchanged with another one."""
    if not w.lists:
        return new_list(w)
    found = w.pick(w.lists)
    form = w.pick([0, 1, 2])
    if form == 0:
        w.add(f"{w.declare(Value('', found.type)).text} = {place(w, found)}")
    elif form == 1:
        w.add(f"{place(w, found)} = {assignable(w, found.type).text}")
    else:
        pair = [place(w, found), place(w, found)]
        w.add(f"{', '.join(pair)} = {', '.join(reversed(pair))}")
    return None


@statement_of(2)
def another_list(w: Writer) -> None:
    """For a name that is a list, made of the elements of the old one here and there."""
    if not w.lists:
        return new_list(w)
    found = w.pick(w.lists)
    if found.shape == ("3",) and w.chance(2):
        w.add(f"{found.name} = [{found.name}[2], {found.name}[0], {place(w, found)}]")
    else:
        w.add(f"{found.name} = {display(w, found.type, found.shape)}")
    return None


@statement_of(4)
def copied_lists(w: Writer) -> None:
    """A list like another one, which takes its place or exchanges names with it."""
    if not w.lists:
        return new_list(w)
    found = w.pick(w.lists)
    other, another = List(w.fresh("v"), found.type, found.shape), display(w, found.type, found.shape)
    copies = [f"{found.name}.copy()", f"{found.name}[:]", f"list({found.name})"] * (len(found.shape) == 1)
    w.add(f"{other.name} = {w.pick([*copies, another])}")
    w.add(f"{place(w, other)} = {assignable(w, found.type).text}")
    if w.chance(3):
        w.add(f"{found.name} = {other.name}")  # and nothing names the other one again
        return None
    w.lists.append(other)
    w.add(f"{found.name}, {other.name} = {other.name}, {w.pick([found.name, found.name, another])}")
    return None


@statement_of(2, nests=True, loops=True)
def loop_over_a_list(w: Writer) -> None:
    """Over its elements or rows, which a body may change."""
    flat = [found for found in w.lists if len(found.shape) == 1]
    if not flat:
        return new_local(w)
    found, item = w.pick(flat), w.fresh()
    head = w.pick([
        f"for {item} in {found.name}:", f"for {w.fresh('k')}, {item} in enumerate({found.name}):",
        f"for {item} in reversed({found.name}):",
    ])  # fmt: skip
    w.loops += 1
    with contextlib.ExitStack() as stack:
        stack.enter_context(w.block(head))
        w.declare(Value("", found.type), item)
        w.lists.remove(found)  # its name keeps its list
        body(w, most=2)
        w.add(f"{place(w, found)} = {item}")
    w.loops -= 1
    return None


@statement_of()
def reduction_of_a_list(w: Writer) -> None:
    flat = [found for found in w.lists if len(found.shape) == 1]
    found = w.pick(flat or [None])
    if found is None or found.type in (Kind.BOOL, BOOL, Kind.COMPLEX) or found.type is Kind.INT:
        return new_local(w)
    if isinstance(found.type, Kind):
        sums = [f"sum({found.name})"]
    else:
        sums = [] if found.type.variable else [f"sum({found.name}, {cast_name(w, found.type)}(0))"]
        if found.type.kind is Kind.COMPLEX and not sums:
            return new_local(w)
    is_real = found.type is Kind.FLOAT or (not isinstance(found.type, Kind) and found.type.kind is not Kind.COMPLEX)
    extremes = [f"max({found.name})", f"min({found.name})"] * is_real
    w.add(f"{w.declare(Value('', found.type)).text} = {w.pick(sums + extremes)}")
    return None
