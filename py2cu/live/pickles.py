"""Pickle the function of a kernel: by module and name, or by its source where pickle would not find the name.

In: a live function. Out: an object that pickles, and unpickles as the function or as a kernel of it. Functions of a
notebook or an interactive session, nested functions, and functions whose name was bound to another object go by source,
together with the functions that they call and the values that a kernel may read. Errors: `PicklingError` for a function
without a source.
"""

from __future__ import annotations

import ast
import enum
import functools
import importlib
import operator
import pickle
import sys
from collections.abc import Iterator, Mapping
from types import CellType, FunctionType, ModuleType
from typing import Final

from py2cu.dtypes import find_dtype
from py2cu.function_text import function_in, is_text_of, source_file
from py2cu.live import bindings, contents, is_integer_member, is_library, live_attribute, live_name, reachable_functions
from py2cu.source import SourceFile, parsed

_MISSING: Final = object()
_CONSTANTS: Final = (bool, int, float, complex, str, tuple, type)  # types of class attributes that kernels read


def is_found_by_name(value: object) -> bool:
    """Whether another process can import the module of `value`, and the name of `value` in it refers to `value`."""
    return _namesake(value) is value


def portable(function: FunctionType) -> object:
    """The pickled form of `function`; unpickling returns the function, or a kernel whose `python` it is."""
    namesake = _namesake(function)
    if getattr(namesake, "python", namesake) is function:
        return namesake
    functions = [each for each in reachable_functions(function) if each is function or not is_found_by_name(each)]
    parts = _Parts({each: _BySource(each) for each in functions})
    for each, by_source in parts.functions.items():
        parts.fill(each, by_source)
    return parts.functions[function]


def _namesake(value: object) -> object:
    """The object with the name of `value` in its module; `_MISSING` if another process cannot import the module."""
    module = sys.modules.get(getattr(value, "__module__", None) or "")
    # `multiprocessing` imports a `__main__` that has a file; that of a notebook has none.
    if module is None or (getattr(module, "__spec__", None) is None and not hasattr(module, "__file__")):
        return _MISSING
    try:
        return operator.attrgetter(getattr(value, "__qualname__", ""))(module)
    except (AttributeError, TypeError):
        return _MISSING


class _BySource:
    """Pickles a function by its source. `_Parts.fill` sets what the function looks up."""

    def __init__(self, function: FunctionType) -> None:
        self.function = function
        self.namespace: dict[str, object] = {}
        self.closure: tuple[_Cell, ...] = ()
        self.annotations: dict[str, str] = {}

    def __reduce__(self) -> tuple[object, ...]:
        function, source = self.function, source_file(self.function)
        if not source.text or not is_text_of(source, function):
            what = f"cannot pickle `{function.__qualname__}` of module `{function.__module__}`"
            raise pickle.PicklingError(f"{what}: its name does not refer to it there, and its source is not available")
        code = function.__code__
        place = source.name, source.text, code.co_qualname, code.co_firstlineno, code.co_flags
        by_name = {name: _as_integer(value) for name, value in (function.__kwdefaults__ or {}).items()}
        defaults = tuple(map(_as_integer, function.__defaults__ or ())) or None, by_name or None
        names = self.namespace, self.closure, self.annotations
        return _rebuilt, (*place, *names, *defaults, function.__module__)


def _rebuilt(
    file: str,
    text: str,
    qualified: str,
    line: int,
    flags: int,
    namespace: dict[str, object],
    closure: tuple[CellType, ...],
    annotations: dict[str, str],
    defaults: tuple[object, ...] | None,
    keyword_defaults: dict[str, object] | None,
    module: str,
) -> FunctionType:
    function = function_in(SourceFile(file, text), qualified, line, flags, namespace, closure)
    function.__module__ = module  # the namespace has no `__name__` yet if the function is one of its values
    function.__defaults__, function.__kwdefaults__ = defaults, keyword_defaults
    function.__annotations__ = annotations
    return function


class _Cell:
    """Pickles a closure variable: an empty cell that is filled afterwards, since a function may refer to itself."""

    def __init__(self) -> None:
        self.value: object = _MISSING

    def __reduce__(self) -> tuple[object, ...]:
        state = () if self.value is _MISSING else (self.value,)
        return _empty_cell, (), state, None, None, _fill_cell


def _empty_cell() -> CellType:
    return CellType()


def _fill_cell(cell: CellType, state: tuple[object, ...]) -> None:
    if state:
        (cell.cell_contents,) = state


class _Module:
    """Pickles a module by its name."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __reduce__(self) -> tuple[object, ...]:
        return importlib.import_module, (self.name,)


class _Class:
    """Pickles a class by its constants."""

    def __init__(self, original: type, constants: dict[str, object]) -> None:
        self.original = original
        self.constants = constants

    def __reduce__(self) -> tuple[object, ...]:
        kind = next(kind for kind in (*_ENUMS, object) if issubclass(self.original, kind))
        return _made_class, (self.original.__name__, self.original.__module__, kind, self.constants)


_ENUMS: Final = (enum.IntEnum, enum.IntFlag, enum.Flag, enum.Enum)


def _made_class(name: str, module: str, kind: type, constants: dict[str, object]) -> type:
    if issubclass(kind, enum.Enum):
        made: type = kind(name, constants, module=module)  # type: ignore[call-arg, assignment]
        return made
    return type(name, (), {**constants, "__module__": module})


def _as_integer(value: object) -> object:
    """The integer that a member of an `IntEnum` is; any other value unchanged."""
    return int(value) if is_integer_member(value) else value


class _Parts:
    """What functions by source share: the namespaces of their modules, closure variables, and each other."""

    def __init__(self, functions: Mapping[FunctionType, _BySource]) -> None:
        self.functions = functions
        self._namespaces: dict[int, dict[str, object]] = {}
        self._cells: dict[int, _Cell] = {}

    def fill(self, function: FunctionType, by_source: _BySource) -> None:
        """Set what `function` looks up."""
        home = function.__globals__
        by_source.annotations = _annotations(function)
        by_source.namespace = self._namespaces.setdefault(id(home), {"__name__": function.__module__})
        by_source.closure = tuple(map(self._cell, function.__closure__ or ()))
        names = {binding.name for binding in bindings(function) if binding.namespace is home}
        for name in sorted(names.union(*map(_names, by_source.annotations.values())) & home.keys()):
            value = self._portable(home[name])
            if value is not _MISSING:
                by_source.namespace[name] = value

    def _cell(self, cell: CellType) -> _Cell:
        if id(cell) not in self._cells:
            carried = self._cells[id(cell)] = _Cell()
            carried.value = self._portable(contents(cell))
        return self._cells[id(cell)]

    def _portable(self, value: object) -> object:
        """What to pickle for a value that a function looks up; `_MISSING` for values that no kernel can read."""
        match value:
            case FunctionType() if value in self.functions:
                return self.functions[value]
            case ModuleType():
                return _Module(value.__name__)
            case bool() | int() | float() | complex() | str():
                return _as_integer(value)
            case tuple():
                items = tuple(map(self._portable, value))
                return _MISSING if any(item is _MISSING for item in items) else items
            case _ if is_library(live_name(value) or "") or _is_of_library(value) or is_found_by_name(value):
                return value
            case type():
                return _Class(value, dict(self._constants_of(value)))
            case _:
                return _MISSING

    def _constants_of(self, class_: type) -> Iterator[tuple[str, object]]:
        """The attributes that kernels can read, inherited ones and nested classes included; for an enum, its values."""
        if issubclass(class_, enum.Enum):
            yield from ((name, member.value) for name, member in class_.__members__.items())
            return
        for name in dict.fromkeys(name for each in class_.__mro__ for name in vars(each) if not name.startswith("__")):
            value = live_attribute(class_, name)
            if isinstance(value, _CONSTANTS) and (carried := self._portable(value)) is not _MISSING:
                yield name, carried


def _is_of_library(value: object) -> bool:
    """Whether `value` is a dtype of torch, a scalar of NumPy, a type of Numba or a form of `typing`."""
    kind = type(value)
    top = kind.__module__.partition(".")[0]
    is_number = top == "numpy" and find_dtype(kind.__name__) is not None
    return is_number or top in ("numba", "typing") or (top == "torch" and kind.__name__ == "dtype")


def _annotations(function: FunctionType) -> dict[str, str]:
    """The annotations as text, as if they were postponed."""
    code = function.__code__
    for node in ast.walk(_tree(source_file(function).text)):
        if isinstance(node, ast.FunctionDef) and node.name == code.co_name:
            first = node.decorator_list[0] if node.decorator_list else node
            if first.lineno == code.co_firstlineno:
                return dict(_annotations_of(node))
    return {}


def _annotations_of(node: ast.FunctionDef) -> Iterator[tuple[str, str]]:
    every = node.args
    pairs = [(one.arg, one.annotation) for one in (*every.posonlyargs, *every.args, *every.kwonlyargs)]
    for name, annotation in (*pairs, ("return", node.returns)):
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            yield name, annotation.value
        elif annotation is not None:
            yield name, ast.unparse(annotation)


@functools.lru_cache(maxsize=8)
def _tree(text: str) -> ast.AST:
    try:
        return parsed(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ast.Module([], [])


def _names(annotation: str) -> set[str]:
    return {node.id for node in ast.walk(_tree(annotation)) if isinstance(node, ast.Name)}
