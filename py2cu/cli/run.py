"""`py2cu check` and `py2cu build`: import files and build their kernels.

In: Python files, which are imported. Out: of `check` a table of reports and their findings, of `build` the libraries'
paths, both on stdout. `check` exits with 1 if a kernel differs from its Python. Errors: `InputError` for files or
options that are refused, `EnvironmentLacks` without torch, a compiler or the device.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from py2cu import devices
from py2cu.cli.console import EXIT_CHECK_FAILED, exit_codes, marked, print_error, refuse, table, working
from py2cu.cli.parameters import (
    CONSTEXPR,
    FILES,
    KERNEL,
    NAMESPACE,
    NO_FMA,
    SIGNATURE,
    TARGETS,
    as_target,
    examples,
    require_constexprs,
    require_functions,
    require_kernels,
    require_namespace,
)
from py2cu.diagnostics import EnvironmentLacks
from py2cu.options import Values
from py2cu.suggestions import did_you_mean
from py2cu.translation import TargetName

if TYPE_CHECKING:
    from py2cu.check import CheckReport
    from py2cu.cli.loading import LoadedFile
    from py2cu.hosts.live.check import HostReport
    from py2cu.hosts.live.handle import Host
    from py2cu.ir.abi.signature import Signature
    from py2cu.kernels import Kernel


@click.command(epilog=examples("py2cu check saxpy.py", "py2cu check layers.py --kernel silu --device cpu"))
@FILES
@KERNEL
@click.option(
    "--device", type=TARGETS, callback=as_target, help="Device to run on; by default the GPU, if there is one."
)
@CONSTEXPR
@SIGNATURE
@NAMESPACE
@NO_FMA
@click.option(
    "--unordered",
    metavar="NAME,...",
    multiple=True,
    help="Arrays whose elements may come in any order; several in one option are permuted together.",
)
@click.option("--built", is_flag=True, help="Check what is built of the written files, not what calls compile.")
@click.option("--grad", "with_gradients", is_flag=True, help="Also compare gradients with numerical derivatives.")
@click.option("--race", type=click.Choice(["same value"]), help="Accept races that store the value already there.")
@exit_codes()
def check(
    files: tuple[Path, ...],
    kernel: str | None,
    device: TargetName | None,
    values: Values,
    signatures: tuple[str, ...],
    namespace: str,
    fma: bool,
    unordered: tuple[str, ...],
    built: bool,
    with_gradients: bool,
    race: str | None,
) -> None:
    """Build kernels and compare each with its own Python.

    Imports the files, and tries many shapes and values, including the extremes of each dtype. Exits with 1 if a kernel
    differs. If too few elements can be compared, a kernel counts as not checked, which is not a failure. With --grad,
    the gradients of kernels without a backward are passed over.
    """
    require_namespace(namespace, is_of_files=built, option="--built")
    device = _device(device)
    from py2cu.build.instances import fill_cache
    from py2cu.build.library import build_library
    from py2cu.check import check_gradients, check_kernel, names_of_group, progress_bar, written_arrays
    from py2cu.kernels import Kernel

    reports = []
    files_of_kernels = _loaded(files, kernel, values, signatures, namespace)
    _require_written(unordered, (each.signature for loaded in files_of_kernels for each in loaded.kernels))
    if with_gradients:
        _require_backwards([each for loaded in files_of_kernels for each in loaded.kernels])
    for loaded in files_of_kernels:
        for each in map(Kernel.with_small_values, loaded.kernels if fma else map(Kernel.without_fma, loaded.kernels)):
            with working(f"building {each.__name__} for {device}"):
                if built:
                    build_library(each.translation.artifacts(device), fma=fma, source=loaded.source)
                    each = each.with_translation(each.translation)
                else:
                    fill_cache(each._prepare().instances.translation(device), device, fma=fma, source=loaded.source)
            written = set(written_arrays(each.signature))
            groups = [text for text in unordered if written.issuperset(names_of_group(text))]
            what = f"checking {each.__name__} on {device}"
            with progress_bar(what) as progress:
                if progress is None:
                    print_error(f"{what} …")
                report = check_kernel(
                    each, device=device.value, contracts=fma, unordered=groups, race=race, progress=progress
                )
                has_gradients = with_gradients and each.backwards
                reports.append(check_gradients(each, report) if has_gradients else report)
    if not with_gradients and any(each.backwards for loaded in files_of_kernels for each in loaded.kernels):
        print_error("note: gradients are not compared; `--grad` compares them")
    if reports:
        show_reports(reports)
    of_hosts = [_checked_host(host) for loaded in files_of_kernels for host in loaded.hosts]
    if not (all(report.ok for report in reports) and all(report.ok for report in of_hosts)):
        raise click.exceptions.Exit(EXIT_CHECK_FAILED)


def _checked_host(host: Host) -> HostReport:
    """Build a host function, compare it with its Python, and print the report."""
    with working(f"checking {host.__name__}"):
        report = host.check()
    if report.unchecked:
        print_error(f"{marked('warning', 'warning')}: {report}")
    else:
        click.echo(str(report))
    return report


def _require_backwards(kernels: Sequence[Kernel]) -> None:
    """Refuse files in which no kernel has a backward; print the kernels that neither have nor are one."""
    attached = {backward.python for kernel in kernels for backward in kernel.backwards}
    without = [f"`{each.__name__}`" for each in kernels if not each.backwards and each.python not in attached]
    if not any(each.backwards for each in kernels):
        refuse("no kernel here has a backward\n  hint: attach one with `@NAME.backward`")
    if without:
        print_error(f"no backward, so that no gradient is checked: {', '.join(without)}")


def _require_written(unordered: Sequence[str], signatures: Iterable[Signature]) -> None:
    """Refuse a group of arrays in `--unordered` that no kernel writes."""
    from py2cu.check import names_of_group, written_arrays

    written = [written_arrays(signature) for signature in signatures]
    for text in unordered:
        names = names_of_group(text)
        if not any(set(names) <= set(of_kernel) for of_kernel in written):
            known = sorted({name for of_kernel in written for name in of_kernel})
            unknown = next((name for name in names if name not in known), text)
            hint = did_you_mean(unknown, known, f"they write {', '.join(known) or 'none'}")
            refuse(f"no kernel here writes an array `{unknown}`\n  hint: {hint}")


def show_reports(reports: Sequence[CheckReport]) -> None:
    """Print one line for each kernel, then failures, skipped cases and notes. Kernels not checked go to stderr."""
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
    """An option of `check` as a user types it."""
    return "`" + " ".join(f"--{option} {shlex.quote(value)}" for value in values) + "`"


@click.command(epilog=examples("py2cu build layers.py", "py2cu build layers.py --target cpu"))
@FILES
@KERNEL
@click.option(
    "--target", type=TARGETS, callback=as_target, help="Device to build for; by default the GPU, if there is one."
)
@CONSTEXPR
@SIGNATURE
@NAMESPACE
@NO_FMA
@click.option("--files", "of_files", is_flag=True, help="Build the written files, as a C++ program would.")
@exit_codes()
def build(
    files: tuple[Path, ...],
    kernel: str | None,
    target: TargetName | None,
    values: Values,
    signatures: tuple[str, ...],
    namespace: str,
    fma: bool,
    of_files: bool,
) -> None:
    """Build every kernel into the cache.

    The first call of a kernel then needs no compiler. With --files, the written files are built, and the libraries
    named. Imports the files.
    """
    require_namespace(namespace, is_of_files=of_files, option="--files")
    _require_torch()
    target = target or devices.best()
    from py2cu.build.instances import fill_cache
    from py2cu.build.library import build_library

    for loaded in _loaded(files, kernel, values, signatures, namespace):
        for each in loaded.kernels:
            with working(f"building {each.__name__} for {target}"):
                if of_files:
                    done = str(build_library(each.translation.artifacts(target), fma=fma, source=loaded.source))
                else:
                    code = each._prepare().instances.translation(target)
                    count = fill_cache(code, target, fma=fma, source=loaded.source)
                    done = f"{count} instance{'s' * (count != 1)}"
            click.echo(f"{each.__name__}: {done}")
        for host in loaded.hosts:
            with working(f"building {host.__name__}"):
                host.build()
            click.echo(f"{host.__name__}: {host.library}")


def _loaded(
    files: Sequence[Path], only: str | None, values: Values, signatures: Sequence[str], namespace: str
) -> list[LoadedFile]:
    """Import the files; refuse an option `--constexpr` or `--signature` that no kernel has."""
    from py2cu.cli.loading import load_files

    require_functions(signatures, files)
    done = load_files(files, only, values, signatures, namespace)
    found = [kernel.signature for loaded in done for kernel in loaded.kernels]
    require_constexprs(values, found)
    require_kernels(signatures, {signature.name for signature in found})
    return done


def _device(requested: TargetName | None) -> TargetName:
    """The device to run on: `requested`, else the best one here.

    Raises:
        EnvironmentLacks: torch is missing, or there is no GPU and one is requested.
    """
    _require_torch()
    best = devices.best()
    if requested is TargetName.CUDA and best is not TargetName.CUDA:
        raise EnvironmentLacks("torch finds no CUDA device here", "see `py2cu doctor`, or use --device cpu")
    return requested or best


def _require_torch() -> None:
    try:
        import torch  # noqa: F401
    except (ImportError, OSError) as error:
        raise EnvironmentLacks(f"this command needs torch: {error}", "pip install 'torch>=2.11'") from None
