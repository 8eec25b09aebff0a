"""Compare arrays whose elements may come in any order: those that a kernel compacts, sorts into bins, or appends.

In: for each array of a group its values in Python and in the compiled kernel, and who wrote what. Out: the entries of
the Python that have no counterpart. An entry is what lies at one index of the first dimension, in all arrays of the
group. Entries are paired by augmenting paths, so that tolerances that overlap do no harm; equal ones are paired first.
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

Group = tuple[str, ...]  # arrays whose entries move together


def read_groups(unordered: str | Iterable[str] | None, signature: Signature) -> tuple[Group, ...]:
    """The groups of `unordered="out"`, `unordered=("out", "rest")` and, of arrays that move together, `"keys, values"`.

    Raises:
        ValueError: a name that is no array that the kernel writes, or that comes twice.
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
    """`"keys, values"` as names."""
    return tuple(name.strip() for name in text.split(","))


def written_arrays(signature: Signature) -> list[str]:
    """The arrays whose entries a kernel may rearrange."""
    return [parameter.name for parameter in signature.arrays if parameter.role is not Role.INPUT]


@dataclass(slots=True)
class Column:
    """One array of a group."""

    snapshot: Snapshot
    writes: Mapping[int, Write]
    slack: int
    expected: list[complex] = field(init=False)
    actual: list[complex] = field(init=False)
    expected_bits: list[object] = field(init=False)
    actual_bits: list[object] = field(init=False)
    width: int = field(init=False)  # elements of an entry

    def __post_init__(self) -> None:
        wanted, actual = self.snapshot.expected, self.snapshot.actual
        self.expected, self.actual = wanted.flatten().tolist(), actual.flatten().tolist()
        self.expected_bits, self.actual_bits = list(bit_patterns(wanted)), list(bit_patterns(actual))
        self.width = math.prod(wanted.shape[1:])

    def __len__(self) -> int:
        return self.snapshot.expected.shape[0] if self.snapshot.expected.dim() else 1

    def agrees(self, row: int, at: int) -> bool:
        """Whether the compiled entry `at` may stand for Python's entry `row`."""
        return all(self._agrees(row * self.width + k, at * self.width + k) for k in range(self.width))

    def _agrees(self, position: int, at: int) -> bool:
        write = self.writes.get(position)
        if write is None or self.expected_bits[position] == self.actual_bits[at]:
            return self.expected_bits[position] == self.actual_bits[at]
        return agree(self.snapshot.dtype, self.expected[position], self.actual[at], write, self.slack)

    def spell(self, row: int) -> str:
        """Python's entry `row`."""
        values = self.expected[row * self.width : (row + 1) * self.width]
        return repr(values if self.snapshot.expected.dim() > 1 else values[0])

    def reach(self, row: int) -> float:
        """How far the first element of a counterpart may lie from that of Python's entry `row`."""
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
    placed: dict[int, int] = {}  # Python's entry to the compiled one
    owner: dict[int, int] = {}  # and back
    free: dict[object, list[int]] = {}
    for at in reversed(range(len(first))):
        free.setdefault(_bits(columns, at, of_python=False), []).append(at)
    for row in range(len(first)):
        alike = free.get(_bits(columns, row, of_python=True))
        if alike:
            placed[row] = alike.pop()
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
    """The compiled entries by their first element, so that few have to be looked at."""

    def __init__(self, column: Column) -> None:
        self._column = column
        heads = [(column.actual[at * column.width], at) for at in range(len(column))]
        is_ordered = not any(isinstance(head, complex) or head != head for head, _ in heads)
        self._sorted = sorted(heads, key=lambda head: float(head[0].real)) if is_ordered else None
        self._keys = [float(head.real) for head, _ in self._sorted or ()]

    def of(self, row: int) -> Iterable[int]:
        """Those that may be the counterpart of Python's entry `row`."""
        reach = self._column.reach(row)
        if self._sorted is None or reach == math.inf:
            return range(len(self._column))
        value = float(self._column.expected[row * self._column.width].real)
        low, high = bisect_left(self._keys, value - reach), bisect_right(self._keys, value + reach)
        return (at for _, at in self._sorted[low:high])


def _place(start: int, columns: Sequence[Column], near: _Near, placed: dict[int, int], owner: dict[int, int]) -> bool:
    """Find a counterpart for Python's entry `start`, moving others where that makes room."""
    came: dict[int, int] = {}  # to a compiled entry, from Python's
    rows = [start]
    for row in rows:
        for at in near.of(row):
            if at in came or not all(column.agrees(row, at) for column in columns):
                continue
            came[at] = row
            if at in owner:
                rows.append(owner[at])
                continue
            while True:
                row, before = came[at], placed.get(came[at])
                placed[row], owner[at] = at, row
                if before is None:
                    return True
                at = before
    return False
