"""The result of compiling one instance of a CUDA kernel.

In: what NVRTC or nvcc answers. Out: machine code and the kernel's symbol, or the compiler's log as an error.
"""

from __future__ import annotations

from py2cu.diagnostics import Py2cuError
from py2cu.records import record


@record(frozen=True, slots=True)
class Cubin:
    """The code of one kernel for one architecture: a cubin, or PTX if NVRTC does not know the architecture."""

    image: bytes  # PTX ends with a zero byte
    symbol: str  # the mangled name of the kernel


class CompileError(Py2cuError):
    """The CUDA compiler refused a text; `log` is its output, with the lines of that text."""

    def __init__(self, log: str) -> None:
        self.log = log
        super().__init__(log)

    def __str__(self) -> str:
        return f"the CUDA compiler refuses the kernel:\n{self.log}"
