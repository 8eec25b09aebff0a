"""The names that kernels use: element indices, template arguments, the launch, a thread's arrays, device functions.

In Python they stand for little: an index kernel is called with a number, and the simulator puts each thread's
coordinates in the place of the launch objects.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeVar

F = TypeVar("F", bound=Callable[..., object])


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
    import torch

    name = dtype if isinstance(dtype, str) else getattr(dtype, "__name__", None) or str(dtype)
    return torch.empty(shape, dtype=getattr(torch, name.removeprefix("torch.")))


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


@dataclass(frozen=True)
class LaunchObject:
    """`blockIdx`, `threadIdx`, `blockDim` or `gridDim`: x, y and z of a thread's place; used bare, its x."""

    name: str

    def _outside(self) -> RuntimeError:
        return RuntimeError(
            f"{self.name} has a value in a running kernel only: call `k(...)`, or `k.simulate(...)` to step through it"
        )

    @property
    def x(self) -> int:
        raise self._outside()

    @property
    def y(self) -> int:
        raise self._outside()

    @property
    def z(self) -> int:
        raise self._outside()

    def __index__(self) -> int:
        raise self._outside()


blockIdx = LaunchObject("blockIdx")
threadIdx = LaunchObject("threadIdx")
blockDim = LaunchObject("blockDim")
gridDim = LaunchObject("gridDim")
