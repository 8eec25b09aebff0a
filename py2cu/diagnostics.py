"""Diagnostics as values, collected by a `Reporter`, and the exceptions of py2cu.

In: `reporter.error("P301", message, span, hint=...)` from any stage. Out: text like a compiler's, or a
`TranslationError` with the diagnostics as data. Stages do not raise for bad input: they report and go on.
"""

from __future__ import annotations

import enum
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from py2cu.records import record
from py2cu.source import SourceFile, Span


class Severity(enum.Enum):
    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


@record(frozen=True, slots=True)
class Related:
    """A remark on another place that explains a diagnostic: "`x` is float32 here"."""

    message: str
    span: Span
    file: SourceFile | None = None  # None for the diagnostic's own


@record(frozen=True, slots=True)
class Origin:
    """A file other than the kernel's, and the place that uses it."""

    file: SourceFile
    used: Related


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One error, warning or note: the problem, its place, related places, and what to write instead (`hint`)."""

    severity: Severity
    code: str
    message: str
    span: Span
    file: SourceFile
    hint: str | None = None
    related: tuple[Related, ...] = ()

    def __post_init__(self) -> None:
        from py2cu.codes import CODES  # a kernel without errors does not need them

        if self.code not in CODES:
            raise InternalError(f"diagnostic code {self.code} has no entry in py2cu/codes.py", self.span)

    @property
    def headline(self) -> str:
        """`file:line:column: error[P301]: message`; columns count from 1, as compilers do."""
        return f"{_place(self.file, self.span)}: {self.severity.value}[{self.code}]: {self.message}"

    def render(self) -> str:
        """The headline, the source line with a caret under the span, the related places, and the hint."""
        parts = [self.headline, *_excerpt(self.file, self.span)]
        for place in self.related:
            file = place.file or self.file
            parts += [f"{_place(file, place.span)}: note: {place.message}", *_excerpt(file, place.span)]
        if self.hint:
            parts.append(f"  hint: {self.hint}")
        return "\n".join(parts)


def _place(file: SourceFile, span: Span) -> str:
    return f"{file.name}:{span.line}:{span.column + 1}"


def _excerpt(file: SourceFile, span: Span) -> list[str]:
    source = file.line(span.line)
    if not source.strip():
        return []
    end = span.end_column if span.end_line == span.line else len(source)
    margin = f"  {span.line} | "
    # Tabs are kept in the indent, so that the caret stands under its text in any terminal.
    lead = "".join(char if char == "\t" else " " * _columns(char) for char in source[: span.column])
    carets = "^" * max(1, sum(map(_columns, source[span.column : end])))
    return [f"{margin}{source}", f"{' ' * (len(margin) - 2)}| {lead}{carets}"]


def _columns(char: str) -> int:
    """The width of a character in columns of a terminal."""
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def render(diagnostics: Iterable[Diagnostic]) -> str:
    """The texts of `diagnostics`, one below the other."""
    return "\n".join(item.render() for item in diagnostics)


class Py2cuError(Exception):
    """Base class of py2cu's errors."""


class TranslationError(Py2cuError):
    """A kernel is outside the language; `diagnostics` gives the places and reasons."""

    def __init__(self, diagnostics: Sequence[Diagnostic]) -> None:
        self.diagnostics = tuple(diagnostics)
        super().__init__(self.diagnostics)

    def __str__(self) -> str:
        return "\n" + render(self.diagnostics)


class EnvironmentLacks(Py2cuError):
    """The machine lacks a compiler, ninja, torch, a device or a writable directory; `hint` says what to install."""

    def __init__(self, message: str, hint: str) -> None:
        self.message, self.hint = message, hint
        super().__init__(f"{message}\n  hint: {hint}")

    def __reduce__(self) -> tuple[type[EnvironmentLacks], tuple[str, str]]:
        return type(self), (self.message, self.hint)


class NarrowIntegerWarning(UserWarning):
    """Arithmetic of narrow integer elements can leave their dtype, and then wraps around."""


class InternalError(Exception):
    """A bug in py2cu, with the place in the user's source that revealed it."""

    def __init__(self, message: str, span: Span | None = None) -> None:
        where = f" (at line {span.line}, column {span.column + 1})" if span else ""
        super().__init__(f"py2cu bug: {message}{where}")


@dataclass(slots=True)
class Reporter:
    """Collect the diagnostics of one file, and of other files whose functions its kernels use."""

    file: SourceFile
    diagnostics: dict[Diagnostic, None] = field(default_factory=dict)  # in order, each once
    used: Related | None = None  # the place that uses this file, None for the kernel's file

    def within(self, elsewhere: Origin | None) -> Reporter:
        """A reporter for another file that adds to the same diagnostics; this one if `elsewhere` is None."""
        return self if elsewhere is None else Reporter(elsewhere.file, self.diagnostics, elsewhere.used)

    def error(self, code: str, message: str, span: Span, hint: str, related: Iterable[Related] = ()) -> None:
        self._add(Severity.ERROR, code, message, span, hint, related)

    def warning(self, code: str, message: str, span: Span, hint: str) -> None:
        self._add(Severity.WARNING, code, message, span, hint)

    def note(self, code: str, message: str, span: Span, hint: str) -> None:
        self._add(Severity.NOTE, code, message, span, hint)

    def _add(
        self, severity: Severity, code: str, message: str, span: Span, hint: str | None, related: Iterable[Related] = ()
    ) -> None:
        elsewhere = tuple(place for place in dict.fromkeys(related) if place.span != span)
        elsewhere += (self.used,) if self.used is not None else ()
        self.diagnostics[Diagnostic(severity, code, message, span, self.file, hint, elsewhere)] = None

    def keep_only(self, code: str) -> None:
        """Forget what other codes reported, if there is an error of this one."""
        if any(item.code == code and item.severity is Severity.ERROR for item in self.diagnostics):
            for item in [item for item in self.diagnostics if item.code != code]:
                del self.diagnostics[item]

    @property
    def sorted(self) -> tuple[Diagnostic, ...]:
        def order(item: Diagnostic) -> tuple[bool, str, Span, str, str]:
            return item.file != self.file, item.file.name, item.span, item.code, item.message

        return tuple(sorted(self.diagnostics, key=order))

    @property
    def errors(self) -> tuple[Diagnostic, ...]:
        return tuple(item for item in self.sorted if item.severity is Severity.ERROR)

    @property
    def failed(self) -> bool:
        return any(item.severity is Severity.ERROR for item in self.diagnostics)
