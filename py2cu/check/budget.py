"""How much a check simulates: sizes are chosen by the accesses that smaller cases took.

In: how much work each case is by its sizes, and what it took. Out: what a further case may take, and what it will. The
unit is an access to an array, which is the same on every machine; a case that takes long, and far longer for each
(arithmetic, threads that spin), counts by its processor time.
"""

from __future__ import annotations

import math
from typing import Final

OPERATIONS: Final = 800_000  # accesses of one check: a few seconds of CPython
LEAST: Final = 100_000  # of one instance of a generic kernel
ACCESSES_PER_SECOND: Final = 100_000  # fewer than CPython simulates, unless a case does something else most of the time
SHORT: Final = 0.25  # seconds that every case may take
SHARE: Final = 3  # an even share of so small a part of the budget is kept for each case to come


class Budget:
    """The operations that the cases of one instance of a kernel may take."""

    def __init__(self, cases: int, instances: int = 1) -> None:
        self.total = max(OPERATIONS // instances, LEAST)
        self.left = self.total
        self._share = self.total // (SHARE * max(cases, 1))
        self._taken: dict[int, int] = {}  # operations, by work

    def allowance(self, to_come: int) -> int:
        """What the next case may take, where `to_come` more follow."""
        return max(min(self.total // 2, self.left - to_come * self._share), self._share)

    def charge(self, work: int, operations: int, seconds: float = 0.0) -> None:
        """A case of so much `work` took so many `operations`, and `seconds` of processor time."""
        cost = max(operations, round((seconds - SHORT) * ACCESSES_PER_SECOND))
        self.left -= cost
        if cost:
            self._taken[work] = max(cost, self._taken.get(work, 0))

    def expected(self, work: int) -> float:
        """What a case of so much `work` takes, by a power law through two cases that have run.

        Between two cases: theirs. Beyond the largest, that of the last two, and no more than in proportion: a larger
        case is tried rather than left out. Below the smallest, in proportion.
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
