"""What stands in for the objects of a kernel's globals while CPython runs it: typed functions, and casts for dtypes.

In: any object that a kernel's globals hold, or the name of a module. Out: its stand-in; its members'.
"""

from __future__ import annotations

from typing import Any, Final

from py2cu.dtypes import ALIASES, BY_NAME, find_dtype
from py2cu.simulator.values.family import Element, element_class
from py2cu.simulator.values.math_functions import CMATH, LIBRARY, MATH, Function

PY2CU_SUBSTITUTES: Final = {"math": MATH, "cmath": CMATH}
"""Python's own modules."""


def cast_named(name: str) -> type[Element] | None:
    """The element class that a scalar type's name means: `float32`, `bool_`."""
    dtype = find_dtype(name)
    return element_class(dtype) if dtype is not None else None


def typed_substitute(value: Any) -> object | None:
    """What stands in for `value` in a simulated kernel; None where it needs no stand-in."""
    origin = getattr(value, "__module__", None) or type(value).__module__
    top = origin.partition(".")[0]
    if type(value).__module__ == "torch" and str(value).startswith("torch."):  # torch.float32 is no function of torch
        return cast_named(str(value).removeprefix("torch."))
    if top == "numba":
        return cast_named(str(value))
    if type(value).__module__ == "numpy" and (cls := cast_named(type(value).__name__)) is not None:
        made: Element = cls.convert(value.item())
        return made
    name = getattr(value, "__name__", "")
    if isinstance(value, type):
        return cast_named(name) if top == "numpy" else None
    if top in PY2CU_SUBSTITUTES:
        return PY2CU_SUBSTITUTES[top].get(name)
    if top in ("numpy", "torch") or type(value).__module__ == "numpy":  # a ufunc, or a builtin of torch
        return LIBRARY["torch" if top == "torch" else "numpy"].get(name)
    return None


def members(module: str) -> dict[str, Function | type[Element]]:
    """The typed stand-ins for the attributes of a module, by its name."""
    top = module.partition(".")[0]
    if top in PY2CU_SUBSTITUTES:
        return dict(PY2CU_SUBSTITUTES[top])
    if top not in ("numpy", "torch", "numba"):
        return {}
    found: dict[str, Function | type[Element]] = dict(LIBRARY.get(top, {}))
    return found | {name: cls for name in (*BY_NAME, *ALIASES) if (cls := cast_named(name)) is not None}
