"""Device functions: productions that call one, and write it where there is none yet.

Out: `Writer.functions`, whose texts stand before the kernel, or first in it. A function takes numbers, by name or by
default here and there, and arrays with the indices of an element; it knows nothing of the kernel around it but the
functions before it. Some call themselves, as often as their first argument says. One that writes is called on a line
of its own: Python and C++ order operands differently, so that it is refused elsewhere.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from py2cu.dtypes import Kind
from tests.fuzz.expressions import any_type, condition, local, makes, subscript, value
from tests.fuzz.shapes import SUBSCRIPT_LIMIT
from tests.fuzz.statements import assignable, body, leaving, new_local, statement_of, unpack
from tests.fuzz.writer import (
    ALL,
    DTYPES,
    LOCAL_LIMIT,
    SYMBOLS,
    Array,
    Function,
    Parameter,
    Type,
    Value,
    Writer,
)

MOST: Final = 4  # of one kernel
DEFAULTS: Final[dict[Type, tuple[str, ...]]] = {
    Kind.BOOL: ("True", "False"), Kind.INT: ("2", "-1", "255"), Kind.FLOAT: ("0.5", "-2.0"),
}  # fmt: skip


@makes(any_type)
def call(w: Writer, type_: Type, depth: int) -> Value:
    """A call, of a new function or of one that is there."""
    function = None if type_ in SYMBOLS else _function(w, type_, writes=False)
    arguments = function and _arguments(w, function, depth - 1)
    if not function or arguments is None:
        return local(w, type_, 0)
    return _result(f"{function.name}({arguments})", type_)


@statement_of(2)
def call_that_writes(w: Writer) -> None:
    """Of a function that stores into an array, for its result, with others at a time, or for nothing else."""
    function = None if w.is_function else _function(w, w.pick([None, *ALL]), writes=True)
    arguments = function and _arguments(w, function, 1)
    if not function or arguments is None:
        return new_local(w)
    text = f"{function.name}({arguments})"
    if function.result is None:
        w.add(text)
        return None
    numbers = [_beside(w) for _ in range(w.pick([0, 0, 1, 2]))]
    numbers.insert(w.pick(range(len(numbers) + 1)), _result(text, function.result))
    return unpack(w, numbers, ", ".join(number.text for number in numbers))


def _beside(w: Writer) -> Value:
    """Anything, or an element that the call may change."""
    array = w.pick([None, *w.outputs])
    return assignable(w, w.pick(w.types)) if array is None else Value(array.element, array.dtype)


def _function(w: Writer, result: Type | None, *, writes: bool) -> Function | None:
    """One that is there, or a new one of a kernel that has few."""
    known = [row for row in w.functions if bool(row.written) is writes and (writes or row.result is result)]
    if not w.is_function and len(w.functions) < MOST and (not known or w.chance(4)):
        known = [_write(w, result, writes=writes)]
        w.functions += known
    return w.pick(known) if known else None


def _result(text: str, type_: Type) -> Value:
    bound = {Kind.INT: LOCAL_LIMIT, Kind.BOOL: 1}.get(type_, 0) if isinstance(type_, Kind) else 0
    return Value(text, type_, -bound if type_ is Kind.INT else 0, bound)


# --- calls --------------------------------------------------------------------------------------------------------


def _arguments(w: Writer, function: Function, depth: int) -> str | None:
    """What a call gives; None where no array here is one that the function takes."""
    given = [f"{value(w, Kind.INT, depth).text} % 4"] * function.recurs
    for parameters, arrays in ((function.read, w.inputs + w.buffers), (function.written, w.outputs + w.buffers)):
        for parameter in parameters:
            known = [a for a in arrays if a.dtype is parameter.dtype and len(a.own) == len(parameter.own)]
            if not known:
                return None
            array = w.pick(known)
            given += [array.name, *_element(w, array, depth, anywhere=array.private or parameters is function.read)]
    return ", ".join([*given, *_numbers(w, function, depth)])


def _element(w: Writer, array: Array, depth: int, *, anywhere: bool) -> list[str]:
    """The indices of an element, this thread's own or any. One that is passed is not known to count from the end."""
    indices = [subscript(w, array, axis, depth) if anywhere else own for axis, own in enumerate(array.own)]
    return [f"{array.name}.shape[{axis}] - 1" if text == "-1" else text for axis, text in enumerate(indices)]


def _numbers(w: Writer, function: Function, depth: int) -> list[str]:
    """By place at first, then by name in any order; those that have a default are left out here and there."""
    count = len(function.parameters)
    by_place = count - w.pick([0, 0, *range(count + 1)])
    given = [assignable(w, parameter.type, depth).text for parameter in function.parameters[:by_place]]
    named = [
        f"{parameter.name}={assignable(w, parameter.type, depth).text}"
        for parameter in function.parameters[by_place:]
        if not parameter.default or w.chance(2)
    ]
    return [*given, *(named[::-1] if w.chance(2) else named)]


# --- functions ----------------------------------------------------------------------------------------------------


def _write(w: Writer, result: Type | None, *, writes: bool) -> Function:
    """A function of some arrays and one to three numbers."""
    name, recurs = f"g{len(w.functions) + 1}", result is not None and w.chance(3)
    read = _array(w.readable(w.pick(DTYPES)), "x") if w.chance(3) else ()
    written = _array(w.writable(w.pick(DTYPES)), "y") if writes else ()
    function = Function(name, read, written, _parameters(w, result), result, recurs, ())
    later = _text(w, function) if w.redefines else ()
    return replace(function, lines=_text(w, function), later=later)


def _text(w: Writer, function: Function) -> tuple[str, ...]:
    """A definition of the function: a lambda here and there, where its `return` is all."""
    arrays, parameters = (*function.read, *function.written), function.parameters
    inner = Writer(w.draw, is_function=True, result=function.result, functions=list(w.functions))
    inner.inputs, inner.outputs = [*function.read], [*function.written]
    inner.indices = [Value(index, Kind.INT, 0, SUBSCRIPT_LIMIT) for array in arrays for index in array.own]
    inner.names = len(parameters)
    for parameter in parameters:
        inner.declare(Value("", parameter.type), parameter.name)
    passed = [text for array in arrays for text in (array.name, *array.own)]
    if function.recurs:
        with inner.block("if k <= 0:"):
            inner.add(leaving(inner))
    body(inner, most=4 if function.written else 2)
    last = leaving(inner)
    if function.recurs:
        numbers = [assignable(inner, parameter.type, 1).text for parameter in parameters]
        again = f"{function.name}({', '.join(['k - 1', *passed, *numbers])})"
        last = f"return {again} if {condition(inner, 1)} else {last.removeprefix('return ')}"
    inner.add(last)
    heads = ", ".join(["k"] * function.recurs + passed + [parameter.head for parameter in parameters])
    match inner.lines:
        case [only] if w.chance(2):
            return (f"{function.name} = lambda {heads}: ({only.strip().removeprefix('return ')})",)
        case lines:
            return (f"def {function.name}({heads}):", *lines)


def _array(given: Array | None, name: str) -> tuple[Array, ...]:
    """The parameter for an array like `given`, of which the function is told an element, and no extent."""
    if given is None:
        return ()
    own = tuple(f"{name}_{letter}" for letter in "ijkl"[: len(given.own)])
    return (Array(name, given.dtype, ("",) * len(own), own),)


def _parameters(w: Writer, result: Type | None) -> tuple[Parameter, ...]:
    """One to three numbers; the last ones may have defaults."""
    types = [w.pick([*[result] * (result is not None), *ALL]) for _ in range(w.pick([1, 2, 3]))]
    parameters: list[Parameter] = []
    for place, type_ in enumerate(types):
        may_default = all(later in DEFAULTS for later in types[place:])
        has_default = bool(parameters and parameters[-1].default) or (may_default and w.chance(2))
        default = w.pick(DEFAULTS[type_]) if has_default else ""
        parameters.append(Parameter(f"t{place + 1}", type_, default))
    return tuple(parameters)
