"""Elementwise kernels as emitted, without `__restrict__`, beside the same text with it. Reports, no targets.

`k(x, out=x)` is allowed where a thread reads only the element that it writes, so these pointers may be equal.
"""

from __future__ import annotations

import ctypes
import functools
import re
from collections.abc import Iterator
from typing import Any

from benchmarks.gpu import compiled, in_turns
from benchmarks.table import Row, compare

# Name, arrays read, arrays written.
KERNELS = {"add": (2, 1), "sigmoid": (1, 1), "gelu": (1, 1), "gelu_backward": (2, 1), "swiglu": (2, 1)}
SIZES = (2**20, 2**24, 2**28)  # arrays that fit the L2 cache, that just do not, and that are far larger


def rows() -> Iterator[Row]:
    import torch

    from benchmarks import kernels
    from examples import layers

    for name, (inputs, outputs) in KERNELS.items():
        generic = hasattr(layers, name)
        kernel = getattr(layers if generic else kernels, name)
        text = kernel.cuda_source.replace(f'#include "{name}.h"', kernel.header)
        emitted, restricted = (launcher(source, name, inputs, outputs) for source in (text, restrict(text)))
        for size in SIZES:
            arrays = [torch.randn(size, device="cuda") for _ in range(inputs + outputs)]
            values = [*(ctypes.c_void_p(array.data_ptr()) for array in arrays), ctypes.c_int64(size)]
            ours, peer = in_turns(functools.partial(emitted, *values), functools.partial(restricted, *values))
            yield compare(f"{name} 2^{size.bit_length() - 1} f32, pointers may be equal", ours, peer, "__restrict__")


def restrict(text: str) -> str:
    """The CUDA with `__restrict__` on every pointer of its kernels."""

    def mark(signature: re.Match[str]) -> str:
        return re.sub(r"\* (?!__restrict__)", "* __restrict__ ", signature[0])

    marked = re.sub(r"__global__ void .*?\)\n", mark, text, flags=re.DOTALL)
    assert marked != text, "no pointer without __restrict__"
    return marked


def launcher(text: str, name: str, inputs: int, outputs: int) -> Any:
    """The kernel's launcher under a C name, which takes pointers and the extent."""
    names = [f"p{n}" for n in range(inputs + outputs)]
    declared = ", ".join([*(f"{'const ' * (n < inputs)}float* p{n}" for n in range(len(names))), "int64_t n"])
    called = f"{name}_launch({', '.join(names)}, n, cudaStream_t())"
    return compiled(f'{text}\nextern "C" int launch({declared}) {{ return {called}; }}\n').launch
