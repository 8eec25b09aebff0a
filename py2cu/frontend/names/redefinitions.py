"""Names around a live function whose current values differ from those in its source.

A notebook cell may redefine a helper or a constant of another cell, a reload replaces the objects of a module, and any
code may assign to a module's names. In: the environment from the source, and the live values. Out: the names whose live
values count. No user code runs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from dataclasses import replace
from enum import Enum
from types import FunctionType

import libcst as cst

from py2cu.frontend.names.constants import plain
from py2cu.frontend.names.environment import Environment
from py2cu.live import frozen, is_library, live_attribute

IsHere = Callable[[cst.FunctionDef, FunctionType], bool]
"""Whether a node of the source defines a live function."""

_LITERAL = (bool, int, float, complex, str, tuple, list)


def redefined(environment: Environment, live: Mapping[str, object], is_here: IsHere) -> list[str]:
    """The names whose value in `live` differs from that in the source of `environment`."""
    source_only = replace(environment, live={}, _values={})
    bound = {**source_only.functions, **source_only.definitions, **source_only.imports, **source_only.classes}
    # rule: redefined-live
    return [name for name in bound if name in live and _differs_from_source(name, live[name], source_only, is_here)]


def _differs_from_source(name: str, value: object, source_only: Environment, is_here: IsHere) -> bool:
    """Whether the live `value` of `name` differs from its value in the source; False if the source gives none."""
    function = source_only.function_name(name)
    if function is not None:
        node = source_only.functions[function]
        return not is_here(node, value) if isinstance(value, FunctionType) else not node.decorators
    if name in source_only.imports:
        # rule: redefined-library
        return is_library(source_only.imports[name]) and _is_not_library_object(source_only.imports[name], value)
    mention = cst.Name(name)
    if name in source_only.classes:
        return _class_differs(source_only.owner(mention), value)
    number = source_only.constant(mention)
    constant = source_only.constants(mention) if number is None else number
    if constant is None:
        return _element_or_alias_differs(mention, value, source_only)
    current = frozen(value)
    return type(current) is not type(constant) or repr(current) != repr(constant)


def _class_differs(shown: object, value: object) -> bool:
    """Whether a constant of the live class `value` differs from that of the class that the source shows, if it does."""
    if not isinstance(shown, type):
        return False
    constants = {name: plain(live_attribute(shown, name)) for each in shown.__mro__ for name in vars(each)}
    return any(
        repr(constant) != repr(plain(live_attribute(value, name)))
        for name, constant in constants.items()
        if isinstance(constant, (*_LITERAL, Enum))
    )


def _element_or_alias_differs(node: cst.Name, value: object, source_only: Environment) -> bool:
    """`_differs_from_source` for an element or an alias: `EPS = np.float32(0.1)`, `t = math.sin`."""
    element = source_only.element(node)
    if element is not None:
        dtype, number = element
        kind = type(value)
        is_same_type = kind.__module__ == "numpy" and kind.__name__.rstrip("_") == dtype.name
        return not is_same_type or repr(value) != repr(kind(number))  # type: ignore[call-arg]
    qualified = source_only.qualify(source_only.definitions[node.value])
    if qualified is None:
        return False
    return isinstance(value, _LITERAL) or (is_library(qualified) and _is_not_library_object(qualified, value))


def _is_not_library_object(qualified: str, value: object) -> bool:
    """Whether `value` differs from the library's object of this name; False if the library is not loaded."""
    top, *rest = qualified.split(".")
    library_object: object = sys.modules.get(top)
    for name in rest:
        library_object = getattr(library_object, name, None)
    return library_object is not None and library_object is not value
