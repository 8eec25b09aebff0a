"""Print the IR of kernels after a pass, or its changes: the text of `py2cu translate --dump-ir`.

In: the kernels before and after each pass, and a selection: the last IR (`""`), the IR after one pass, or `diff`.
Out: text, one part for each kernel or instance of a generic kernel. A refused kernel shows the IR before its first
error. If the selected pass did not run for a kernel, its part shows the IR at that point.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from py2cu.diagnostics import Reporter
from py2cu.ir.kernels import Kernel
from py2cu.ir.printer import print_kernel
from py2cu.ir.types import ArrayType
from py2cu.passes.manager import Step
from py2cu.pipeline import STEPS
from py2cu.targets.lowered import SEARCHES, SPLITTING, YIELDS
from py2cu.threads import with_deep_stack

LAST: Final = ""
DIFF: Final = "diff"
NAMES: Final = tuple(step.name for step in STEPS)
ONLY_CPU: Final = frozenset(step.name for step in (*SEARCHES, *YIELDS, *SPLITTING))


@dataclass(slots=True)
class PassHistory:
    """One kernel before and after each pass, and the pass that reported its first error, if any."""

    before: dict[str, Kernel] = field(default_factory=dict)
    after: dict[str, Kernel] = field(default_factory=dict)
    refused_by: str = ""

    def last_pass(self, name: str) -> str:
        """The last pass up to `name` that ran; "" if none did."""
        return next((each for each in reversed(NAMES[: NAMES.index(name) + 1]) if each in self.after), "")


@dataclass(slots=True)
class Dump:
    """Record the IR of a translation; an observer, called after each pass.

    Of a pass that runs twice, the last run is kept: for the CPU, declarations are placed again after a kernel is split.
    """

    kernels: dict[tuple[str, str, str], PassHistory] = field(default_factory=dict)  # by file, name and instance

    def __call__(self, step: Step, before: Kernel | None, after: Kernel, reporter: Reporter) -> None:
        history = self.kernels.setdefault((reporter.file.name, after.name, _instance(after)), PassHistory())
        if history.refused_by:
            return
        if reporter.failed:
            history.refused_by = step.name
        else:
            history.before[step.name], history.after[step.name] = before or after, after

    @with_deep_stack
    def text(self, selection: str) -> str:
        """The IR after the pass `selection`, the last one (`LAST`), or what each pass changed (`DIFF`)."""
        parts = [
            part
            for (file, name, instance), history in self._shown()
            for part in _text(history, selection, f"{name}{f' [{instance}]' if instance else ''} of {file}")
        ]
        return "\n".join(parts)

    def _shown(self) -> Iterator[tuple[tuple[str, str, str], PassHistory]]:
        """The kernels, and of a generic one the instances that were not refused, or the first if all were."""
        for key, history in self.kernels.items():
            instances = [each for (*other, _), each in self.kernels.items() if other == [*key[:2]]]
            if not history.refused_by or (history is instances[0] and all(each.refused_by for each in instances)):
                yield key, history


def _instance(kernel: Kernel) -> str:
    """The type variables of a generic kernel with their types: `T=float32`."""
    types = [p.type.dtype for p in kernel.parameters if isinstance(p.type, ArrayType)]
    bound = {dtype.variable.symbol: dtype.name for dtype in types if dtype.variable is not None}
    return ", ".join(f"{symbol}={name}" for symbol, name in bound.items())


def _text(history: PassHistory, selection: str, title: str) -> Iterator[str]:
    refused = f"; refused by {history.refused_by}" if history.refused_by else ""
    if selection == DIFF:
        yield f"# --- {title}{refused} ---\n"
        changes = (
            _difference(history.before[name], history.after[name], name) for name in NAMES if name in history.after
        )
        yield from filter(None, changes)
        return
    name = history.last_pass(selection or NAMES[-1])
    if not name:
        yield f"# --- {title}{refused}: there is no IR before its error ---\n"
        return
    skipped = f"; {selection} did not run" if selection not in (LAST, name) else ""
    yield f"# --- {title}, after {name}{skipped}{refused} ---\n\n{print_kernel(history.after[name])}"


def _difference(before: Kernel, after: Kernel, name: str) -> str:
    old, new = print_kernel(before).splitlines(), print_kernel(after).splitlines()
    lines = [*difflib.unified_diff(old, new, f"before {name}", f"after {name}", lineterm="")]
    return "".join(f"{line}\n" for line in lines)
