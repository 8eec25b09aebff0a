"""The launch of a kernel as data: what is passed, and how grid, memory and instance follow from the numbers of a call.

`analysis/launches.py` makes a `LaunchProgram` of a lowered kernel. Two spellings of it run: the launcher in the emitted
C++ (`targets/cxx/launcher/bounds.py`, `targets/cuda/grids.py`), and the launcher of calls in Python (`call/launchers`).

Extents are integers, exact in both: where 64 bits may not hold a number, it is computed as a double. The names in
expressions are those of dimensions and numbers; `blockDim.x` and `gridDim.x` are the launch's own.
"""

from __future__ import annotations

import enum
import struct
from typing import Final

from py2cu.ir.abi.launch_values import LaunchValue
from py2cu.ir.abi.parameters import Stride
from py2cu.ir.types import DimExpr
from py2cu.records import record

INDEX: Final = "index_t"
"""The type of what is int32 in the narrow instance of a kernel, and int64 in the wide one."""
INT32_MAX: Final = 2**31 - 1
MOST_THREADS: Final = 1e18
"""Compared with a double; the distance to 2**63 covers its rounding."""
ALIGNMENT: Final = 16
SCATTERED: Final = 4
FEW_ELEMENTS: Final = 4096
"""A launch of at most so many elements has one a thread; with packs, even more of a GPU would be idle."""
DEFAULT_SHARED_LIMIT: Final = 48 * 1024
"""Bytes of dynamic shared memory that a block may use without `allow_shared_bytes`."""
MOST_BLOCKS_OF_CPU: Final = 1024
"""The most blocks that can wait for each other on the CPU."""

REFUSED: Final = (RuntimeError, OverflowError, ValueError, TypeError, AttributeError, ZeroDivisionError, struct.error)
"""What a launcher of calls raises before it has launched anything; after a launch, see `has_launched`."""


def mark_launched(error: Exception) -> None:
    """Note on an error of `REFUSED` that the kernel has run: what called it must not be tried again."""
    error._py2cu_has_launched = True  # type: ignore[attr-defined]


def has_launched(error: Exception) -> bool:
    """Whether the kernel had run before this error, which a hook of autograd may raise."""
    return hasattr(error, "_py2cu_has_launched")


class Source(enum.Enum):
    """Where the value of an argument comes from."""

    ARRAY = "array"  # the address of an array; null if the call leaves it out
    NUMBER = "number"  # a number of the call, or an extent
    STRIDE = "stride"
    PRESENCE = "presence"  # whether the call passes a number
    VALUE = "value"  # one of `LaunchProgram.values`


@record(frozen=True, slots=True)
class Passed:
    """One argument of compiled code: `name` is a parameter, a dimension or a stride, `type` a dtype or `INDEX`."""

    name: str
    source: Source
    type: str


@record(frozen=True, slots=True)
class Term:
    """`scale * a * b`. Names in `signed` may be negative and count by their magnitude, as doubles.

    `in_double`: 64 bits may not hold the product.
    """

    names: tuple[str, ...]
    scale: int
    signed: tuple[str, ...] = ()
    in_double: bool = False


@record(frozen=True, slots=True)
class Bound:
    """A sum of terms that no Python integer of a kernel exceeds."""

    terms: tuple[Term, ...]

    @property
    def fits_int64(self) -> bool:
        return not any(term.in_double or term.signed for term in self.terms)


@record(frozen=True, slots=True)
class PackedLaunch:
    """How many elements a thread of a call has: `count` packs of `width` neighbours on the x axis, a block apart.

    That needs `arrays` at multiples of `ALIGNMENT` bytes and `rows` that are multiples of `width`. Otherwise a thread
    has `SCATTERED` elements, a block apart; and one where there are `FEW_ELEMENTS`, or the caller gives the grid.
    """

    width: int
    count: int
    arrays: tuple[str, ...]
    rows: tuple[DimExpr, ...] = ()


@record(frozen=True, slots=True)
class LaunchProgram:
    """How one kernel is launched, with one set of dtypes.

    The instance is chosen by the template arguments, in this order: the values of `constexprs`, width and count of
    `packs`, `types` as C++ spells them, the presence of `optional` arrays, and the width of indices if the kernel has
    `index_t`. Indices are narrow if all of `fits` are at most INT32_MAX.
    """

    symbol: str
    passed: tuple[Passed, ...]
    size: tuple[DimExpr, ...]  # the threads of a call in x, y, z; none if only an explicit launch says the grid
    block: tuple[DimExpr, ...]
    constexprs: tuple[str, ...] = ()
    types: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()  # that declare `types`
    optional: tuple[str, ...] = ()
    has_index_type: bool = False
    fits: tuple[Bound, ...] = ()
    overflows: tuple[Bound, ...] = ()  # of a launch with elements: none may exceed MOST_THREADS
    values: tuple[LaunchValue, ...] = ()  # what the launcher computes for the kernel; each may need earlier ones
    strides: tuple[Stride, ...] = ()
    shared: tuple[tuple[DimExpr, int], ...] = ()  # of each dynamic shared array the elements, and the bytes of one
    has_static_shared: bool = False  # so that a smaller number than the limit has to be asked for
    checks_shared: tuple[tuple[str, DimExpr], ...] = ()  # extents of shared arrays that a call may make impossible
    cooperative: bool = False
    has_open_block: bool = False  # the block depends on numbers of the call
    packs: PackedLaunch | None = None
    has_block_instance: bool = False  # on the CPU: one for `block` alone, and one for explicit launches
    is_index: bool = False  # threads are elements: also an explicit launch may have too many to count

    def template_arguments(
        self, values: tuple[int, ...], given: tuple[bool, ...], packs: tuple[int, ...] = (), *, is_wide: bool
    ) -> str:
        """`<16, float, true, int>`; empty for a plain function. `packs`: their width and count."""
        index = ["int64_t" if is_wide else "int"] if self.has_index_type else []
        arguments = (*values, *packs, *self.types, *given, *index)
        texts = [str(each).lower() if isinstance(each, bool) else str(each) for each in arguments]
        return f"<{', '.join(texts)}>" if texts else ""
