"""The names that kernels import from py2cu: launch objects, arrays, barriers, atomics and warp functions.

The translator reads these names from the source. In Python, launch objects, barriers, atomics and warp functions are
placeholders, which the simulator replaces; outside the simulator they raise `RuntimeError`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

F = TypeVar("F", bound=Callable[..., object])

WARP_SIZE: Final = 32
FULL_MASK: Final = 0xFFFFFFFF


def device(function: F) -> F:
    """Mark a device function. The mark is optional: every plain function that a kernel calls is a device function."""
    return function


def local(shape: int | tuple[int, ...], dtype: object) -> Any:
    """A per-thread array.

        acc = local((4, 4), np.float32)

    Args:
        shape: constant extents, in C's order.
        dtype: a dtype of torch, NumPy or numba, its name, or `x.dtype` of an array.

    Returns:
        In a simulated kernel, an array that reports reads of unwritten elements; in plain Python, an uninitialised
        tensor.
    """
    return _tensor(shape, dtype)


def shared(shape: int | tuple[int, ...], dtype: object) -> Any:
    """An array in the shared memory of a block.

        tile = shared((16, 16), np.float32)

    Args:
        shape: extents in C's order. Constant extents make a static array. Expressions of dimensions and integer
            parameters make a dynamic array, which the launch sizes; if it has one dimension, slices of it are views.
        dtype: a dtype of torch, NumPy or numba, its name, or `x.dtype` of an array.

    Returns:
        In a simulated kernel, one array for all threads of a block, which reports reads of unwritten elements; in plain
        Python, an uninitialised tensor.
    """
    return _tensor(shape, dtype)


def _tensor(shape: int | tuple[int, ...], dtype: object) -> Any:
    import torch

    name = dtype if isinstance(dtype, str) else getattr(dtype, "__name__", None) or str(dtype)
    return torch.empty(shape, dtype=getattr(torch, name.removeprefix("torch.")))


def unroll(counts: range, by: int | None = None) -> range:
    """Ask the C++ compiler to unroll the loop over `counts`: completely, or `by` iterations at a time.

        for k in unroll(range(n), 4): ...

    Args:
        counts: a `range`.
        by: a constant.

    Returns:
        `counts` itself.
    """
    return counts


@dataclass(frozen=True)
class Index:
    """The annotation of an element index: `i: Index["n"]` runs over `n` elements, `Index["h * w"]` over `h * w`.

    `Index[int, "n"]` means the same. Both are `Annotated[int, Index("n")]`. For type checkers, `Index` is `Annotated`
    itself: they accept the second form, and read the index as an `int`.
    """

    extent: str | int

    def __class_getitem__(cls, arguments: object) -> object:
        kind, extent = arguments if isinstance(arguments, tuple) and len(arguments) == 2 else (int, arguments)
        if kind is not int or not isinstance(extent, str | int):
            raise TypeError(f'Index["n"] or Index[int, "n"] takes the name of a dimension, not {arguments!r}')
        return Annotated[int, cls(extent)]


if TYPE_CHECKING:
    N = TypeVar("N", int, bool)
    Constexpr = Annotated[N, "a template argument"]
else:

    class Constexpr:
        """The annotation of a template argument: `tile: Constexpr[int]` is constant when the CUDA code is compiled.

        To Python and type checkers, `Constexpr[int]` is `int` and `Constexpr[bool]` is `bool`.
        """

        def __class_getitem__(cls, kind: type) -> object:
            return Annotated[kind, cls]


def _outside_kernel(name: str) -> RuntimeError:
    return RuntimeError(
        f"`{name}` works only inside a running kernel: call the kernel, or step through it with "
        "`your_kernel.simulate(...)`"
    )


@dataclass(frozen=True)
class LaunchNumber:
    """`laneid` or `warpSize`: an integer."""

    name: str

    @property
    def __name__(self) -> str:
        return self.name

    def __index__(self) -> int:
        raise _outside_kernel(self.name)

    def __reduce__(self) -> str:
        return self.name  # the simulator replaces the one object of this name


@dataclass(frozen=True)
class LaunchObject(LaunchNumber):
    """`blockIdx`, `threadIdx`, `blockDim` or `gridDim`: integers `x`, `y` and `z`; the bare object means its `x`."""

    @property
    def x(self) -> int:
        raise _outside_kernel(self.name)

    @property
    def y(self) -> int:
        raise _outside_kernel(self.name)

    @property
    def z(self) -> int:
        raise _outside_kernel(self.name)


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
    """Wait for all threads of the block; afterwards each sees the earlier writes of the others."""
    raise _outside_kernel("syncthreads")


def syncthreads_count(predicate: object) -> int:
    """As `syncthreads`; returns the number of threads for which the predicate holds."""
    raise _outside_kernel("syncthreads_count")


def syncthreads_and(predicate: object) -> bool:
    """As `syncthreads`; returns whether the predicate holds for every thread."""
    raise _outside_kernel("syncthreads_and")


def syncthreads_or(predicate: object) -> bool:
    """As `syncthreads`; returns whether the predicate holds for at least one thread."""
    raise _outside_kernel("syncthreads_or")


def syncgrid() -> None:
    """Wait for all threads of the grid; afterwards each sees the earlier writes of the others to global arrays."""
    raise _outside_kernel("syncgrid")


def syncwarp(mask: int = FULL_MASK) -> None:
    """Wait for the lanes of the mask; afterwards each sees the earlier writes of the others."""
    raise _outside_kernel("syncwarp")


def threadfence() -> None:
    """Order this thread's writes: every thread of the device sees the earlier ones before the later ones."""
    raise _outside_kernel("threadfence")


def threadfence_block() -> None:
    """Order this thread's writes: every thread of the block sees the earlier ones before the later ones."""
    raise _outside_kernel("threadfence_block")


def threadfence_system() -> None:
    """Order this thread's writes: the device and the host see the earlier ones before the later ones."""
    raise _outside_kernel("threadfence_system")


# --- atomics ------------------------------------------------------------------------------------------------------

Place = int | tuple[int, ...]


class Atomics:
    """Atomic operations on one element of a global or shared array.

    Each takes the array, an index (a tuple for several dimensions) and a value, and returns the old element.
    """

    __name__ = "atomic"

    def __reduce__(self) -> str:
        return self.__name__

    def add(self, array: Any, index: Place, value: Any) -> Any:
        """`array[index] += value`."""
        raise _outside_kernel("atomic.add")

    def sub(self, array: Any, index: Place, value: Any) -> Any:
        """`array[index] -= value`."""
        raise _outside_kernel("atomic.sub")

    def min(self, array: Any, index: Place, value: Any) -> Any:
        """Store the smaller of the element and the value."""
        raise _outside_kernel("atomic.min")

    def max(self, array: Any, index: Place, value: Any) -> Any:
        """Store the larger of the element and the value."""
        raise _outside_kernel("atomic.max")

    def exch(self, array: Any, index: Place, value: Any) -> Any:
        """`array[index] = value`."""
        raise _outside_kernel("atomic.exch")

    def cas(self, array: Any, index: Place, compare: Any, value: Any) -> Any:
        """`array[index] = value` if the element equals `compare`."""
        raise _outside_kernel("atomic.cas")

    def inc(self, array: Any, index: Place, limit: Any) -> Any:
        """Increment an unsigned element; from `limit` on, reset it to 0."""
        raise _outside_kernel("atomic.inc")

    def dec(self, array: Any, index: Place, limit: Any) -> Any:
        """Decrement an unsigned element; set 0 and anything above `limit` to `limit`."""
        raise _outside_kernel("atomic.dec")

    def and_(self, array: Any, index: Place, value: Any) -> Any:
        """`array[index] &= value`."""
        raise _outside_kernel("atomic.and_")

    def or_(self, array: Any, index: Place, value: Any) -> Any:
        """`array[index] |= value`."""
        raise _outside_kernel("atomic.or_")

    def xor(self, array: Any, index: Place, value: Any) -> Any:
        """`array[index] ^= value`."""
        raise _outside_kernel("atomic.xor")


atomic = Atomics()


# --- warps --------------------------------------------------------------------------------------------------------


def shfl_sync(mask: int, value: Any, lane: int, width: int = WARP_SIZE) -> Any:
    """The `value` of lane `lane`; the lanes of the mask call it together."""
    raise _outside_kernel("shfl_sync")


def shfl_up_sync(mask: int, value: Any, delta: int, width: int = WARP_SIZE) -> Any:
    """The `value` of the lane `delta` below; the lowest lanes get their own `value`."""
    raise _outside_kernel("shfl_up_sync")


def shfl_down_sync(mask: int, value: Any, delta: int, width: int = WARP_SIZE) -> Any:
    """The `value` of the lane `delta` above; the highest lanes get their own `value`."""
    raise _outside_kernel("shfl_down_sync")


def shfl_xor_sync(mask: int, value: Any, lanes: int, width: int = WARP_SIZE) -> Any:
    """The `value` of lane `laneid ^ lanes`."""
    raise _outside_kernel("shfl_xor_sync")


def ballot_sync(mask: int, predicate: object) -> int:
    """A mask of the lanes for which the predicate holds."""
    raise _outside_kernel("ballot_sync")


def any_sync(mask: int, predicate: object) -> bool:
    """Whether the predicate holds for at least one lane of the mask."""
    raise _outside_kernel("any_sync")


def all_sync(mask: int, predicate: object) -> bool:
    """Whether the predicate holds for every lane of the mask."""
    raise _outside_kernel("all_sync")


def match_any_sync(mask: int, value: Any) -> int:
    """A mask of the lanes whose value equals this lane's."""
    raise _outside_kernel("match_any_sync")


def reduce_add_sync(mask: int, value: Any) -> Any:
    """The sum of the lanes' values, int32 or uint32, wrapped to 32 bits."""
    raise _outside_kernel("reduce_add_sync")


def reduce_min_sync(mask: int, value: Any) -> Any:
    """The minimum of the lanes' values, int32 or uint32."""
    raise _outside_kernel("reduce_min_sync")


def reduce_max_sync(mask: int, value: Any) -> Any:
    """The maximum of the lanes' values, int32 or uint32."""
    raise _outside_kernel("reduce_max_sync")


def reduce_and_sync(mask: int, value: Any) -> Any:
    """The bitwise and of the lanes' values, int32 or uint32."""
    raise _outside_kernel("reduce_and_sync")


def reduce_or_sync(mask: int, value: Any) -> Any:
    """The bitwise or of the lanes' values, int32 or uint32."""
    raise _outside_kernel("reduce_or_sync")


def reduce_xor_sync(mask: int, value: Any) -> Any:
    """The bitwise exclusive or of the lanes' values, int32 or uint32."""
    raise _outside_kernel("reduce_xor_sync")


def activemask() -> int:
    """A mask of the lanes of the warp that are active at this call."""
    raise _outside_kernel("activemask")


# --- numbers ------------------------------------------------------------------------------------------------------


def popc(value: Any) -> int:
    """The number of bits that are set in an int32, uint32, int64, uint64 or Python integer."""
    raise _outside_kernel("popc")


def ffs(value: Any) -> int:
    """The position of the lowest set bit, counted from 1; 0 for zero."""
    raise _outside_kernel("ffs")


def clz(value: Any) -> int:
    """The number of zeros above the highest bit that is set, in an int32, uint32, int64 or uint64."""
    raise _outside_kernel("clz")


def brev(value: Any) -> Any:
    """The bits of an int32, uint32, int64 or uint64 in reverse order."""
    raise _outside_kernel("brev")


def rsqrt(value: Any) -> Any:
    """`1 / math.sqrt(value)`."""
    raise _outside_kernel("rsqrt")
