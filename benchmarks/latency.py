"""From an edit to its result, and from a call to its launch: what a user waits for, beside Triton and torch.

An edit changes a constant in a kernel's file, imports the file, calls the kernel and waits for the device: on a GPU by
the clock, on the CPU in processor time with children. Calls are of 256 floats on a GPU, of 16 on the CPU. Peers are
measured in the same rounds. A time is a median, with the least and the greatest behind it.
"""

from __future__ import annotations

import functools
import importlib.util
import itertools
import os
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from benchmarks.table import Row, seconds

HEAD: Final = """\
import math
from jaxtyping import Float32, UInt8
from torch import Tensor
from py2cu import Index, blockIdx, kernel, shared, syncthreads, threadIdx

EDITED = {edited}
"""
EDITS: Final = {
    "add": """
@kernel
def add(i: Index["n"], a: Float32[Tensor, "n"], b: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    out[i] = a[i] + b[i] + EDITED
""",
    "grayscale": """
@kernel
def grayscale(i: Index["n"], x: UInt8[Tensor, "3 n"], out: UInt8[Tensor, "n"]):
    out[i] = int(0.2989 * x[0, i] + 0.587 * x[1, i] + 0.114 * x[2, i] + EDITED)
""",
    "tiled matmul": """
T = 16


@kernel(block=(T, T), size=("w", "h"))
def matmul(a: Float32[Tensor, "h k"], b: Float32[Tensor, "k w"], out: Float32[Tensor, "h w"]):
    ty, tx = threadIdx.y, threadIdx.x
    r, c = blockIdx.y * T + ty, blockIdx.x * T + tx
    left, right = shared((T, T), "float32"), shared((T, T), "float32")
    total = EDITED
    for start in range(0, a.shape[1], T):
        left[ty, tx] = a[r, start + tx] if r < a.shape[0] and start + tx < a.shape[1] else 0.0
        right[ty, tx] = b[start + ty, c] if c < b.shape[1] and start + ty < a.shape[1] else 0.0
        syncthreads()
        for k in range(T):
            total += left[ty, k] * right[k, tx]
        syncthreads()
    if r < out.shape[0] and c < out.shape[1]:
        out[r, c] = total
""",
    "softmax": """
THREADS = 128


@kernel(block=THREADS, size="rows * 128")
def softmax(x: Float32[Tensor, "rows cols"], out: Float32[Tensor, "rows cols"]):
    part = shared(THREADS, "float32")
    t, r = threadIdx.x, blockIdx.x
    most = -math.inf
    for c in range(t, x.shape[1], THREADS):
        most = max(most, x[r, c])
    part[t] = most
    syncthreads()
    half = THREADS // 2
    while half > 0:
        if t < half:
            part[t] = max(part[t], part[t + half])
        syncthreads()
        half //= 2
    most = part[0]
    syncthreads()
    total = EDITED
    for c in range(t, x.shape[1], THREADS):
        total += math.exp(x[r, c] - most)
    part[t] = total
    syncthreads()
    half = THREADS // 2
    while half > 0:
        if t < half:
            part[t] += part[t + half]
        syncthreads()
        half //= 2
    for c in range(t, x.shape[1], THREADS):
        out[r, c] = math.exp(x[r, c] - most) / part[0]
""",
}
TRITON: Final = """\
import triton
import triton.language as tl


@triton.jit
def add(a, b, out, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out + i, tl.load(a + i, i < n) + tl.load(b + i, i < n) + {edited}, i < n)
"""
EDIT_ROUNDS: Final = 5
ROUNDS: Final = 21
_numbers = itertools.count(1)


def rows() -> Iterator[Row]:
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    with tempfile.TemporaryDirectory() as folder:
        yield from _edits(Path(folder), device)
    yield from _calls(device)


def _edits(folder: Path, device: str) -> Iterator[Row]:
    """Each kernel edited, beside Triton's add."""
    import torch

    results: dict[str, torch.Tensor] = {}
    x = torch.rand(3, 512, device=device)
    square = torch.rand(64, 64, device=device)
    arguments = {
        "add": (x[0], x[1]), "grayscale": ((x * 255).byte(),), "tiled matmul": (square, square), "softmax": (square,),
    }  # fmt: skip

    expected = {
        "add": x[0] + x[1], "tiled matmul": square @ square, "softmax": square.softmax(1),
        "grayscale": (torch.tensor([0.2989, 0.587, 0.114], device=device) @ (x * 255).byte().float()).byte(),
    }  # fmt: skip

    def ours(what: str) -> float:
        def run(module: Any) -> None:
            result = getattr(module, what.rpartition(" ")[2])(*arguments[what])
            results[what] = result

        return _edited(folder, HEAD + EDITS[what], run, device)

    def tritons() -> float:
        def run(module: Any) -> None:
            module.add[(1,)](x[0], x[1], x[2], 512, BLOCK=512)

        return _edited(folder, TRITON, run, device)

    peers: dict[str, Callable[[], float]] = {"Triton, edited add": tritons} if device == "cuda" else {}
    measured = {what: functools.partial(ours, what) for what in EDITS} | peers
    times = _alternating(measured, EDIT_ROUNDS)
    for what in EDITS:
        torch.testing.assert_close(
            results[what], expected[what], rtol=1e-3, atol=1e-3 if x.dtype == results[what].dtype else 1
        )
        yield _row(f"edit of {what} to its result, {device}", times[what], *((name, times[name]) for name in peers))


def _edited(folder: Path, text: str, run: Callable[[Any], None], device: str) -> float:
    """The time from an edited file to its result."""
    import torch

    number = next(_numbers)
    path = folder / f"edited_{number}.py"
    path.write_text(text.format(edited=number * 2.0**-22), encoding="utf-8")
    start, used = time.perf_counter(), _processor_time()
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    run(module)
    if device == "cuda":
        torch.cuda.synchronize()
        return time.perf_counter() - start
    return _processor_time() - used


def _processor_time() -> float:
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _calls(device: str) -> Iterator[Row]:
    """A call in each of its forms, beside torch's own operator."""
    import torch

    from benchmarks.kernels import add

    a, b, out = (torch.rand(256 if device == "cuda" else 16, device=device) for _ in range(3))
    given, fresh = "torch.add(out=)", "torch.add"
    calls: dict[str, Callable[[], object]] = {
        given: lambda: torch.add(a, b, out=out),
        fresh: lambda: torch.add(a, b),
        "k(a, b, o)": lambda: add(a, b, out),
        "k(a, b, out=o)": lambda: add(a, b, out=out),
        "k[grid, block](a, b, o)": lambda: add[1, 256](a, b, out),
        "k(a, b)": lambda: add(a, b),
        "k.op(a, b)": lambda: add.op(a, b),
    }
    for call in calls.values():
        call()
    times = _alternating({what: functools.partial(_each, call) for what, call in calls.items()}, ROUNDS)
    limits = {"k(a, b, o)": 1.5, "k(a, b, out=o)": 1.6, "k[grid, block](a, b, o)": 1.7, "k(a, b)": 1.8}
    for what in [*calls][2:]:
        peer = fresh if what in ("k(a, b)", "k.op(a, b)") else given
        limit = limits.get(what) if device == "cuda" else None
        yield _row(f"{what}, {a.numel()} floats, {device}", times[what], (peer, times[peer]), limit=limit)


def _each(call: Callable[[], object], repeats: int = 300) -> float:
    """The time of one call on the host; a GPU may lag behind."""
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    took = (time.perf_counter() - start) / repeats
    _wait()
    return took


def _wait() -> None:
    import torch

    if torch.cuda.is_available():
        torch.cuda.synchronize()


def _alternating(measures: dict[str, Callable[[], float]], rounds: int) -> dict[str, list[float]]:
    """The times of each measure, in turns, after one turn that is not counted."""
    times: dict[str, list[float]] = {what: [] for what in measures}
    for turn in range(rounds + 1):
        for what, measure in measures.items():
            took = measure()
            if turn:
                times[what].append(took)
    return times


def _row(what: str, ours: list[float], *peers: tuple[str, list[float]], limit: float | None = None) -> Row:
    if not peers:
        return Row(what, _spread(ours))
    ((name, theirs),) = peers
    ratio = statistics.median(ours) / statistics.median(theirs)
    target, met = ("–", None) if limit is None else (f"ratio ≤ {limit}", ratio <= limit)
    return Row(what, _spread(ours), f"{name} {_spread(theirs)}", ratio, target, met)


def _spread(times: list[float]) -> str:
    """`9.4 us (9.2 us to 9.9 us)`."""
    return f"{seconds(statistics.median(times))} ({seconds(min(times))} to {seconds(max(times))})"
