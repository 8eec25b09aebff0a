"""Names around a live function that are bound to other objects now than its text says.

A notebook cell may redefine a helper or a constant of another cell, a reload changes a module under the functions that
it had before, and anyone may assign to a module's name. In: what a text binds, and the values of now. Out: the names of
which the values of now count. Nothing is called.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import FunctionType

import libcst as cst

from py2cu.frontend.names.environment import Environment
from py2cu.live import is_library

IsHere = Callable[[cst.FunctionDef, FunctionType], bool]
"""Whether a live function is the one that a node of the text makes."""

_LITERAL = (bool, int, float, complex, str, tuple)


def redefined(environment: Environment, live: Mapping[str, object], is_here: IsHere) -> list[str]:
    """The names that `environment` has from its text, and that are bound to something else in `live`."""
    text = replace(environment, live={}, _values={})
    bound = {**text.functions, **text.definitions, **text.imports}
    return [name for name in bound if name in live and _is_other(name, live[name], text, is_here)]


def _is_other(name: str, value: object, text: Environment, is_here: IsHere) -> bool:
    function = text.function_name(name)
    if function is not None:
        node = text.functions[function]
        return not is_here(node, value) if isinstance(value, FunctionType) else not node.decorators
    if name in text.imports:
        return is_library(text.imports[name]) and _is_another_object(text.imports[name], value)
    mention = cst.Name(name)
    number = text.constant(mention)
    constant = text.constants(mention) if number is None else number
    if constant is None:
        return _is_other_object(mention, value, text)
    return type(value) is not type(constant) or repr(value) != repr(constant)


def _is_other_object(node: cst.Name, value: object, text: Environment) -> bool:
    """The same for a name that the text makes of no plain number: `t = math.sin`, `EPS = np.float32(0.1)`."""
    element = text.element(node)
    if element is not None:
        dtype, number = element
        kind = type(value)
        is_same_type = kind.__module__ == "numpy" and kind.__name__.rstrip("_") == dtype.name
        return not is_same_type or repr(value) != repr(kind(number))  # type: ignore[call-arg]
    qualified = text.qualify(text.definitions[node.value])
    if qualified is None:
        return False
    return isinstance(value, _LITERAL) or (is_library(qualified) and _is_another_object(qualified, value))


def _is_another_object(qualified: str, value: object) -> bool:
    """Whether `value` is not what a library has under this name; False where that is not loaded."""
    top, *rest = qualified.split(".")
    library_object: object = sys.modules.get(top)
    for name in rest:
        library_object = getattr(library_object, name, None)
    return library_object is not None and library_object is not value
