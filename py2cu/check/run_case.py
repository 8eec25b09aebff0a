"""Run the compiled kernel on one case, and compare its arrays with those of its Python.

In: a kernel, a case, and the arrays and the report of its simulation. Out: the number of elements compared, and
`Mismatch`es, the first of each kind. Errors: `BuildError`, `EnvironmentLacks` and `TranslationError`, if the kernel
cannot be built.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

import torch

from py2cu.build.messages import BuildError
from py2cu.check.cases import Argument, Case
from py2cu.check.differences import Difference, Fault, Snapshot, differences, undetermined_elements
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
    """The interface of a kernel that `check_kernel` uses."""

    @property
    def python(self) -> Callable[..., object]: ...

    @property
    def signature(self) -> Signature: ...

    def run(self, target_device: str, arguments: Mapping[str, Argument]) -> None:
        """Launch the compiled code in place; `arguments` contains every parameter."""


@dataclass(slots=True)
class Comparison:
    """The comparisons of a compiled kernel on a device.

    `slack`: by how many ulps a result may differ. `accepted` counts the elements for which any value is right.
    """

    kernel: CheckedKernel
    device: str
    slack: int
    watchdog: Watchdog
    compared: int = 0
    accepted: int = 0
    failures: list[Mismatch] = field(default_factory=list)

    @property
    def differs(self) -> bool:
        """Whether there is a failure other than a race that stores the value that is already there."""
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
        permuted: Sequence[Group],
        seconds: float,
    ) -> None:
        """Run the compiled kernel for at most `seconds`, and compare its arrays with `expected`.

        `permuted` are the groups of arrays whose entries may come in any order.
        """
        redzones = self._redzones(case)
        actual = self._launch(case, redzones, seconds)
        if actual is None:
            return
        signature = self.kernel.signature.instance(case.arguments)
        snapshots = {}
        for name in redzones:
            before, after_python = case.arguments[name], expected[name]
            assert isinstance(before, torch.Tensor)
            assert isinstance(after_python, torch.Tensor)
            snapshots[name] = Snapshot(signature.dtype(name), before, after_python, actual[name])
        for group in permuted:  # rule: check-permuted
            self._compare_group(case, group, snapshots, simulated)
        for name, redzone in redzones.items():
            accepted = undetermined_elements(simulated.writes[name])
            self.accepted += accepted  # rule: check-accepted
            self.compared += len(simulated.writes[name]) - accepted
            if not any(name in group for group in permuted):
                self._compare_array(case, name, snapshots[name], simulated)
            self._check_redzone(case, name, redzone)

    def _launch(self, case: Case, redzones: Mapping[str, Redzone], seconds: float) -> dict[str, torch.Tensor] | None:
        """The arrays after the compiled kernel has run; None if it failed."""
        arguments = {**case.arguments, **{name: redzone.view for name, redzone in redzones.items()}}

        def launch() -> dict[str, torch.Tensor]:
            self.kernel.run(self.device, arguments)
            return {name: redzone.read() for name, redzone in redzones.items()}

        try:
            return self.watchdog.run(launch, seconds)
        except (BuildError, EnvironmentLacks, TranslationError):
            raise  # no launch happened: the kernel was refused, or the machine lacks a compiler
        except NeverReturns as error:
            self.add(Mismatch(Fault.RAISED, str(case), str(error)))
        except Exception as error:
            self.add(Mismatch(Fault.RAISED, str(case), f"{type(error).__name__}: {error}"))
        return None

    def _redzones(self, case: Case) -> dict[str, Redzone]:
        inputs = {p.name for p in self.kernel.signature.arrays if p.role is Role.INPUT}
        return {
            name: Redzone(value, self.device, case.layout_of(name, self.kernel.signature), is_read=name in inputs)
            for name, value in case.arguments.items()
            if isinstance(value, torch.Tensor)
        }

    def _compare_array(self, case: Case, name: str, snapshot: Snapshot, simulated: SimulationReport) -> None:
        signature = self.kernel.signature
        role, writes = signature.parameter(name).role, simulated.writes[name]
        poisoned = role is Role.OUTPUT and is_poisoned(snapshot.before)
        tainted = name in simulated.tainted and role is not Role.INPUT
        for difference in differences(snapshot, writes, poisoned=poisoned, slack=self.slack, tainted=tainted):
            difference = replace(difference, fault=Fault.INPUT) if role is Role.INPUT else difference
            self.add(_describe(difference, name, tuple(snapshot.actual.shape), str(case)))

    def _compare_group(
        self, case: Case, group: Group, snapshots: Mapping[str, Snapshot], simulated: SimulationReport
    ) -> None:
        columns = [Column(snapshots[name], simulated.writes[name], self.slack) for name in group]
        for entry in unmatched(columns)[:1]:
            values = ", ".join(
                f"{name}[{entry}] = {column.spell(entry)}" for name, column in zip(group, columns, strict=True)
            )
            message = f"Python computes {values}; the compiled kernel computes no such element at any index"
            self.add(Mismatch(Fault.VALUE, str(case), message, group[0]))

    def _check_redzone(self, case: Case, name: str, redzone: Redzone) -> None:
        position = redzone.first_write_outside()
        if position is not None:
            shape = tuple(redzone.view.shape)
            message = f"`{name}` of shape {shape} was written at flat position {position}"
            self.add(Mismatch(Fault.OUTSIDE, str(case), message, name))


def _describe(difference: Difference, name: str, shape: tuple[int, ...], case: str) -> Mismatch:
    """The mismatch that a difference is reported as."""
    index = unravel(difference.position, shape)
    element = f"{name}[{', '.join(map(str, index))}]"
    values = f"Python {difference.expected!r}, compiled {difference.actual!r}"
    message = {
        Fault.UNWRITTEN: f"{element} was not written: Python wrote {difference.expected!r}",
        Fault.UNEXPECTED_WRITE: f"{element} was changed to {difference.actual!r}, and Python does not write it",
        Fault.INPUT: f"{element} of an input was changed from {difference.expected!r} to {difference.actual!r}",
    }.get(difference.fault, f"{element}: {values}")
    write = difference.write
    block, thread = write.place if write is not None else (None, None)
    line = write.line if write is not None else None
    return Mismatch(
        difference.fault, case, message, name, index, block, thread, difference.expected, difference.actual, line
    )
