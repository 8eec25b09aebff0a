"""The decorator `record`: dataclasses that type checkers treat as frozen, and that Python makes and creates fast.

A translation creates tens of thousands of nodes, types, ranges, places and lines. Creating a frozen dataclass takes
three times as long, which was 5 % of the translator's time, so immutability is checked by mypy only. To make a class,
`dataclass` compiles a text for each method, which was a third of the first call in a process; here it is one text.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import MISSING, dataclass, fields
from typing import TYPE_CHECKING, Any, Final, TypeVar

__all__ = ["record"]

Class = TypeVar("Class")

if TYPE_CHECKING:
    from dataclasses import dataclass as record
else:

    def record(*, frozen: bool, slots: bool, order: bool = False) -> Callable[[type[Class]], type[Class]]:
        """`@record(frozen=True, slots=True)`: a dataclass that is compared and hashed by value."""
        assert frozen

        def decorate(class_: type[Class]) -> type[Class]:
            own = {*vars(class_)}
            made = dataclass(init=False, eq=order, order=order, repr=False, slots=slots)(class_)
            for name, method in _methods(made).items():
                if name not in own:
                    setattr(made, name, method)
            return made

        return decorate


_TEXT: Final = """
def __init__(self, {parameters}):
    {stores}
def __eq__(self, other):
    return {of_self} == {of_other} if other.__class__ is self.__class__ else NotImplemented
def __hash__(self):
    return hash({of_self})
"""


def _methods(class_: type[Any]) -> dict[str, Any]:
    """What `dataclass` would add to create, compare, hash and show an object."""
    all_fields = fields(class_)
    assert all(each.default_factory is MISSING for each in all_fields)
    defaults = {f"_{each.name}": each.default for each in all_fields if each.default is not MISSING}
    compared = [each.name for each in all_fields if each.compare]
    of_self, of_other = (f"({''.join(f'{value}.{name}, ' for name in compared)})" for value in ("self", "other"))
    text = _TEXT.format(
        parameters=", ".join(f"{f.name}=_{f.name}" if f"_{f.name}" in defaults else f.name for f in all_fields),
        stores="; ".join(f"self.{each.name} = {each.name}" for each in all_fields) or "pass",
        of_self=of_self,
        of_other=of_other,
    )
    shown = [each.name for each in all_fields if each.repr]

    def show(self: Any) -> str:
        return f"{type(self).__qualname__}({', '.join(f'{name}={getattr(self, name)!r}' for name in shown)})"

    exec(text, names := {**defaults, "__name__": class_.__module__})
    return {name: names[name] for name in ("__init__", "__eq__", "__hash__")} | {"__repr__": show}
