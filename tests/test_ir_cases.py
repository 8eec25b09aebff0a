"""Passes as data: the IR before and after each, printed from a case's Python.

Each file in `tests/cases/ir` is a sentence, `=== python`, and for the passes that it is about `=== ir-before PASS` and
`=== ir-after PASS`: the IR, or `unchanged`, or `refused`. `=== said PASS` has what the pass reported. A file called
after a pass is about that pass, until it says otherwise. `pytest --update-golden` rewrites what is printed.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from py2cu.cli.dump import NAMES, ONLY_CPU
from py2cu.diagnostics import Diagnostic, Reporter, TranslationError
from py2cu.ir.kernels import Kernel
from py2cu.ir.printer import print_kernel
from py2cu.passes.manager import Step, observing
from py2cu.pipeline import translate_file
from py2cu.source import SourceFile
from py2cu.translation import TargetName
from tests.test_kernel_cases import Case, read_case, write_case

CASES = sorted((Path(__file__).parent / "cases" / "ir").glob("*.case"))
KINDS = ("ir-before", "ir-after", "said")


@dataclass
class Shown:
    """What one pass made of the kernels of a file, by name."""

    before: dict[str, Kernel | None] = field(default_factory=dict)
    after: dict[str, Kernel] = field(default_factory=dict)
    said: list[Diagnostic] = field(default_factory=list)

    def sections(self, name: str) -> dict[str, str]:
        before = "\n".join(print_kernel(kernel) for kernel in self.before.values() if kernel is not None)
        after = "\n".join(map(print_kernel, self.after.values()))
        said = "".join(f"{d.span.line - 1}: {d.severity.value}[{d.code}]: {d.message}\n" for d in self.said)
        is_refused = any(d.severity.value == "error" for d in self.said)
        outcome = "refused\n" if is_refused else "unchanged\n" if after == before else after
        texts = {"ir-before": before, "ir-after": outcome, "said": said}
        return {f"{kind} {name}": text for kind, text in texts.items() if text}


def passes_of(case: Case) -> list[str]:
    """The passes that a case is about, in the order in which they run."""
    named = {name for kind, _, name in (title.partition(" ") for title in case.sections) if kind in KINDS}
    return [name for name in NAMES if name in (named or {case.path.stem})]


def shown(case: Case, names: Iterable[str]) -> dict[str, Shown]:
    """What each of these passes made of the case."""
    found = {name: Shown() for name in names}
    known: set[Diagnostic] = set()

    def keep(step: Step, before: Kernel | None, after: Kernel, reporter: Reporter) -> None:
        if step.name in found:
            one = found[step.name]
            one.before[after.name], one.after[after.name] = before, after
            one.said += (diagnostic for diagnostic in reporter.sorted if diagnostic not in known)
        known.update(reporter.sorted)

    target = TargetName.CPU if ONLY_CPU.intersection(found) else TargetName.CUDA
    with observing(keep):
        try:
            translate_file(SourceFile(f"{case.path.stem}.py", case.python), targets=[target], notes=True)
        except TranslationError:
            assert any(one.said for one in found.values()), "the passes that the case is about report nothing"
    return found


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_passes_do_as_kept(path, request):
    case = read_case(path)
    printed: dict[str, str] = {}
    for name, one in shown(case, passes_of(case)).items():
        printed |= one.sections(name)
    if request.config.getoption("--update-golden"):
        write_case(dataclasses.replace(case, sections={"python": case.sections["python"], **printed}))
        return
    kept = {title: text for title, text in case.sections.items() if title != "python"}
    assert printed == kept


def test_every_pass_has_a_case_in_which_it_does_something():
    idle = set(NAMES)
    for path in CASES:
        case = read_case(path)
        for name in passes_of(case):
            is_first = name == "read_kernel"
            if is_first or f"said {name}" in case.sections or case.sections[f"ir-after {name}"] != "unchanged\n":
                idle.discard(name)
    assert not idle, f"add a case to tests/cases/ir for {', '.join(sorted(idle))}"
