"""Arrays that a simulated kernel makes itself: `local(shape, dtype)`, and tuples of constants that it indexes.

In: a shape and a dtype as the kernel spells them, or an array of NumPy. Out: `make_local`, `make_constant`,
`parse_shape`, `parse_dtype` and `as_table`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import IntEnum, IntFlag
from typing import Any, Final

from py2cu.dtypes import BOOL, F64, I64, SHORT, DType, find_dtype
from py2cu.simulator.memory.arrays import ArrayView, UnwrittenArray
from py2cu.simulator.state import THREAD
from py2cu.simulator.values.checked_int import CheckedInt
from py2cu.simulator.values.family import Element
from py2cu.simulator.values.math_functions import BUILTINS


def make_local(shape: Any, dtype: Any) -> UnwrittenArray:
    """`local(shape, dtype)` in a simulated kernel."""
    extents = parse_shape(shape)
    name, *_ = [*THREAD.array_names(), "a local array"]
    return UnwrittenArray(name, extents, parse_dtype(dtype), [0] * math.prod(extents))


def make_constant(values: Any) -> ArrayView:
    """Numba's `const.array_like(TAPS)` in a simulated kernel, of an array of NumPy."""
    name, *_ = [*THREAD.array_names(), "a constant array"]
    return ArrayView(name, values.shape, parse_dtype(str(values.dtype)), values.ravel().tolist())


def parse_shape(shape: Any) -> tuple[int, ...]:
    """The extents that `64`, `(64,)` or `[64]` mean.

    Raises:
        ValueError: an extent is negative.
    """
    extents = tuple(map(int, shape)) if isinstance(shape, tuple | list) else (int(shape),)
    if any(extent < 0 for extent in extents):
        raise ValueError(f"an array of extent {' × '.join(map(str, extents))}")
    return extents


# As NumPy interprets Python's types; in a kernel, `bool`, `int` and `float` are typed substitutes.
_PYTHON_TYPES: Final[dict[object, DType]] = {
    bool: BOOL, int: I64, float: F64, BUILTINS["bool"]: BOOL, BUILTINS["int"]: I64, BUILTINS["float"]: F64,
}  # fmt: skip


def parse_dtype(dtype: Any) -> DType:
    """The dtype that `dtype` means in a kernel, where the types of NumPy and torch are element classes.

    Raises:
        TypeError: it is no element type.
    """
    if isinstance(dtype, type) and issubclass(dtype, Element):
        return dtype.dtype
    parsed = (find_dtype(dtype) or SHORT.get(dtype)) if isinstance(dtype, str) else _PYTHON_TYPES.get(dtype)
    if parsed is None:
        spellings = "`np.float32`, `torch.int32`, `'float32'`, or `x.dtype` of an array"
        raise TypeError(f"{dtype!r} is no element type; write {spellings}")
    return parsed


class Table(tuple[Any, ...]):
    """A tuple of constants with checked integers; a negative index that is not a constant is a finding."""

    __slots__ = ()

    def __getitem__(self, index: Any) -> Any:
        at = int(index)
        if at < 0 and not THREAD.is_constant_negative_index(0, at):
            THREAD.report("a negative index of a tuple of constants", str(at), is_open=True)
        return super().__getitem__(at)


def as_table(values: Sequence[Any]) -> Sequence[Any]:
    """The tuple or list `values` as a `Table`, if it contains only numbers and such sequences; else `values` itself."""
    if not values or len(values) > 2**14:
        return values  # data of the module: no kernel has a table so large
    items = [as_table(v) if isinstance(v, tuple | list) else _as_checked(v) for v in values]
    return Table(items) if all(isinstance(v, bool | int | float | Table) for v in items) else values


def _as_checked(value: Any) -> Any:
    """A Python integer that is checked; a member of an `IntEnum` is one, too."""
    return CheckedInt(value) if value.__class__ is int or isinstance(value, IntEnum | IntFlag) else value
