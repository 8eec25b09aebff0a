"""The names that a kernel and its helpers look up: a translation is valid while they are bound to the same objects.

In: a live function. Out: `Dependencies`, which notice when a name is rebound or a function's code is replaced, so that
the next call translates again. Asking takes a tenth of a microsecond, and a fiftieth more for each name.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import is_
from types import CellType, FunctionType

from py2cu.live import bindings, cells_of, contents, reachable_functions

_Lookup = tuple[Callable[[str], object], tuple[str, ...], tuple[object, ...]]


class Dependencies:
    """The names, variables of functions around and functions behind `function`, as they are now.

    Objects are compared by identity, functions by their code and defaults as well: `%autoreload` puts new code into the
    function that is there. `unchanged()` is whether all of them are what they were.
    """

    __slots__ = ("unchanged",)

    def __init__(self, function: FunctionType) -> None:
        functions = reachable_functions(function)
        namespaces: dict[int, tuple[Callable[[str], object], dict[str, object]]] = {}
        for namespace, name, value in (binding for each in functions for binding in bindings(each)):
            namespaces.setdefault(id(namespace), (namespace.get, {}))[1][name] = value
        lookups = [(get, tuple(values), tuple(values.values())) for get, values in namespaces.values()]
        cells = [(cell, contents(cell)) for each in functions for cell in cells_of(each).values()]
        self.unchanged = _test_of_all(functions, lookups, cells) if lookups or cells else _test_of(function)


def _test_of(function: FunctionType) -> Callable[[], bool]:
    """Whether a function has the code and the defaults that it has now."""
    code, defaults, by_keyword = function.__code__, function.__defaults__, function.__kwdefaults__

    def unchanged() -> bool:
        return (
            function.__code__ is code
            and function.__defaults__ is defaults
            and function.__kwdefaults__ is by_keyword
        )  # fmt: skip

    return unchanged


def _test_of_all(
    functions: Sequence[FunctionType], lookups: Sequence[_Lookup], cells: Sequence[tuple[CellType, object]]
) -> Callable[[], bool]:
    tests = [_test_of(function) for function in functions]

    def unchanged() -> bool:
        for get, names, values in lookups:
            if not all(map(is_, map(get, names), values)):
                return False
        for test in tests:
            if not test():
                return False
        return all(contents(cell) is value for cell, value in cells) if cells else True

    return unchanged
