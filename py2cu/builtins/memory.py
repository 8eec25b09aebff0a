"""Arrays that a kernel makes, `local` for each thread, `shared` for each block, and CUDA's cache hints.

Hints are loads and stores of elements, and of rows of views. In Python, and on the CPU, they are the plain accesses.
"""

from __future__ import annotations

from typing import Any, Final

from py2cu.builtins.public import PY2CU, builtin, public
from py2cu.builtins.registry import Rule

LOCAL: Final = ("py2cu.local", "numba.cuda.local.array")
"""The qualified names of `local`."""
SHARED: Final = ("py2cu.shared", "numba.cuda.shared.array")
"""The qualified names of `shared`."""
NUMBA_SHARED: Final = "numba.cuda.shared.array"
"""The name of `shared` under which a shape of 0 means all of the shared memory that a launch gives."""
NUMBA_CONSTANT: Final = "numba.cuda.const.array_like"
"""The name under which an array of the module lies in constant memory."""
DYNAMIC_BYTES: Final = "dynamic_bytes"
"""The parameter of kernels with such an array: the bytes that a launch gives."""
LDG: Final = "ldg"
STCS: Final = "stcs"
CACHE_HINTS: Final = (LDG, "ldcs", STCS)

ElementIndex = int | tuple[int, ...]


def row_access(hint: str) -> str:
    """The helper that accesses a row with a cache hint."""
    return f"{hint}_row"


@public
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


@public
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


@builtin(Rule.CACHE, PY2CU, in_python=True)
def ldg(array: Any, index: ElementIndex) -> Any:
    """`array[index]`, through the read-only cache: of an array that the kernel does not write."""
    return array[index]


@builtin(Rule.CACHE, PY2CU, in_python=True)
def ldcs(array: Any, index: ElementIndex) -> Any:
    """`array[index]`, which is likely read once: the caches may evict it first."""
    return array[index]


@builtin(Rule.CACHE, PY2CU, in_python=True)
def stcs(array: Any, index: ElementIndex, value: Any) -> None:
    """`array[index] = value`, which is likely not read soon: the caches may evict it first."""
    array[index] = value
