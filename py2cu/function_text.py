"""Find the source text that a live function was compiled from.

In: a function object. Out: its `SourceFile`, with an empty text if there is none. The text is read when a decorator
runs and kept as long as the function has its code, so that an edit of the file changes neither. Before a translation
the code is compared with the text, since the file may have been edited after Python read it.
"""

from __future__ import annotations
import __future__

import functools
import linecache
import sys
import warnings
import weakref
from collections.abc import Iterable, Iterator
from importlib.machinery import SourceFileLoader
from types import CellType, CodeType, FunctionType
from typing import Final

from py2cu.source import SourceFile

_read: Final[dict[str, tuple[list[str], SourceFile]]] = {}
"""The source of each file, valid while `linecache` holds the same lines; the kernels of a file share it."""
_sources: Final[dict[weakref.ref[FunctionType], tuple[CodeType, SourceFile]]] = {}
"""The source of each function, valid while the function has this code: `%autoreload` replaces the code.

No `WeakKeyDictionary`: `threads._locks` says why.
"""
_TIMED_CELL: Final = "<timed exec>"  # the file name of every cell under `%%time`
_FUTURES: Final = functools.reduce(
    int.__or__, (getattr(__future__, name).compiler_flag for name in __future__.all_feature_names)
)


def source_file(function: FunctionType) -> SourceFile:
    """The file or notebook cell of `function`; its text is empty if there is none.

    The first call reads the text. Later calls return the same text, even if the file has changed.
    """
    known = _sources.get(weakref.ref(function))
    if known is not None and known[0] is function.__code__:  # rule: redefined-source
        return known[1]
    source = _source(function)
    if source.text:
        _remember(function, source)
    return source


def _remember(function: FunctionType, source: SourceFile) -> None:
    _sources[weakref.ref(function, _sources.pop)] = function.__code__, source


def _source(function: FunctionType) -> SourceFile:
    """The current text of the function's file; `linecache` reads it again if its size or time has changed."""
    name = function.__code__.co_filename
    linecache.checkcache(name)
    lines = linecache.getlines(name, function.__globals__)
    if name not in _read or _read[name][0] is not lines:
        _read[name] = lines, SourceFile(name, "".join(lines))
    return _read[name][1]


def remember_cell(function: FunctionType) -> None:
    """Put the text of a cell that runs under `%%time` into `linecache`, as IPython does for every other cell.

    Call this while the cell runs: every `%%time` cell has the same name, and replaces the one before.
    """
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if function.__code__.co_filename != _TIMED_CELL or shell is None:
        return
    raw = shell.history_manager.input_hist_raw[-1]
    _, magic, rest = raw.partition("%%time")
    text = shell.transform_cell(rest.partition("\n")[2]) if magic else ""
    if any(_is_same(function.__code__, code) for code in _compiled(text, _futures(function.__code__))):
        linecache.cache[_TIMED_CELL] = len(text), None, [f"{line}\n" for line in text.split("\n")], _TIMED_CELL


def is_text_of(source: SourceFile, function: FunctionType) -> bool:
    """Whether `function` was compiled from `source`, at the same line.

    Import hooks, such as pytest's for assertions and jaxtyping's, insert code that is not in the text. For functions
    that such a hook loaded, and for those without a file, only parameters, names and constants are compared. True also
    for a text that does not compile: the translator refuses it with a place.
    """
    code = function.__code__
    try:
        namesakes = [each for each in _compiled(source.text, _futures(code)) if each.co_name == code.co_name]
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return True
    here = [each for each in namesakes if each.co_firstlineno == code.co_firstlineno]
    if any(_is_same(code, each) for each in here):
        return True
    is_plain = type(function.__globals__.get("__loader__")) is SourceFileLoader and not source.name.startswith("<")
    return not is_plain and any(_may_be_compiled_from(code, each) for each in namesakes)  # rule: text-of-namesake


def forget(function: FunctionType) -> None:
    """Read the text of `function` again at the next use."""
    _sources.pop(weakref.ref(function), None)


def function_in(
    source: SourceFile,
    qualified: str,
    line: int,
    flags: int,
    namespace: dict[str, object],
    closure: tuple[CellType, ...],
) -> FunctionType:
    """The function of `source` with a qualified name, whose text starts at a line; the rest of the text does not run.

    Tracebacks and debuggers show `source`, and `source_file` returns it, also where the file is missing or different.
    """
    codes = _compiled(source.text, flags & _FUTURES, source.name)
    code = next(each for each in codes if (each.co_qualname, each.co_firstlineno) == (qualified, line))
    function = FunctionType(code, namespace, closure=closure or None)
    _remember(function, source)
    if not linecache.getlines(source.name):
        linecache.cache[source.name] = len(source.text), None, source.text.splitlines(keepends=True), source.name
    return function


def _futures(code: CodeType) -> int:
    return int(code.co_flags & _FUTURES)


@functools.lru_cache(maxsize=8)
def _compiled(text: str, flags: int, file: str = "<text>") -> tuple[CodeType, ...]:
    """The code of every function in `text`, at any depth."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python has shown them already
        return tuple(_inner_code(compile(text, file, "exec", dont_inherit=True, flags=flags)))


def _inner_code(code: CodeType) -> Iterator[CodeType]:
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield constant
            yield from _inner_code(constant)


def _is_same(code: CodeType, other: CodeType) -> bool:
    """Whether two functions have the same code, at any position in the text."""
    parts = ("co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_argcount", "co_kwonlyargcount")
    if any(getattr(code, part) != getattr(other, part) for part in parts):
        return False
    if len(code.co_consts) != len(other.co_consts):
        return False
    return all(
        _is_same(one, two) if isinstance(one, CodeType) and isinstance(two, CodeType) else repr(one) == repr(two)
        for one, two in zip(code.co_consts, other.co_consts, strict=True)
    )


def _may_be_compiled_from(code: CodeType, text: CodeType) -> bool:
    """Whether `code` has the parameters of `text`, and at least its names and constants."""
    return _parameters(code) == _parameters(text) and {*_mentions(code)} >= {*_mentions(text)}


def _parameters(code: CodeType) -> tuple[object, ...]:
    count = code.co_argcount + code.co_kwonlyargcount
    return code.co_posonlyargcount, code.co_argcount, code.co_varnames[:count]


def _mentions(code: CodeType) -> Iterator[str]:
    """The names and constants of a function and of its inner functions."""
    yield from (*code.co_names, *code.co_varnames, *code.co_freevars, *code.co_cellvars)
    yield from _atoms(code.co_consts)


def _atoms(constants: Iterable[object]) -> Iterator[str]:
    """The constants, those in nested tuples included: Python folds constants into tuples where a hook may not."""
    for constant in constants:
        match constant:
            case CodeType():
                yield from _mentions(constant)
            case tuple() | frozenset():
                yield from _atoms(constant)
            case _:
                yield repr(constant)
