"""`py2cu translate`: print or write the C++ of kernels, or with `--dump-ir` their IR.

In: Python files, which are read and never imported or run. Out: texts on stdout or files in a directory; notes on
stderr. Promises: nothing is written unless every file was translated; no torch is loaded. Errors: `InputError` with the
errors of all files.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import click

from py2cu.cli.console import collecting, exit_codes, print_error, refuse, rendered
from py2cu.cli.parameters import (
    CONSTEXPR,
    FILES,
    KERNEL,
    NAMESPACE,
    SIGNATURE,
    TARGETS,
    as_target,
    examples,
    require_constexprs,
    require_functions,
    require_kernels,
)
from py2cu.options import NO_VALUES, Values
from py2cu.source import SourceFile
from py2cu.suggestions import did_you_mean
from py2cu.translation import TargetName, Text, Translation


class _Translate(click.Command):
    """A command whose `--dump-ir` takes a value only after `=`: click would read `--dump-ir FILE` as one."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        end = args.index("--") if "--" in args else len(args)  # rule: dump-ir-end
        options = [f"{arg}=" if arg == "--dump-ir" else arg for arg in args[:end]]  # rule: dump-ir-value
        return super().parse_args(ctx, options + args[end:])


@click.command(
    cls=_Translate,
    epilog=examples(
        "py2cu translate saxpy.py",
        "py2cu translate saxpy.py softmax.py -o csrc",
        "py2cu translate layers.py --kernel silu --target cpu",
        "py2cu translate layers.py --notes -o csrc",
        "py2cu translate tiled.py --constexpr tile=16,32",
        "py2cu translate layers.py --namespace mine -o csrc",
        "py2cu translate saxpy.py --dump-ir=infer_types",
    ),
)
@FILES
@click.option("-o", "--output", metavar="DIR", type=click.Path(path_type=Path), help="Write the texts here.")
@KERNEL
@click.option(
    "--target",
    type=TARGETS,
    default=TargetName.CUDA.value,
    callback=as_target,
    show_default=True,
    help="The GPU, or the same kernels as C++ for the CPU.",
)
@CONSTEXPR
@SIGNATURE
@NAMESPACE
@click.option("--notes", is_flag=True, help="Also show notes on performance.")
@click.option(
    "--dump-ir",
    "selection",
    metavar="[=PASS|diff]",
    help="Instead of the texts, print each kernel's IR at the end, after PASS, or the changes of each pass (diff).",
)
@exit_codes()
def translate(
    files: tuple[Path, ...],
    output: Path | None,
    kernel: str | None,
    target: TargetName,
    values: Values,
    signatures: tuple[str, ...],
    namespace: str,
    notes: bool,
    selection: str | None,
) -> None:
    """Print the C++ of kernels, or write it to files.

    The Python files are read, never imported or run.
    """
    if selection is not None:
        dump_all(files, kernel, target, values, notes, signatures, selection=selection, has_output=output is not None)
        return
    translations = translate_all(files, kernel, target, values, notes, signatures, namespace)
    texts = [text for done in translations for text in done.files(target)]
    for done in translations:
        print_error(*map(rendered, done.notes))
    if output is None:
        click.echo("\n\n".join(f"// --- {text.name} ---\n\n{text.text.rstrip()}" for text in texts))
    else:
        write_texts(output, texts)


def translate_all(
    files: Sequence[Path],
    only: str | None,
    target: TargetName,
    values: Values = NO_VALUES,
    notes: bool = False,
    signatures: Sequence[str] = (),
    namespace: str = "",
) -> list[Translation]:
    """Translate every file for `target`, with instances for `values` of template arguments, and these signatures.

    The launchers are in `namespace`.

    Raises:
        InputError: with the errors of all the files.
    """
    from py2cu.pipeline import translate_file

    require_functions(signatures, files)
    done: list[Translation] = []
    with collecting() as errors:
        for path in files:
            with errors.of(path):
                done.append(translate_file(SourceFile.read(path), only, [target], notes, values, signatures, namespace))
    found = [signature for translation in done for signature in translation.signatures]
    require_constexprs(values, found)
    require_kernels(signatures, {signature.name for signature in found})
    return done


def dump_all(
    files: Sequence[Path],
    only: str | None,
    target: TargetName,
    values: Values,
    notes: bool,
    signatures: Sequence[str] = (),
    *,
    selection: str,
    has_output: bool,
) -> None:
    """Print the IR of every kernel: the last, that after the pass `selection`, or with `diff` what each pass changed.

    Raises:
        InputError: with the errors of all the files, after the IR up to the errors is printed.
    """
    from py2cu.cli.dump import DIFF, LAST, NAMES, ONLY_CPU, Dump
    from py2cu.passes.manager import observing
    from py2cu.passes.verified import verify_step

    if has_output:
        refuse("`--dump-ir` prints the IR and writes no texts\n  hint: leave out `-o`")
    if selection not in (LAST, DIFF, *NAMES):
        hint = did_you_mean(selection, (*NAMES, DIFF), "write one of these names")
        refuse(f"there is no pass `{selection}`\n  hint: {hint}\n  passes: {', '.join(NAMES)}; or `{DIFF}`")
    if selection in ONLY_CPU and target is not TargetName.CPU:
        refuse(f"the pass `{selection}` runs for the CPU alone\n  hint: add `--target cpu`")
    dump = Dump()
    try:
        with observing(dump), observing(verify_step):
            done = translate_all(files, only, target, values, notes, signatures)
    finally:
        click.echo(dump.text(selection), nl=False)
    for translation in done:
        print_error(*map(rendered, translation.notes))


def write_texts(directory: Path, texts: Sequence[Text]) -> None:
    """Write all of `texts` to `directory`, or none: as temporary files first, which are then renamed.

    Raises:
        InputError: the directory cannot be written, or two texts have one name.
    """
    names = [text.name for text in texts]
    if repeated := sorted({name for name in names if names.count(name) > 1}):
        refuse(f"two of the files would write {directory / repeated[0]}: translate them to different directories")
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
