"""The first result in a new process with a cached kernel, beyond importing torch and starting CUDA.

Each round runs a process that imports torch and makes an array on the device, and then imports a kernel and calls it.
The row is the processor time of the second part, children included. Python keeps bytecode, as it does of what is
installed; the first round, which is not counted, writes it.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from typing import Final

from benchmarks import startup
from benchmarks.latency.rounds import Options, Plan, chosen, measured
from benchmarks.table import Row

SCRIPT: Final = """
import resource, sys, torch

def used():
    if sys.argv[1] == "cuda":
        torch.cuda.synchronize()
    uses = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(use.ru_utime + use.ru_stime for use in uses)

x = torch.zeros(3, 16, dtype=torch.uint8, device=sys.argv[1])
start = used()
from benchmarks.kernels import rgb2grey
rgb2grey(x)
print("took", used() - start)
"""
AT_MOST: Final = 0.10


def rows(device: str, options: Options) -> Iterator[Row]:
    before = "torch" if device == "cpu" else "torch and CUDA"
    name = f"first result in a new process, cached kernel, beyond {before}, processor time, {device}"
    plans = chosen([Plan(name, ("kernel",), seconds=AT_MOST)], options)
    if not plans:
        return
    with tempfile.TemporaryDirectory() as cache:

        def used() -> float:
            return startup.timed(SCRIPT, device, PY2CU_CACHE_DIR=cache, PYTHONDONTWRITEBYTECODE="")

        yield from measured(plans, {"kernel": used}, options.rounds)
