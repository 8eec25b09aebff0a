"""The result of a check: a `CheckReport`, its verdict and its text, and hints if too little could be compared.

In: counts, `Mismatch`es, reasons of skipped cases and notes. Out: text for a terminal or a notebook.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from py2cu.check.differences import Fault

Triple = tuple[int, int, int]
Spelling = Callable[[str, str, Sequence[str]], str]  # writes an option as users do: kernel, option, values
SHOWN: Final = 3  # skipped cases that a report lists
SAME_VALUE: Final = "same value"  # of `race=`: accept races that store the value that is already there


class Verdict(enum.StrEnum):
    """The outcome of a check in a word or two."""

    AGREES = "agrees"
    DIFFERS = "DIFFERS"
    RACES = "RACES"  # all races store the value that is already there
    NOT_CHECKED = "not checked"


_SENTENCES: Final = {
    Verdict.AGREES: "agrees with its Python",
    Verdict.DIFFERS: "DIFFERS from its Python",
    Verdict.RACES: "RACES, and agrees with its Python",
    Verdict.NOT_CHECKED: "is not checked",
}


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One way in which the compiled kernel differs, with the first element concerned.

    `expected` and `actual` are values of Python and of the compiled kernel; `block`, `thread` and `line` belong to the
    Python's write.
    """

    kind: Fault
    case: str
    message: str
    array: str | None = None
    index: tuple[int, ...] | None = None
    block: Triple | None = None
    thread: Triple | None = None
    expected: complex | None = None
    actual: complex | None = None
    line: int | None = None

    def __str__(self) -> str:
        parts = [f"{self.kind}: {self.message}"]
        if self.line is not None:
            parts.append(f"    by block {self.block}, thread {self.thread}, line {self.line}")
        return "\n".join([*parts, f"    case {self.case}"])


@dataclass(frozen=True, slots=True)
class CheckReport:
    """The outcome of a check; printing it shows the verdict, failures, skipped cases, notes and hints.

    Attributes:
        kernel: the kernel's name.
        device: "cuda" or "cpu".
        cases: the number of cases compared.
        compared: the number of elements compared with Python's, over all cases.
        accepted: the number of elements for which any value was accepted.
        failures: the first mismatch of each kind.
        skipped: cases that were not compared, with the reason.
        notes: remarks on the comparison.
        has_run: whether a case with threads was compared.
        unordered: arrays whose elements other thread orders permute and do not change.
        gradients: the inputs whose gradients were compared; None if gradients were not asked for.
        advice: a hint for a check of the caller's arguments, possibly empty; None for invented arguments.
        invented: the arrays of integers whose elements the check invented.
    """

    kernel: str
    device: str
    cases: int
    compared: int
    accepted: int = 0
    failures: tuple[Mismatch, ...] = ()
    skipped: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    has_run: bool = True
    unordered: tuple[str, ...] = ()
    gradients: tuple[str, ...] | None = None
    advice: str | None = None
    invented: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether there are no failures."""
        return not self.failures

    @property
    def checked(self) -> bool:
        """Whether enough was compared to claim agreement: at least half of the written elements, and a gradient."""
        is_enough = self.accepted <= self.compared > 0
        return self.has_run and is_enough and self.gradients != ()  # rule: check-compared

    @property
    def verdict(self) -> Verdict:
        if self.failures:
            is_kept = all(failure.kind is Fault.SAME_VALUE for failure in self.failures)
            return Verdict.RACES if is_kept else Verdict.DIFFERS
        return Verdict.AGREES if self.checked else Verdict.NOT_CHECKED

    def __str__(self) -> str:
        counts = f"{self.cases} cases, {self.compared} elements compared, {self.accepted} accepted on {self.device}"
        head = f"`{self.kernel}` {_SENTENCES[self.verdict]} ({counts})"
        return "\n".join([head, *self.findings(), *(f"  hint: {hint}" for hint in self.hints(_in_python))])

    @property
    def reason(self) -> str:
        """Why the kernel is not checked."""
        if not self.has_run:
            return "no case with threads could be compared"
        if self.gradients == ():
            return "no gradient could be compared"
        if self.compared == self.accepted == 0:
            return "no case that writes an element could be compared"
        return f"any value was accepted for {self.accepted} of {self.compared + self.accepted} elements"

    def findings(self) -> list[str]:
        """Lines about failures, skipped cases and notes."""
        lines = [f"  {self.reason}"] if self.verdict is Verdict.NOT_CHECKED else []
        lines += [f"  {failure}" for failure in self.failures]
        lines += [f"  skipped: {reason}" for reason in self.skipped[:SHOWN]]
        if len(self.skipped) > SHOWN:
            lines.append(f"  … and {len(self.skipped) - SHOWN} more cases skipped")
        if self.gradients:
            lines.append(f"  gradients compared: {', '.join(f'`{name}`' for name in self.gradients)}")
        return lines + [f"  note: {note}" for note in self.notes]

    def hints(self, spell: Spelling) -> list[str]:
        """Options with which the kernel would pass, or more results could be compared; `spell` writes an option."""
        if self.verdict is Verdict.RACES:
            return [f"{spell(self.kernel, 'race', (SAME_VALUE,))} accepts races that store the value already there"]
        if self.invented and any(failure.kind is Fault.DATA_RACE_OR_BARRIER for failure in self.failures):
            what = f"the numbers in {', '.join(f'`{name}`' for name in self.invented)} are invented"
            more = "if the kernel relies on more, such as that no two are equal, `assert` it"
            return [f"{what}: {more}, or pass your own arguments to `{self.kernel}.check(…)` in Python"]
        if self.verdict is not Verdict.NOT_CHECKED:
            return []
        if self.unordered:
            names = " and ".join(f"`{name}`" for name in self.unordered)
            return [f"{spell(self.kernel, 'unordered', self.unordered)} compares {names} in any order of the elements"]
        if self.gradients == ():
            return []
        if self.advice is not None:
            return [self.advice] if self.advice else []
        return [
            f"in Python, pass your own arguments to `{self.kernel}.check(…)`: more of their results may be compared"
        ]


def _in_python(kernel: str, option: str, values: Sequence[str]) -> str:
    quoted = ", ".join(f'"{value}"' for value in values)
    return f"`{kernel}.check(…, {option}={quoted if len(values) == 1 else f'({quoted})'})`"
