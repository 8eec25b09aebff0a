"""Statements whose operands act: calls that write, walruses and sums of calls, beside reads of what they change.

Python evaluates operands from left to right, C++ in any order, and what needs a loop or a branch stands before the
statement: each of these is right or refused.
"""

from __future__ import annotations

from typing import Final

from py2cu.dtypes import I64, Kind
from tests.fuzz.expressions import own_element
from tests.fuzz.statements import new_local, statement_of
from tests.fuzz.writer import Value, Writer

# What becomes of calls `{f}` and `{g}` of a function that changes the element `{r}` reads, and of a local `{u}`.
LINES: Final = (
    "{v} = {f} - 2 * {g}",
    "{v} = {r} + sum({f} * {k} for {k} in range(3))",
    "{v} = sum(({k} for {k} in range({r} % 4)), {f})",
    "{v} = max(({k} for {k} in range({r} % 3)), default={f})",
    "{v} = ({f}, {r})[1]",
    "{v} = ({f}, {g}, 5)[1:][0]",
    "{v} = {r} - ({f}, {g})[0]",
    "{v} = int((1, {f}) < ({r}, 3))",
    "{v} = int(({r}, {f}) == (2, {u}))",
    "{v} = {r} - ((1, 2) if {f} > 9 else (3, 4))[0]",
    "{v} = {u} + sum(({u} := {u} + 1) * {k} for {k} in range(3))",
    "{v} = {r} + ({u} := {f})",
    "{v} = ({r} or 1) - {f}",
    "{v} = {f} if {r} > 5 else {g}",
    "{v} = {f} and {r}",
    "{v} = [1, 2, 3]\n{v}[({r} or 1) % 3] = {f}\n{v} = {v}[1] - {v}[2]",
    "{v} = {u}\n{v} += ({v} := {r} + 4)",
    "{v} = 0\nfor {k} in range({f} % 5):\n    {v} += 1",
    "{v} = 0\nfor {k} in range(0, 6, {f} + 1):\n    {v} += {k}",
    "{v} = 0\nfor {k} in (({f}, {g})[0], {r}):\n    {v} = {v} * 10 + {k}",
    "{v} = 0\nwhile {v} < {f} % 4:\n    {v} += 1",
    "{v}, {k} = {r}, {f}\n{v} -= {k}",
)


@statement_of(4)
def acting_operands(w: Writer) -> None:
    """A function in the kernel that changes an element of this thread's, called inside an expression."""
    if w.indent > 1 or w.is_function:
        return new_local(w)
    element, function, u = own_element(w, w.output(I64)), w.fresh("acts"), w.fresh("u")
    w.add(f"def {function}(k):", f"    {element} = {element} % 89 * 3 + k", f"    return int({element})")
    w.add(f"{u} = {w.pick(['5', '0'])}")
    v, k = w.fresh("t"), w.fresh("k")
    names = {"f": f"{function}(2)", "g": f"{function}(5)", "r": f"int({element}) % 97", "u": u, "v": v, "k": k}
    w.add(*w.pick(LINES).format(**names).splitlines())
    w.declare(Value("", Kind.INT), v)
    return None
