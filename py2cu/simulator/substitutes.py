"""Typed substitutes for the globals of a kernel: functions of elements, and element classes for dtypes.

In: the value of a global, or the name of a module. Out: `typed_substitute`, the object that replaces it while
CPython runs the kernel; `members`, the substitutes for the attributes of a module.
"""

from __future__ import annotations

from typing import Any, Final

from py2cu.dtypes import ALIASES, BY_NAME, SHORT, find_dtype
from py2cu.simulator.values.family import Element, element_class
from py2cu.simulator.values.library_functions import LIBRARY
from py2cu.simulator.values.math_functions import Function

_PYTHON: Final = ("math", "cmath")
# What functions of torch are called in the modules where they are defined.
_DEFINED_AS: Final = {"log_sigmoid": "logsigmoid", "_threshold": "threshold"}


def cast_named(name: str) -> type[Element] | None:
    """The element class that a scalar type's name means: `float32`, `bool_`."""
    dtype = find_dtype(name)
    return element_class(dtype) if dtype is not None else None


def typed_substitute(value: Any) -> object | None:
    """The substitute for `value` in a simulated kernel; None if `value` needs none."""
    origin = getattr(value, "__module__", None) or type(value).__module__
    top = origin.partition(".")[0]
    if type(value).__module__ == "torch" and type(value).__name__ == "dtype":  # without an import of torch
        return cast_named(str(value).removeprefix("torch."))
    if top == "numba":
        return cast_named(str(value))
    if type(value).__module__ == "numpy" and (cls := cast_named(type(value).__name__)) is not None:
        element: Element = cls.convert(value.item())
        return element
    name = getattr(value, "__name__", "")
    if isinstance(value, type):
        return cast_named(name) if top == "numpy" else None
    if top in _PYTHON:
        return LIBRARY[top].get(name)
    if top == "torch":
        return LIBRARY["torch"].get(_DEFINED_AS.get(name, name.removeprefix("special_")))
    if top == "numpy" or type(value).__module__ == "numpy":  # a ufunc
        return LIBRARY["numpy"].get(name)
    return None


def members(module: str) -> dict[str, Function | type[Element]]:
    """The substitutes for the attributes of the module `module`."""
    top = module.partition(".")[0]
    if top in _PYTHON:
        return dict(LIBRARY[top])
    if top not in ("numpy", "torch", "numba"):
        return {}
    functions: dict[str, Function | type[Element]] = dict(LIBRARY.get(top, {}))
    functions |= {name: element_class(dtype) for name, dtype in (BY_NAME | ALIASES).items()}
    if top == "numba":
        functions |= {name: element_class(dtype) for name, dtype in SHORT.items()}
    return functions | ({"dtype": lambda dtype: dtype} if top == "numpy" else {})
