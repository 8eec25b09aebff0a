"""The decorator `@kernel`.

In: a Python function and options. Out: a `Kernel`. Errors: `TypeError`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, Unpack, overload

from py2cu.hosts.live.handle import Host
from py2cu.kernels import Kernel
from py2cu.options import Block, KernelKeywords, KernelOptions, Size, Strided


@overload
def kernel(function: FunctionType | Callable[..., Any]) -> Kernel: ...


@overload
def kernel(**options: Unpack[KernelKeywords]) -> Callable[[Callable[..., Any]], Kernel]: ...


def kernel(
    function: Callable[..., Any] | None = None,
    *,
    size: Size | None = None,
    block: Block | None = None,
    init: Mapping[str, int | float] | None = None,
    name: str | None = None,
    strided: Strided = False,
    coarsen: int | None = None,
    launch_bounds: int | tuple[int, int] | None = None,
) -> Kernel | Callable[[Callable[..., Any]], Kernel]:
    """Make a kernel of a function: `@kernel`, `@kernel(size=…, block=…)` or `kernel(f)`.

    Args:
        function: a plain Python function with annotated parameters; or a dispatcher of Numba, whose kernels take their
            types from each launch (`py2cu.numba`).
        size: the number of threads in x, y, z, as extents: `"n"`, `("w", "h")`.
        block: the number of threads of a block in x, y, z, extents as in `size`; 256, 16×16 or 8×8×8 by default.
        init: by name, the value with which an allocated output is filled before the launch.
        name: the kernel's name in C++ and as an op; the function's name by default.
        strided: the arrays that may have any strides, `"x"` or `("x", "out")`, or True for all arrays. They are not
            copied; any other array must be contiguous.
        coarsen: elements for each thread; only 1 is supported.
        launch_bounds: the largest number of threads of a block, or a pair of that and the smallest number of blocks on
            a multiprocessor: CUDA's `__launch_bounds__`, from which the compiler derives the registers of a thread.

    Returns:
        The kernel, or a decorator if only options are passed.

    Raises:
        TypeError: `function` is no plain Python function.
    """
    options = KernelOptions.of(
        size=size, block=block, init=init, name=name, strided=strided, coarsen=coarsen, launch_bounds=launch_bounds
    )

    def decorate(function: Callable[..., Any]) -> Kernel:
        if not (isinstance(function, FunctionType) and function.__annotations__):
            from py2cu.numba.dispatcher import Dispatcher, python_of

            if (python := python_of(function)) is not None:
                return Dispatcher(python)  # type: ignore[return-value]  # launched as Numba's, for each call's types
        return Kernel(function, options)  # rule: refused-late

    return decorate if function is None else decorate(function)


def host(function: Callable[..., Any]) -> Host:
    """Make a host function of a function that calls kernels and torch: `@host`.

    Args:
        function: a plain Python function with annotated parameters.

    Returns:
        The host function: called like `function`, translated to C++, built in the background.

    Raises:
        TypeError: `function` is no plain Python function.
    """
    return Host(function)
