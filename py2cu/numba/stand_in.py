"""Files that import Numba, without it: `from numba import cuda` imports `py2cu.numba`.

In: nothing. Out: a context in which that holds; Numba's types come from Numba, if it is installed.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

from py2cu.dtypes import ALIASES, BY_NAME, SHORT


class TypeName:
    """A type of Numba where Numba is not installed: `float32`, `float32[:, ::1]`, `void(float32[:])`."""

    __module__ = "numba"  # the simulator takes it for Numba's

    def __init__(self, text: str) -> None:
        self.text = text

    def __getitem__(self, key: Any) -> TypeName:
        keys = key if isinstance(key, tuple) else (key,)
        return TypeName(f"{self.text}[{', '.join('::1' if each.step == 1 else ':' for each in keys)}]")

    def __call__(self, *args: Any) -> Any:
        if all(isinstance(arg, TypeName) for arg in args):
            return f"{self.text}({', '.join(map(str, args))})"
        (value,) = args
        return value

    def __str__(self) -> str:
        return self.text


def _unchanged(function: Any = None, **_: Any) -> Any:
    """Numba's `@njit` and `@jit`: functions that kernels call."""
    return function if isinstance(function, FunctionType) else _unchanged


@contextlib.contextmanager
def imported_as_numba() -> Iterator[None]:
    """Within this context `from numba import cuda` imports this module, whether Numba is installed or not."""
    numba: Any = ModuleType("numba")  # the file keeps it: its kernels find `numba.cuda` here when they are simulated
    names: dict[str, Any] = {}
    try:
        vars(numba).update(vars(importlib.import_module("numba")))
    except ImportError:
        vars(numba).update({name: TypeName(name) for name in (*BY_NAME, *ALIASES, "void", "none")})
        vars(numba).update({name: TypeName(dtype.name) for name, dtype in SHORT.items()})
        numba.types = numba.core = numba
        numba.jit, numba.njit, numba.prange = _unchanged, _unchanged, range
        names |= {"numba.core": numba, "numba.core.types": numba}
    numba.cuda = importlib.import_module("py2cu.numba")
    for library in ("numba", "numba_cuda_mlir"):
        names |= {library: numba, f"{library}.cuda": numba.cuda, f"{library}.types": numba.types}
    before = {name: sys.modules.get(name) for name in names}
    sys.modules.update(names)
    try:
        yield
    finally:
        for name, module in before.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module
