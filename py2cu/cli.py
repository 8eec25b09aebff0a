"""The command line: what each command does in one line, its examples, and what is printed where.

In: arguments and files. Out: texts and tables on stdout, diagnostics and progress on stderr, an exit code: 0 fine,
1 a check failed, 2 the input was refused or the usage is wrong, 3 the environment lacks something, 70 a bug of ours.
Promises: no traceback for what a user did; nothing is written unless everything was translated; `translate` neither
imports nor runs a file, and loads no torch. What is heavy is imported inside the command that needs it.
"""

from __future__ import annotations

import gc
import os
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, NoReturn

import typer

from py2cu import __version__
from py2cu.codes import CODES
from py2cu.console import EXIT_CHECK_FAILED, answering, collecting, refuse, rendered, say, table, working
from py2cu.diagnostics import EnvironmentLacks
from py2cu.source import SourceFile
from py2cu.translation import TargetName, Text, Translation

if TYPE_CHECKING:
    from py2cu.runtime.check import CheckReport

app = typer.Typer(
    name="py2cu",
    help="Write a kernel in Python, get CUDA C++ that you would sign, and proof that the two agree.",
    epilog="Examples:\n\n"
    "py2cu translate rgb2grey.py -o csrc  (the .cu, .h and .cpp)\n\n"
    "py2cu check rgb2grey.py  (against its own Python, over many shapes and values)\n\n"
    "py2cu explain P301  (what a diagnostic means)\n\n"
    "Exit codes: 0 fine, 1 a check failed, 2 the input was refused, 3 the environment lacks something.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

Files = Annotated[list[Path], typer.Argument(metavar="FILE", help="Python files with kernels.", show_default=False)]
Only = Annotated[str | None, typer.Option("--kernel", metavar="NAME", help="This kernel only.")]
Output = Annotated[Path | None, typer.Option("-o", "--output", metavar="DIR", help="Write the texts here.")]
Spelling = Annotated[TargetName, typer.Option(help="The GPU, or the same kernels as C++ for the CPU.")]
Target = Annotated[TargetName | None, typer.Option(help="What to build for; by default the GPU, if there is one.")]
Device = Annotated[TargetName | None, typer.Option(help="Where to run; by default the GPU, if there is one.")]


def main() -> NoReturn:
    """The console script."""
    gc.set_threshold(100_000)  # a short run has little to collect: looking for it took a tenth of the time
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a comment in Greek must not fail in a terminal that has no Greek
            stream.reconfigure(errors="backslashreplace")
    app(prog_name="py2cu")
    raise SystemExit  # not reached: the app exits by itself


# --- translate -------------------------------------------------------------------------------------------------------


@app.command(
    epilog="Examples:\n\npy2cu translate saxpy.py\n\npy2cu translate saxpy.py softmax.py -o csrc\n\n"
    "py2cu translate layers.py --kernel silu --target cpu"
)
@answering()
def translate(
    files: Files,
    output: Output = None,
    kernel: Only = None,
    target: Spelling = TargetName.CUDA,
) -> None:
    """Print the C++ of kernels, or write it to a directory. The files are read, never imported or run."""
    translations = translate_all(files, kernel)
    texts = [text for done in translations for text in done.artifacts(target).files]
    for done in translations:
        say(*map(rendered, done.notes))
    if output is None:
        typer.echo("\n\n".join(f"// --- {text.name} ---\n\n{text.text.rstrip()}" for text in texts))
    else:
        write_texts(output, texts)


def translate_all(files: Sequence[Path], only: str | None) -> list[Translation]:
    """Every file's translation.

    Raises:
        Refused: with the errors of all the files.
    """
    from py2cu.pipeline import translate_file

    done: list[Translation] = []
    with collecting() as refusals:
        for path in files:
            with refusals.of(path):
                done.append(translate_file(SourceFile.read(path), only))
    return done


def write_texts(directory: Path, texts: Sequence[Text]) -> None:
    """All of `texts` under `directory`, or none: written beside their places first, then moved there."""
    names = [text.name for text in texts]
    if doubled := sorted({name for name in names if names.count(name) > 1}):
        refuse(f"two of these files would both write {directory / doubled[0]}: translate them to different directories")
    parts: list[tuple[Path, Path]] = []
    try:
        directory.mkdir(parents=True, exist_ok=True)
        for text in texts:
            place = directory / text.name
            if place.is_dir():
                refuse(f"cannot write {place}: it is a directory")
            parts.append((directory / f".{text.name}.{os.getpid()}", place))
            parts[-1][0].write_text(text.text, encoding="utf-8", newline="\n")
        for part, place in parts:
            part.replace(place)
            say(f"wrote {place}")
    except OSError as error:
        refuse(f"cannot write to {directory}: {error.strerror or error}")
    finally:
        for part, _ in parts:
            part.unlink(missing_ok=True)


# --- check and build -------------------------------------------------------------------------------------------------


@app.command(epilog="Examples:\n\npy2cu check saxpy.py\n\npy2cu check layers.py --kernel silu --device cpu")
@answering()
def check(files: Files, kernel: Only = None, device: Device = None) -> None:
    """Build every kernel and compare it with its own Python, over many shapes and values. Imports the files."""
    where = _device(device)
    from py2cu.loading import load_all
    from py2cu.runtime.build import library
    from py2cu.runtime.check import check_kernel

    reports = []
    for loaded in load_all(files, kernel):
        for each in loaded.kernels:
            with working(f"building {each.__name__} for {where}"):
                library(each.translation.artifacts(where), source=loaded.source)
            with working(f"checking {each.__name__} on {where}"):
                reports.append(check_kernel(each, device=where.value))
    show_reports(reports)
    if not all(report.ok for report in reports):
        raise typer.Exit(EXIT_CHECK_FAILED)


def show_reports(reports: Sequence[CheckReport]) -> None:
    """One line a kernel, then what failed, was skipped or is worth a note."""
    rows = [("kernel", "device", "cases", "elements", "result")]
    rows += [(r.kernel, r.device, str(r.cases), str(r.elements), _verdict(r)) for r in reports]
    typer.echo(table(rows))
    for report in reports:
        if not report.ok:
            typer.echo(f"\n{report}")
        elif report.notes:
            typer.echo("\n".join(["", f"`{report.kernel}`", *(f"  note: {note}" for note in report.notes)]))


def _verdict(report: CheckReport) -> str:
    return "agrees" if report.ok else "DIFFERS" if report.failures else "not proven"


@app.command(epilog="Examples:\n\npy2cu build layers.py\n\npy2cu build layers.py --target cpu")
@answering()
def build(
    files: Files,
    kernel: Only = None,
    target: Target = None,
) -> None:
    """Fill the cache, so that the first call of every kernel finds it built. Imports the files."""
    where = target or _device(None)
    _require_torch()
    from py2cu.loading import load_all
    from py2cu.runtime.build import library

    for loaded in load_all(files, kernel):
        for each in loaded.kernels:
            with working(f"building {each.__name__} for {where}"):
                path = library(each.translation.artifacts(where), source=loaded.source)
            typer.echo(f"{each.__name__}: {path}")


def _device(wanted: TargetName | None) -> TargetName:
    """The device to run on: `wanted`, else the best one here."""
    torch = _require_torch()
    has_gpu = bool(torch.cuda.is_available())
    if wanted is TargetName.CUDA and not has_gpu:
        raise EnvironmentLacks("torch finds no CUDA device here", "see `py2cu doctor`, or use --device cpu")
    return wanted or (TargetName.CUDA if has_gpu else TargetName.CPU)


def _require_torch() -> ModuleType:
    try:
        import torch
    except (ImportError, OSError) as error:
        raise EnvironmentLacks(f"this command needs torch: {error}", "pip install 'torch>=2.11'") from None
    return torch


# --- explain, doctor -------------------------------------------------------------------------------------------------


@app.command(epilog="Examples:\n\npy2cu explain P301\n\npy2cu explain  (lists all codes)")
@answering()
def explain(
    code: Annotated[
        str | None, typer.Argument(metavar="CODE", help="As in `error[P301]`.", autocompletion=lambda: list(CODES))
    ] = None,
) -> None:
    """What a diagnostic means, with an example of what to write instead."""
    if code is None:
        typer.echo(table([("code", "meaning"), *((name, row.title) for name, row in CODES.items())]))
        return
    found = re.search(r"P\d{3}", code.upper())
    if found is None or found[0] not in CODES:
        refuse(f"there is no code {code}{_near(code)}\n  hint: `py2cu explain` lists them: {', '.join(CODES)}")
    typer.echo(explanation(found[0]))


def _near(code: str) -> str:
    import difflib

    near = difflib.get_close_matches(code.upper(), CODES, 1)
    return f"; did you mean {near[0]}?" if near else ""


def explanation(code: str) -> str:
    """The page about `code`."""
    import textwrap

    row = CODES[code]
    parts = [f"{code}: {row.title}", textwrap.fill(row.meaning, 80, break_on_hyphens=False)]
    if row.wrong:
        parts += ["Wrong:", textwrap.indent(row.wrong.rstrip(), "    ")]
        parts += ["Right:", textwrap.indent(row.right.rstrip(), "    ")]
    return "\n\n".join(parts)


@app.command(epilog="Example:\n\npy2cu doctor  (exits with 3 when `check` or `build` could not work here)")
@answering()
def doctor() -> None:
    """What is here to build and run kernels with, and what to do about what is missing."""
    from py2cu.runtime.doctor import diagnose, exit_status

    findings = diagnose()
    lines = table([(item.component, item.state.value, item.detail) for item in findings]).splitlines()
    for item, line in zip(findings, lines, strict=True):
        typer.echo(line)
        if item.hint:
            typer.echo(f"    hint: {item.hint}")
    raise typer.Exit(exit_status(findings))


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"py2cu {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass
