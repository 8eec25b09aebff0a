"""Check that a compiled kernel and its Python agree, over many shapes and values.

In: a kernel (its Python, its signature, a way to run the compiled code). Out: a `CheckReport`. A case whose Python
raises or does not end is skipped, with the reason. The size of invented cases is limited by a budget of simulated
accesses; a user's own arguments are used as they are.
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
from py2cu.dtypes import Kind
from py2cu.ir.abi.parameters import Role
from py2cu.simulator import SimulationError, SimulationReport, TooLong, TooManyOperations, simulate

SEEDS: Final = (1, 2)  # of further thread orders for kernels with atomics, besides the reverse order
CASE_SECONDS: Final = 3.0  # of processor time: far more than the Python of a terminating invented case takes
MAX_ENLARGEMENTS: Final = 16  # of one case, which alternates with shrinking if the kernel's minimum exceeds the budget
MAX_TIMEOUTS: Final = 2  # cases that exceed CASE_SECONDS; after these, no more cases are tried
COMPILED_SECONDS: Final = 5.0  # of processor time, beyond the time of the Python
MARGIN: Final = 2  # by how much a case may exceed its expected operations
SCALED_BY: Final = 4  # by how much the replacement of a case that takes too long is smaller

OrderedOutcome = tuple[Mapping[str, Argument], SimulationReport, Sequence[Group]]
"""The arguments after the launch, its report, and the `unordered` groups that other thread orders only permute."""
Progress = Callable[[int, int], object]  # the number of cases done, and of all cases


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
    """Run `kernel` compiled and in Python on every case, and compare; stop after the first case that differs.

    Args:
        kernel: the Python, the signature, and a way to run the compiled code.
        cases: None for invented ones of every instance of the kernel.
        device: "cuda" or "cpu"; by default the best one here.
        seed: of the invented values.
        contracts: the compiled kernel may round a multiply-add once; otherwise exact results are compared exactly.
        unordered: as for `Kernel.check`.
        race: as for `Kernel.check`.
        progress: called with the number of cases done, and of all cases.

    Raises:
        ValueError: `unordered` names no array that the kernel writes, or `race` is unknown.
        BuildError: a compiler refused the kernel.
        EnvironmentLacks: a tool to build the kernel is missing.
    """
    if race not in (None, SAME_VALUE):
        raise ValueError(f'`race` takes "{SAME_VALUE}", got {race!r}')
    device = device or devices.best().value
    groups = read_groups(unordered, kernel.signature)
    with Watchdog() as watchdog:
        comparison = Comparison(kernel, device, SLACK_ULPS if contracts else 0, watchdog)
        check = _Check(kernel, comparison, seed, contracts, groups, race == SAME_VALUE)
        if cases is None:
            check.run_invented(progress)
        else:
            check.run_cases([*cases], progress)
    return check.report()


@dataclass(slots=True)
class _Check:
    """The state of one check: its options, its budget, and the results so far."""

    kernel: CheckedKernel
    comparison: Comparison
    seed: int
    contracts: bool
    unordered: tuple[Group, ...]
    accepts_same_value: bool
    budget: Budget | None = None  # of invented cases
    pending: int = 0  # later cases that share the budget
    limit: float = math.inf  # operations that the case may still take
    cases: int = 0  # compared
    reduced: int = 0  # cases with smaller sizes than planned
    timeouts: int = 0  # cases whose Python does not end
    enlargements: int = 0  # of the planned case
    has_run: bool = False  # whether a case with threads was compared
    is_idle: bool = False  # whether this instance still has the right to a least case beyond its budget
    accepted_races: set[int] = field(default_factory=set)  # lines
    permuted: set[str] = field(default_factory=set)  # arrays whose elements other thread orders permute
    skipped: dict[str, None] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)

    # --- cases ---

    def run_cases(self, cases: Sequence[Case], progress: Progress | None) -> None:
        """Compare cases without changing them."""
        for number, case in enumerate(cases):
            if progress is not None:
                progress(number, len(cases))
            self._run(case)
            if self.comparison.differs:
                return

    def run_invented(self, progress: Progress | None) -> None:
        """Compare invented cases of every instance of the kernel, as large as the budget allows."""
        signatures = self.kernel.signature.instances or (self.kernel.signature,)
        planned = [
            [*invent_cases(signature, self.seed, on_gpu=self.comparison.device == "cuda")] for signature in signatures
        ]
        total, done = sum(map(len, planned)), 0
        for cases in planned:
            self.budget, self.is_idle = Budget(len(cases), len(planned)), True
            for number, case in enumerate(cases):
                if progress is not None:
                    progress(done, total)
                self.pending, self.enlargements = len(cases) - number - 1, 0
                scaled = self._scaled(case) or case
                self.reduced += scaled is not case
                self._run(scaled)
                done += 1
                if self.comparison.differs:
                    return
                if self.timeouts >= MAX_TIMEOUTS:  # rule: check-timeouts
                    self.skipped[f"{total - done} more cases, since {MAX_TIMEOUTS} did not end"] = None
                    return

    def _scaled(self, case: Case, most: float = math.inf) -> Case | None:
        """`case` with dimensions halved until its work is at most `most` and within the budget, or itself.

        None if the dimensions cannot shrink further.
        """
        budget = self.budget
        assert budget is not None
        allowance = budget.allowance(self.pending)
        signature = self.kernel.signature.instance(case.arguments)
        # rule: check-budget
        return scale_down(signature, case, lambda work: work <= most and budget.expected(work) <= allowance)

    def _run(self, case: Case) -> None:
        """Compare one case.

        An invented case whose Python raises, does not end or has an unspecified result is replaced by a case with a
        larger array, smaller sizes, or less extreme values (`TAME`, then `SMALL`).
        """
        start, budget = time.thread_time(), self.budget
        self.limit = limit = math.inf if budget is None else MARGIN * budget.allowance(self.pending)
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
        expected, simulated, permuted = outcome
        if self._has_bugs(case, simulated) or self._is_unspecified(case, simulated):
            return
        self.notes.update(dict.fromkeys(str(finding) for finding in simulated.findings if not finding.keeps_value))
        self.cases += 1
        self.has_run |= simulated.threads > 0
        self.is_idle &= simulated.threads == 0
        self.comparison.compare(case, expected, simulated, permuted, COMPILED_SECONDS + time.thread_time() - start)

    def _charge(self, case: Case, operations: float, start: float) -> None:
        """Charge the budget with the operations and the time of a case that began at `start`."""
        if self.budget is not None:
            work = work_of(self.kernel.signature.instance(case.arguments), case.sizes)
            self.budget.charge(work, round(operations), time.thread_time() - start)

    def _replace(self, case: Case, error: SimulationError | ValueError) -> None:
        """Replace a case whose Python raised `error` with another, or skip it."""
        cause, signature = error.__cause__, self.kernel.signature.instance(case.arguments)
        reason = str(error)
        if isinstance(error, SimulationError) and isinstance(cause, TooLong | TooManyOperations):
            reason = f"line {error.line}: {cause}"
            if isinstance(cause, TooLong):
                reason = f"line {error.line}: the loop does not end within {CASE_SECONDS:g} s of processor time"
        replacement = None
        if self.budget is not None and isinstance(cause, TooLong | TooManyOperations):
            self.timeouts += isinstance(cause, TooLong)
            if self.timeouts < MAX_TIMEOUTS:
                replacement = self._scaled(case, work_of(signature, case.sizes) / SCALED_BY)
            if replacement is None and isinstance(cause, TooManyOperations) and self.is_idle:  # rule: check-least
                self.budget.renew(self.pending)
                replacement, self.is_idle = case, False
        elif self.budget is not None and self.enlargements < MAX_ENLARGEMENTS:
            self.enlargements += 1
            replacement = enlarge(signature, case, cause, self.seed)
        if replacement is not None:
            self._run(replacement)
        else:
            is_calm = case.values in (TAME, SMALL) or self.timeouts >= MAX_TIMEOUTS
            self._skip(case, reason, None if is_calm else TAME)

    def _skip(self, case: Case, reason: str, calmer: str | None) -> None:
        """Skip `case`. If it is invented, replace it with the same sizes and values of the flavour `calmer`, if any."""
        self.skipped[f"{case}: {reason}"] = None
        if calmer is not None and self.budget is not None:
            signature = self.kernel.signature.instance(case.arguments)
            replacement = make_case(
                signature, case.sizes, calmer, self.seed, layout=case.layout, left_out=case.left_out
            )
            if replacement is not None:
                self._run(replacement)

    # --- Python ---

    def _simulate_orders(self, case: Case) -> OrderedOutcome:
        """Run the Python. With atomics or races, run several thread orders to find what depends on the order."""
        outcome = self._simulate(case)
        expected, simulated = outcome
        if not simulated.has_atomics and not any(finding.keeps_value for finding in simulated.findings):
            return expected, simulated, self.unordered
        others = [self._simulate(case, backwards=True), *(self._simulate(case, seed) for seed in SEEDS)]
        ordered = accept_other_orders(outcome, others, self.kernel.signature.instance(case.arguments), self.unordered)
        self.permuted |= ordered.permuted
        for group in set(self.unordered) - set(ordered.groups):
            self.notes[f"other orders of threads change {_listed(group)}, not only the order of its elements"] = None
        return expected, ordered.report, ordered.groups

    def _simulate(self, case: Case, seed: int | None = None, *, backwards: bool = False) -> Outcome:
        """Run the Python on a copy of the arguments, with threads in order, `backwards` or permuted by `seed`."""
        arguments = {n: v.clone() if isinstance(v, torch.Tensor) else v for n, v in case.arguments.items()}
        simulated = simulate(
            self.kernel.python, self.kernel.signature.instance(case.arguments), arguments,
            seconds=None if case.values == USER else CASE_SECONDS, operations=self.limit,
            stops=False, contracts=self.contracts, sanitize=True, seed=seed, backwards=backwards,
        )  # fmt: skip
        self.limit -= simulated.operations
        return arguments, simulated

    def _has_bugs(self, case: Case, simulated: SimulationReport) -> bool:
        """Report races and barrier errors; whether one of them makes the results incomparable.

        Races that store the value that is already there are reported or accepted, and do not prevent the comparison.
        """
        for finding in simulated.findings:
            if finding.is_bug or (finding.keeps_value and not self.accepts_same_value):
                kind = Fault.DATA_RACE_OR_BARRIER if finding.is_bug else Fault.SAME_VALUE
                block, thread = finding.place
                self.comparison.add(
                    Mismatch(kind, str(case), finding.message, block=block, thread=thread, line=finding.line)
                )
            elif finding.keeps_value and finding.line not in self.accepted_races:
                self.accepted_races.add(finding.line)
                self.notes[f"accepted: {finding}"] = None
        return any(finding.is_bug for finding in simulated.findings)

    def _is_unspecified(self, case: Case, simulated: SimulationReport) -> bool:
        """Whether C++ does not specify the result of the case; if so, replace it with a case of less extreme values."""
        unspecified = next((finding for finding in simulated.findings if finding.is_open), None)
        if unspecified is None:
            return False
        calmer = None if case.values == SMALL else SMALL if case.values == TAME else TAME
        self._skip(case, f"{unspecified}; C++ does not specify the result of such a case", calmer)
        return True

    # --- the outcome ---

    def report(self) -> CheckReport:
        notes, comparison = list(self.notes), self.comparison
        compared, accepted = comparison.compared, comparison.accepted
        if accepted:
            notes.append(
                f"{accepted} of {compared + accepted} elements were not compared: their value depends on rounding, "
                "thread order or unspecified C++ behaviour"
            )
        if self.reduced:
            notes.append(
                f"{self.reduced} cases are smaller than planned, to stay within {OPERATIONS:,} simulated array accesses"
            )
        signature = self.kernel.signature
        integers = (p.name for p in signature.arrays if signature.dtype(p.name).kind is Kind.INT)
        read = (name for name in integers if signature.parameter(name).role is Role.INPUT)
        return CheckReport(
            signature.name,
            comparison.device,
            self.cases,
            compared,
            accepted,
            tuple(comparison.failures),
            tuple(self.skipped),
            tuple(notes),
            self.has_run,
            tuple(p.name for p in signature.arrays if p.name in self.permuted),
            invented=() if self.budget is None else tuple(read),
        )


def _listed(group: Group) -> str:
    return " and ".join(f"`{name}`" for name in group)
