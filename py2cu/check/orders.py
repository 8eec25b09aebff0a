"""Find the elements whose value depends on the order of threads, and the arrays that other orders only permute.

In: the outcomes of one launch in several thread orders. Out: the report of the first, with an infinite error for every
element that depends on the order, so that a check accepts any value of it.
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
    """A launch, compared with other thread orders.

    `groups`: the `unordered` groups whose entries the other orders permute and do not change. `permuted`: other arrays
    whose elements they permute and do not change.
    """

    report: SimulationReport
    groups: tuple[Group, ...]
    permuted: frozenset[str]


def accept_other_orders(
    outcome: Outcome, others: Sequence[Outcome], signature: Signature, unordered: Sequence[Group] = ()
) -> Ordered:
    """Mark the elements that differ in another thread order with an infinite error: any value of them is accepted.

    Elements that the same lines wrote are marked too, since they may differ in a third order. If other orders write
    other elements of an array, the whole array is tainted. An `unordered` group of arrays is not marked if the other
    orders only permute its entries.
    """
    expected, simulated = outcome
    groups = tuple(group for group in unordered if _is_permuted(group, outcome, others, signature))
    permuted_names = {name for group in groups for name in group}
    writes = {name: dict(of_array) for name, of_array in simulated.writes.items()}
    findings = list(simulated.findings)
    tainted = set(simulated.tainted)
    changed: set[str] = set()
    for arguments, other in others:
        races = (finding for finding in other.findings if finding.is_bug or finding.keeps_value)
        findings += [finding for finding in races if finding not in findings]
        # rule: order-of-writes
        tainted |= other.tainted | {name for name in writes if writes[name].keys() != other.writes[name].keys()}
        for name, of_array in writes.items():
            here, there = expected[name], arguments[name]
            assert isinstance(here, torch.Tensor) and isinstance(there, torch.Tensor)
            differing = set()
            if name not in permuted_names:
                differing = set(positions_that_differ(here.flatten(), there.flatten(), of_array))
            changed |= {name} if differing else set()
            lines = {known[at].line for known in (of_array, other.writes[name]) for at in differing if at in known}
            for at in differing | {at for at, write in of_array.items() if write.line in lines}:
                of_array[at] = (of_array.get(at) or other.writes[name][at])._replace(error=math.inf)
    # rule: orders-written
    report = replace(simulated, writes=writes, findings=tuple(findings), tainted=frozenset(tainted - permuted_names))
    permuted = {name for name in changed if _is_permuted((name,), outcome, others, signature)}
    return Ordered(report, groups, frozenset(permuted))


def positions_that_differ(here: torch.Tensor, there: torch.Tensor, writes: Mapping[int, Write]) -> list[int]:
    """The positions at which two results differ by more than their tracked errors."""
    differ = ((here != there) & ~((here != here) & (there != there))).nonzero().flatten().tolist()
    return [at for at in differ if not (at in writes and abs(here[at].item() - there[at].item()) <= writes[at].error)]


def _is_permuted(group: Group, outcome: Outcome, others: Sequence[Outcome], signature: Signature) -> bool:
    """Whether each of the other orders produces the same entries as the first, in any order."""
    expected, report = outcome
    for arguments, _ in others:
        columns = []
        for name in group:
            here, there = expected[name], arguments[name]
            assert isinstance(here, torch.Tensor) and isinstance(there, torch.Tensor)
            snapshot = Snapshot(signature.dtype(name), here, here, there)
            columns.append(Column(snapshot, report.writes[name], slack=0))
        if unmatched(columns):  # rule: check-unmatched
            return False
    return True
