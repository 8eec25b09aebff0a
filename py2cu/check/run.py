"""Check that a compiled kernel and its Python agree, over many shapes and values.

In: a kernel (its Python, its signature, a way to run the compiled code). Out: a `CheckReport`. A case whose Python
raises or does not end is skipped, with its reason. Invented cases are as large as a budget of simulated accesses
allows; the arguments of a user are taken as they are.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import torch

from py2cu import devices
from py2cu.check.budget import OPERATIONS, Budget
from py2cu.check.cases import USER, Argument, Case, enlarge, invent_cases, make_case, scale_down
from py2cu.check.differences import SLACK_ULPS, Fault
from py2cu.check.draw import SMALL, TAME
from py2cu.check.orders import Outcome, accept_other_orders
from py2cu.check.permutations import Group, read_groups
from py2cu.check.report import SAME_VALUE, CheckReport, Mismatch
from py2cu.check.run_case import CheckedKernel, Comparison
from py2cu.check.sizes import work_of
from py2cu.check.watchdog import Watchdog
from py2cu.simulator import SimulationError, SimulationReport, TooLong, TooManyOperations, simulate

SEEDS: Final = (1, 2)  # of the orders in which threads run again where there are atomics, after that from last to first
CASE_SECONDS: Final = 3.0  # of processor time: far more than the Python of an invented case takes that ends
GIVEN_UP: Final = 2  # cases that take longer; the others are not tried then
COMPILED_SECONDS: Final = 5.0  # of processor time, beyond what the Python took
MARGIN: Final = 2  # how much more than expected a case may take
SCALED_BY: Final = 4  # how much smaller the case is that takes the place of one that takes too long

Moved = tuple[Mapping[str, Argument], SimulationReport, Sequence[Group]]  # the last: groups that orders only permute
Progress = Callable[[int, int], object]  # cases done, and all of them


def check_kernel(
    kernel: CheckedKernel,
    cases: Iterable[Case] | None = None,
    *,
    device: str | None = None,
    seed: int = 0,
    contracts: bool = True,
    unordered: str | Iterable[str] | None = None,
    race: str | None = None,
    progress: Progress | None = None,
) -> CheckReport:
    """Run `kernel` compiled and in Python on every case, invented ones by default; stops after the first that differs.

    `contracts`: the kernel may round a multiply-add once; else what is exact is compared exactly. `unordered` and
    `race` are those of `Kernel.check`.

    Raises:
        ValueError: `unordered` or `race` names nothing that there is.
    """
    if race not in (None, SAME_VALUE):
        raise ValueError(f'`race` takes "{SAME_VALUE}", got {race!r}')
    where = device or devices.best().value
    groups = read_groups(unordered, kernel.signature)
    with Watchdog() as watchdog:
        comparison = Comparison(kernel, where, SLACK_ULPS if contracts else 0, watchdog)
        check = _Check(kernel, comparison, seed, contracts, groups, race == SAME_VALUE)
        if cases is None:
            check.run_invented(progress)
        else:
            check.run_given([*cases], progress)
    return check.report()


@dataclass(slots=True)
class _Check:
    """The state of one check: what was compared, found and skipped so far."""

    kernel: CheckedKernel
    comparison: Comparison
    seed: int
    contracts: bool
    unordered: tuple[Group, ...]
    accepts_same_value: bool
    budget: Budget | None = None  # of invented cases
    to_come: int = 0  # cases that share the budget
    limit: float = math.inf  # operations that the case may still take
    cases: int = 0
    reduced: int = 0  # cases with smaller sizes than planned
    given_up: int = 0  # cases whose Python does not end
    has_run: bool = False
    kept_lines: set[int] = field(default_factory=set)  # of accepted races
    permuted: set[str] = field(default_factory=set)
    skipped: dict[str, None] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)

    # --- cases ---

    def run_given(self, cases: Sequence[Case], progress: Progress | None) -> None:
        """Compare the cases as they are."""
        for number, case in enumerate(cases):
            if progress is not None:
                progress(number, len(cases))
            self._run(case)
            if self.comparison.differs:
                return

    def run_invented(self, progress: Progress | None) -> None:
        """Compare invented cases of every instance of the kernel, as large as the budget allows."""
        signatures = self.kernel.signature.instances or (self.kernel.signature,)
        planned = [[*invent_cases(signature, self.seed)] for signature in signatures]
        total, done = sum(map(len, planned)), 0
        for cases in planned:
            self.budget = Budget(len(cases), len(planned))
            for number, case in enumerate(cases):
                if progress is not None:
                    progress(done, total)
                self.to_come = len(cases) - number - 1
                scaled = self._scaled(case) or case
                self.reduced += scaled is not case
                self._run(scaled)
                done += 1
                if self.comparison.differs:
                    return
                if self.given_up >= GIVEN_UP:
                    self.skipped[f"{total - done} more cases, since {GIVEN_UP} did not end"] = None
                    return

    def _scaled(self, case: Case, most: float = math.inf) -> Case | None:
        """`case` with dimensions halved until its work is at most `most` and the budget allows it; itself where it is.

        None where its dimensions are as small as can be.
        """
        budget = self.budget
        assert budget is not None
        allowance = budget.allowance(self.to_come)
        signature = self.kernel.signature.instance(case.arguments)
        return scale_down(signature, case, lambda work: work <= most and budget.expected(work) <= allowance)

    def _run(self, case: Case) -> None:
        """Compare one case. Where the Python of an invented one raises, does not end or leaves the outcome open, a
        larger array, smaller sizes or calmer values take its place.
        """
        start, budget = time.thread_time(), self.budget
        self.limit = limit = math.inf if budget is None else MARGIN * budget.allowance(self.to_come)
        try:
            outcome = self._simulate_orders(case)
        except (SimulationError, ValueError) as error:
            outcome = None
            self._charge(case, limit if isinstance(error.__cause__, TooManyOperations) else 0, start)
            self._replace(case, error)
        else:
            self._charge(case, limit - self.limit if budget is not None else 0, start)
        if outcome is None:
            return
        expected, simulated, moved = outcome
        if self._is_wrong(case, simulated) or self._is_open(case, simulated):
            return
        self.notes.update(dict.fromkeys(str(found) for found in simulated.findings if not found.keeps_value))
        self.cases += 1
        self.has_run |= simulated.threads > 0
        self.comparison.compare(case, expected, simulated, moved, COMPILED_SECONDS + time.thread_time() - start)

    def _charge(self, case: Case, operations: float, start: float) -> None:
        """Take what a case took, which began at `start`, from the budget."""
        if self.budget is not None:
            work = work_of(self.kernel.signature.instance(case.arguments), case.sizes)
            self.budget.charge(work, round(operations), time.thread_time() - start)

    def _replace(self, case: Case, error: SimulationError | ValueError) -> None:
        """Compare another case in place of one whose Python raised `error`; else skip it."""
        cause, signature = error.__cause__, self.kernel.signature.instance(case.arguments)
        reason = str(error)
        if isinstance(error, SimulationError) and isinstance(cause, TooLong | TooManyOperations):
            reason = f"line {error.line}: {cause}"
            if isinstance(cause, TooLong):
                reason = f"line {error.line}: the loop does not end within {CASE_SECONDS:g} s of processor time"
        other = None
        if self.budget is not None and isinstance(cause, TooLong | TooManyOperations):
            self.given_up += isinstance(cause, TooLong)
            if self.given_up < GIVEN_UP:
                other = self._scaled(case, work_of(signature, case.sizes) / SCALED_BY)
        elif self.budget is not None:
            other = enlarge(signature, case, cause, self.seed)
        if other is not None:
            self._run(other)
        else:
            is_calm = case.values in (TAME, SMALL) or self.given_up >= GIVEN_UP
            self._skip(case, reason, None if is_calm else TAME)

    def _skip(self, case: Case, reason: str, calmer: str | None) -> None:
        """Leave `case` out; the same sizes with `calmer` values take the place of an invented one."""
        self.skipped[f"{case}: {reason}"] = None
        if calmer is not None and self.budget is not None:
            signature = self.kernel.signature.instance(case.arguments)
            made = make_case(signature, case.sizes, calmer, self.seed, strided=case.strided)
            if made is not None:
                self._run(made)

    # --- Python ---

    def _simulate_orders(self, case: Case) -> Moved:
        """What the Python leaves of the arguments; of atomics and racing threads, in several orders."""
        outcome = self._simulate(case)
        expected, simulated = outcome
        if not simulated.updates and not any(finding.keeps_value for finding in simulated.findings):
            return expected, simulated, self.unordered
        others = [self._simulate(case, backwards=True), *(self._simulate(case, seed) for seed in SEEDS)]
        ordered = accept_other_orders(outcome, others, self.kernel.signature.instance(case.arguments), self.unordered)
        self.permuted |= ordered.permuted
        for group in set(self.unordered) - set(ordered.moved):
            self.notes[f"other orders of threads change {_listed(group)}, not only the order of its elements"] = None
        return expected, ordered.report, ordered.moved

    def _simulate(self, case: Case, seed: int | None = None, *, backwards: bool = False) -> Outcome:
        """What the Python leaves of the arguments, threads in order, `backwards` or permuted by `seed`."""
        arguments = {n: v.clone() if isinstance(v, torch.Tensor) else v for n, v in case.arguments.items()}
        simulated = simulate(
            self.kernel.python, self.kernel.signature.instance(case.arguments), arguments,
            seconds=None if case.values == USER else CASE_SECONDS, operations=self.limit,
            stops=False, contracts=self.contracts, sanitize=True, seed=seed, backwards=backwards,
        )  # fmt: skip
        self.limit -= simulated.operations
        return arguments, simulated

    def _is_wrong(self, case: Case, simulated: SimulationReport) -> bool:
        """Whether threads get in each other's way, so that nothing can be compared. Races that keep the value are found
        too, and are in nobody's way.
        """
        for finding in simulated.findings:
            if finding.is_bug or (finding.keeps_value and not self.accepts_same_value):
                kind = Fault.DATA_RACE_OR_BARRIER if finding.is_bug else Fault.SAME_VALUE
                block, thread = finding.place
                self.comparison.add(
                    Mismatch(kind, str(case), finding.message, block=block, thread=thread, line=finding.line)
                )
            elif finding.keeps_value and finding.line not in self.kept_lines:
                self.kept_lines.add(finding.line)
                self.notes[f"accepted: {finding}"] = None
        return any(finding.is_bug for finding in simulated.findings)

    def _is_open(self, case: Case, simulated: SimulationReport) -> bool:
        """Whether the compiled kernel may do anything; calmer values take the place of the case then."""
        leaves_open = next((finding for finding in simulated.findings if finding.is_open), None)
        if leaves_open is None:
            return False
        calmer = None if case.values == SMALL else SMALL if case.values == TAME else TAME
        self._skip(case, f"{leaves_open}; the compiled kernel may do anything then", calmer)
        return True

    # --- the outcome ---

    def report(self) -> CheckReport:
        notes, comparison = list(self.notes), self.comparison
        compared, accepted = comparison.compared, comparison.accepted
        if accepted:
            notes.append(
                f"{accepted} of {compared + accepted} elements could not be compared: their values depend on rounding, "
                "on the order of threads, or on what C++ leaves open"
            )
        if self.reduced:
            notes.append(
                f"{self.reduced} cases are smaller than planned, to stay within {OPERATIONS:,} simulated array accesses"
            )
        return CheckReport(
            self.kernel.signature.name,
            comparison.device,
            self.cases,
            compared,
            accepted,
            tuple(comparison.failures),
            tuple(self.skipped),
            tuple(notes),
            self.has_run,
            tuple(p.name for p in self.kernel.signature.arrays if p.name in self.permuted),
        )


def _listed(group: Group) -> str:
    return " and ".join(f"`{name}`" for name in group)
