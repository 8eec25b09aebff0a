"""From an edited kernel to its result, beside Triton's add, and on the CPU target alone.

An edit writes a constant that no earlier run had into a kernel's file. The time starts at the import of the file and
ends with the result on the device: on a GPU by the clock, on the CPU in processor time with children, since other
processes may use its cores. The result is compared with torch's.
"""

from __future__ import annotations

import functools
import importlib.util
import itertools
import secrets
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor

from benchmarks.latency.rounds import Measure, Options, Plan, chosen, measured, processor_time
from benchmarks.latency.texts import EDITS, HEAD, TRITON
from benchmarks.table import Row

PEER: Final = "Triton, edited add"
FOUR: Final = ("add", "grayscale", "tiled matmul", "softmax")
LARGE: Final = ("add of a million elements", "grayscale of a million pixels")
"""Their threads compute packs on a GPU, which take longer to compile."""
BOTH: Final = "forward and backward"
RATIO: Final = {"add": 1.3, "grayscale": 1.3, "tiled matmul": 4.5, "softmax": 4.5, BOTH: 3.0}
RATIO_OF_MEDIAN: Final = 2.2
SECONDS: Final = 0.35
SECONDS_OF_MEDIAN: Final = 0.20
_numbers: Final = itertools.count(1)


@dataclass(frozen=True)
class Edit:
    """A file, what to do with its module, and the result that torch computes, but for the small constant."""

    text: str
    run: Callable[[Any], Tensor]
    expected: Tensor
    tolerance: float = 1e-3


def rows(device: str, options: Options) -> Iterator[Row]:
    peer = PEER if device == "cuda" and importlib.util.find_spec("triton") else None
    plans = chosen(_plans(device, peer), options)
    if not plans:
        return
    edits = _edits(device)
    results: dict[str, Tensor] = {}
    with tempfile.TemporaryDirectory() as folder:

        def edited(name: str) -> float:
            results[name], seconds = _edited(Path(folder), edits[name], device)
            return seconds

        measures: Mapping[str, Measure] = {name: functools.partial(edited, name) for name in edits}
        timed = list(measured(plans, measures, options.rounds))
    for name, result in results.items():
        torch.testing.assert_close(result, edits[name].expected, rtol=1e-3, atol=edits[name].tolerance)
    yield from timed


def _plans(device: str, peer: str | None) -> Iterator[Plan]:
    on_gpu = device == "cuda"
    how = device if on_gpu else f"{device}, processor time"
    ratio_of_median, seconds_of_median = (RATIO_OF_MEDIAN, None) if on_gpu else (None, SECONDS_OF_MEDIAN)
    for name in (*FOUR, *(LARGE if on_gpu else ()), BOTH):
        end = "the first gradient" if name == BOTH else "its result"
        ratio, seconds = (RATIO.get(name), None) if on_gpu else (None, SECONDS if name in FOUR else None)
        yield Plan(f"edited {name} to {end}, {how}", (name,), peer, ratio, seconds)
    name = f"edited kernel to its result, median of the four, {how}"
    yield Plan(name, FOUR, peer, ratio_of_median, seconds_of_median, lambda *four: statistics.median(four))


def _edits(device: str) -> dict[str, Edit]:
    x = torch.rand(3, 512, device=device)
    square = torch.rand(64, 64, device=device)
    large = torch.rand(3, 2**20, device=device)
    weights = torch.tensor([0.2989, 0.587, 0.114], device=device)
    leaf = x[0].clone().requires_grad_()
    ones = torch.ones_like(x[0])

    def ours(name: str, run: Callable[[Any], Tensor], expected: Tensor, tolerance: float = 1e-3) -> Edit:
        return Edit(HEAD + EDITS[name], run, expected, tolerance)

    def tritons(module: Any) -> Tensor:
        module.add[(1,)](x[0], x[1], x[2], 512, BLOCK=512)
        return x[2]

    def add(x: Tensor) -> Edit:
        return ours("add", lambda module: module.add(x[0], x[1]), x[0] + x[1])

    def grayscale(picture: Tensor) -> Edit:
        expected = (weights @ picture.float()).byte()
        return ours("grayscale", lambda module: module.grayscale(picture), expected, tolerance=1)

    return {
        "add": add(x),
        "grayscale": grayscale((x * 255).byte()),
        **dict(zip(LARGE, (add(large), grayscale((large * 255).byte())), strict=True)),
        "tiled matmul": ours("tiled matmul", lambda module: module.matmul(square, square), square @ square),
        "softmax": ours("softmax", lambda module: module.softmax(square), square.softmax(1)),
        BOTH: ours(BOTH, lambda module: torch.autograd.grad(module.squared(leaf), leaf, ones)[0], 2 * x[0]),
        PEER: Edit(TRITON, tritons, x[0] + x[1]),
    }


def _edited(folder: Path, edit: Edit, device: str) -> tuple[Tensor, float]:
    """The result of an edited file, and the seconds that it took."""
    path = folder / f"edited_{next(_numbers)}.py"
    path.write_text(edit.text.format(edited=secrets.randbelow(2**40) * 2.0**-62), encoding="utf-8")
    clock = time.perf_counter if device == "cuda" else processor_time
    start = clock()
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    result = edit.run(module)
    if device == "cuda":
        torch.cuda.synchronize()
    return result, clock() - start
