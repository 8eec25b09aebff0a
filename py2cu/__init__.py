"""py2cu: write a kernel in Python, debug it in Python, get readable CUDA C++, and evidence that both agree.

Importing the package imports neither torch nor a compiler; what a name needs is loaded when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import Annotated as Index  # `Index[int, "n"]` is an int to type checkers

    from py2cu.diagnostics import EnvironmentLacks, Py2cuError, TranslationError
    from py2cu.kernels import Kernel, kernel
    from py2cu.vocabulary import (
        Constexpr,
        activemask,
        all_sync,
        any_sync,
        atomic,
        ballot_sync,
        blockDim,
        blockIdx,
        brev,
        clz,
        device,
        ffs,
        gridDim,
        laneid,
        local,
        match_any_sync,
        popc,
        reduce_add_sync,
        reduce_and_sync,
        reduce_max_sync,
        reduce_min_sync,
        reduce_or_sync,
        reduce_xor_sync,
        rsqrt,
        shared,
        shfl_down_sync,
        shfl_sync,
        shfl_up_sync,
        shfl_xor_sync,
        syncgrid,
        syncthreads,
        syncthreads_and,
        syncthreads_count,
        syncthreads_or,
        syncwarp,
        threadfence,
        threadfence_block,
        threadfence_system,
        threadIdx,
        unroll,
        warpSize,
    )

__version__ = "0.1.0"
__all__ = [
    "Constexpr",
    "EnvironmentLacks",
    "Index",
    "Kernel",
    "Py2cuError",
    "TranslationError",
    "activemask",
    "all_sync",
    "any_sync",
    "atomic",
    "ballot_sync",
    "blockDim",
    "blockIdx",
    "brev",
    "clz",
    "device",
    "ffs",
    "gridDim",
    "kernel",
    "laneid",
    "local",
    "match_any_sync",
    "popc",
    "reduce_add_sync",
    "reduce_and_sync",
    "reduce_max_sync",
    "reduce_min_sync",
    "reduce_or_sync",
    "reduce_xor_sync",
    "rsqrt",
    "shared",
    "shfl_down_sync",
    "shfl_sync",
    "shfl_up_sync",
    "shfl_xor_sync",
    "syncgrid",
    "syncthreads",
    "syncthreads_and",
    "syncthreads_count",
    "syncthreads_or",
    "syncwarp",
    "threadIdx",
    "threadfence",
    "threadfence_block",
    "threadfence_system",
    "unroll",
    "warpSize",
]

_HOMES = {
    "py2cu.diagnostics": ("EnvironmentLacks", "Py2cuError", "TranslationError"),
    "py2cu.kernels": ("Kernel", "kernel"),
    "py2cu.vocabulary": (
        "Constexpr",
        "Index",
        "activemask",
        "all_sync",
        "any_sync",
        "atomic",
        "ballot_sync",
        "blockDim",
        "blockIdx",
        "brev",
        "clz",
        "device",
        "ffs",
        "gridDim",
        "laneid",
        "local",
        "match_any_sync",
        "popc",
        "reduce_add_sync",
        "reduce_and_sync",
        "reduce_max_sync",
        "reduce_min_sync",
        "reduce_or_sync",
        "reduce_xor_sync",
        "rsqrt",
        "shared",
        "shfl_down_sync",
        "shfl_sync",
        "shfl_up_sync",
        "shfl_xor_sync",
        "syncgrid",
        "syncthreads",
        "syncthreads_and",
        "syncthreads_count",
        "syncthreads_or",
        "syncwarp",
        "threadIdx",
        "threadfence",
        "threadfence_block",
        "threadfence_system",
        "unroll",
        "warpSize",
    ),
}


def __getattr__(name: str) -> object:
    for module, names in _HOMES.items():
        if name in names:
            value: object = getattr(importlib.import_module(module), name)
            globals()[name] = value
            return value
    raise AttributeError(f"module 'py2cu' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
