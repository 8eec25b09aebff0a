"""Numba's `cuda` for py2cu: `import py2cu.numba as cuda` in place of `from numba import cuda`.

In: functions under `@cuda.jit`, launched by `k[blocks, threads](…)`. Out: kernels compiled by py2cu, one for each set
of argument types, as Numba does. Arrays are torch tensors, NumPy arrays, which are copied to the GPU and back, and
whatever has `__cuda_array_interface__` or `__dlpack__`. Without a GPU, NumPy arrays and CPU tensors run on the CPU
target. With `NUMBA_ENABLE_CUDASIM=1`, kernels run in py2cu's simulator.

Inside kernels the names mean what they mean under Numba; `docs/from-numba.md` lists them.
"""

from __future__ import annotations

from collections.abc import Iterable
from types import SimpleNamespace
from typing import Any

from py2cu import builtins
from py2cu.builtins import PUBLIC
from py2cu.builtins.launch import WARP_SIZE
from py2cu.builtins.public import outside_kernel
from py2cu.numba.arrays import (
    DeviceArray,
    as_cuda_array,
    device_array,
    device_array_like,
    is_available,
    is_cuda_array,
    synchronize,
    to_device,
)
from py2cu.numba.dispatcher import Dispatcher, jit

__all__ = [
    "DeviceArray", "Dispatcher", "as_cuda_array", "device_array", "device_array_like", "is_available", "is_cuda_array",
    "jit", "synchronize", "to_device",
]  # fmt: skip


def _placeholder(name: str) -> Any:
    def inside_kernels(*_: Any, **__: Any) -> Any:
        raise outside_kernel(f"cuda.{name}")

    inside_kernels.__name__, inside_kernels.__qualname__ = name, f"cuda.{name}"
    inside_kernels.__module__ = "numba.cuda"  # the simulator takes it for Numba's
    return inside_kernels


def _library(name: str, members: Iterable[str]) -> Any:
    placeholders = {member: _placeholder(f"{name}.{member}") for member in members}
    return SimpleNamespace(__module__="numba.cuda", __name__=name, __qualname__=f"cuda.{name}", **placeholders)


def _members() -> dict[str, Any]:
    """What kernels call, by Numba's names; the objects of a launch are py2cu's own."""
    prefix = "numba.cuda."
    qualified = (*builtins.names(), *builtins.formula_names())
    names = {each.removeprefix(prefix) for each in qualified if each.startswith(prefix)}
    plain = {name: _placeholder(name) for name in ("grid", "gridsize", *names) if "." not in name}
    for library in ("fp16", "libdevice"):
        plain[library] = _library(library, [name.partition(".")[2] for name in names if name.startswith(f"{library}.")])
    launch = {name: PUBLIC[name] for name in ("blockIdx", "threadIdx", "blockDim", "gridDim", "laneid", "atomic")}
    return plain | launch | {"warpsize": WARP_SIZE}


shared, local = _library("shared", ["array"]), _library("local", ["array"])
const, cg = _library("const", ["array_like"]), _library("cg", ["this_grid"])
globals().update({name: value for name, value in _members().items() if name not in globals()})


_ON_THE_HOST = {
    "stream": "torch.cuda.Stream()", "default_stream": "torch.cuda.default_stream()", "event": "torch.cuda.Event()",
    "pinned_array": "torch.empty(…, pin_memory=True)", "select_device": "torch.cuda.set_device(…)",
    "get_current_device": "torch.cuda.current_device()", "gpus": "torch.cuda.device_count()",
}  # fmt: skip
"""What torch has for Numba's streams, events and devices."""


def __getattr__(name: str) -> Any:
    instead = f": write `{_ON_THE_HOST[name]}`" if name in _ON_THE_HOST else ""
    raise AttributeError(f"py2cu.numba has no `{name}`{instead}")
