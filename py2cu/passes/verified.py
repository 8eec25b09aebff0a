"""Verifies the kernel after every pass: the rules of its stage, that no statement was dropped without an
`Elided`, and after `add_guards` that no thread past the end accesses an array.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from py2cu import ir
from py2cu.analysis.accesses import find_accesses
from py2cu.analysis.account import dropped, untranslated
from py2cu.diagnostics import InternalError, Reporter
from py2cu.ir.printer import print_expr
from py2cu.ir.verify import Stage, verify
from py2cu.passes.manager import Step
from py2cu.source import Span

_LAST_VERIFIED: Final[list[tuple[ir.Kernel | None, Stage]]] = [(None, Stage.UNTYPED)]
"""The kernel that was verified last, and its stage. Most passes return the kernel that they get."""


def verify_step(step: Step, before: ir.Kernel | None, after: ir.Kernel, reporter: Reporter) -> None:
    """Verify the kernel that `step` produced; a refused kernel is skipped.

    Raises:
        InternalError: the kernel breaks a rule of its stage, or a statement is missing.
    """
    if reporter.failed:
        return
    for what, span in _dropped(before, after, reporter):
        raise InternalError(f"`{step.name}` dropped a {what} of `{after.name}`", span)
    if step.name == "add_guards":
        for index, span in _unguarded(after):
            raise InternalError(f"an access of `{after.name}` lacks its guard on `{index}`", span)
    kernel, stage = _LAST_VERIFIED[0]
    if kernel is not after or stage is not step.stage:
        verify(after, step.stage)
        _LAST_VERIFIED[0] = after, step.stage


def _dropped(before: ir.Kernel | None, after: ir.Kernel, reporter: Reporter) -> Iterator[tuple[str, Span]]:
    if before is not None:
        if before is not after:
            yield from dropped(before, after)
        return
    for function in (after, *after.functions):
        file = function.origin.file if function.origin is not None else reporter.file
        yield from untranslated(function, file)


def _unguarded(kernel: ir.Kernel) -> Iterator[tuple[str, Span]]:
    """The accesses of `kernel.predicated` that threads past the end reach, with the index that no test bounds."""
    guards_by_end = {(site.line, site.column): site.guards for site in kernel.predicated}
    for access in filter(lambda access: access.place.array, find_accesses(kernel)):
        bounded = {print_expr(limit.index) for limit in access.limits}
        for guard in guards_by_end.get((access.span.end_line, access.span.end_column), ()):
            if guard.index not in bounded:
                yield guard.index, access.span
