"""Live functions: the text they were written in, what the names in them mean now, and what they call.

In: a function that Python holds. Out: the same facts that a file's text would give, for functions of other modules and
of other notebook cells. Nothing is called.
"""

from __future__ import annotations
import __future__

import linecache
import sys
from collections.abc import Iterable, Iterator
from types import CodeType, FunctionType, ModuleType
from typing import Final

from py2cu.source import SourceFile

_LIBRARIES: Final = frozenset(
    {*sys.stdlib_module_names, "py2cu", "numpy", "torch", "jaxtyping", "numba", "cupy", "triton", "IPython"}
)


def is_library(qualified: str) -> bool:
    """True for a name of Python's own modules, or of those that kernels know by their names."""
    return qualified.partition(".")[0] in _LIBRARIES


_read: Final[dict[str, tuple[list[str], SourceFile]]] = {}
"""The source of each file, as long as `linecache` holds the same lines: the kernels of a file share it."""
_TIMED_CELL: Final = "<timed exec>"  # what `%%time` calls every cell that it compiles
_FUTURES: Final = __future__.annotations.compiler_flag


def written(function: FunctionType) -> SourceFile:
    """The file, or notebook cell, in which `function` was written; its text is empty where that is not to be had."""
    name = function.__code__.co_filename
    linecache.checkcache(name)
    lines = linecache.getlines(name, function.__globals__)
    if name == _TIMED_CELL and not _holds("".join(lines), function.__code__):
        return SourceFile(name, "")
    if name not in _read or _read[name][0] is not lines:
        _read[name] = lines, SourceFile(name, "".join(lines))
    return _read[name][1]


def remember_cell(function: FunctionType) -> None:
    """Put the text of a cell that runs under `%%time` into `linecache`, where IPython leaves that of every other cell.

    Only while the cell runs: each `%%time` cell has the same name, and takes the place of the one before.
    """
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if function.__code__.co_filename != _TIMED_CELL or shell is None:
        return
    raw = shell.history_manager.input_hist_raw[-1]
    _, magic, rest = raw.partition("%%time")
    text = shell.transform_cell(rest.partition("\n")[2]) if magic else ""
    if _holds(text, function.__code__):
        linecache.cache[_TIMED_CELL] = len(text), None, [f"{line}\n" for line in text.split("\n")], _TIMED_CELL


def _holds(text: str, code: CodeType) -> bool:
    """Whether `code` is compiled from `text`."""
    try:
        waiting = [compile(text, code.co_filename, "exec", dont_inherit=True, flags=code.co_flags & _FUTURES)]
    except (SyntaxError, ValueError):
        return False
    while waiting:
        inner = [constant for constant in waiting.pop().co_consts if isinstance(constant, CodeType)]
        if code in inner:
            return True
        waiting += inner
    return False


def surroundings(function: FunctionType) -> dict[str, object]:
    """What the names that `function` reads mean around it, now: a closure's cells, then globals."""
    live = {name: function.__globals__[name] for name in _names(function) if name in function.__globals__}
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        try:
            live[name] = cell.cell_contents
        except ValueError:
            continue  # not assigned yet
    return live


def defaults_of(function: FunctionType) -> dict[str, object]:
    """The defaults of the parameters that have one."""
    positional = function.__code__.co_varnames[: function.__code__.co_argcount]
    values = function.__defaults__ or ()
    return {
        **dict(zip(positional[len(positional) - len(values) :], values, strict=True)),
        **(function.__kwdefaults__ or {}),
    }


def constants(function: FunctionType) -> dict[str, object]:
    """The numbers and strings around `function`, also those of the user's modules that it mentions."""
    found: dict[str, object] = {}
    names = set(_code_names(function.__code__))
    for name, value in surroundings(function).items():
        if isinstance(value, ModuleType):
            found |= {f"{owner}.{each}": member for owner, each, member in _members(value, names)}
        else:
            found[name] = value
    return {
        name: value for name, value in found.items() if isinstance(value, bool | int | float | complex | str | tuple)
    }


def meanings(function: FunctionType) -> dict[str, str]:
    """What modules, classes and functions around `function` are called where they come from."""
    around = surroundings(function)
    live = {name: live_name(value) for name, value in around.items()}
    names = set(_code_names(function.__code__))
    for value in around.values():
        if isinstance(value, ModuleType):
            live |= {f"{owner}.{name}": live_name(member) for owner, name, member in _members(value, names)}
    return {name: meaning for name, meaning in live.items() if meaning is not None}


def called_functions(function: FunctionType) -> list[FunctionType]:
    """The functions that `function` may call, and those that these may call, itself first; none of libraries."""
    found = {function: None}
    waiting = [function]
    while waiting:
        for other in called(waiting.pop()):
            if other not in found:
                found[other] = None
                waiting.append(other)
    return list(found)


def called(function: FunctionType) -> Iterator[FunctionType]:
    """The functions that `function` may call itself, name by name."""
    names = set(_code_names(function.__code__))
    for name, value in surroundings(function).items():
        if name not in names and name not in function.__code__.co_freevars:
            continue
        values = [member for *_, member in _members(value, names)] if isinstance(value, ModuleType) else [value]
        yield from (each for each in values if isinstance(each, FunctionType) and not is_library(each.__module__ or ""))


def _members(module: ModuleType, names: set[str]) -> Iterator[tuple[str, str, object]]:
    """What is mentioned of a module of the user's, and of modules in it: module, name, value."""
    if is_library(module.__name__):
        return
    inside = [inner for name in sorted(names) if isinstance(inner := vars(module).get(name), ModuleType)]
    for owner in (module, *inside):
        yield from ((owner.__name__, name, vars(owner)[name]) for name in sorted(names & vars(owner).keys()))


def _names(function: FunctionType) -> Iterable[str]:
    """The global names in the function's body, and those that its annotations may be spelled with."""
    yield from _code_names(function.__code__)
    for name, value in function.__globals__.items():
        if hasattr(value, "__module__") or callable(value) or isinstance(value, ModuleType):
            yield name


def _code_names(code: CodeType) -> Iterator[str]:
    """Every name that the code reads, functions in it included."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code_names(constant)


def live_name(value: object) -> str | None:
    """The qualified name of a live object: a module, class or function."""
    if isinstance(value, ModuleType):
        return value.__name__
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    module = getattr(value, "__module__", None)
    if not isinstance(name, str) or not isinstance(module, str):
        return None
    # Public names of packages that keep their classes in private modules: torch._tensor.Tensor is torch.Tensor.
    top = module.partition(".")[0]
    name = name.removeprefix("_VariableFunctionsClass.")  # where torch keeps `exp` and its like
    return f"{top}.{name}" if top in {"torch", "numpy", "jaxtyping", "py2cu", "numba"} else f"{module}.{name}"
