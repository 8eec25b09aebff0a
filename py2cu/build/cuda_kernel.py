"""Compile and load one instance of a kernel for calls on a GPU.

In: the text of calls, the instance, a device. Out: the kernel as `cuLaunchKernelEx` takes it. Promises: an instance is
compiled once for each architecture, and kept on disk.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from py2cu.build import cache, driver, nvrtc, store
from py2cu.build.notices import announced
from py2cu.build.nvrtc import CompileError, Cubin
from py2cu.ir.abi.launch import LaunchProgram
from py2cu.source import SourceFile
from py2cu.threads import ForkSafeLock
from py2cu.translation import CallText


@dataclass(frozen=True, slots=True)
class CudaInstance:
    """An instance of a kernel: how it is launched, and the template arguments, `<16, float, int>`."""

    code: CallText
    program: LaunchProgram
    template: str
    fma: bool

    @property
    def expression(self) -> str:
        return f"{self.program.symbol}_kernel{self.template}"

    @property
    def headers(self) -> tuple[str, ...]:
        return (*self.code.headers, *self.program.headers)

    def key(self, architecture: str) -> str:
        instance = self.code.text.text, self.headers, self.expression, self.fma
        return store.key_of(*instance, architecture, nvrtc.compiler_identity())

    def compile(self, architecture: str, source: Callable[[], SourceFile]) -> Cubin:
        text, expression = self.code.text, self.expression
        try:
            return nvrtc.compile_cubin(
                text.text, expression, architecture=architecture, fma=self.fma, headers=self.headers, name=text.name
            )
        except CompileError as failure:
            from py2cu.build.messages import build_error

            raise build_error(str(failure), {text.name: text}, source, of_nvcc=text) from None


_kernels: Final[dict[str, int]] = {}
_LOCK: Final = ForkSafeLock()


def load_kernel(instance: CudaInstance, device: int, source: Callable[[], SourceFile]) -> int:
    """The handle of the kernel of an instance, for `device` and all others of its architecture.

    Raises:
        BuildError: the compiler refused the text.
        EnvironmentLacks: a compiler, cuda-bindings or a driver of CUDA 12 is missing.
        RuntimeError: CUDA refuses to load the kernel.
    """
    architecture = driver.architecture(device)
    key = instance.key(architecture)
    with _LOCK:
        if key not in _kernels:
            _kernels[key] = driver.load_kernel(*compiled(instance, architecture, source))
    return _kernels[key]


def compiled(instance: CudaInstance, architecture: str, source: Callable[[], SourceFile]) -> Cubin:
    """The code of an instance for an architecture, compiled unless it is cached; raises as `load_kernel`."""

    def compile_() -> bytes:
        with announced(f"compiling {instance.program.symbol} for {architecture}"):
            cubin = instance.compile(architecture, source)
        return b"\0".join([cubin.symbol.encode(), cubin.image])

    content = cache.cubin(instance.key(architecture), instance.program.symbol, compile_)
    symbol, _, image = content.partition(b"\0")
    return Cubin(image, symbol.decode())
