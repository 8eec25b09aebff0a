"""Arguments and options that several commands share, and the examples under a command's help.

In: what a user types. Out: values of py2cu's own types, such as `Values` for `--constexpr tile=16,32`.
Errors: click's, for a value that cannot be read; `InputError` for a name that no kernel has.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final, NoReturn

import click

from py2cu.cli.console import InputError, exit_codes, refuse, rendered
from py2cu.diagnostics import Diagnostic, Severity
from py2cu.ir.abi.parameters import CONSTEXPR_MAX, is_constexpr_value
from py2cu.options import Values
from py2cu.source import SourceFile, Span
from py2cu.suggestions import did_you_mean
from py2cu.translation import TargetName

if TYPE_CHECKING:
    from py2cu.ir.abi.signature import Signature


def examples(*lines: str, after: str = "") -> str:
    r"""The end of a command's help; `\b` keeps click from wrapping it."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines), "", after])


def as_target(_: click.Context, __: click.Parameter, value: str | None) -> TargetName | None:
    """The value of `--target` or `--device`."""
    return None if value is None else TargetName(value)


def _as_values(_: click.Context, __: click.Parameter, texts: tuple[str, ...]) -> Values:
    """The values of `--constexpr`: each text is `tile=16,32`, the name of a parameter and whole numbers."""
    values: dict[str, tuple[int, ...]] = {}
    for text in texts:
        name, numbers = text.split("=", 1) if "=" in text else (text, "")
        if not name.isidentifier() or not re.fullmatch(r"[0-9]{1,10}(,[0-9]{1,10})*", numbers):
            raise click.BadParameter(f"`{text}` is not of the form tile=16,32")
        parsed = tuple(map(int, numbers.split(",")))
        if wrong := [number for number in parsed if not is_constexpr_value(number)]:
            raise click.BadParameter(f"{wrong[0]} is more than {CONSTEXPR_MAX}")
        values[name] = (*values.get(name, ()), *parsed)
    return values


@exit_codes()
def _as_signatures(_: click.Context, __: click.Parameter, texts: tuple[str, ...]) -> tuple[str, ...]:
    """The texts of `--signature`, each of which can be read."""
    from py2cu.frontend.numba.signatures import read_signature

    for text in texts:
        try:
            read_signature(text)
        except ValueError as error:
            _refuse_signature(text, str(error), "write Numba's types, as in `scale(float32[:], int32)`")
    return texts


def _refuse_signature(text: str, message: str, hint: str) -> NoReturn:
    """Refuse the value of `--signature`, with a caret under what `message` quotes first, or under all of it.

    Raises:
        InputError: always.
    """
    _, quoted, *_ = message.split("`")
    start = text.find(quoted)
    span = Span(1, start, 1, start + len(quoted)) if start >= 0 else Span(1, 0, 1, len(text))
    item = Diagnostic(Severity.ERROR, "P301", message, span, SourceFile("--signature", text), hint)
    raise InputError([rendered(item)], 1)


def _as_namespace(_: click.Context, __: click.Parameter, text: str) -> str:
    """The value of `--namespace`: `mine` or `mine::kernels`, names that nothing else in the texts has."""
    from py2cu.ir.header_names import is_declared
    from py2cu.passes.lowering.identifiers import spell_identifier

    for name in text.split("::") if text else ():
        if name == "cuda" or not name.isidentifier() or spell_identifier(name) != name or is_declared(name):
            raise click.BadParameter(f"`{name}` cannot name a namespace of the emitted C++")
    return text


def require_namespace(namespace: str, *, is_of_files: bool, option: str) -> None:
    """Refuse `--namespace` where no written files are built.

    Raises:
        InputError: with the option that builds them.
    """
    if namespace and not is_of_files:
        refuse(f"`--namespace` is that of the written files, which calls do not compile\n  hint: add `{option}`")


def require_functions(signatures: Iterable[str], files: Iterable[Path]) -> None:
    """Refuse a name in `--signature` that no function of the files has, before the kernel that is meant lacks types.

    Raises:
        InputError: for the first such name, with the nearest known one.
    """
    if signatures:
        texts = (path.read_text(encoding="utf-8", errors="replace") for path in files if path.is_file())
        require_kernels(signatures, {name for text in texts for name in _FUNCTION.findall(text)})


def require_kernels(signatures: Iterable[str], names: Collection[str]) -> None:
    """Refuse a name in `--signature` that no kernel has.

    Raises:
        InputError: for the first such name, with the nearest known one.
    """
    from py2cu.frontend.numba.signatures import read_signature

    for text in signatures:
        name = read_signature(text).name
        if name is not None and name not in names:
            hint = did_you_mean(name, names, f"there are {', '.join(sorted(names))}")
            _refuse_signature(text, f"no kernel here is called `{name}`", hint)


def require_constexprs(values: Values, signatures: Iterable[Signature]) -> None:
    """Refuse a name in `--constexpr` that no kernel has.

    Raises:
        InputError: for the first such name, with the nearest known one.
    """
    known = {name for signature in signatures for name in signature.constexpr_ints}
    for name in sorted(values.keys() - known):
        hint = did_you_mean(name, known, f"they have {', '.join(sorted(known)) or 'none'}")
        refuse(f"no kernel here has a `Constexpr[int]` parameter `{name}`\n  hint: {hint}")


_FUNCTION: Final = re.compile(r"^\s*def (\w+)", re.MULTILINE)

TARGETS = click.Choice([str(name) for name in TargetName])
FILES = click.argument("files", metavar="FILE...", nargs=-1, required=True, type=click.Path(path_type=Path))
KERNEL = click.option("--kernel", metavar="NAME", help="Only the kernel of this name.")
CONSTEXPR = click.option(
    "--constexpr",
    "values",
    metavar="NAME=VALUE,...",
    multiple=True,
    callback=_as_values,
    help="The values of a Constexpr[int] parameter to make template instances for.",
)
SIGNATURE = click.option(
    "--signature",
    "signatures",
    metavar="TYPES",
    multiple=True,
    callback=_as_signatures,
    help='The types of a kernel under Numba\'s @cuda.jit: "scale(float32[:], int32)", or of all, without a name.',
)
NAMESPACE = click.option(
    "--namespace",
    metavar="NAME",
    default="",
    callback=_as_namespace,
    help="The C++ namespace of the launchers, as in mine::kernels; by default they are global.",
)
NO_FMA = click.option(
    "--no-fma",
    "fma",
    flag_value=False,
    default=True,
    help="Round multiply-adds twice, as Python does: nvcc's --fmad=false.",
)
