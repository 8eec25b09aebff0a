"""A simulated kernel's own arrays: what `local(…)` makes there, and tuples of constants that are looked up in."""

from __future__ import annotations

import math
from typing import Any

from py2cu.dtypes import BOOL, F64, I64, DType, find_dtype
from py2cu.simulator.memory.arrays import UnwrittenArray
from py2cu.simulator.state import THREAD
from py2cu.simulator.values.checked_int import CheckedInt
from py2cu.simulator.values.family import Element


def make_local(shape: Any, dtype: Any) -> UnwrittenArray:
    """`local(shape, dtype)` in a simulated kernel."""
    extents = parse_shape(shape)
    name, *_ = [*THREAD.array_names(), "a local array"]
    return UnwrittenArray(name, extents, parse_dtype(dtype), [0] * math.prod(extents))


def parse_shape(said: Any) -> tuple[int, ...]:
    """The extents that `64`, `(64,)` or `[64]` mean.

    Raises:
        ValueError: one is negative.
    """
    extents = tuple(map(int, said)) if isinstance(said, tuple | list) else (int(said),)
    if any(extent < 0 for extent in extents):
        raise ValueError(f"an array of extent {' × '.join(map(str, extents))}")
    return extents


def parse_dtype(said: Any) -> DType:
    """The dtype that `said` means in a kernel, where the types of NumPy and torch are element classes."""
    if isinstance(said, str):
        found = find_dtype(said)
        assert found is not None, said
        return found
    if isinstance(said, type) and issubclass(said, Element):
        return said.dtype
    return {"bool": BOOL, "Integer": I64}.get(getattr(said, "__name__", ""), F64)


class Table(tuple[Any, ...]):
    """A tuple of constants: its integers are a kernel's, and an index that counts from the end is told."""

    __slots__ = ()

    def __getitem__(self, index: Any) -> Any:
        at = int(index)
        if at < 0 and not THREAD.is_constant_negative_index(0, at):
            THREAD.report("a negative index of a tuple of constants", str(at), is_open=True)
        return super().__getitem__(at)


def as_table(values: tuple[Any, ...]) -> tuple[Any, ...]:
    """`values` as a table, where it is one of numbers or of such tuples."""
    if len(values) > 2**14:
        return values  # data of the module: no kernel has a table so large
    items = [as_table(v) if isinstance(v, tuple) else CheckedInt(v) if v.__class__ is int else v for v in values]
    return Table(items) if all(isinstance(v, bool | int | float | Table) for v in items) else values
