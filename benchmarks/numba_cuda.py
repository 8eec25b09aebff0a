"""Kernels for Numba as they stand, compiled by Numba and by py2cu: times on the GPU, and of a launch on the host.

The same file is imported twice, once with Numba's `cuda` and once with `py2cu.numba`. Arrays are on the device.
"""

from __future__ import annotations

import contextlib
import importlib.util
import statistics
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from benchmarks import gpu
from benchmarks.table import Row, compare

KERNELS = Path(__file__).parent / "numba_kernels.py"
MILLIONS = 1 << 24
SIDE, TILE = 1024, 16
LAUNCHES = 200


def load(*, ours: bool) -> ModuleType:
    """The kernels with Numba's `cuda`, or with ours in its place."""
    from py2cu.numba.stand_in import imported_as_numba

    spec = importlib.util.spec_from_file_location(f"numba_kernels_{'ours' if ours else 'numbas'}", KERNELS)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with imported_as_numba() if ours else contextlib.nullcontext():
        spec.loader.exec_module(module)
    return module


def cases() -> dict[str, tuple[tuple[Any, Any], list[Any]]]:
    """By kernel, the launch and the arguments: arrays of NumPy, which are copied to the device once, and numbers."""
    rng = np.random.default_rng(0)
    x = rng.standard_normal(MILLIONS, dtype=np.float32)
    matrix = rng.standard_normal((8192, 1024), dtype=np.float32)
    a, b = rng.standard_normal((2, SIDE, SIDE), dtype=np.float32)
    flat = (MILLIONS // 256, 256)
    return {
        "vector_add": (flat, [x, x, np.zeros_like(x)]),
        "sigmoid_forward": (flat, [x, MILLIONS, np.zeros_like(x)]),
        "matrix_vector": ((8192 // 256, 256), [matrix, matrix[0].copy(), np.zeros(8192, np.float32)]),
        "histogram": ((1024, 256), [rng.integers(0, 256, MILLIONS).astype(np.int32), np.zeros(256, np.int32)]),
        "tiled_matmul": (((SIDE // TILE,) * 2, (TILE,) * 2), [a, b, np.zeros((SIDE, SIDE), np.float32)]),
    }


def rows() -> Iterator[Row]:
    modules = {"ours": load(ours=True), "numba": load(ours=False)}
    for name, (launch, arguments) in cases().items():
        calls, outputs = {}, {}
        for who, module in modules.items():
            placed = [module.cuda.to_device(each) if isinstance(each, np.ndarray) else each for each in arguments]
            calls[who] = prepared(getattr(module, name), launch, placed)
            calls[who]()
            outputs[who] = placed[-1].copy_to_host()
        np.testing.assert_allclose(outputs["ours"], outputs["numba"], rtol=1e-4, atol=1e-3)
        limits = {"device": 1.0, "launch on the host": 1 / 3}
        for what, measure in {"device": gpu_time, "launch on the host": host_time}.items():
            times = {who: [] for who in calls}
            for turn in range(21):
                for who in reversed(calls) if turn % 2 else calls:
                    times[who].append(measure(calls[who]))
            ours, theirs = (statistics.median(times[who]) for who in ("ours", "numba"))
            yield compare(f"Numba file, {name}, {what}", ours, theirs, "numba-cuda", limits[what])


def prepared(kernel: Any, launch: tuple[Any, Any], arguments: list[Any]) -> Callable[[], None]:
    launched = kernel[launch]
    return lambda: launched(*arguments)


def gpu_time(call: Callable[[], None]) -> float:
    return gpu.events(call, 20)


def host_time(call: Callable[[], None]) -> float:
    """Seconds of a launch on the host: few enough that the queue of the GPU does not fill."""
    import torch

    torch.cuda.synchronize()
    started = time.perf_counter()
    for _ in range(LAUNCHES):
        call()
    seconds = (time.perf_counter() - started) / LAUNCHES
    torch.cuda.synchronize()
    return seconds
