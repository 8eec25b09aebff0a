"""From a live function to its translation: its text, what is around it at one moment, and the cache.

In: a function under `@kernel`. Out: `Translator`, which makes every translation of the function, for each choice of
template arguments, from the same text and the same values. Where one of these changes, the kernel makes another
translator.
"""

from __future__ import annotations

import hashlib
from types import FunctionType
from typing import TYPE_CHECKING, NoReturn

from py2cu.call.dependencies import Dependencies
from py2cu.function_text import forget, is_text_of, source_file
from py2cu.live import callees, constants, defaults_of, qualified_names, reachable_functions, visible_objects
from py2cu.options import KernelOptions, Values

if TYPE_CHECKING:
    from py2cu.source import SourceFile
    from py2cu.translation import Translation


class Translator:
    """Translates `function` as its text and the constants around it are now; it asks the cache first.

    `key` stands for all that a translation is made of: equal keys, equal translations.

    Raises:
        TranslationError: the function's text, or that of a function which it calls, is not to be had.
    """

    def __init__(self, function: FunctionType, options: KernelOptions) -> None:
        self._function = function
        self._options = options
        self._source = source_file(function)
        _require_texts(function, self._source)
        self.dependencies = Dependencies(function)
        self._live, self._defaults = visible_objects(function), defaults_of(function)
        self.key = _fingerprint(self._source, function, options)

    def __call__(self, values: Values) -> Translation:
        """The translation with these values of `Constexpr[int]` parameters, by name.

        Raises:
            TranslationError: the function is outside the language.
        """
        from py2cu.build.cache import get_translation, put_translation

        key = hashlib.sha256(f"{self.key}\0{sorted(values.items())!r}".encode()).hexdigest()
        translation = get_translation(key)
        if translation is None:
            from py2cu.pipeline import translate_function

            line, name = self._function.__code__.co_firstlineno, self._function.__name__
            translation = translate_function(
                self._source, line, name, self._options, self._live, values, self._defaults
            )
            put_translation(key, translation)
        return translation


def remember_texts(function: FunctionType) -> None:
    """Keep the text of a function, and those of the functions that it calls, as they are now."""
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


def _require_texts(function: FunctionType, source: SourceFile) -> None:
    """Refuse a function without a text, and one whose text, or a helper's, is no longer what Python runs.

    Raises:
        TranslationError: there is none, as for a function made by `exec`; or a file was edited after its import.
    """
    if not source.text:
        message = f"the source of `{function.__name__}` is not to be had"
        _refuse(function, source, message, "write the kernel in a file or a notebook cell")
    if hasattr(function, "__wrapped__"):
        message = f"a decorator below `@kernel` has put another function in the place of `{function.__name__}`"
        hint = "`@kernel` goes on top of decorators that return the function itself; leave the others out"
        _refuse(function, source, message, hint, code="P107")
    for each in reachable_functions(function):
        text = source_file(each)
        if text.text and not is_text_of(text, each):
            forget(each)
            message = f"the text of `{each.__name__}` in `{text.name}` is not what Python runs"
            _refuse(function, source, message, "the file was edited after its import: reload it")


def _refuse(function: FunctionType, source: SourceFile, message: str, hint: str, code: str = "P100") -> NoReturn:
    from py2cu.diagnostics import Diagnostic, Severity, TranslationError
    from py2cu.source import Span

    line = function.__code__.co_firstlineno
    raise TranslationError([Diagnostic(Severity.ERROR, code, message, Span(line, 0, line, 1), source, hint)])


def _fingerprint(file: SourceFile, function: FunctionType, options: KernelOptions) -> str:
    """What a translation depends on: the source, the place in it, the options, constants around it, and the same of the
    functions that it calls, each of which may be a closure's.
    """
    functions = {each: number for number, each in enumerate(reachable_functions(function))}
    parts: list[object] = [file.name, file.text, repr(options)]
    texts: dict[str, None] = {}
    for each in functions:
        text = source_file(each)
        texts[text.text] = None
        place = each.__code__.co_firstlineno, each.__name__
        parts += [text.name, *place, repr(defaults_of(each)), _constants(each)]
        parts += [[functions[other] for other in callees(each)]]
    return hashlib.sha256("\0".join(map(str, [*parts, *texts])).encode()).hexdigest()


def _constants(function: FunctionType) -> str:
    found = {**qualified_names(function), **constants(function)}
    return repr(sorted((name, repr(value)) for name, value in found.items()))
