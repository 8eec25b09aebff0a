"""py2cu: write a kernel in Python, debug it in Python, get CUDA C++ that you would sign, and proof that the two agree.

Importing the package imports neither torch nor a compiler; what a name needs is loaded when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from py2cu.diagnostics import EnvironmentLacks, Py2cuError, TranslationError
    from py2cu.kernels import Kernel, kernel
    from py2cu.vocabulary import Constexpr, Index, blockDim, blockIdx, device, gridDim, local, threadIdx

__version__ = "0.1.0"
__all__ = [
    "Constexpr",
    "EnvironmentLacks",
    "Index",
    "Kernel",
    "Py2cuError",
    "TranslationError",
    "blockDim",
    "blockIdx",
    "device",
    "gridDim",
    "kernel",
    "local",
    "threadIdx",
]

_HOMES = {
    "py2cu.diagnostics": ("EnvironmentLacks", "Py2cuError", "TranslationError"),
    "py2cu.kernels": ("Kernel", "kernel"),
    "py2cu.vocabulary": ("Constexpr", "Index", "blockDim", "blockIdx", "device", "gridDim", "local", "threadIdx"),
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
