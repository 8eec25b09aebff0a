"""Device functions: a production that calls one, and writes it where there is none yet.

Out: `Writer.functions`, the texts of which stand before the kernel. A function takes numbers and knows nothing of the
kernel around it; some call themselves, as often as their first argument says.
"""

from __future__ import annotations

from typing import Final

from py2cu.dtypes import Kind
from tests.fuzz.expressions import any_type, condition, local, makes, value
from tests.fuzz.statements import assignable, body, leaving
from tests.fuzz.writer import ALL, LOCAL_LIMIT, SYMBOLS, Function, Type, Value, Writer

MOST: Final = 3  # of one kernel


@makes(any_type)
def call(w: Writer, type_: Type, depth: int) -> Value:
    """A call, of a new function or of one that is there."""
    if w.result is not None or type_ in SYMBOLS:
        return local(w, type_, 0)
    known = [function for function in w.functions if function.result is type_]
    if len(w.functions) < MOST and (not known or w.chance(4)):
        known = [_write(w, type_)]
        w.functions += known
    if not known:
        return local(w, type_, 0)
    function = w.pick(known)
    arguments = [assignable(w, parameter, depth - 1).text for parameter in function.parameters]
    if function.recurs:
        arguments.insert(0, f"{value(w, Kind.INT, depth - 1).text} % 4")
    return _bounded(f"{function.name}({', '.join(arguments)})", type_)


def _bounded(text: str, type_: Type) -> Value:
    bound = {Kind.INT: LOCAL_LIMIT, Kind.BOOL: 1}.get(type_, 0) if isinstance(type_, Kind) else 0
    return Value(text, type_, -bound if type_ is Kind.INT else 0, bound)


def _write(w: Writer, result: Type) -> Function:
    """A function of one to three numbers with a `result`."""
    parameters = tuple(w.pick([result, *ALL]) for _ in range(w.pick([1, 2, 3])))
    name, recurs = f"g{len(w.functions) + 1}", w.chance(3)
    inner = Writer(w.draw, result=result)
    names = [inner.declare(Value("", parameter)).text for parameter in parameters]
    if recurs:
        with inner.block("if k <= 0:"):
            inner.add(leaving(inner))
    body(inner, most=2)
    again = f"{name}(k - 1, {', '.join(assignable(inner, parameter, 1).text for parameter in parameters)})"
    last = assignable(inner, result, 1).text
    inner.add(f"return {again} if {condition(inner, 1)} else {last}" if recurs else leaving(inner))
    head = f"def {name}({', '.join(['k'] * recurs + names)}):"
    return Function(name, parameters, result, recurs, (head, *inner.lines))
