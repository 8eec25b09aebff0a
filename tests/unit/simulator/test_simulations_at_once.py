"""Simulations in several threads, and one within another, give what they give alone."""

import bdb
import os
import signal
import sys
import threading

import pytest

torch = pytest.importorskip("torch")

from concurrent.futures import ThreadPoolExecutor  # noqa: E402

from jaxtyping import BFloat16, Float32, Int32  # noqa: E402
from torch import Tensor  # noqa: E402

from py2cu import Index, atomic, kernel, shared, syncthreads  # noqa: E402
from py2cu.simulator import SimulationError, SimulationWarning  # noqa: E402

ROUNDS = 50


@kernel
def mix(i: Index["n"], x: BFloat16[Tensor, "n"], y: BFloat16[Tensor, "n"], out: BFloat16[Tensor, "n"]):
    out[i] = x[i] * y[i] + x[i] / (y[i] * y[i] + 1)


@kernel
def reverse(blockIdx, threadIdx, x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    tile = shared(8, "float32")
    tile[threadIdx.x] = x[blockIdx.x * 8 + threadIdx.x]
    syncthreads()
    out[blockIdx.x * 8 + threadIdx.x] = tile[7 - threadIdx.x]


@kernel
def count(i: Index["n"], x: Int32[Tensor, "n"], out: Int32[Tensor, "4"]):
    atomic.add(out, x[i] % 4, 1)


def run_mix():
    x = torch.linspace(-3, 3, 16, dtype=torch.bfloat16)
    return mix.simulate(x, x.flip(0)).tolist()


def run_reverse():
    x = torch.arange(32, dtype=torch.float32)
    out = torch.zeros_like(x)
    reverse.simulate[4, 8](x, out, sanitize=True)
    return out.tolist()


def run_count():
    out = torch.zeros(4, dtype=torch.int32)
    count.simulate(torch.arange(30, dtype=torch.int32), out, seed=1)
    return out.tolist()


RUNS = (run_mix, run_reverse, run_count)


def test_four_threads_simulate_as_one_does():
    alone = [run() for run in RUNS]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)
    try:
        with ThreadPoolExecutor(4) as pool:
            several = [*pool.map(lambda number: RUNS[number % 3](), range(4 * ROUNDS))]
    finally:
        sys.setswitchinterval(interval)
    assert several == [alone[number % 3] for number in range(4 * ROUNDS)]


class AtABreakpoint(bdb.Bdb):
    """Simulates another kernel at a breakpoint."""

    def __init__(self, run):
        super().__init__()
        self.run_there, self.results = run, []

    def user_line(self, frame):
        if self.break_here(frame):
            self.results.append(self.run_there())
        self.set_continue()


@kernel
def doubtful(i: Index["n"], x: Int32[Tensor, "n"], out: Int32[Tensor, "n"]):
    kept = x[i] << (x[i] + 40)
    out[i] = kept + x[i]


@kernel
def doubtful_blocks(blockIdx, threadIdx, x: Int32[Tensor, "n"], out: Int32[Tensor, "n"]):
    tile = shared(4, "int32")
    tile[threadIdx.x] = x[threadIdx.x] << (x[threadIdx.x] + 40)
    syncthreads()
    out[threadIdx.x] = tile[3 - threadIdx.x]


@pytest.mark.parametrize("inner", RUNS)
@pytest.mark.parametrize(
    ("outer", "line"),
    [
        (lambda x: doubtful.simulate(x), "out[i] = kept + x[i]"),
        (lambda x: doubtful_blocks.simulate[1, 4](x, torch.zeros_like(x)), "out[threadIdx.x] = tile[3 - threadIdx.x]"),
    ],
    ids=["elements", "blocks"],
)
def test_a_simulation_at_a_breakpoint_leaves_the_outer_ones_findings(inner, outer, line):
    alone = inner()
    with open(__file__, encoding="utf-8") as file:
        number = next(n for n, text in enumerate(file, 1) if text.strip() == line)
    debugger, traced = AtABreakpoint(inner), sys.gettrace()
    assert debugger.set_break(__file__, number) is None
    try:
        with pytest.warns(SimulationWarning, match="shift"):
            debugger.runcall(outer, torch.arange(4, dtype=torch.int32))
    finally:
        sys.settrace(traced)
    assert debugger.results == [alone] * 4


@kernel
def fails(i: Index["n"], x: Int32[Tensor, "n"], out: Int32[Tensor, "n"]):
    out[i] = x[i + 1]


def test_a_simulation_that_raises_lets_others_begin():
    x = torch.arange(3, dtype=torch.int32)
    with pytest.raises(SimulationError):
        fails.simulate(x)
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(run_count).result(60) == run_count()


@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_process_that_is_forked_during_a_simulation_simulates():
    expected = run_count()
    stop = threading.Event()

    def keep_simulating():
        while not stop.is_set():
            run_mix()

    busy = threading.Thread(target=keep_simulating)
    busy.start()
    try:
        for _ in range(5):
            child = os.fork()
            if child == 0:
                signal.alarm(20)
                os._exit(run_count() != expected)
            assert os.waitpid(child, 0)[1] == 0
    finally:
        stop.set()
        busy.join()
