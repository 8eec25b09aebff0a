"""The arrays that a simulated kernel sees: `x[r, c]` loads an element, `out[i] = v` stores one and notes who did.

In: a tensor of any layout and the parameter that it is. Out: the tensor, changed in place by `ArrayView.flush`, and
per written element a `Write`: the last thread to write it, its line, and how exact the stored value is.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from py2cu.dtypes import DType, Kind
from py2cu.ir.extents import FromEnd
from py2cu.runtime.elements import THREAD, ElementRangeError, FloatElement, IntElement, element_class, truncate

if TYPE_CHECKING:
    import torch

Place = tuple[tuple[int, int, int], tuple[int, int, int]]  # blockIdx and threadIdx, each x, y, z


class Write(NamedTuple):
    """The last store to one element. `real` is the float that was stored into an integer array."""

    place: Place
    line: int
    error: float
    real: float | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """Something legal in Python that the compiled kernel does not promise, seen at run time."""

    message: str
    line: int
    place: Place

    def __str__(self) -> str:
        block, thread = self.place
        return f"line {self.line}: {self.message} (block {block}, thread {thread})"


@dataclass(slots=True)
class Journal:
    """What one launch has to tell: where it is, and what it noticed, each message once per line."""

    place: Place = ((0, 0, 0), (0, 0, 0))
    findings: dict[tuple[str, int], Finding] = field(default_factory=dict)

    def note(self, about: str, detail: str, line: int) -> None:
        self.findings.setdefault((about, line), Finding(f"{about}{detail}", line, self.place))


def _caller_line(depth: int) -> int:
    return sys._getframe(depth + 1).f_lineno


class OutOfRange(IndexError):
    """An index past the extent of an array's axis."""

    def __init__(self, array: str, axis: int, index: int, extent: int) -> None:
        self.array, self.axis, self.index, self.extent = array, axis, index, extent
        super().__init__(f"index {index} of `{array}` is out of range: axis {axis} has extent {extent}")


class ArrayView:
    """One array argument; indices count in every dimension, as the contract asks."""

    __slots__ = (
        "_cls", "_dtype", "_journal", "_known_negatives", "_tensor", "_values", "name", "shape", "writes",
    )  # fmt: skip

    def __init__(
        self,
        name: str,
        tensor: torch.Tensor,
        dtype: DType,
        journal: Journal,
        known: frozenset[FromEnd] = frozenset(),
    ) -> None:
        self.name = name
        self._known_negatives = known
        self.shape = tuple(int(extent) for extent in tensor.shape)
        self.writes: dict[int, Write] = {}
        self._tensor = tensor
        self._dtype = dtype
        self._journal = journal
        self._cls = element_class(dtype)
        self._values = [self._cls.cast(value) for value in tensor.flatten().tolist()]
        THREAD.doubt = False

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError(f"`{self.name}` has no dimension")
        return self.shape[0]

    def __iter__(self) -> Any:
        raise TypeError(f"`{self.name}` cannot be iterated over; index it")

    def __getitem__(self, index: Any) -> Any:
        return self._values[self._flat(index)]

    def __setitem__(self, index: Any, value: Any) -> None:
        position = self._flat(index)
        real: float | None = None
        error = 0.0
        if value.__class__ is not self._cls:
            real = value if isinstance(value, float) and self._dtype.kind is not Kind.FLOAT else None
            value = self._convert(value)
        if isinstance(value, FloatElement):
            error = value.error
        elif real is not None:
            error = getattr(real, "error", 0.0)
        if THREAD.doubt:
            error = math.inf
        self._values[position] = value
        self.writes[position] = Write(self._journal.place, _caller_line(1), error, real)

    def _convert(self, value: Any) -> Any:
        """`value` as an element of this array; contract section 5."""
        if not isinstance(value, int | float | IntElement):
            raise TypeError(f"`{self.name}` holds numbers, not {type(value).__name__}")
        if not isinstance(value, float):
            return self._convert_integer(value)
        if self._dtype.kind is Kind.FLOAT:
            return self._cls.cast(value)
        whole, specified = truncate(value, self._dtype)
        if not specified:
            THREAD.doubt = True
            message = f"a float that {self._dtype} cannot hold is stored into `{self.name}`"
            self._journal.note(message, f": {float(value)!r}", _caller_line(2))
        return self._cls.cast(whole)

    def _convert_integer(self, value: int | IntElement) -> Any:
        try:
            return self._cls.cast(self._cls.of(value))
        except ElementRangeError:
            message = f"a Python integer wraps in `{self.name}` of {self._dtype}"
            self._journal.note(message, f": {value}", _caller_line(3))
            return self._cls.cast(value)

    def _flat(self, index: Any) -> int:
        indices = index if index.__class__ is tuple else (index,)
        if len(indices) != len(self.shape):
            raise IndexError(f"`{self.name}` has {len(self.shape)} dimensions and is given {len(indices)} indices")
        position = 0
        for axis, extent in enumerate(self.shape):
            i = indices[axis]
            if i.__class__ is not int:
                i = self._integer(i)
            if not 0 <= i < extent:
                i = self._from_end(i, axis)
            position = position * extent + i
        return position

    def _integer(self, index: Any) -> int:
        if not isinstance(index, int | IntElement):
            raise TypeError(f"an index of `{self.name}` is an integer, not {type(index).__name__}")
        return int(index)

    def _from_end(self, index: int, axis: int) -> int:
        extent = self.shape[axis]
        if not -extent <= index < 0:
            raise OutOfRange(self.name, axis, index, extent)
        line = _caller_line(3)
        if FromEnd(line, self.name, axis, index) not in self._known_negatives:
            self._journal.note(f"a negative index of `{self.name}`", f": {index} on axis {axis}", line)
        return index + extent

    def flush(self) -> None:
        """Write the stored elements back; the others keep their bits."""
        import torch

        if not self.writes:
            return
        positions = list(self.writes)
        stored = [self._values[position] for position in positions]
        plain = [float(value) if isinstance(value, float) else int(value) for value in stored]
        flat = self._tensor.detach().cpu().flatten().clone()
        flat[torch.tensor(positions)] = torch.tensor(plain, dtype=self._tensor.dtype)
        self._tensor.copy_(flat.reshape(self.shape))
