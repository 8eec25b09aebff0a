"""The text of a live function, and whether it is what Python runs, also of the functions that it calls.

In: a function object. Out: its text. Errors: `TranslationError`: there is no text, or another one than Python runs.
"""

from __future__ import annotations

from types import FunctionType
from typing import NoReturn

from py2cu.function_text import forget, is_text_of, source_file
from py2cu.live import reachable_functions
from py2cu.source import SourceFile


def remember_texts(function: FunctionType) -> None:
    """Read and keep the text of a function, and of the functions that it calls."""
    for each in reachable_functions(function):
        source_file(each)


def python_text(function: FunctionType) -> str:
    """The function as written, dedented."""
    import inspect
    import textwrap

    source = source_file(function)
    if not source.text:
        return f"def {function.__name__}(…): …"
    lines = [f"{line}\n" for line in source.text.split("\n")][function.__code__.co_firstlineno - 1 :]
    return textwrap.dedent("".join(inspect.getblock(lines))).rstrip()


def require_texts(function: FunctionType, source: SourceFile) -> None:
    """Refuse a function without a text, and one whose text, or that of a function it calls, is not what Python runs.

    Raises:
        TranslationError: there is no text, as for a function made by `exec`; or a file was edited after its import.
    """
    if not source.text:
        message = f"the source of `{function.__name__}` is not available"
        _refuse(function, source, message, "write the kernel in a file or a notebook cell")
    if hasattr(function, "__wrapped__"):  # rule: text-wrapped
        message = f"a decorator below `@kernel` replaces `{function.__name__}` with another function"
        hint = "remove it; below `@kernel`, a decorator must return the function itself"
        _refuse(function, source, message, hint, code="P107")
    for each in reachable_functions(function):
        text = source_file(each)
        if text.text and not is_text_of(text, each):  # rule: text-is-run
            forget(each)
            message = f"the text of `{each.__name__}` in `{text.name}` is not what Python runs"
            _refuse(function, source, message, "the file was edited after its import: reload it")


def _refuse(function: FunctionType, source: SourceFile, message: str, hint: str, code: str = "P100") -> NoReturn:
    from py2cu.diagnostics import Diagnostic, Severity, TranslationError
    from py2cu.source import Span

    line = function.__code__.co_firstlineno
    raise TranslationError([Diagnostic(Severity.ERROR, code, message, Span(line, 0, line, 1), source, hint)])
