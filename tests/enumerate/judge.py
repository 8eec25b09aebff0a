"""The verdict on programs: CPython runs each, py2cu translates, simulates and compiles it, and both are compared.

In: sources, a device. Out: a `Verdict` each, in order.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from py2cu.diagnostics import Severity, TranslationError
from py2cu.pipeline import translate_file
from py2cu.source import SourceFile
from py2cu.translation import Translation
from tests.enumerate import simulated
from tests.enumerate.arguments import WIDTH, Rows, X
from tests.enumerate.expected import Expected, expect
from tests.enumerate.launches import Fault, Job, Launched, launch
from tests.support.emulator import is_within_reach
from tests.support.libraries import Device


class Outcome(enum.StrEnum):
    """What came of a program."""

    AGREES = "agrees"
    REFUSED = "refused"
    REPORTED = "reported"  # by the simulator, in every thread that CPython runs
    EXCLUDED = "CPython raises"
    DIFFERS = "differs"
    CRASHES = "crashes"
    HANGS = "hangs"
    RAISES = "the launch fails"
    BREAKS = "the translator breaks"
    UNCOMPILED = "does not compile"


_OF_FAULT: Final = {
    Fault.CRASHES: Outcome.CRASHES, Fault.HANGS: Outcome.HANGS, Fault.RAISES: Outcome.RAISES,
    Fault.UNCOMPILED: Outcome.UNCOMPILED,
}  # fmt: skip
FINE: Final = (Outcome.AGREES, Outcome.REFUSED, Outcome.REPORTED, Outcome.EXCLUDED)


@dataclass(slots=True)
class Verdict:
    """An outcome. `code`: of a refusal. `simulator`: what it says where CPython computes, by kind."""

    outcome: Outcome
    message: str = ""
    code: str = ""
    source: str = ""
    expected: list[int] = field(default_factory=list)  # the elements of `y` of the first thread that differs
    got: list[int] = field(default_factory=list)
    extremes: tuple[int, int] = 0, 0  # of the integers that CPython computes in this thread
    simulator: dict[str, str] = field(default_factory=dict)

    @property
    def is_fault(self) -> bool:
        return self.outcome not in FINE

    @property
    def is_fault_of_simulator(self) -> bool:
        """Whether the simulator differs from CPython, or refuses what it computes within 64 bits."""
        return any(map(simulated.is_fault, self.simulator))


def judge(sources: Sequence[str], device: Device) -> list[Verdict]:
    """A verdict on each source, in order."""
    verdicts: list[Verdict] = []
    jobs: dict[int, Job] = {}
    programs: dict[int, tuple[Expected, Rows]] = {}
    for number, source in enumerate(sources):
        expected = expect(source)
        if expected is None:
            verdicts.append(Verdict(Outcome.EXCLUDED, source=source))
            continue
        translation = translate(expected.source, device)
        if isinstance(translation, Verdict):
            verdicts.append(translation)
            continue
        rows, said = simulated.clean_rows(expected, translation.signatures[0])
        verdicts.append(Verdict(Outcome.AGREES, source=expected.source, simulator=said))
        if rows.chosen:
            jobs[number], programs[number] = Job(translation, rows.in_memory), (expected, rows)
        else:
            verdicts[-1].outcome = Outcome.REPORTED
    for number, launched in launch(jobs, device).items():
        _compare(verdicts[number], *programs[number], launched)
    return verdicts


def translate(source: str, device: Device) -> Translation | Verdict:
    """The translation, or the verdict where there is none."""
    try:
        translation = translate_file(SourceFile("f.py", source), targets=device.targets)
    except TranslationError as error:
        errors = [item for item in error.diagnostics if item.severity is Severity.ERROR]
        codes = " ".join(sorted({item.code for item in errors}))
        return Verdict(Outcome.REFUSED, errors[0].message, codes, source=source)
    except Exception as error:
        return Verdict(Outcome.BREAKS, f"{type(error).__name__}: {error}", source=source)
    if device is Device.EMULATED and not is_within_reach(translation):
        return Verdict(Outcome.REFUSED, "threads meet", source=source)
    return translation


def _compare(verdict: Verdict, expected: Expected, rows: Rows, launched: Launched) -> None:
    """Enters the result of a launch into the verdict."""
    if launched.fault is not None:
        verdict.outcome, verdict.message = _OF_FAULT[launched.fault], launched.message
        return
    assert launched.elements is not None
    for thread, row in enumerate(rows.chosen):
        got, y = launched.elements[thread * WIDTH :][:WIDTH], expected.y(thread, row)
        if got != y:
            verdict.outcome, verdict.expected, verdict.got = Outcome.DIFFERS, y or [], got
            verdict.extremes = expected.extremes(thread, row)
            verdict.message = f"i = {thread}, x[i] = {X[row]}: CPython {y}, compiled {got}"
            return
