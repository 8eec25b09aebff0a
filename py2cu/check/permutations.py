"""Compare arrays whose entries may come in any order, such as results of compaction, binning or appending.

In: for each array of a group, its values in Python and in the compiled kernel, and the writes of the Python. Out: the
entries of the Python that have no counterpart. An entry is the elements at one index of the first dimension, in all
arrays of the group. Entries are matched by augmenting paths (maximum bipartite matching), which is right even if
tolerances overlap; entries with equal bits are matched first.
"""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from py2cu.check.differences import Snapshot, agree, tolerance
from py2cu.check.redzones import bit_patterns
from py2cu.dtypes import Kind
from py2cu.ir.abi.parameters import Role
from py2cu.ir.abi.signature import Signature
from py2cu.simulator import Write

Group = tuple[str, ...]  # arrays whose entries are permuted together


def read_groups(unordered: str | Iterable[str] | None, signature: Signature) -> tuple[Group, ...]:
    """The groups in `unordered`: `"out"`, `("out", "rest")`, or `"keys, values"` for arrays permuted together.

    Raises:
        ValueError: a name is not an array that the kernel writes, or is repeated.
    """
    texts = (unordered,) if isinstance(unordered, str) else tuple(unordered or ())
    groups = tuple(map(names_of_group, texts))
    written = written_arrays(signature)
    names = [name for group in groups for name in group]
    for place, name in enumerate(names):
        if name not in written:
            listed = ", ".join(f"`{known}`" for known in written) or "no array"
            raise ValueError(f"`unordered` names `{name}`, but {signature.name} writes {listed}")
        if name in names[:place]:
            raise ValueError(f"`unordered` names `{name}` twice")
    return groups


def names_of_group(text: str) -> Group:
    """The names in a text such as `"keys, values"`."""
    return tuple(name.strip() for name in text.split(","))


def written_arrays(signature: Signature) -> list[str]:
    """The arrays that a kernel writes, by name."""
    return [parameter.name for parameter in signature.arrays if parameter.role is not Role.INPUT]


@dataclass(slots=True)
class Column:
    """One array of a group: its values after the Python and after the compiled kernel, by flat position."""

    snapshot: Snapshot
    writes: Mapping[int, Write]
    slack: int
    expected: list[complex] = field(init=False)
    actual: list[complex] = field(init=False)
    expected_bits: list[object] = field(init=False)
    actual_bits: list[object] = field(init=False)
    width: int = field(init=False)  # elements of an entry

    def __post_init__(self) -> None:
        expected, actual = self.snapshot.expected, self.snapshot.actual
        self.expected, self.actual = expected.flatten().tolist(), actual.flatten().tolist()
        self.expected_bits, self.actual_bits = list(bit_patterns(expected)), list(bit_patterns(actual))
        self.width = math.prod(expected.shape[1:])

    def __len__(self) -> int:
        return self.snapshot.expected.shape[0] if self.snapshot.expected.dim() else 1

    def agrees(self, row: int, at: int) -> bool:
        """Whether the compiled entry `at` is an acceptable counterpart of Python's entry `row`."""
        return all(self._agrees(row * self.width + k, at * self.width + k) for k in range(self.width))

    def _agrees(self, position: int, at: int) -> bool:
        write = self.writes.get(position)
        if write is None or self.expected_bits[position] == self.actual_bits[at]:
            return self.expected_bits[position] == self.actual_bits[at]
        return agree(self.snapshot.dtype, self.expected[position], self.actual[at], write, self.slack)

    def spell(self, row: int) -> str:
        """Python's entry `row` as text."""
        values = self.expected[row * self.width : (row + 1) * self.width]
        return repr(values if self.snapshot.expected.dim() > 1 else values[0])

    def reach(self, row: int) -> float:
        """The largest distance between the first elements of Python's entry `row` and of a counterpart."""
        write, dtype = self.writes.get(row * self.width), self.snapshot.dtype
        value = self.expected[row * self.width]
        if isinstance(value, complex) or not math.isfinite(value) or (write is not None and write.real is not None):
            return math.inf
        error = 0.0 if write is None else write.error
        reach = tolerance(dtype, value, error, self.slack) if dtype.kind is Kind.FLOAT else error
        return math.inf if abs(value) + reach > dtype.high else reach


def unmatched(columns: Sequence[Column]) -> list[int]:
    """Python's entries without a counterpart among the compiled ones."""
    first = columns[0]
    if not len(first) or not first.width:
        return []
    placed: dict[int, int] = {}  # Python's entry: its compiled counterpart
    owner: dict[int, int] = {}  # the inverse
    free: dict[object, list[int]] = {}
    for at in reversed(range(len(first))):
        free.setdefault(_bits(columns, at, of_python=False), []).append(at)
    for row in range(len(first)):
        equal = free.get(_bits(columns, row, of_python=True))
        if equal:
            placed[row] = equal.pop()
            owner[placed[row]] = row
    near = _Near(first)
    rest = [row for row in range(len(first)) if row not in placed]
    return [row for row in rest if not _place(row, columns, near, placed, owner)]


def _bits(columns: Sequence[Column], entry: int, *, of_python: bool) -> object:
    parts = []
    for column in columns:
        bits = column.expected_bits if of_python else column.actual_bits
        parts.append(tuple(bits[entry * column.width : (entry + 1) * column.width]))
    return tuple(parts)


class _Near:
    """The compiled entries sorted by their first element, so that few have to be examined."""

    def __init__(self, column: Column) -> None:
        self._column = column
        heads = [(column.actual[at * column.width], at) for at in range(len(column))]
        is_ordered = not any(isinstance(head, complex) or head != head for head, _ in heads)
        self._sorted = sorted(heads, key=lambda head: float(head[0].real)) if is_ordered else None
        self._keys = [float(head.real) for head, _ in self._sorted or ()]

    def of(self, row: int) -> Iterable[int]:
        """The possible counterparts of Python's entry `row`."""
        reach = self._column.reach(row)
        if self._sorted is None or reach == math.inf:
            return range(len(self._column))
        value = float(self._column.expected[row * self._column.width].real)
        low, high = bisect_left(self._keys, value - reach), bisect_right(self._keys, value + reach)
        return (at for _, at in self._sorted[low:high])


def _place(start: int, columns: Sequence[Column], near: _Near, placed: dict[int, int], owner: dict[int, int]) -> bool:
    """Find a counterpart for Python's entry `start` along an augmenting path, which reassigns other entries."""
    reached_from: dict[int, int] = {}  # a compiled entry: Python's entry before it on the path
    rows = [start]
    for row in rows:
        for at in near.of(row):
            if at in reached_from or not all(column.agrees(row, at) for column in columns):
                continue
            reached_from[at] = row
            if at in owner:
                rows.append(owner[at])  # rule: check-owner
                continue
            while True:
                row, previous = reached_from[at], placed.get(reached_from[at])
                placed[row], owner[at] = at, row
                if previous is None:
                    return True
                at = previous
    return False
