"""The names that kernels use: element indices, template arguments, the launch, arrays, device functions, and what
threads do together.

In Python they stand for little: an index kernel is called with a number, and the simulator puts each thread's
coordinates in the place of the launch objects, and its own barriers, atomics and warps in the place of the functions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

F = TypeVar("F", bound=Callable[..., object])

WARP_SIZE: Final = 32
FULL_MASK: Final = 0xFFFFFFFF


def device(function: F) -> F:
    """Marks a function that kernels call, for its readers: a plain function that a kernel calls is one as well."""
    return function


def local(shape: int | tuple[int, ...], dtype: object) -> Any:
    """An array of each thread's own.

        acc = local((4, 4), np.float32)

    Args:
        shape: constant extents, in C's order.
        dtype: of torch, NumPy or numba, its name, or `x.dtype` of an array.

    Returns:
        In a simulated kernel, an array whose elements are to be written before they are read; in plain Python, a
        tensor with anything in it.
    """
    return _tensor(shape, dtype)


def shared(shape: int | tuple[int, ...], dtype: object) -> Any:
    """An array that the threads of a block share.

        tile = shared((16, 16), np.float32)

    Args:
        shape: extents in C's order: constants for an array that the compiler lays out, names of dimensions and integer
            parameters for one that the launch sizes. Of the latter, one-dimensional ones are sliced into views.
        dtype: of torch, NumPy or numba, its name, or `x.dtype` of an array.

    Returns:
        In a simulated kernel, the same array for every thread of a block, whose elements are to be written before they
        are read; in plain Python, a tensor with anything in it.
    """
    return _tensor(shape, dtype)


def _tensor(shape: int | tuple[int, ...], dtype: object) -> Any:
    import torch

    name = dtype if isinstance(dtype, str) else getattr(dtype, "__name__", None) or str(dtype)
    return torch.empty(shape, dtype=getattr(torch, name.removeprefix("torch.")))


def unroll(counts: range, by: int | None = None) -> range:
    """`counts` itself; in C++ the loop over it is to be unrolled: all of it, or `by` rounds at a time.

        for k in unroll(range(n), 4): ...

    Args:
        counts: a `range`.
        by: a constant.
    """
    return counts


class Index:
    """`i: Index["n"]` annotates an element index of extent n; `Index["h * w"]` one over a product of dimensions."""

    def __class_getitem__(cls, extent: str | int) -> type[Index]:
        if not isinstance(extent, str | int):
            raise TypeError(f'Index["n"] takes the name of a dimension, not {extent!r}')
        return cls


if TYPE_CHECKING:
    N = TypeVar("N", int, bool)
    Constexpr = Annotated[N, "a template argument"]
else:

    class Constexpr:
        """`tile: Constexpr[int]` is a template argument of the CUDA: a number that the compiler knows.

        `Constexpr[bool]` is one too; to Python and its tools they are an int and a bool.
        """

        def __class_getitem__(cls, kind: type) -> object:
            return Annotated[kind, cls]


def _outside(name: str) -> RuntimeError:
    return RuntimeError(
        f"{name} has a value in a running kernel only: call `k(...)`, or `k.simulate(...)` to step through it"
    )


@dataclass(frozen=True)
class LaunchNumber:
    """`laneid` or `warpSize`: a whole number of a thread's."""

    name: str

    @property
    def __name__(self) -> str:
        return self.name

    def __index__(self) -> int:
        raise _outside(self.name)


@dataclass(frozen=True)
class LaunchObject(LaunchNumber):
    """`blockIdx`, `threadIdx`, `blockDim` or `gridDim`: x, y and z of a thread's place; used bare, its x."""

    @property
    def x(self) -> int:
        raise _outside(self.name)

    @property
    def y(self) -> int:
        raise _outside(self.name)

    @property
    def z(self) -> int:
        raise _outside(self.name)


blockIdx = LaunchObject("blockIdx")
threadIdx = LaunchObject("threadIdx")
blockDim = LaunchObject("blockDim")
gridDim = LaunchObject("gridDim")

if TYPE_CHECKING:
    warpSize: int
    laneid: int
else:
    warpSize = LaunchNumber("warpSize")
    laneid = LaunchNumber("laneid")


# --- barriers and fences ------------------------------------------------------------------------------------------


def syncthreads() -> None:
    """Wait until every thread of the block is here; what they wrote before is seen by all after."""
    raise _outside("syncthreads")


def syncthreads_count(predicate: object) -> int:
    """`syncthreads`, and for how many threads the predicate holds."""
    raise _outside("syncthreads_count")


def syncthreads_and(predicate: object) -> bool:
    """`syncthreads`, and whether the predicate holds for every thread."""
    raise _outside("syncthreads_and")


def syncthreads_or(predicate: object) -> bool:
    """`syncthreads`, and whether the predicate holds for some thread."""
    raise _outside("syncthreads_or")


def syncgrid() -> None:
    """Wait until every thread of the grid is here; what they wrote to global arrays before is seen by all after."""
    raise _outside("syncgrid")


def syncwarp(mask: int = FULL_MASK) -> None:
    """Wait until the lanes of the mask are here; what they wrote before is seen by them after."""
    raise _outside("syncwarp")


def threadfence() -> None:
    """What this thread wrote before is seen by the device before what it writes after."""
    raise _outside("threadfence")


def threadfence_block() -> None:
    """What this thread wrote before is seen by its block before what it writes after."""
    raise _outside("threadfence_block")


def threadfence_system() -> None:
    """What this thread wrote before is seen by the device and the host before what it writes after."""
    raise _outside("threadfence_system")


# --- atomics ------------------------------------------------------------------------------------------------------

Place = int | tuple[int, ...]


class Atomics:
    """Operations on one element of a global or shared array that no other thread can come between.

    Each takes the array, an index (a tuple where there are several dimensions) and a value, and returns the old value.
    """

    __name__ = "atomic"

    def add(self, array: Any, index: Place, value: Any) -> Any:
        """`array[index] += value`."""
        raise _outside("atomic.add")

    def sub(self, array: Any, index: Place, value: Any) -> Any:
        """`array[index] -= value`."""
        raise _outside("atomic.sub")

    def min(self, array: Any, index: Place, value: Any) -> Any:
        """The lesser of the element and the value."""
        raise _outside("atomic.min")

    def max(self, array: Any, index: Place, value: Any) -> Any:
        """The greater of the element and the value."""
        raise _outside("atomic.max")

    def exch(self, array: Any, index: Place, value: Any) -> Any:
        """`array[index] = value`."""
        raise _outside("atomic.exch")

    def cas(self, array: Any, index: Place, compare: Any, value: Any) -> Any:
        """`array[index] = value`, where the element equals `compare`."""
        raise _outside("atomic.cas")

    def inc(self, array: Any, index: Place, limit: Any) -> Any:
        """One more, and 0 after `limit`; of unsigned elements."""
        raise _outside("atomic.inc")

    def dec(self, array: Any, index: Place, limit: Any) -> Any:
        """One less, and `limit` after 0 and from above `limit`; of unsigned elements."""
        raise _outside("atomic.dec")

    def and_(self, array: Any, index: Place, value: Any) -> Any:
        """`array[index] &= value`."""
        raise _outside("atomic.and_")

    def or_(self, array: Any, index: Place, value: Any) -> Any:
        """`array[index] |= value`."""
        raise _outside("atomic.or_")

    def xor(self, array: Any, index: Place, value: Any) -> Any:
        """`array[index] ^= value`."""
        raise _outside("atomic.xor")


atomic = Atomics()


# --- warps --------------------------------------------------------------------------------------------------------


def shfl_sync(mask: int, value: Any, lane: int, width: int = WARP_SIZE) -> Any:
    """The `value` of lane `lane`; the lanes of the mask call it together."""
    raise _outside("shfl_sync")


def shfl_up_sync(mask: int, value: Any, delta: int, width: int = WARP_SIZE) -> Any:
    """The `value` of the lane `delta` below; the lowest lanes keep their own."""
    raise _outside("shfl_up_sync")


def shfl_down_sync(mask: int, value: Any, delta: int, width: int = WARP_SIZE) -> Any:
    """The `value` of the lane `delta` above; the highest lanes keep their own."""
    raise _outside("shfl_down_sync")


def shfl_xor_sync(mask: int, value: Any, lanes: int, width: int = WARP_SIZE) -> Any:
    """The `value` of the lane whose number is this one's `^ lanes`."""
    raise _outside("shfl_xor_sync")


def ballot_sync(mask: int, predicate: object) -> int:
    """A bit for each lane of the mask: whether the predicate holds there."""
    raise _outside("ballot_sync")


def any_sync(mask: int, predicate: object) -> bool:
    """Whether the predicate holds for some lane of the mask."""
    raise _outside("any_sync")


def all_sync(mask: int, predicate: object) -> bool:
    """Whether the predicate holds for every lane of the mask."""
    raise _outside("all_sync")


def match_any_sync(mask: int, value: Any) -> int:
    """A bit for each lane of the mask whose value equals this lane's."""
    raise _outside("match_any_sync")


def reduce_add_sync(mask: int, value: Any) -> Any:
    """The sum of the lanes' values, int32 or uint32; it wraps."""
    raise _outside("reduce_add_sync")


def reduce_min_sync(mask: int, value: Any) -> Any:
    """The least of the lanes' values, int32 or uint32."""
    raise _outside("reduce_min_sync")


def reduce_max_sync(mask: int, value: Any) -> Any:
    """The greatest of the lanes' values, int32 or uint32."""
    raise _outside("reduce_max_sync")


def reduce_and_sync(mask: int, value: Any) -> Any:
    """The bits that all values of the lanes have, int32 or uint32."""
    raise _outside("reduce_and_sync")


def reduce_or_sync(mask: int, value: Any) -> Any:
    """The bits that some value of the lanes has, int32 or uint32."""
    raise _outside("reduce_or_sync")


def reduce_xor_sync(mask: int, value: Any) -> Any:
    """The bits that an odd number of the lanes' values have, int32 or uint32."""
    raise _outside("reduce_xor_sync")


def activemask() -> int:
    """A bit for each lane that runs with this one."""
    raise _outside("activemask")
