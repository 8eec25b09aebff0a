"""Verifies the kernel after every pass: by the rules of its stage, and that no statement was dropped unaccounted."""

from __future__ import annotations

from collections.abc import Iterator

from py2cu.analysis.account import lost, unread
from py2cu.diagnostics import InternalError, Reporter
from py2cu.ir.kernels import Kernel
from py2cu.ir.verify import verify
from py2cu.passes.manager import Step
from py2cu.source import Span


def verify_step(step: Step, before: Kernel | None, after: Kernel, reporter: Reporter) -> None:
    """Verify what `step` made; a kernel that was refused is not judged.

    Raises:
        InternalError: it breaks a rule of its stage, or lacks a statement.
    """
    if reporter.failed:
        return
    for what, span in _dropped(before, after, reporter):
        raise InternalError(f"`{step.name}` dropped a {what} of `{after.name}`", span)
    verify(after, step.stage)


def _dropped(before: Kernel | None, after: Kernel, reporter: Reporter) -> Iterator[tuple[str, Span]]:
    if before is not None:
        yield from lost(before, after)
        return
    for function in (after, *after.functions):
        file = function.origin.file if function.origin is not None else reporter.file
        yield from unread(function, file)
