"""The first result in a new process with a cached kernel, beyond importing torch and starting CUDA.

Each round runs two processes: one imports torch and makes an array on the device, the other then imports a kernel and
calls it. Both report their processor time at that point, children included; the row is the difference.
"""

from __future__ import annotations

import operator
import tempfile
from collections.abc import Iterator
from typing import Final

from benchmarks import startup
from benchmarks.latency.rounds import Options, Plan, chosen, measured
from benchmarks.table import Row

TORCH: Final = """
import resource, sys, torch
x = torch.zeros(3, 16, dtype=torch.uint8, device=sys.argv[1])
if sys.argv[1] == "cuda":
    torch.cuda.synchronize()
"""
KERNEL: Final = """
from benchmarks.kernels import rgb2grey
rgb2grey(x)
if sys.argv[1] == "cuda":
    torch.cuda.synchronize()
"""
TIME: Final = """
uses = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
print("took", sum(use.ru_utime + use.ru_stime for use in uses))
"""
AT_MOST: Final = 0.10


def rows(device: str, options: Options) -> Iterator[Row]:
    torch_alone = "torch alone" if device == "cpu" else "torch and CUDA alone"
    name = f"first result in a new process, cached kernel, beyond {torch_alone}, processor time, {device}"
    plans = chosen([Plan(name, ("kernel", torch_alone), torch_alone, seconds=AT_MOST, combine=operator.sub)], options)
    if not plans:
        return
    with tempfile.TemporaryDirectory() as cache:

        def used(script: str) -> float:
            return startup.timed(script + TIME, device, PY2CU_CACHE_DIR=cache)

        measures = {torch_alone: lambda: used(TORCH), "kernel": lambda: used(TORCH + KERNEL)}
        yield from measured(plans, measures, options.rounds)
