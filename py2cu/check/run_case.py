"""Run a compiled kernel on a case, and hold what it leaves against what its Python left.

In: a kernel, and what its Python left of a case. Out: how many elements were compared, and `Mismatch`es, the first of
each kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import torch

from py2cu.build.messages import BuildError
from py2cu.check.cases import Argument, Case
from py2cu.check.differences import Difference, Fault, Snapshot, differences, open_elements
from py2cu.check.permutations import Column, Group, unmatched
from py2cu.check.redzones import Redzone, is_poisoned
from py2cu.check.report import Mismatch
from py2cu.check.watchdog import NeverReturns, Watchdog
from py2cu.diagnostics import EnvironmentLacks, TranslationError
from py2cu.ir.abi.dims import unravel
from py2cu.ir.abi.parameters import Role
from py2cu.ir.abi.signature import Signature
from py2cu.simulator import SimulationReport


class CheckedKernel(Protocol):
    """What `check_kernel` needs to know of a kernel."""

    @property
    def python(self) -> Callable[..., object]: ...

    @property
    def signature(self) -> Signature: ...

    def run(self, target_device: str, arguments: Mapping[str, Argument]) -> None:
        """Launch the compiled code in place; every argument is given."""


@dataclass(slots=True)
class Comparison:
    """A compiled kernel on a device, and what was found so far. `slack`: how many ulps a result may be off."""

    kernel: CheckedKernel
    device: str
    slack: int
    watchdog: Watchdog
    compared: int = 0
    accepted: int = 0
    failures: list[Mismatch] = field(default_factory=list)

    @property
    def differs(self) -> bool:
        """Whether a failure is more than a race that keeps the value."""
        return any(failure.kind is not Fault.SAME_VALUE for failure in self.failures)

    def add(self, failure: Mismatch) -> None:
        """Keep the first failure of each kind."""
        if all(failure.kind is not known.kind for known in self.failures):
            self.failures.append(failure)

    def compare(
        self,
        case: Case,
        expected: Mapping[str, Argument],
        simulated: SimulationReport,
        moved: Sequence[Group],
        seconds: float,
    ) -> None:
        """Run the compiled kernel, and hold what it leaves against what the Python left. `moved`: arrays whose entries
        may come in any order.
        """
        fenced = self._fence(case)
        actual = self._launch(case, fenced, seconds)
        if actual is None:
            return
        signature = self.kernel.signature.instance(case.arguments)
        snapshots = {}
        for name in fenced:
            before, wanted = case.arguments[name], expected[name]
            assert isinstance(before, torch.Tensor)
            assert isinstance(wanted, torch.Tensor)
            snapshots[name] = Snapshot(signature.dtype(name), before, wanted, actual[name])
        for group in moved:
            self._compare_group(case, group, snapshots, simulated)
        for name, fence in fenced.items():
            accepted = open_elements(simulated.writes[name])
            self.accepted += accepted
            self.compared += len(simulated.writes[name]) - accepted
            if not any(name in group for group in moved):
                self._compare_array(case, name, snapshots[name], simulated)
            self._check_fence(case, name, fence)

    def _launch(self, case: Case, fenced: Mapping[str, Redzone], seconds: float) -> dict[str, torch.Tensor] | None:
        """What the compiled kernel leaves of the arrays; None where it failed."""
        arguments = {name: fenced[name].view if name in fenced else value for name, value in case.arguments.items()}

        def launch() -> dict[str, torch.Tensor]:
            self.kernel.run(self.device, arguments)
            return {name: fence.read() for name, fence in fenced.items()}

        try:
            return self.watchdog.run(launch, seconds)
        except (BuildError, EnvironmentLacks, TranslationError):
            raise  # no launch happened: the kernel was refused, or the machine lacks a compiler
        except NeverReturns as error:
            self.add(Mismatch(Fault.RAISED, str(case), str(error)))
        except Exception as error:
            self.add(Mismatch(Fault.RAISED, str(case), f"{type(error).__name__}: {error}"))
        return None

    def _fence(self, case: Case) -> dict[str, Redzone]:
        inputs = {p.name for p in self.kernel.signature.arrays if p.role is Role.INPUT}
        return {
            name: Redzone(value, self.device, step=2 if case.strided and name in inputs else 1, is_read=name in inputs)
            for name, value in case.arguments.items()
            if isinstance(value, torch.Tensor)
        }

    def _compare_array(self, case: Case, name: str, snapshot: Snapshot, simulated: SimulationReport) -> None:
        signature = self.kernel.signature
        role, writes = signature.parameter(name).role, simulated.writes[name]
        poisoned = role is Role.OUTPUT and is_poisoned(snapshot.before)
        in_doubt = name in simulated.tainted and role is not Role.INPUT
        for difference in differences(snapshot, writes, poisoned=poisoned, slack=self.slack, tainted=in_doubt):
            found = replace(difference, fault=Fault.INPUT) if role is Role.INPUT else difference
            self.add(_describe(found, name, tuple(snapshot.actual.shape), str(case)))

    def _compare_group(
        self, case: Case, group: Group, snapshots: Mapping[str, Snapshot], simulated: SimulationReport
    ) -> None:
        columns = [Column(snapshots[name], simulated.writes[name], self.slack) for name in group]
        for entry in unmatched(columns)[:1]:
            values = ", ".join(
                f"{name}[{entry}] = {column.spell(entry)}" for name, column in zip(group, columns, strict=True)
            )
            message = f"Python leaves {values}; the compiled kernel leaves no such element at any index"
            self.add(Mismatch(Fault.VALUE, str(case), message, group[0]))

    def _check_fence(self, case: Case, name: str, fence: Redzone) -> None:
        position = fence.first_write_outside()
        if position is not None:
            shape = tuple(fence.view.shape)
            message = f"`{name}` of shape {shape} was written at flat position {position}"
            self.add(Mismatch(Fault.OUTSIDE, str(case), message, name))


def _describe(difference: Difference, name: str, shape: tuple[int, ...], case: str) -> Mismatch:
    """A difference in words."""
    index = unravel(difference.position, shape)
    element = f"{name}[{', '.join(map(str, index))}]"
    values = f"Python {difference.expected!r}, compiled {difference.actual!r}"
    message = {
        Fault.UNWRITTEN: f"{element} was left as it was: Python wrote {difference.expected!r}",
        Fault.UNEXPECTED_WRITE: f"{element} was changed to {difference.actual!r}, and Python does not write it",
        Fault.INPUT: f"{element} of an input was changed from {difference.expected!r} to {difference.actual!r}",
    }.get(difference.fault, f"{element}: {values}")
    write = difference.write
    block, thread = write.place if write is not None else (None, None)
    line = write.line if write is not None else None
    return Mismatch(
        difference.fault, case, message, name, index, block, thread, difference.expected, difference.actual, line
    )
