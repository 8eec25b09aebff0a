"""Translate a live function from its text and the objects that its names refer to now, or take it from the cache.

In: a function under `@kernel`. Out: `Translator`, which makes every translation of the function, for any values of its
template arguments, from the same text and the same objects. If one of these changes, the kernel makes a new translator.
Texts are rendered when they are asked for: those of calls, for one target, or all files. Errors: `TranslationError`
for a function that is outside the language.
"""

from __future__ import annotations

import hashlib
import re
import warnings
from collections.abc import Iterable
from types import FunctionType
from typing import TYPE_CHECKING, Any, Final, TypeVar

from py2cu.function_text import source_file
from py2cu.live import callees, constants, defaults_of, qualified_names, reachable_functions, visible_objects
from py2cu.live.dependencies import Dependencies
from py2cu.live.texts import require_texts
from py2cu.options import KernelOptions, Values

if TYPE_CHECKING:
    from py2cu.diagnostics import Diagnostic
    from py2cu.source import SourceFile
    from py2cu.targets.lowered import Lowered
    from py2cu.translation import CallTranslation, TargetName, Translation

Class = TypeVar("Class", "CallTranslation", "Translation")


_KEPT: Final = 4
"""So many kernels before rendering are kept: with two sets of template values, calls ask for each in turn."""


class Translator:
    """Translate `function` with its text and the constants around it at the time of construction.

    `key` is a hash of everything that a translation depends on: equal keys, equal translations.

    Raises:
        TranslationError: the text of the function, or of a function that it calls, is not available.
    """

    def __init__(self, function: FunctionType, options: KernelOptions) -> None:
        self._function = function
        self._options = options
        self._source = source_file(function)
        require_texts(function, self._source)
        self.dependencies = Dependencies(function)
        self._live = {**_numbers_in_options(function, options), **visible_objects(function)}
        self._defaults = defaults_of(function)
        self.key = _fingerprint(self._source, function, options)
        self._known: dict[tuple[type, str], Any] = {}  # translations, by class and key
        self._lowered: dict[str, Lowered] = {}  # by key of the values
        self._has_warned = False

    def of_calls(self, values: Values, target: TargetName | None = None) -> CallTranslation:
        """What calls need, with the text for `target` and instances for these values of `Constexpr[int]` parameters.

        Cached on disk. The first translation shows its warnings, each at its line of the Python.
        """
        from py2cu.translation import CallTranslation

        known = self._cached(CallTranslation, values)
        if known is None or not (target is None or known.knows(target)):
            made = self._lower(values).for_calls(*(() if target is None else (target,)))
            known = self._stored(made if known is None else known.joined(made), values)
        return known

    def files(self, values: Values) -> Translation:
        """All files, with the same instances; cached on disk."""
        from py2cu.translation import Translation

        return self._cached(Translation, values) or self._stored(self._lower(values).files(), values)

    def _cached(self, class_: type[Class], values: Values) -> Class | None:
        """What was translated before, here or by another process."""
        from py2cu.build.cache import get_translation

        key = class_, self._key_of(values)
        if key not in self._known and (found := get_translation(key[1], class_)) is not None:
            self._known[key] = found
            self._show_warnings(found.notes)
        return self._known.get(key)

    def _stored(self, translation: Class, values: Values) -> Class:
        from py2cu.build.cache import put_translation

        key = self._key_of(values)
        if translation.texts:  # else they follow, and the file is written then
            put_translation(key, translation)
        self._known[type(translation), key] = translation
        self._show_warnings(translation.notes)
        return translation

    def _key_of(self, values: Values) -> str:
        return hashlib.sha256(f"{self.key}\0{sorted(values.items())!r}".encode()).hexdigest()

    def _lower(self, values: Values) -> Lowered:
        """The kernel before its texts are rendered; the last ones are kept, for their other texts."""
        key = self._key_of(values)
        lowered = self._lowered.get(key)
        if lowered is None:
            from py2cu.pipeline import lower_function

            line, name = self._function.__code__.co_firstlineno, self._function.__name__
            lowered = lower_function(self._source, line, name, self._options, self._live, values, self._defaults)
            if len(self._lowered) == _KEPT:
                self._lowered.clear()
            self._lowered[key] = lowered
        return lowered

    def _show_warnings(self, notes: Iterable[Diagnostic]) -> None:
        from py2cu.diagnostics import NarrowIntegerWarning, Severity

        if not self._has_warned:  # rule: narrow-warned
            self._has_warned = True
            for item in notes:
                if item.severity is Severity.WARNING:
                    text = f"{item.message}\n  hint: {item.hint}"
                    warnings.warn_explicit(text, NarrowIntegerWarning, item.file.name, item.span.line)


def _fingerprint(file: SourceFile, function: FunctionType, options: KernelOptions) -> str:
    """A hash of everything that a translation depends on.

    That is, for the function and all functions that it may call (also closure variables): the source, the place in it,
    the defaults and the constants; and the options, with the numbers that they name.
    """
    functions = {each: number for number, each in enumerate(reachable_functions(function))}
    parts: list[object] = [file.name, file.text, repr(options), repr(_numbers_in_options(function, options))]
    texts: dict[str, None] = {}
    for each in functions:
        text = source_file(each)
        texts[text.text] = None
        place = each.__code__.co_firstlineno, each.__name__
        parts += [text.name, *place, repr(defaults_of(each)), _constants(each)]  # rule: default-renewed
        parts += [[functions[other] for other in callees(each)]]
    return hashlib.sha256("\0".join(map(str, [*parts, *texts])).encode()).hexdigest()


def _numbers_in_options(function: FunctionType, options: KernelOptions) -> dict[str, int]:
    """The whole numbers of the module that `size` and `block` name: `size="blocks * THREADS"`."""
    names = re.findall(r"[^\W\d]\w*", f"{options.size} {options.block}")
    values = ((name, function.__globals__.get(name)) for name in names)
    return {name: value for name, value in values if isinstance(value, int)}


def _constants(function: FunctionType) -> str:
    values = {**qualified_names(function), **constants(function)}  # rule: name-of-constant
    return repr(sorted((name, repr(value)) for name, value in values.items()))
