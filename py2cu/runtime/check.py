"""Proof that a compiled kernel and its Python agree, over many shapes and values.

In: a kernel (its Python, its signature, a way to run the compiled code). Out: a `CheckReport`. A case whose Python
raises proves nothing and is skipped, with its reason; a kernel of which every case is skipped is not proven.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Final, Protocol

import torch

from py2cu.diagnostics import EnvironmentLacks, TranslationError
from py2cu.ir.extents import Role
from py2cu.ir.signature import Signature
from py2cu.runtime.arrays import Write
from py2cu.runtime.compare import SLACK_ULPS, Difference, Fault, Snapshot, differences, open_elements
from py2cu.runtime.fences import Fenced, is_poisoned
from py2cu.runtime.inputs import GIVEN, SMALL, TAME, Argument, Case, grow, invent_cases, make_case
from py2cu.runtime.messages import BuildError
from py2cu.runtime.simulate import SimulationError, SimulationReport, simulate

Triple = tuple[int, int, int]
SHOWN: Final = 3  # skipped cases that a report spells out
SEEDS: Final = (1, 2)  # of the orders in which threads run again where there are atomics, after that from last to first
CASE_SECONDS: Final = 10.0  # far more than the Python of an invented case takes, unless a loop never ends


class CheckedKernel(Protocol):
    """What `check_kernel` needs to know of a kernel."""

    @property
    def python(self) -> Callable[..., object]: ...

    @property
    def signature(self) -> Signature: ...

    def run(self, target_device: str, arguments: Mapping[str, Argument]) -> None:
        """Launch the compiled code in place; every argument is given."""


@dataclass(frozen=True, slots=True)
class Mismatch:
    """One way in which the compiled kernel is wrong, by its first bad element."""

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
    """The outcome: fine where there is no failure and some case with threads was compared."""

    kernel: str
    device: str
    cases: int
    elements: int
    failures: tuple[Mismatch, ...] = ()
    skipped: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    proven: bool = True  # a case that runs threads was compared

    @property
    def ok(self) -> bool:
        return self.proven and not self.failures

    def __str__(self) -> str:
        counts = f"{self.cases} cases, {self.elements} elements compared on {self.device}"
        verdict = (
            "agrees with its Python" if self.ok else "DIFFERS from its Python" if self.failures else "is not proven"
        )
        lines = [f"`{self.kernel}` {verdict} ({counts})"]
        if not self.proven and not self.failures:
            lines.append("  no case with threads could be compared")
        lines += [f"  {failure}" for failure in self.failures]
        lines += [f"  skipped: {reason}" for reason in self.skipped[:SHOWN]]
        if len(self.skipped) > SHOWN:
            lines.append(f"  … and {len(self.skipped) - SHOWN} more cases skipped")
        return "\n".join(lines + [f"  note: {note}" for note in self.notes])


def check_kernel(
    kernel: CheckedKernel,
    cases: Iterable[Case] | None = None,
    *,
    device: str | None = None,
    seed: int = 0,
    contracts: bool = True,
) -> CheckReport:
    """Run `kernel` compiled and in Python on every case; stops after the first case that fails.

    `contracts`: the kernel may round a multiply-add once; else what is exact is compared exactly.
    """
    where = device or ("cuda" if torch.cuda.is_available() else "cpu")
    check = _Check(kernel, where, seed, contracts)
    signatures = kernel.signature.instances or (kernel.signature,)
    invented = chain.from_iterable(invent_cases(signature, seed) for signature in signatures)
    for case in invented if cases is None else cases:
        check.run(case, retry=cases is None)
        if check.failures:
            break
    return check.report()


@dataclass(slots=True)
class _Check:
    """The state of one check: what was compared, found and skipped so far."""

    kernel: CheckedKernel
    device: str
    seed: int
    contracts: bool
    cases: int = 0
    elements: int = 0
    open: int = 0
    proven: bool = False
    failures: list[Mismatch] = field(default_factory=list)
    skipped: dict[str, None] = field(default_factory=dict)
    notes: dict[str, None] = field(default_factory=dict)

    def run(self, case: Case, *, retry: bool) -> None:
        """Compare one case. Where its Python raises or leaves the outcome open, and `retry` holds, the same sizes get
        calmer values.
        """
        signature = self.kernel.signature.instance(case.arguments)
        try:
            expected, simulated = self._simulate(case)
            if simulated.updates:
                others = [self._simulate(case, backwards=True), *(self._simulate(case, seed) for seed in SEEDS)]
                simulated = open_to_order(simulated, expected, others)
        except (SimulationError, ValueError) as error:
            grown = grow(signature, case, error.__cause__, self.seed) if retry else None
            if grown is not None:
                self.run(grown, retry=True)
            else:
                self._skip(case, str(error), TAME if retry and case.values not in (TAME, SMALL) else None)
            return
        bug = next((finding for finding in simulated.findings if finding.is_bug), None)
        if bug is not None:
            block, thread = bug.place
            self._add(Mismatch(Fault.THREADS, str(case), bug.message, block=block, thread=thread, line=bug.line))
            return
        leaves_open = next((finding for finding in simulated.findings if finding.is_open), None)
        if leaves_open is not None:
            calmer = None if case.values == SMALL else SMALL if case.values == TAME else TAME
            self._skip(case, f"{leaves_open}; the compiled kernel may do anything then", calmer if retry else None)
            return
        self.notes.update(dict.fromkeys(str(finding) for finding in simulated.findings))
        self.cases += 1
        self.proven |= simulated.threads > 0
        self._compare(case, expected, simulated)

    def _simulate(
        self, case: Case, seed: int | None = None, *, backwards: bool = False
    ) -> tuple[dict[str, Argument], SimulationReport]:
        """What the Python leaves of the arguments, threads in order, `backwards` or permuted by `seed`."""
        arguments = {n: v.clone() if isinstance(v, torch.Tensor) else v for n, v in case.arguments.items()}
        simulated = simulate(
            self.kernel.python, self.kernel.signature.instance(case.arguments), arguments,
            seconds=None if case.values == GIVEN else CASE_SECONDS,
            stops=False, contracts=self.contracts, sanitize=True, seed=seed, backwards=backwards,
        )  # fmt: skip
        return arguments, simulated

    def _skip(self, case: Case, reason: str, calmer: str | None) -> None:
        """Leave `case` out; the same sizes with `calmer` values take its place."""
        self.skipped[f"{case}: {reason}"] = None
        if calmer is not None:
            signature = self.kernel.signature.instance(case.arguments)
            made = make_case(signature, case.sizes, calmer, self.seed, strided=case.strided)
            if made is not None:
                self.run(made, retry=True)

    def _compare(self, case: Case, expected: Mapping[str, Argument], simulated: SimulationReport) -> None:
        fenced = self._fence(case)
        arguments = {name: fenced[name].view if name in fenced else value for name, value in case.arguments.items()}
        try:
            self.kernel.run(self.device, arguments)
            actual = {name: fence.read() for name, fence in fenced.items()}
        except (BuildError, EnvironmentLacks, TranslationError):
            raise  # no launch happened: the kernel was refused, or the machine lacks a compiler
        except Exception as error:
            self._add(Mismatch(Fault.RAISED, str(case), f"{type(error).__name__}: {error}"))
            return
        signature = self.kernel.signature.instance(case.arguments)
        for name, fence in fenced.items():
            before, wanted = case.arguments[name], expected[name]
            assert isinstance(before, torch.Tensor)
            assert isinstance(wanted, torch.Tensor)
            snapshot = Snapshot(signature.dtype(name), before, wanted, actual[name])
            self._compare_array(case, name, snapshot, simulated)
            self._check_fence(case, name, fence)

    def _fence(self, case: Case) -> dict[str, Fenced]:
        inputs = {p.name for p in self.kernel.signature.arrays if p.role is Role.INPUT}
        return {
            name: Fenced(value, self.device, step=2 if case.strided and name in inputs else 1, is_read=name in inputs)
            for name, value in case.arguments.items()
            if isinstance(value, torch.Tensor)
        }

    def _compare_array(self, case: Case, name: str, snapshot: Snapshot, simulated: SimulationReport) -> None:
        signature = self.kernel.signature
        role, writes = signature.parameter(name).role, simulated.writes[name]
        poisoned = role is Role.OUTPUT and is_poisoned(snapshot.before)
        slack = SLACK_ULPS if self.contracts else 0
        self.elements += len(writes)
        self.open += open_elements(writes)
        in_doubt = name in simulated.in_doubt and role is not Role.INPUT
        for difference in differences(snapshot, writes, poisoned=poisoned, slack=slack, in_doubt=in_doubt):
            found = replace(difference, fault=Fault.INPUT) if role is Role.INPUT else difference
            self._add(_describe(found, name, tuple(snapshot.actual.shape), str(case)))

    def _check_fence(self, case: Case, name: str, fence: Fenced) -> None:
        position = fence.trespass()
        if position is not None:
            shape = tuple(fence.view.shape)
            message = f"`{name}` of shape {shape} was written at flat position {position}"
            self._add(Mismatch(Fault.OUTSIDE, str(case), message, name))

    def _add(self, failure: Mismatch) -> None:
        if all(failure.kind is not known.kind for known in self.failures):
            self.failures.append(failure)

    def report(self) -> CheckReport:
        notes = list(self.notes)
        if self.open:
            notes.append(
                f"{self.open} elements hang on a rounding error or on the order of threads, or C++ leaves them open: "
                "any value was accepted"
            )
        return CheckReport(
            self.kernel.signature.name,
            self.device,
            self.cases,
            self.elements,
            tuple(self.failures),
            tuple(self.skipped),
            tuple(notes),
            self.proven,
        )


def open_to_order(
    simulated: SimulationReport,
    expected: Mapping[str, Argument],
    others: Iterable[tuple[Mapping[str, Argument], SimulationReport]],
) -> SimulationReport:
    """`simulated`, with any value accepted of the elements that come out otherwise in another order of threads, and of
    those that the same lines wrote: they may in a third one. Where others are written, those may be any.
    """
    writes = {name: dict(of_array) for name, of_array in simulated.writes.items()}
    findings = list(simulated.findings)
    in_doubt = set(simulated.in_doubt)
    for arguments, other in others:
        findings += [finding for finding in other.findings if finding.is_bug and finding not in findings]
        in_doubt |= other.in_doubt | {name for name in writes if writes[name].keys() != other.writes[name].keys()}
        for name, of_array in writes.items():
            here, there = expected[name], arguments[name]
            assert isinstance(here, torch.Tensor) and isinstance(there, torch.Tensor)
            apart = set(_apart(here.flatten(), there.flatten(), of_array))
            lines = {found[at].line for found in (of_array, other.writes[name]) for at in apart if at in found}
            for at in apart | {at for at, write in of_array.items() if write.line in lines}:
                of_array[at] = (of_array.get(at) or other.writes[name][at])._replace(error=math.inf)
    return replace(simulated, writes=writes, findings=tuple(findings), in_doubt=frozenset(in_doubt))


def _apart(here: torch.Tensor, there: torch.Tensor, writes: Mapping[int, Write]) -> Iterable[int]:
    """The positions at which two results differ by more than what their errors allow."""
    for at in ((here != there) & ~((here != here) & (there != there))).nonzero().flatten().tolist():
        write = writes.get(at)
        if write is None or not abs(here[at].item() - there[at].item()) <= write.error:
            yield at


def _describe(difference: Difference, name: str, shape: tuple[int, ...], case: str) -> Mismatch:
    """A difference in words."""
    index = unravel(difference.position, shape)
    element = f"{name}[{', '.join(map(str, index))}]"
    values = f"Python {difference.expected!r}, compiled {difference.actual!r}"
    message = {
        Fault.UNWRITTEN: f"{element} was left as it was: Python wrote {difference.expected!r}",
        Fault.STRAY: f"{element} was changed to {difference.actual!r}, and Python does not write it",
        Fault.INPUT: f"{element} of an input was changed from {difference.expected!r} to {difference.actual!r}",
    }.get(difference.fault, f"{element}: {values}")
    write = difference.write
    block, thread = write.place if write is not None else (None, None)
    line = write.line if write is not None else None
    return Mismatch(
        difference.fault, case, message, name, index, block, thread, difference.expected, difference.actual, line
    )


def unravel(position: int, shape: tuple[int, ...]) -> tuple[int, ...]:
    """A flat position as an index in every dimension."""
    index: list[int] = []
    for extent in reversed(shape):
        position, at = divmod(position, extent)
        index.append(at)
    return tuple(reversed(index))
