"""Output and exit codes of the commands: diagnostics and progress on stderr, tables, errors as messages.

In: the error that a command raises. Out: a message on stderr and an exit code: 0 fine, 1 a check failed, 2 the input
was refused or the usage is wrong, 3 the environment lacks something, 70 a bug in py2cu.
Promises: no traceback unless `PY2CU_DEBUG=1` asks for one; colour on a terminal only, and not with `NO_COLOR`.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final, NoReturn

import click

from py2cu.diagnostics import Diagnostic, EnvironmentLacks, Py2cuError, Severity, TranslationError
from py2cu.source import UnreadableSource

EXIT_CHECK_FAILED: Final = 1
EXIT_REFUSED: Final = 2
EXIT_LACKING: Final = 3
EXIT_BUG: Final = 70
EXIT_INTERRUPTED: Final = 130


@dataclass(slots=True)
class InputError(Exception):
    """The input was refused: messages ready to print, and the number of errors; 0 prints no number."""

    texts: list[str]
    errors: int


@contextlib.contextmanager
def exit_codes() -> Iterator[None]:
    """Turn any error of a command into a message on stderr and an exit code."""
    try:
        yield
    except (click.ClickException, click.exceptions.Exit, click.Abort, BrokenPipeError):
        raise
    except KeyboardInterrupt:
        raise click.exceptions.Exit(EXIT_INTERRUPTED) from None
    except Exception as error:
        raise click.exceptions.Exit(_report(error)) from None


def _report(error: Exception) -> int:
    match error:
        case InputError(texts=texts, errors=errors):
            print_error(*texts, *([f"{errors} error{'s' * (errors != 1)}"] if errors else []))
            return EXIT_REFUSED
        case EnvironmentLacks():
            print_error(f"{marked('error', 'error')}: {error}")
            return EXIT_LACKING
        case Py2cuError():  # a BuildError
            print_error(str(error).strip())
            return EXIT_LACKING
        case _ if os.environ.get("PY2CU_DEBUG") == "1":
            raise error
        case _:
            print_error(
                f"{marked('error', 'internal error')}: {described(error).removeprefix('InternalError: py2cu bug: ')}",
                "  this is a bug in py2cu, not in your file: please report it together with the file",
                "  hint: PY2CU_DEBUG=1 shows where it happened",
            )
            return EXIT_BUG


def described(error: BaseException) -> str:
    """The type and the text of an error, `ValueError: oh`; only the type if its `__str__` fails."""
    try:
        return f"{type(error).__name__}: {error}"
    except Exception:
        return type(error).__name__


def refuse(message: str) -> NoReturn:
    """End the command with one error that has no place in a file.

    Raises:
        InputError: always.
    """
    raise InputError([f"{marked('error', 'error')}: {message}"], 0)


def print_error(*texts: str) -> None:
    """Print to stderr, so that stdout holds results only."""
    for text in texts:
        click.echo(text, err=True)


def rendered(item: Diagnostic) -> str:
    """The text of `item.render()`, coloured on a terminal."""
    text, kind = item.render(), item.severity.value
    if not _has_colour():
        return text
    label = f"{kind}[{item.code}]"
    text = text.replace(label, marked(kind, label), 1)
    return re.sub(r"(?m)^( +\| \s*)(\^+)$", lambda caret: caret[1] + marked(kind, caret[2]), text)


def marked(kind: str, text: str) -> str:
    """`text` in the colour of a severity, on a terminal."""
    colours = {"error": "red", "warning": "yellow", "note": "cyan", "ok": "green"}
    return click.style(text, fg=colours[kind], bold=True) if _has_colour() else text


def _has_colour() -> bool:
    return sys.stderr.isatty() and not os.environ.get("NO_COLOR")


@dataclass(slots=True)
class CollectedErrors:
    """The errors of several inputs, so that one run shows them all."""

    texts: list[str]
    errors: int = 0

    @contextlib.contextmanager
    def of(self, path: Path) -> Iterator[None]:
        """Record the errors about `path` and go on."""
        try:
            yield
        except UnreadableSource as error:
            self.texts.append(f"{path}{error.place}: {marked('error', 'error[P100]')}: {error}")
            self.errors += 1
        except TranslationError as error:
            self.texts += [rendered(_with_typed_name(item, path)) for item in error.diagnostics]
            self.errors += sum(item.severity is Severity.ERROR for item in error.diagnostics)
        except InputError as error:
            self.texts += error.texts
            self.errors += error.errors


def _with_typed_name(item: Diagnostic, path: Path) -> Diagnostic:
    """A diagnostic in `path` with the name that the user typed; diagnostics in other files are unchanged."""
    is_in_path = os.path.abspath(item.file.name) == os.path.abspath(path)
    return replace(item, file=replace(item.file, name=str(path))) if is_in_path else item


@contextlib.contextmanager
def collecting() -> Iterator[CollectedErrors]:
    """Collect the errors of several inputs.

    Raises:
        InputError: at the end of the context, if there were any; with all of them.
    """
    collected = CollectedErrors([])
    yield collected
    if collected.errors:
        raise InputError(collected.texts, collected.errors)


def table(rows: Sequence[Sequence[str]]) -> str:
    """Rows as text with aligned columns; the first row is the head."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join(
        "  ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows
    )


@contextlib.contextmanager
def working(what: str) -> Iterator[None]:
    """Show that `what` is in progress: a spinner on a terminal, else a line on stderr."""
    if not sys.stderr.isatty():
        print_error(f"{what} …")
        yield
        return
    from rich.console import Console
    from rich.text import Text as RichText

    with Console(stderr=True).status(RichText(f"{what} …")):
        yield
