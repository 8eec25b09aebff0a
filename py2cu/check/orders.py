"""What other orders of threads change: the elements of which a check accepts any value, and those that only move.

In: what a launch left in one order of threads, and what it left in others. Out: the same report, with an infinite error
wherever the order shows.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from py2cu.check.cases import Argument
from py2cu.check.differences import Snapshot
from py2cu.check.permutations import Column, Group, unmatched
from py2cu.ir.abi.signature import Signature
from py2cu.simulator import SimulationReport, Write

Outcome = tuple[Mapping[str, Argument], SimulationReport]  # what the arguments hold after a launch, and its report


@dataclass(frozen=True, slots=True)
class Ordered:
    """A launch, and what other orders of threads make of it.

    `moved`: the groups of `unordered` of which the other orders move the entries, and change none. `permuted`: the
    other arrays of which that holds.
    """

    report: SimulationReport
    moved: tuple[Group, ...]
    permuted: frozenset[str]


def accept_other_orders(
    outcome: Outcome, others: Sequence[Outcome], signature: Signature, unordered: Sequence[Group] = ()
) -> Ordered:
    """Accept any value of the elements that come out otherwise in another order of threads, and of those that the same
    lines wrote: they may in a third one. Where others are written, those may be any.

    A group of arrays that is `unordered` stays as it is where the other orders only move its entries.
    """
    expected, simulated = outcome
    groups = tuple(group for group in unordered if _is_moved(group, outcome, others, signature))
    moved = {name for group in groups for name in group}
    writes = {name: dict(of_array) for name, of_array in simulated.writes.items()}
    findings = list(simulated.findings)
    in_doubt = set(simulated.tainted)
    changed: set[str] = set()
    for arguments, other in others:
        told = (finding for finding in other.findings if finding.is_bug or finding.keeps_value)
        findings += [finding for finding in told if finding not in findings]
        in_doubt |= other.tainted | {name for name in writes if writes[name].keys() != other.writes[name].keys()}
        for name, of_array in writes.items():
            here, there = expected[name], arguments[name]
            assert isinstance(here, torch.Tensor) and isinstance(there, torch.Tensor)
            apart = (
                set(positions_that_differ(here.flatten(), there.flatten(), of_array)) if name not in moved else set()
            )
            changed |= {name} if apart else set()
            lines = {found[at].line for found in (of_array, other.writes[name]) for at in apart if at in found}
            for at in apart | {at for at, write in of_array.items() if write.line in lines}:
                of_array[at] = (of_array.get(at) or other.writes[name][at])._replace(error=math.inf)
    report = replace(simulated, writes=writes, findings=tuple(findings), tainted=frozenset(in_doubt - moved))
    permuted = {name for name in changed if _is_moved((name,), outcome, others, signature)}
    return Ordered(report, groups, frozenset(permuted))


def positions_that_differ(here: torch.Tensor, there: torch.Tensor, writes: Mapping[int, Write]) -> list[int]:
    """The positions at which two results differ by more than what their errors allow."""
    differ = ((here != there) & ~((here != here) & (there != there))).nonzero().flatten().tolist()
    return [at for at in differ if not (at in writes and abs(here[at].item() - there[at].item()) <= writes[at].error)]


def _is_moved(group: Group, outcome: Outcome, others: Sequence[Outcome], signature: Signature) -> bool:
    """Whether each of the other orders leaves the entries of Python's own, in whatever order."""
    expected, report = outcome
    for arguments, _ in others:
        columns = []
        for name in group:
            here, there = expected[name], arguments[name]
            assert isinstance(here, torch.Tensor) and isinstance(there, torch.Tensor)
            snapshot = Snapshot(signature.dtype(name), here, here, there)
            columns.append(Column(snapshot, report.writes[name], slack=0))
        if unmatched(columns):
            return False
    return True
