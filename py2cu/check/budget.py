"""Limit how much a check simulates: predict the cost of a case from the cost of smaller ones.

In: the work of each case by its sizes, and its cost. Out: the cost that the next case may have, and its expected cost.
The unit is an access to an array, which is the same on every machine. A case whose accesses are slow (much arithmetic,
spinning threads) counts by its processor time.
"""

from __future__ import annotations

import math
from typing import Final

OPERATIONS: Final = 800_000  # accesses of one check: a few seconds of CPython
LEAST: Final = 100_000  # operations, at least, for each instance of a generic kernel
ACCESSES_PER_SECOND: Final = 100_000  # fewer than CPython simulates, unless other work dominates
SHORT: Final = 0.25  # seconds that are free for every case
SHARE: Final = 3  # 1 / SHARE of the budget is reserved in even parts for later cases


class Budget:
    """The operations that the cases of one instance of a kernel may cost."""

    def __init__(self, cases: int, instances: int = 1) -> None:
        self.total = max(OPERATIONS // instances, LEAST)
        self.left = self.total
        self._share = self.total // (SHARE * max(cases, 1))
        self._taken: dict[int, int] = {}  # operations by work

    def allowance(self, pending: int) -> int:
        """The operations that the next case may cost, if `pending` more follow."""
        return max(min(self.total // 2, self.left - pending * self._share), self._share)

    def renew(self, pending: int) -> None:
        """Give the next case the most that a case may cost: no smaller case can take its place."""
        self.left = self.total + pending * self._share

    def charge(self, work: int, operations: int, seconds: float = 0.0) -> None:
        """Record that a case of this `work` took these `operations` and `seconds` of processor time."""
        cost = max(operations, round((seconds - SHORT) * ACCESSES_PER_SECOND))
        self.left -= cost
        if cost:
            self._taken[work] = max(cost, self._taken.get(work, 0))

    def expected(self, work: int) -> float:
        """The expected operations of a case of this `work`, by a power law through two cases that have run.

        Between two cases, their power law. Beyond the largest, that of the last two, but at most proportional, so that
        a larger case is tried rather than skipped. Below the smallest, proportional. 0 if too few cases have run.
        """
        below = sorted(known for known in self._taken if known <= work)
        above = sorted(known for known in self._taken if known > work)
        if below and below[-1] == work:
            return float(self._taken[work])
        if not below:
            return self._taken[above[0]] * work / above[0] if above else 0.0
        if above:
            return self._power_law(below[-1], above[0], work, math.inf)
        return self._power_law(below[-2], below[-1], work, 1.0) if len(below) > 1 else 0.0

    def _power_law(self, first: int, second: int, work: int, steepest: float) -> float:
        exponent = math.log(self._taken[second] / self._taken[first]) / math.log(second / first)
        return float(self._taken[second] * (work / second) ** min(exponent, steepest))
