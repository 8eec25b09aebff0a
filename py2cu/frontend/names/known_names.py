"""The names of libraries that mean something in kernels, by qualified name."""

from __future__ import annotations

from typing import Final

from py2cu.builtins import CONSTANTS, lookup
from py2cu.dtypes import BY_JAXTYPING, GENERIC

# Those that have a meaning here and are no builtin of the language.
KNOWN: Final = frozenset(
    [
        f"py2cu.{name}"
        for name in ("kernel", "device", "local", "Constexpr", "Index", "blockIdx", "threadIdx", "blockDim", "gridDim")
    ]
    + [f"py2cu.{name}" for name in ("shared", "atomic", "syncthreads", "syncgrid", "syncwarp", "unroll")]
    + [f"py2cu.threadfence{scope}" for scope in ("", "_block", "_system")]
    + [f"jaxtyping.{name}" for name in (*BY_JAXTYPING, *GENERIC)]
    + ["torch.Tensor"]
)


def is_known(qualified: str) -> bool:
    """True for a name that means something in kernels."""
    return qualified in KNOWN or qualified in CONSTANTS or lookup(qualified) is not None
