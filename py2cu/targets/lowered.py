"""Kernels without errors: the passes of each target, and the texts, which are rendered when they are asked for.

In: lowered kernels, from `pipeline.py`. Out: files, or what calls need. Nothing here needs torch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Final, TypeVar

from py2cu import ir
from py2cu.collector import collector_paused
from py2cu.diagnostics import Diagnostic, Reporter
from py2cu.ir.abi.signature import Signature
from py2cu.ir.verify import Stage, verify
from py2cu.passes.lowering.loops import make_counting_loops
from py2cu.passes.lowering.place_declarations import place_declarations
from py2cu.passes.lowering.structured_bindings import make_structured_bindings
from py2cu.passes.manager import Step, everywhere, passes, run_passes, show
from py2cu.targets.cpu.hide_counters import hide_counters
from py2cu.targets.cpu.inline_collectives import CannotSplit, runs_in_blocks
from py2cu.targets.cpu.insert_yields import insert_yields
from py2cu.targets.cpu.split_at_barriers import split_at_barriers
from py2cu.targets.cuda.invert_divisors import invert_divisors
from py2cu.targets.cuda.pack_elements import pack_elements
from py2cu.targets.cuda.wide_products import multiply_wide
from py2cu.targets.cxx.naming import rename
from py2cu.targets.cxx.symbols.declare_constants import declare_constants
from py2cu.targets.cxx.symbols.uniquify_symbols import uniquify_symbols
from py2cu.targets.render import render, render_for_calls
from py2cu.threads import with_deep_stack
from py2cu.translation import Artifacts, CallText, CallTranslation, TargetName, Text, Translation

Texts = TypeVar("Texts", Artifacts, CallText)

# For CUDA: divisions of halves, products of 32-bit numbers; a thread computes neighbouring elements.
PACKING: Final = passes(Stage.LOWERED, everywhere(invert_divisors), everywhere(multiply_wide), pack_elements)
# For the CPU. The threads of a block run one after the other there: spin loops yield, and kernels split at barriers.
SEARCHES: Final = passes(Stage.LOWERED, everywhere(hide_counters))
YIELDS: Final = passes(Stage.LOWERED, insert_yields)
SPLITTING: Final = passes(Stage.LOWERED, split_at_barriers)
# The last form before emission. `uniquify_symbols` sees all kernels of a file at once.
FINISHES: Final = passes(
    Stage.FINISHED,
    everywhere(place_declarations),
    everywhere(make_structured_bindings),
    everywhere(make_counting_loops),
    rename,
)
UNIQUIFY: Final = Step("uniquify_symbols", Stage.FINISHED)


@dataclass(frozen=True, slots=True)
class Lowered:
    """Kernels without errors, of which texts are rendered when they are asked for."""

    name: str
    families: tuple[ir.Instances, ...]
    finished: tuple[ir.Instances, ...]  # the same after the last passes
    operators: tuple[Signature, ...]  # of the bindings, which take arrays where calls in Python allocate them
    signatures: tuple[Signature, ...]
    notes: tuple[Diagnostic, ...]
    reporter: Reporter
    namespace: str = ""  # of the launchers
    host: Text | None = None  # of the host functions, where the file has some

    def files(self, targets: Iterable[TargetName] = TargetName) -> Translation:
        """The files of these targets."""
        file = self.reporter.file.name
        texts, obstacles = self._rendered(
            targets, lambda kernels, target: render(self.name, file, kernels, self.operators, target, self.namespace)
        )
        return Translation(self.name, file, self.signatures, self.notes, texts, obstacles, self.host)

    def for_calls(self, *targets: TargetName) -> CallTranslation:
        """What calls on these targets need."""
        texts, obstacles = self._rendered(targets, lambda kernels, target: render_for_calls(self.name, kernels, target))
        return CallTranslation(self.name, self.reporter.file.name, self.signatures, self.notes, texts, obstacles)

    @with_deep_stack
    @collector_paused()
    def _rendered(
        self, targets: Iterable[TargetName], make: Callable[[tuple[ir.Instances, ...], TargetName], Texts]
    ) -> tuple[dict[TargetName, Texts], dict[TargetName, str]]:
        """What `make` makes of the kernels for each target, and why targets have none."""
        texts: dict[TargetName, Texts] = {}
        obstacles: dict[TargetName, str] = {}
        for target in targets:
            try:
                of_target = _for_cuda if target is TargetName.CUDA else _for_cpu
                texts[target] = make(of_target(self.families, self.finished, self.reporter), target)
            except CannotSplit as obstacle:
                obstacles[target] = str(obstacle)
        return texts, obstacles


def _for_cuda(
    families: tuple[ir.Instances, ...], finished: tuple[ir.Instances, ...], reporter: Reporter
) -> tuple[ir.Instances, ...]:
    """The kernels as the CUDA target emits them."""
    packed = tuple(tuple(run_passes(PACKING, kernel, reporter) for kernel in family) for family in families)
    return finished if packed == families else finish(packed, reporter)


def _for_cpu(
    families: tuple[ir.Instances, ...], finished: tuple[ir.Instances, ...], reporter: Reporter
) -> tuple[ir.Instances, ...]:
    """The kernels as the CPU target emits them.

    Raises:
        CannotSplit: it cannot run a kernel whose threads cooperate.
    """
    hidden = tuple(tuple(run_passes(SEARCHES, kernel, reporter) for kernel in family) for family in families)
    yielding = tuple(tuple(run_passes(YIELDS, kernel, reporter) for kernel in family) for family in hidden)
    if hidden == families and not any(map(runs_in_blocks, chain.from_iterable(yielding))):
        return finished
    return finish(
        tuple(
            tuple(run_passes(SPLITTING if runs_in_blocks(each) else (), each, reporter) for each in family)
            for family in yielding
        ),
        reporter,
    )


def finish(families: tuple[ir.Instances, ...], reporter: Reporter) -> tuple[ir.Instances, ...]:
    """Lowered kernels with declarations and with symbols that are unique in the file."""
    declared = tuple(tuple(run_passes(FINISHES, kernel, reporter) for kernel in family) for family in families)
    uniquified = declare_constants(uniquify_symbols(declared))
    for before, after in zip(chain.from_iterable(declared), chain.from_iterable(uniquified), strict=True):
        show(UNIQUIFY, before, after, reporter)
        verify(after, UNIQUIFY.stage)
    return uniquified
