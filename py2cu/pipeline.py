"""The whole compiler on one screen: source → kernels → passes → texts.

    read_module → read_kernel → PASSES → render, once a target → Translation

Each stage reports what it finds wrong and goes on; the errors of a file are raised together. Nothing here needs torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from itertools import chain
from pathlib import PurePath
from typing import Final

from py2cu.diagnostics import Reporter, TranslationError
from py2cu.frontend.kernels import read_kernel
from py2cu.frontend.reader import KernelSource, Module, read_module
from py2cu.ir.signature import signature_of
from py2cu.ir.statements import Kernel
from py2cu.ir.verify import verify
from py2cu.options import KernelOptions
from py2cu.passes.add_guards import add_guards
from py2cu.passes.check_assigned import check_assigned
from py2cu.passes.check_dims import check_dims
from py2cu.passes.choose_widths import choose_widths
from py2cu.passes.evaluate_once import evaluate_once
from py2cu.passes.find_roles import find_roles
from py2cu.passes.flatten_subscripts import flatten_subscripts
from py2cu.passes.infer_types import infer_types
from py2cu.passes.lower_loops import lower_loops
from py2cu.passes.lower_semantics import lower_semantics
from py2cu.passes.narrow_floats import narrow_floats
from py2cu.passes.place_declarations import place_declarations
from py2cu.passes.rename import rename, spell_identifier
from py2cu.passes.resolve_extents import resolve_extents
from py2cu.passes.separate_dims import separate_dims
from py2cu.render import render
from py2cu.source import SourceFile
from py2cu.translation import TargetName, Translation

Pass = Callable[[Kernel, Reporter], Kernel]

# What the Python says: these report errors. Names are judged even where something could not be read, types where all
# could, the rest where nothing was wrong, so that one run shows as much as can be trusted.
NAMES: Final[tuple[Pass, ...]] = (separate_dims, resolve_extents, check_assigned)
TYPES: Final[tuple[Pass, ...]] = (infer_types,)
EFFECTS: Final[tuple[Pass, ...]] = (add_guards, find_roles, check_dims)
# What C needs: these rewrite kernels that are right.
LOWERINGS: Final[tuple[Pass, ...]] = (
    lower_loops,
    evaluate_once,
    choose_widths,
    flatten_subscripts,
    lower_semantics,
    narrow_floats,
    place_declarations,
    rename,
)


def translate_file(
    file: SourceFile, only: str | None = None, targets: Iterable[TargetName] = TargetName
) -> Translation:
    """Every kernel of a file, or the one called `only`.

    Raises:
        TranslationError: with all the errors of the file.
    """
    reporter = Reporter(file)
    module = read_module(file, reporter)
    sources = _chosen(module, only, reporter) if module else ()
    return _translate(_stem(file), module, [(source, None) for source in sources], targets, reporter)


def translate_function(
    file: SourceFile, line: int, name: str, options: KernelOptions, live: Mapping[str, object]
) -> Translation:
    """The one function `name` at `line`, with the options and globals that the decorator has in hand.

    Raises:
        TranslationError: with all the errors of the function.
    """
    reporter = Reporter(file)
    module = read_module(file, reporter, live)
    source = module.function_at(line, name) if module else None
    return _translate(options.name or name, module, [(source, options)] if source else [], TargetName, reporter)


def _translate(
    name: str,
    module: Module | None,
    sources: Iterable[tuple[KernelSource, KernelOptions | None]],
    targets: Iterable[TargetName],
    reporter: Reporter,
) -> Translation:
    assert module is not None or reporter.failed
    kernels = tuple(compile_kernel(module, *source, reporter) for source in sources if module is not None)
    if reporter.failed:
        raise TranslationError(reporter.sorted)
    kernels = _with_unique_names(kernels)
    name = spell_identifier(name)
    source_name = PurePath(reporter.file.name).name
    return Translation(
        name=name,
        python_file=reporter.file.name,
        signatures=tuple(signature_of(kernel) for kernel in kernels),
        notes=reporter.sorted,
        texts={target: render(name, source_name, kernels, target) for target in targets},
    )


def _with_unique_names(kernels: tuple[Kernel, ...]) -> tuple[Kernel, ...]:
    """Kernels of one file get C++ names of their own, also where two Python names come out alike."""
    taken: set[str] = set()
    done = []
    for kernel in kernels:
        name = kernel.symbol
        while name in taken:
            name += "_"
        taken.add(name)
        if name != kernel.symbol:
            kernel = replace(kernel, symbol=name)
        done.append(kernel)
    return tuple(done)


def compile_kernel(module: Module, source: KernelSource, options: KernelOptions | None, reporter: Reporter) -> Kernel:
    """One function as IR that the targets can spell; as far as it got, where `reporter` holds errors."""
    local = Reporter(reporter.file)
    kernel = read_kernel(module, source, local, options)
    stages = (NAMES, () if local.failed else TYPES)
    for analyse in chain(*stages):
        kernel = analyse(kernel, local)
    if not local.failed:
        for analyse in EFFECTS:
            kernel = analyse(kernel, local)
    if not local.failed:
        for lower in LOWERINGS:
            kernel = lower(kernel, local)
        verify(kernel)
    for item in local.found:
        if item not in reporter.found:
            reporter.found.append(item)
    return kernel


def _chosen(module: Module, only: str | None, reporter: Reporter) -> tuple[KernelSource, ...]:
    from py2cu.source import Span

    chosen = tuple(s for s in module.kernels if only is None or s.function.name.value == only)
    if not chosen:
        message = f"there is no kernel called `{only}`" if only else "there is no kernel in this file"
        hint = "decorate a function with `@kernel` from py2cu"
        if only and module.kernels:
            hint = f"its kernels are {', '.join(s.function.name.value for s in module.kernels)}"
        reporter.error("P107", message, Span(1, 0, 1, 1), hint)
    names: dict[str, KernelSource] = {}
    for source in chosen:
        name = source.function.name.value
        if name in names:
            reporter.error("P107", f"two kernels are called `{name}`", module.span(source.function.name))
        names[name] = source
    return chosen


def _stem(file: SourceFile) -> str:
    stem = PurePath(file.name).stem
    return stem if stem.isidentifier() else "".join(c if c.isalnum() else "_" for c in stem) or "kernels"
