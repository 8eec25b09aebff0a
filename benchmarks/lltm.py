"""The LLTM cell of PyTorch's tutorial on extensions: in torch calls, as an extension written by hand, and by py2cu.

The extension is the tutorial's: C++ with ATen calls, and on a GPU also CUDA with a kernel for all gates, behind a
`torch.autograd.Function`. The cell of py2cu is `lltm_fused` of `examples/lltm.py`. Rows compare the times of a training
step, and the seconds from the sources to the first step with empty caches.
"""

from __future__ import annotations

import functools
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import elu

from benchmarks import gpu, startup
from benchmarks.table import Row, compare

BATCH, STATE, FEATURES = 64, 1024, 32
SLOWER_THAN_BY_HAND = 1.05
HERE = Path(__file__).parent
DECLARATIONS = """
std::vector<torch::Tensor> lltm_forward(
    torch::Tensor input, torch::Tensor weights, torch::Tensor bias, torch::Tensor old_h, torch::Tensor old_cell);
std::vector<torch::Tensor> lltm_backward(
    torch::Tensor grad_h, torch::Tensor grad_cell, torch::Tensor new_cell, torch::Tensor input_gate,
    torch::Tensor output_gate, torch::Tensor candidate, torch::Tensor X, torch::Tensor weights);
"""

Cell = Callable[..., tuple[Tensor, Tensor]]
Call = Callable[[], object]


# --- the cells ---


def eager(
    input: Tensor,  # noqa: A002
    weights: Tensor,
    bias: Tensor,
    old_h: Tensor,
    old_cell: Tensor,
) -> tuple[Tensor, Tensor]:
    x = torch.cat([old_h, input], dim=1)
    gates = torch.addmm(bias, x, weights.t()).chunk(3, dim=1)
    new_cell = old_cell + elu(gates[2]) * torch.sigmoid(gates[0])
    new_h = torch.tanh(new_cell) * torch.sigmoid(gates[1])
    return new_h, new_cell


class ByHand(torch.autograd.Function):
    """The tutorial's autograd function around the two functions of an extension."""

    @staticmethod
    def forward(ctx: Any, extension: Any, *inputs: Tensor) -> tuple[Tensor, Tensor]:
        new_h, new_cell, *saved = extension.lltm_forward(*inputs)
        ctx.extension = extension
        ctx.save_for_backward(new_cell, *saved, inputs[1])
        return new_h, new_cell

    @staticmethod
    def backward(ctx: Any, grad_h: Tensor, grad_cell: Tensor) -> tuple[Tensor | None, ...]:
        gradients = ctx.extension.lltm_backward(grad_h.contiguous(), grad_cell.contiguous(), *ctx.saved_tensors)
        return None, *gradients


def by_hand(language: str, directory: str) -> Cell:
    """Compile the extension, in "C++" or "CUDA", in an empty directory."""
    from torch.utils import cpp_extension

    from py2cu.build import toolchain

    if ninja := toolchain.find_ninja():
        os.environ["PATH"] += os.pathsep + str(ninja.parent)
    if language == "C++":
        sources, cuda_sources = [(HERE / "lltm_by_hand.cpp").read_text(encoding="utf-8")], []
    else:
        cpp_extension.CUDA_HOME = cpp_extension.CUDA_HOME or str(toolchain.cuda_home())
        sources, cuda_sources = [DECLARATIONS], [(HERE / "lltm_by_hand.cu").read_text(encoding="utf-8")]
    extension = cpp_extension.load_inline(
        f"lltm_{language.replace('+', 'p').lower()}",
        sources,
        cuda_sources,
        functions=["lltm_forward", "lltm_backward"],
        extra_cflags=["-O2"],
        extra_cuda_cflags=["-O2"],
        build_directory=directory,
    )
    return functools.partial(ByHand.apply, extension)


def by_py2cu() -> Cell:
    """The host function with its library and kernels built: forward and backward have run."""
    from examples.lltm import lltm_fused

    step(lltm_fused, *arguments())
    lltm_fused.build()
    return lltm_fused


# --- rows ---


def rows() -> Iterator[Row]:
    languages = ["C++", "CUDA"] if torch.cuda.is_available() else ["C++"]
    with tempfile.TemporaryDirectory() as folder:
        cells: dict[str, Cell] = {"py2cu": by_py2cu(), "eager": eager}
        for language in languages:
            directory = Path(folder, language)
            directory.mkdir()
            cells[f"{language} by hand"] = by_hand(language, str(directory))
        check_agreement(cells)
        yield from rows_of_steps(cells)
    ours = startup.in_fresh_cache(FIRST_STEP.format(cell="by_py2cu()"))
    for language in languages:
        script = FIRST_STEP.format(cell=f"by_hand({language!r}, sys.argv[1])")
        peer = startup.in_fresh_cache(script)
        yield compare(f"LLTM, source to first step, cold, {device()}", ours, peer, f"{language} by hand")


FIRST_STEP = """
import sys, time
from benchmarks.lltm import arguments, by_hand, by_py2cu, eager, step, synchronize
inputs, upstream = arguments()
step(eager, inputs, upstream)  # initialises CUDA and its libraries
synchronize()
started = time.perf_counter()
step({cell}, inputs, upstream)
synchronize()
print("took", time.perf_counter() - started)
"""


def device() -> str:
    return "cuda" if torch.cuda.is_available() else "cpu"


def arguments() -> tuple[list[Tensor], list[Tensor]]:
    """The inputs of the cell, which all require gradients, and the gradients of its two outputs."""
    torch.manual_seed(0)
    bound = STATE**-0.5
    weights = torch.empty(3 * STATE, STATE + FEATURES, device=device()).uniform_(-bound, bound)
    bias = torch.empty(3 * STATE, device=device()).uniform_(-bound, bound)
    x = torch.randn(BATCH, FEATURES, device=device())
    old_h, old_cell, *upstream = (torch.randn(BATCH, STATE, device=device()) for _ in range(4))
    return [each.requires_grad_() for each in (x, weights, bias, old_h, old_cell)], upstream


def step(cell: Cell, inputs: list[Tensor], upstream: list[Tensor]) -> tuple[Tensor, ...]:
    """Forward and backward; the gradients of all inputs."""
    return torch.autograd.grad(cell(*inputs), inputs, upstream)


def check_agreement(cells: Mapping[str, Cell]) -> None:
    inputs, upstream = arguments()
    expected = [*eager(*inputs), *step(eager, inputs, upstream)]
    for cell in cells.values():
        results = [*cell(*inputs), *step(cell, inputs, upstream)]
        torch.testing.assert_close(results, expected, rtol=1e-4, atol=1e-4)


def rows_of_steps(cells: Mapping[str, Cell]) -> Iterator[Row]:
    inputs, upstream = arguments()

    def forward(cell: Cell) -> Call:
        return lambda: cell(*inputs)

    def backward(cell: Cell) -> Call:
        outputs = cell(*inputs)
        return lambda: torch.autograd.grad(outputs, inputs, upstream, retain_graph=True)

    def both(cell: Cell) -> Call:
        return lambda: step(cell, inputs, upstream)

    for what, timed in {"forward": forward, "backward": backward, "forward and backward": both}.items():
        times = in_rounds({name: timed(cell) for name, cell in cells.items()})
        ours = times.pop("py2cu")
        for name, peer in times.items():
            has_target = device() == "cuda" and what == "forward and backward"
            limit = {"eager": 1.0, "C++ by hand": SLOWER_THAN_BY_HAND}.get(name) if has_target else None
            yield compare(f"LLTM {what}, {BATCH}×{STATE} f32, {device()}", ours, peer, name, limit)


# --- time ---


def in_rounds(calls: dict[str, Call]) -> dict[str, float]:
    """Seconds of each call: the median over rounds, each of which times every call. The order alternates."""
    rounds, repeats = (20, 200) if device() == "cuda" else (7, 5)
    times: dict[str, list[float]] = {name: [] for name in calls}
    for turn in range(-2, rounds):  # two more to warm up
        for name in reversed(calls) if turn % 2 else calls:
            seconds = average(calls[name], repeats)
            if turn >= 0:
                times[name].append(seconds)
    return {name: statistics.median(seconds) for name, seconds in times.items()}


def average(call: Call, repeats: int) -> float:
    if device() == "cuda":
        return gpu.events(call, repeats)
    started = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - started) / repeats


def synchronize() -> None:
    if device() == "cuda":
        torch.cuda.synchronize()
