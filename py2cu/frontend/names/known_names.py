"""The library names that kernels may use, by qualified name."""

from __future__ import annotations

from typing import Final

from py2cu.builtins import CONSTANTS, PUBLIC, lookup, ways_to_call
from py2cu.builtins.atomics import OPERATIONS
from py2cu.dtypes import BY_JAXTYPING, GENERIC

# Names that are no builtins of the language, such as decorators and annotations.
KNOWN: Final = frozenset(
    [f"py2cu.{name}" for name in ("kernel", *PUBLIC)]
    + [f"jaxtyping.{name}" for name in (*BY_JAXTYPING, *GENERIC)]
    + ["torch.Tensor"]
)

_LIKE_NUMBA: Final = {
    "numba_cuda_mlir": "numba", "numba.types": "numba", "numba.core.types": "numba", "py2cu.numba": "numba.cuda"
}  # fmt: skip


def is_known(qualified: str) -> bool:
    """True for a library name that kernels may use."""
    return qualified in KNOWN or qualified in CONSTANTS or lookup(qualified) is not None


def is_function(qualified: str) -> bool:
    """True for a library's function, or dtype, that kernels may call."""
    return lookup(qualified) is not None or qualified in OPERATIONS or bool(ways_to_call(qualified))


def of_numba(qualified: str) -> str:
    """Numba's name for what its successor and `py2cu.numba` have under the same name; any other name unchanged."""
    for module, same in _LIKE_NUMBA.items() if qualified.startswith(("numba", "py2cu.numba")) else ():
        if qualified == module or qualified.startswith(f"{module}."):
            return f"{same}{qualified.removeprefix(module)}"
    return qualified
