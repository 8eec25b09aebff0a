"""Checks each `@NAME.backward` of a file that `py2cu translate` reads. For calls, `call/gradients.py` does the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from py2cu.diagnostics import Reporter, TranslationError
from py2cu.frontend.source.reader import KernelSource, Module
from py2cu.ir.abi.gradients import match_backwards
from py2cu.ir.abi.signature import Signature


def check_backwards(
    module: Module,
    chosen: Mapping[str, Signature],
    signature: Callable[[KernelSource], Signature | None],
    reporter: Reporter,
) -> None:
    """Check that every chosen `@NAME.backward` fits the kernel NAME; `signature` finds that of any kernel of the file.

    Raises:
        TranslationError: one does not.
    """
    forwards = [source.forward for source in module.kernels]
    for source in module.kernels:
        attached = [each for each, to in zip(module.kernels, forwards, strict=True) if to is source.function]
        # rule: backward-checked
        if any(each.function.name.value in chosen for each in attached) and (forward := signature(source)):
            backwards = [found for each in attached if (found := signature(each))]
            for misfit in match_backwards(forward, backwards).misfits:
                if backwards[misfit.place] in chosen.values():
                    reporter.error("P412", misfit.message, misfit.parameter.span, misfit.hint)
    if reporter.failed:
        raise TranslationError(reporter.sorted)
