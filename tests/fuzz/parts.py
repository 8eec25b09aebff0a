"""Statements about parts of arrays, and about what loops run over: rows, tuples, `enumerate`, `zip`, `reversed`, and
reductions of them.
"""

from __future__ import annotations

import contextlib
from typing import Final

from py2cu.dtypes import DType, Kind
from tests.fuzz.expressions import cast_name, subscript
from tests.fuzz.statements import assignable, body, new_local, statement_of
from tests.fuzz.writer import DTYPES, Array, Value, Writer

# Constants that loops run over, and the kind of each item.
TUPLES: Final = (
    ("(-1, 0, 1)", Kind.INT), ("(7, 3, -1, -5)", Kind.INT), ("(1, 2, 4)", Kind.INT), ("[0.5, -1.25]", Kind.FLOAT),
    ("STEPS", Kind.INT), ("reversed((3, 1, 4))", Kind.INT), ("reversed(range(4))", Kind.INT),
)  # fmt: skip
PAIRS: Final = ("((0, 1), (1, 0), (0, -1), (-1, 0))", "zip((1, 2, 3), range(0, 6, 2))", "enumerate((5, 3))")


def row_of(w: Writer, dtype: DType) -> tuple[Array, str] | None:
    """An array with two dimensions or more, and the text of a row of its last dimension; None where there is none."""
    known = [array for array in w.inputs if len(array.extents) > 1] if not w.is_function else []
    array = next((array for array in known if array.dtype is dtype), None) or (w.pick(known) if known else None)
    if array is None:
        return None
    prefix = [subscript(w, array, axis, 1) for axis in range(len(array.extents) - 1)]
    brackets = f"[{', '.join(prefix)}]" if w.chance(2) else "".join(f"[{index}]" for index in prefix)
    return array, f"{array.name}{brackets}"


@statement_of(2)
def element_of_a_row(w: Writer) -> None:
    """Through a name, of a slice here and there."""
    part = row_of(w, w.pick(DTYPES))
    if part is None:
        return new_local(w)
    array, row = part
    name = w.fresh("row")
    w.add(f"{name} = {row}")
    last = len(array.extents) - 1
    index = w.pick([array.own[last], "-1", f"{index_of_a_row(w)} % len({name})"])
    element = w.pick([f"{name}[{index}]", f"{name}[:][{index}]", f"{name}[0:{name}.shape[0]][{index}]"])
    w.add(f"{w.declare(Value('', array.dtype)).text} = {element}")
    return None


def index_of_a_row(w: Writer) -> str:
    return w.pick(["2", "threadIdx.x", *(index for _, index in w.axes)])


@statement_of(2, nests=True, loops=True)
def loop_over_a_row(w: Writer) -> None:
    part = row_of(w, w.pick(DTYPES))
    if part is None:
        return new_local(w)
    array, row = part
    total, item, count = w.declare(Value("", array.dtype)).text, w.fresh(), w.fresh("k")
    w.add(f"{total} = {array.element}")
    head = w.pick([
        f"for {item} in {row}[:7]:", f"for {count}, {item} in enumerate({row}[:5]):",
        f"for {item}, {count} in zip({row}, range(6)):", f"for {item} in reversed({row}[:3]):",
        f"for {count}, ({item}, {w.fresh()}) in enumerate(zip({row}, (1, 2.5))):",
    ])  # fmt: skip
    w.loops += 1
    with w.block(head):
        w.scope.append(Value(item, array.dtype))
        if w.chance(2):
            body(w, most=2)
        sums = [f"{total} += {item}"] * (array.dtype.kind > Kind.BOOL)
        w.add(w.pick([f"{total} = {item}", *sums]))
    w.loops -= 1
    return None


@statement_of(2, nests=True, loops=True)
def loop_over_a_tuple(w: Writer) -> None:
    w.loops += 1
    with contextlib.ExitStack() as stack:
        if w.chance(2):
            first, second = w.fresh(), w.fresh()
            stack.enter_context(w.block(f"for {first}, {second} in {w.pick(PAIRS)}:"))
            for name in (first, second):
                w.declare(Value("", Kind.INT), name)
        elif w.chance(2):
            dtype, item = w.pick(DTYPES), w.fresh()
            values = [assignable(w, dtype).text for _ in range(w.pick([2, 3]))]
            stack.enter_context(w.block(f"for {item} in ({', '.join(values)}):"))
            w.scope.append(Value(item, dtype))
        else:
            item, (text, kind) = w.fresh(), w.pick(TUPLES)
            stack.enter_context(w.block(f"for {item} in {text}:"))
            w.declare(Value("", kind), item)
        body(w, most=2)
    w.loops -= 1


def steps(w: Writer) -> str:
    """The arguments of a `range` of a step that the kernel computes, which is never zero."""
    return f"9, -1, -({index_of_a_row(w)} % 3) - 1" if w.chance(2) else f"0, 7, {index_of_a_row(w)} % 3 + 1"


@statement_of(nests=True, loops=True)
def kept_range(w: Writer) -> None:
    """A range in a variable, whose bounds may change before it is looped over."""
    bound, numbers, item = w.declare(Value("", Kind.INT, 0, 9)).text, w.fresh("r"), w.fresh()
    w.add(
        f"{bound} = {index_of_a_row(w)} % 5",
        f"{numbers} = range({w.pick([f'{bound}', f'{bound}, 7', f'7, {bound}, -2'])})",
    )
    w.add(f"{bound} = len({numbers})")
    w.add(f"{w.declare(Value('', Kind.INT)).text} = sum(k * v for k, v in enumerate({numbers}))")
    w.loops += 1
    with w.block(f"for {item} in {w.pick([numbers, f'reversed({numbers})'])}:"):
        w.declare(Value("", Kind.INT), item)
        body(w, most=2)
    w.loops -= 1
    return


@statement_of()
def reduction(w: Writer) -> None:
    part = row_of(w, w.pick(DTYPES))
    if part is None:
        return new_local(w)
    array, row = part
    dtype = array.dtype
    if dtype.variable is not None or dtype.kind is Kind.BOOL or w.chance(3):
        test = w.pick([
            f"any({row})", f"all(v != 0 for v in {row}[:4])", f"any(v == u for v, u in zip({row}, {row}, strict=True))",
            f"any(k == 2 and v != u for k, (v, u) in enumerate(zip({row}, reversed({row}))))",
        ])  # fmt: skip
        w.add(f"{w.declare(Value('', Kind.BOOL)).text} = {test}")
        return None
    cast = cast_name(w, dtype)
    sums = [
        f"sum({row}[:5], {cast}(1))", f"sum((v for v in {row}[:5] if v), start={cast}(0))",
        f"sum((v for _, v in zip(range({steps(w)}), {row})), {cast}(0))",
        f"sum((v for v, *_ in zip({row}[:4], {row}, range(9))), {cast}(0))",
    ]  # fmt: skip
    extremes = [
        f"min({row})", f"max({row}[:0], default={cast}(3))", f"max(v for v in {row})",
        f"min(v for _, v in enumerate({row}))", f"max(u for u, v in zip(reversed({row}), {row}))",
    ]  # fmt: skip
    w.add(f"{w.declare(Value('', dtype)).text} = {w.pick(sums + extremes * (dtype.kind is not Kind.COMPLEX))}")
    return None


@statement_of()
def unpacked_row(w: Writer) -> None:
    known = [array for array in w.inputs if array.extents[-1] in ("2", "3")] if not w.is_function else []
    if not known:
        return new_local(w)
    array = w.pick(known)
    row = f"{array.name}[{', '.join(array.own[:-1])}]" if len(array.own) > 1 else array.name
    names = [w.declare(Value("", array.dtype)).text for _ in range(int(array.extents[-1]))]
    w.add(f"{', '.join(names)} = {row}")
    return None
