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
import shlex
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, NoReturn

import click

from py2cu import __version__
from py2cu.cli.console import (
    EXIT_CHECK_FAILED,
    collecting,
    exit_codes,
    marked,
    print_error,
    refuse,
    rendered,
    table,
    working,
)
from py2cu.codes import CODES
from py2cu.diagnostics import EnvironmentLacks
from py2cu.ir.abi.extents import CONSTEXPR_MAX, is_constexpr_value
from py2cu.options import NO_VALUES, Values
from py2cu.source import SourceFile
from py2cu.suggestions import did_you_mean
from py2cu.translation import TargetName, Text, Translation

if TYPE_CHECKING:
    from py2cu.check.report import CheckReport
    from py2cu.cli.loading import LoadedFile
    from py2cu.ir.abi.signature import Signature


def _examples(*lines: str, after: str = "") -> str:
    r"""The end of a command's help; `\b` keeps click from wrapping it."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines), "", after])


@click.group(
    context_settings={"help_option_names": ["-h", "--help"]},
    epilog=_examples(
        "py2cu translate rgb2grey.py -o csrc   the .cu, .h and .cpp",
        "py2cu check rgb2grey.py               against its own Python, over many shapes and values",
        "py2cu explain P301                    what a diagnostic means",
        after="Exit codes: 0 fine, 1 a check failed, 2 the input was refused, 3 the environment lacks something.",
    ),
)
@click.version_option(__version__, message="py2cu %(version)s")
def app() -> None:
    """Write a kernel in Python, get CUDA C++ that you would sign, and evidence that the two agree."""


_TARGETS = click.Choice([str(name) for name in TargetName])
_FILES = click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
_KERNEL = click.option("--kernel", metavar="NAME", help="This kernel only.")


def _as_values(_: click.Context, __: click.Parameter, texts: tuple[str, ...]) -> Values:
    """`tile=16,32`: the name of a parameter and whole numbers."""
    values: dict[str, tuple[int, ...]] = {}
    for text in texts:
        name, numbers = text.split("=", 1) if "=" in text else (text, "")
        if not name.isidentifier() or not re.fullmatch(r"[0-9]{1,10}(,[0-9]{1,10})*", numbers):
            raise click.BadParameter(f"`{text}` is not of the form tile=16,32")
        given = tuple(map(int, numbers.split(",")))
        if wrong := [number for number in given if not is_constexpr_value(number)]:
            raise click.BadParameter(f"{wrong[0]} is more than {CONSTEXPR_MAX}")
        values[name] = (*values.get(name, ()), *given)
    return values


_CONSTEXPR = click.option(
    "--constexpr",
    "values",
    metavar="NAME=VALUE,...",
    multiple=True,
    callback=_as_values,
    help="Instances of templates: the values of a Constexpr[int] parameter.",
)


_NO_FMA = click.option(
    "--no-fma",
    "fma",
    flag_value=False,
    default=True,
    help="Round multiply-adds twice, as Python does: nvcc's --fmad=false.",
)


def _require_known(values: Values, signatures: Iterable[Signature]) -> None:
    """Refuse a name that `--constexpr` gives and no kernel has."""
    known = {name for signature in signatures for name in signature.constexpr_ints}
    for name in sorted(values.keys() - known):
        hint = did_you_mean(name, known, f"they have {', '.join(sorted(known)) or 'none'}")
        refuse(f"no kernel here has a `Constexpr[int]` parameter `{name}`\n  hint: {hint}")


def _as_target(_: click.Context, __: click.Parameter, value: str | None) -> TargetName | None:
    return None if value is None else TargetName(value)


def main() -> NoReturn:
    """The console script."""
    gc.set_threshold(100_000)  # a short run has little to collect: looking for it took a tenth of the time
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a comment in Greek must not fail in a terminal that has no Greek
            stream.reconfigure(errors="backslashreplace")
    app(prog_name="py2cu")
    raise SystemExit  # not reached: the app exits by itself


# --- translate -------------------------------------------------------------------------------------------------------


class _Translate(click.Command):
    """A command whose `--dump-ir` takes a value with `=` alone: click would read `--dump-ir FILE` as one."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)
        options = [f"{arg}=" if arg == "--dump-ir" else arg for arg in args[:end]]
        return super().parse_args(ctx, options + args[end:])


@app.command(
    cls=_Translate,
    epilog=_examples(
        "py2cu translate saxpy.py",
        "py2cu translate saxpy.py softmax.py -o csrc",
        "py2cu translate layers.py --kernel silu --target cpu",
        "py2cu translate layers.py --notes -o csrc",
        "py2cu translate tiled.py --constexpr tile=16,32",
        "py2cu translate saxpy.py --dump-ir=infer_types",
    ),
)
@_FILES
@click.option("-o", "--output", metavar="DIR", type=click.Path(path_type=Path), help="Write the texts here.")
@_KERNEL
@click.option(
    "--target",
    type=_TARGETS,
    default=TargetName.CUDA.value,
    callback=_as_target,
    show_default=True,
    help="The GPU, or the same kernels as C++ for the CPU.",
)
@_CONSTEXPR
@click.option("--notes", is_flag=True, help="Also say what could be faster.")
@click.option(
    "--dump-ir",
    "wanted",
    metavar="[=PASS|diff]",
    help="Print the last IR of each kernel in place of the texts, that after PASS, or what each pass changed.",
)
@exit_codes()
def translate(
    files: tuple[Path, ...],
    output: Path | None,
    kernel: str | None,
    target: TargetName,
    values: Values,
    notes: bool,
    wanted: str | None,
) -> None:
    """Print the C++ of kernels, or write it to files.

    The Python files are read, never imported or run.
    """
    if wanted is not None:
        dump_all(files, kernel, target, values, notes, wanted=wanted, has_output=output is not None)
        return
    translations = translate_all(files, kernel, target, values, notes)
    texts = [text for done in translations for text in done.artifacts(target).files]
    for done in translations:
        print_error(*map(rendered, done.notes))
    if output is None:
        click.echo("\n\n".join(f"// --- {text.name} ---\n\n{text.text.rstrip()}" for text in texts))
    else:
        write_texts(output, texts)


def translate_all(
    files: Sequence[Path], only: str | None, target: TargetName, values: Values = NO_VALUES, notes: bool = False
) -> list[Translation]:
    """Every file's translation, with the texts of `target` and instances for `values` of template arguments.

    Raises:
        Refused: with the errors of all the files.
    """
    from py2cu.pipeline import translate_file

    done: list[Translation] = []
    with collecting() as refusals:
        for path in files:
            with refusals.of(path):
                done.append(translate_file(SourceFile.read(path), only, [target], notes, values))
    _require_known(values, (signature for translation in done for signature in translation.signatures))
    return done


def dump_all(
    files: Sequence[Path],
    only: str | None,
    target: TargetName,
    values: Values,
    notes: bool,
    *,
    wanted: str,
    has_output: bool,
) -> None:
    """Print the IR of every kernel: the last, that after the pass `wanted`, or with `diff` what each pass changed.

    Raises:
        Refused: with the errors of all the files, once what there was before them is printed.
    """
    from py2cu.dump import DIFF, LAST, NAMES, ONLY_CPU, Dump
    from py2cu.passes.manager import observing
    from py2cu.passes.verified import verify_step

    if has_output:
        refuse("`--dump-ir` prints the IR and writes no texts\n  hint: leave out `-o`")
    if wanted not in (LAST, DIFF, *NAMES):
        hint = did_you_mean(wanted, (*NAMES, DIFF), "write one of these names")
        refuse(f"there is no pass `{wanted}`\n  hint: {hint}\n  passes: {', '.join(NAMES)}; or `{DIFF}`")
    if wanted in ONLY_CPU and target is not TargetName.CPU:
        refuse(f"the pass `{wanted}` runs for the CPU alone\n  hint: add `--target cpu`")
    dump = Dump()
    try:
        with observing(dump), observing(verify_step):
            done = translate_all(files, only, target, values, notes)
    finally:
        click.echo(dump.text(wanted), nl=False)
    for translation in done:
        print_error(*map(rendered, translation.notes))


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
            print_error(f"wrote {place}")
    except OSError as error:
        refuse(f"cannot write to {directory}: {error.strerror or error}")
    finally:
        for part, _ in parts:
            part.unlink(missing_ok=True)


# --- check and build -------------------------------------------------------------------------------------------------


@app.command(epilog=_examples("py2cu check saxpy.py", "py2cu check layers.py --kernel silu --device cpu"))
@_FILES
@_KERNEL
@click.option("--device", type=_TARGETS, callback=_as_target, help="Where to run; by default the GPU, if there is one.")
@_CONSTEXPR
@_NO_FMA
@click.option(
    "--unordered",
    metavar="NAME,...",
    multiple=True,
    help="Arrays whose elements may come in any order; several of one option are rearranged together.",
)
@click.option("--race", type=click.Choice(["same value"]), help="Accept races that write the value that is there.")
@exit_codes()
def check(
    files: tuple[Path, ...],
    kernel: str | None,
    device: TargetName | None,
    values: Values,
    fma: bool,
    unordered: tuple[str, ...],
    race: str | None,
) -> None:
    """Build kernels and compare each with its own Python.

    Over many shapes and values, each dtype's extremes among them. Imports the files. Exits with 1 where two differ;
    a kernel of which too little can be compared is not checked, which is no failure.
    """
    where = _device(device)
    from py2cu.build.library import library
    from py2cu.check.permutations import names_of_group, written_arrays
    from py2cu.check.progress import progress_bar
    from py2cu.check.run import check_kernel
    from py2cu.kernels import Kernel

    reports = []
    files_of_kernels = _loaded(files, kernel, values)
    _require_written(unordered, (each.signature for loaded in files_of_kernels for each in loaded.kernels))
    for loaded in files_of_kernels:
        for each in map(Kernel.with_small_values, loaded.kernels if fma else map(Kernel.without_fma, loaded.kernels)):
            with working(f"building {each.__name__} for {where}"):
                library(each.translation.artifacts(where), fma=fma, source=loaded.source)
            written = set(written_arrays(each.signature))
            groups = [text for text in unordered if written.issuperset(names_of_group(text))]
            what = f"checking {each.__name__} on {where}"
            with progress_bar(what) as progress:
                if progress is None:
                    print_error(f"{what} …")
                reports.append(
                    check_kernel(
                        each, device=where.value, contracts=fma, unordered=groups, race=race, progress=progress
                    )
                )
    show_reports(reports)
    if not all(report.ok for report in reports):
        raise click.exceptions.Exit(EXIT_CHECK_FAILED)


def _require_written(unordered: Sequence[str], signatures: Iterable[Signature]) -> None:
    """Refuse a group of arrays that `--unordered` gives and no kernel writes."""
    from py2cu.check.permutations import names_of_group, written_arrays

    written = [written_arrays(signature) for signature in signatures]
    for text in unordered:
        names = names_of_group(text)
        if not any(set(names) <= set(of_kernel) for of_kernel in written):
            known = sorted({name for of_kernel in written for name in of_kernel})
            unknown = next((name for name in names if name not in known), text)
            hint = did_you_mean(unknown, known, f"they write {', '.join(known) or 'none'}")
            refuse(f"no kernel here writes an array `{unknown}`\n  hint: {hint}")


def show_reports(reports: Sequence[CheckReport]) -> None:
    """Print one line a kernel, then failures, skipped cases and notes; on stderr, kernels that are not checked."""
    rows = [("kernel", "device", "cases", "compared", "accepted", "result")]
    rows += [(r.kernel, r.device, str(r.cases), str(r.compared), str(r.accepted), r.verdict.value) for r in reports]
    click.echo(table(rows))
    for report in reports:
        lines = [*report.findings(), *(f"  hint: {hint}" for hint in report.hints(_as_option))]
        if lines:
            click.echo("\n".join(["", f"`{report.kernel}` {report.verdict}", *lines]))
    for report in reports:
        if not report.checked and report.ok:
            print_error(f"{marked('warning', 'warning')}: `{report.kernel}` is not checked: {report.reason}")


def _as_option(_: str, option: str, values: Sequence[str]) -> str:
    """An option of `check` as it is typed."""
    return "`" + " ".join(f"--{option} {shlex.quote(value)}" for value in values) + "`"


@app.command(epilog=_examples("py2cu build layers.py", "py2cu build layers.py --target cpu"))
@_FILES
@_KERNEL
@click.option(
    "--target", type=_TARGETS, callback=_as_target, help="What to build for; by default the GPU, if there is one."
)
@_CONSTEXPR
@_NO_FMA
@exit_codes()
def build(files: tuple[Path, ...], kernel: str | None, target: TargetName | None, values: Values, fma: bool) -> None:
    """Fill the cache with every kernel, built.

    The first call of a kernel then finds it there. Imports the files.
    """
    where = target or _device(None)
    _require_torch()
    from py2cu.build.library import library

    for loaded in _loaded(files, kernel, values):
        for each in loaded.kernels:
            with working(f"building {each.__name__} for {where}"):
                path = library(each.translation.artifacts(where), fma=fma, source=loaded.source)
            click.echo(f"{each.__name__}: {path}")


def _loaded(files: Sequence[Path], only: str | None, values: Values) -> list[LoadedFile]:
    from py2cu.cli.loading import load_files

    done = load_files(files, only, values)
    _require_known(values, (kernel.signature for loaded in done for kernel in loaded.kernels))
    return done


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


def _codes_from(_: click.Context, __: click.Parameter, start: str) -> list[str]:
    return [code for code in CODES if code.startswith(start.upper())]


@app.command(epilog=_examples("py2cu explain P301", "py2cu explain        lists all codes"))
@click.argument("code", required=False, shell_complete=_codes_from)
@exit_codes()
def explain(code: str | None) -> None:
    """What a diagnostic means, and what to write.

    CODE is what stands in brackets, as in `error[P301]`.
    """
    if code is None:
        click.echo(table([("code", "meaning"), *((name, row.title) for name, row in CODES.items())]))
        return
    found = re.search(r"P\d{3}", code.upper())
    if found is None or found[0] not in CODES:
        refuse(f"there is no code {code}{_near(code)}\n  hint: `py2cu explain` lists them: {', '.join(CODES)}")
    click.echo(explanation(found[0]))


def _near(code: str) -> str:
    import difflib

    near = difflib.get_close_matches(code.upper().replace("O", "0"), CODES, 1)
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


@app.command(epilog=_examples("py2cu doctor        exits with 3 when `check` or `build` could not work here"))
@exit_codes()
def doctor() -> None:
    """What is here to build kernels with.

    And what to do about what is missing.
    """
    from py2cu.build.doctor import diagnose, exit_status

    findings = diagnose()
    lines = table([(item.component, item.state.value, item.detail) for item in findings]).splitlines()
    for item, line in zip(findings, lines, strict=True):
        click.echo(line)
        if item.hint:
            click.echo(f"    hint: {item.hint}")
    raise click.exceptions.Exit(exit_status(findings))
