"""Threads that work together, in the simulator: barriers, shared memory, atomics, warps, and who waits for whom."""

import inspect
import math
import textwrap
import threading
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
import torch
from jaxtyping import Bool, Float16, Float32, Int32, UInt32
from torch import Tensor

import py2cu
from py2cu import (
    Index,
    activemask,
    all_sync,
    any_sync,
    atomic,
    ballot_sync,
    blockDim,
    blockIdx,
    gridDim,
    kernel,
    laneid,
    local,
    match_any_sync,
    shared,
    shfl_down_sync,
    shfl_sync,
    shfl_up_sync,
    shfl_xor_sync,
    syncgrid,
    syncthreads,
    syncthreads_and,
    syncthreads_count,
    syncthreads_or,
    syncwarp,
    threadfence,
    threadIdx,
    warpSize,
)
from py2cu import syncthreads as together
from py2cu.builtins import PUBLIC, ROWS, lookup
from py2cu.builtins.launch import LANE
from py2cu.check import Fault, check_kernel, user_case
from py2cu.ir.types import Constant, Name
from py2cu.simulator import SimulationError, SimulationWarning, simulate
from py2cu.simulator.schedule.collectives import COOPERATIVE
from tests.support.kernels_by_annotations import signature_of
from tests.support.kernels_by_hand import FakeKernel
from tests.support.modules import import_file

FULL = 0xFFFFFFFF


def run(kernel, *, grid=1, block=8, sanitize=True, **arguments):
    """The report of a launch; arrays are written in place."""
    return simulate(kernel, signature_of(kernel), arguments, grid=grid, block=block, sanitize=sanitize)


def ints(n, value=0):
    return torch.full((n,), value, dtype=torch.int32)


def quiet(kernel, **launch):
    report = run(kernel, **launch)
    assert report.findings == ()
    return report


# --- shared memory and barriers ---


@pytest.mark.parametrize("threads", [1, 31, 1024])
def test_a_block_shares_one_array_and_waits_for_all(threads):
    def reverse(x: Float32[Tensor, "n"]):
        tile = shared(1024, np.float32)
        tile[threadIdx.x] = x[blockIdx.x * blockDim.x + threadIdx.x]
        together()
        x[blockIdx.x * blockDim.x + threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x]

    x = torch.arange(2.0 * threads)
    expected = x.reshape(2, threads).flip(1).flatten()
    report = quiet(reverse, grid=2, block=threads, x=x)
    assert report.threads == 2 * threads
    assert torch.equal(x, expected)


def tile_of(n):
    return shared(n, "float32")


def test_a_device_function_waits_too():
    def kernel(x: Float32[Tensor, "n"]):
        a, b = tile_of(8), shared((4, 2), x.dtype)
        a[threadIdx.x] = x[threadIdx.x]
        b[threadIdx.x // 2, threadIdx.x % 2] = 10.0
        wait()
        x[threadIdx.x] = a[7 - threadIdx.x] + b[3 - threadIdx.x // 2, 1 - threadIdx.x % 2]

    x = torch.arange(8.0)
    quiet(kernel, x=x)
    assert x.tolist() == [17, 16, 15, 14, 13, 12, 11, 10]


def wait():
    py2cu.syncthreads()


def test_shared_memory_is_new_in_every_block():
    def kernel(out: Int32[Tensor, "n"]):
        seen = shared(1, np.int32)
        if blockIdx.x == 0:
            seen[0] = 5
        out[blockIdx.x] = seen[0]

    report = run(kernel, grid=2, block=1, out=ints(2))
    (finding,) = report.findings
    assert "read before it is written" in finding.message
    assert finding.place[0] == (1, 0, 0)


def test_threads_must_ask_for_the_same_array():
    def kernel(out: Int32[Tensor, "n"]):
        shared(threadIdx.x + 1, np.int32)

    with pytest.raises(SimulationError, match=r"is \(1,\) of int32 for one thread, \(2,\) of int32 for another"):
        run(kernel, block=2, out=ints(1))


def test_the_lectures_form_has_a_barrier_and_memory_as_parameters():
    def kernel(
        blockIdx, threadIdx, blockDim, shared: Float32[Tensor, "2*n"], syncb: threading.Barrier,
        x: Float32[Tensor, "n"], n: int,
    ):  # fmt: skip
        a, b = shared[:n], shared[n:]
        a[threadIdx.x], b[threadIdx.x] = x[threadIdx.x], 10.0
        syncb.wait()
        assert len(a) == len(b) == a.shape[0] == n
        x[threadIdx.x] = a[n - 1 - threadIdx.x] + b[threadIdx.x] + b[1:][0]

    x = torch.arange(8.0)
    quiet(kernel, x=x)
    assert x.tolist() == [27, 26, 25, 24, 23, 22, 21, 20]


def test_a_view_ends_where_it_ends():
    def kernel(out: Float32[Tensor, "n"]):
        buf = shared(8, np.float32)
        buf[:4][threadIdx.x] = 1.0

    with pytest.raises(SimulationError, match=r"index 4 of `a view of a shared array` is out of range"):
        run(kernel, out=torch.zeros(1))


def test_a_view_is_of_neighbours():
    def kernel(out: Float32[Tensor, "n"]):
        shared(8, np.float32)[::2]

    with pytest.raises(SimulationError, match="takes neighbouring elements"):
        run(kernel, out=torch.zeros(1))


def test_barriers_count_and_vote():
    def kernel(x: Int32[Tensor, "n"], out: Int32[Tensor, "n 5"]):
        t = threadIdx.x
        out[t, 0] = syncthreads_count(x[t] > 2)
        out[t, 1] = syncthreads_and(x[t] >= 0)
        out[t, 2] = syncthreads_and(x[t] > 2)
        out[t, 3] = syncthreads_or(x[t] > 6)
        out[t, 4] = syncthreads_or(x[t] > 7)

    out = torch.zeros(8, 5, dtype=torch.int32)
    quiet(kernel, x=torch.arange(8, dtype=torch.int32), out=out)
    assert out.tolist() == [[5, 1, 0, 1, 0]] * 8


def test_python_outside_of_a_kernel_is_told_so():
    calls = [
        syncgrid,
        syncthreads,
        syncwarp,
        threadfence,
        activemask,
        lambda: atomic.add([0], 0, 1),
        lambda: shfl_sync(1, 2, 3),
    ]
    for call in calls:
        with pytest.raises(RuntimeError, match="only inside a running kernel"):
            call()
    with pytest.raises(RuntimeError, match="`laneid` works only inside a running kernel"):
        range(laneid)
    assert shared((2, 3), np.float16).shape == (2, 3)


# --- warps ---


def lanes(function, n=32, dtype=torch.int32):
    """`function(lane, value)` in every lane of a warp, of the values 100, 101, …"""

    def kernel(x: Int32[Tensor, "n"], out: Int32[Tensor, "n"]):
        out[threadIdx.x] = function(laneid, x[threadIdx.x])

    out = torch.zeros(n, dtype=dtype)
    quiet(kernel, block=n, x=torch.arange(100, 100 + n, dtype=torch.int32), out=out)
    return out.tolist()


def test_shuffles_follow_cudas_table():
    values = list(range(100, 132))
    assert lanes(lambda lane, v: shfl_sync(FULL, v, 5)) == [105] * 32
    assert lanes(lambda lane, v: shfl_sync(FULL, v, 5, 4)) == [100 + i // 4 * 4 + 1 for i in range(32)]
    assert lanes(lambda lane, v: shfl_up_sync(FULL, v, 3)) == values[:3] + values[:-3]
    assert lanes(lambda lane, v: shfl_down_sync(FULL, v, 3)) == values[3:] + values[-3:]
    down, up = (
        [v + 3 * (v % 8 in (4, 5, 6, 7, 0)) for v in values],
        [v - 3 * (v % 8 in (7, 0, 1, 2, 3)) for v in values],
    )
    assert lanes(lambda lane, v: shfl_down_sync(FULL, v, 3, 8)) == down
    assert lanes(lambda lane, v: shfl_up_sync(FULL, v, 3, 8)) == up
    assert lanes(lambda lane, v: shfl_xor_sync(FULL, v, 5)) == [100 + (i ^ 5) for i in range(32)]
    assert lanes(lambda lane, v: shfl_xor_sync(FULL, v, 8, 8)) == [100 + (i ^ 8 if i & 8 else i) for i in range(32)]


def test_votes_and_matches():
    assert lanes(lambda lane, v: ballot_sync(0xFF, v > 103), 8) == [0b11110000] * 8
    assert lanes(lambda lane, v: any_sync(FULL, v > 130)) == [1] * 32
    assert lanes(lambda lane, v: all_sync(FULL, v > 100)) == [0] * 32
    assert lanes(lambda lane, v: match_any_sync(0xFF, v % 3), 8) == [
        0b10010010 if (100 + i) % 3 == 2 else 0b01001001 if (100 + i) % 3 == 1 else 0b00100100 for i in range(8)
    ]
    assert lanes(lambda lane, v: lane + warpSize, 40)[30:34] == [62, 63, 32, 33]


def test_a_full_mask_is_right_for_a_block_of_half_a_warp():
    assert lanes(lambda lane, v: ballot_sync(FULL, v >= 100), 8) == [0xFF] * 8


def test_active_lanes_are_those_that_come_to_the_line():
    def kernel(out: UInt32[Tensor, "n"]):
        t = threadIdx.x
        if t % 2 == 0:
            out[t] = activemask()
        else:
            out[t] = activemask()

    out = torch.zeros(32, dtype=torch.uint32)
    quiet(kernel, block=32, out=out)
    assert out[:2].tolist() == [0x55555555, 0xAAAAAAAA]


def test_shuffled_values_keep_their_type():
    kinds = []

    def kernel(x: Float16[Tensor, "n"]):
        kinds.append(type(shfl_xor_sync(FULL, x[threadIdx.x], 1)).__name__)

    quiet(kernel, block=2, x=torch.ones(2, dtype=torch.float16))
    assert kinds == ["Float16", "Float16"]


def test_lanes_in_two_branches_meet_in_their_own_masks():
    def kernel(x: Int32[Tensor, "n"]):
        t = threadIdx.x
        v = x[t]
        if t < 16:
            for k in range(3):
                v += shfl_xor_sync(0xFFFF, v, 1 << k)
        else:
            v = shfl_sync(0xFFFF0000, v, 20)
        syncwarp()
        x[t] = v

    x = ints(32, 1)
    x[20] = 7
    quiet(kernel, block=32, x=x)
    assert x.tolist() == [8] * 16 + [7] * 16


# --- atomics ---


@pytest.mark.parametrize(
    ("operation", "start", "values", "olds", "end"),
    [
        ("add", 5, [1, 2, -4], [5, 6, 8], 4),
        ("sub", 5, [1, 2, -4], [5, 4, 2], 6),
        ("min", 5, [7, 3, 4], [5, 5, 3], 3),
        ("max", 5, [4, 9, 6], [5, 5, 9], 9),
        ("exch", 5, [1, 2, 3], [5, 1, 2], 3),
        ("and_", 7, [6, 5, 4], [7, 6, 4], 4),
        ("or_", 1, [2, 4, 1], [1, 3, 7], 7),
        ("xor", 1, [3, 3, 8], [1, 2, 1], 9),
    ],
)
def test_atomics_return_the_old_element(operation, start, values, olds, end):
    def kernel(x: Int32[Tensor, "n"], out: Int32[Tensor, "n"], target: Int32[Tensor, "1 1"]):
        out[threadIdx.x] = getattr(atomic, operation)(target, (0, 0), x[threadIdx.x])

    out, target = ints(3), torch.tensor([[start]], dtype=torch.int32)
    quiet(kernel, block=3, x=torch.tensor(values, dtype=torch.int32), out=out, target=target)
    assert out.tolist() == olds
    assert target.item() == end


def test_atomics_wrap_at_their_dtype():
    def kernel(target: Int32[Tensor, "1"]):
        atomic.add(target, 0, 1)

    target = ints(1, 2**31 - 1)
    quiet(kernel, block=1, target=target)
    assert target.item() == -(2**31)


def test_inc_and_dec_wrap_at_their_limit_and_cas_compares():
    def kernel(out: UInt32[Tensor, "n 3"], count: UInt32[Tensor, "3"]):
        t = threadIdx.x
        out[t, 0] = atomic.inc(count, 0, 2)
        out[t, 1] = atomic.dec(count, 1, 2)
        out[t, 2] = atomic.cas(count, 2, 3 * t, 3 * t + 3)

    out, count = torch.zeros(5, 3, dtype=torch.uint32), torch.tensor([1, 9, 0], dtype=torch.uint32)
    quiet(kernel, block=5, out=out, count=count)
    assert out.tolist() == [[1, 9, 0], [2, 2, 3], [0, 1, 6], [1, 0, 9], [2, 2, 12]]
    assert count.tolist() == [0, 1, 15]


def test_a_sum_of_floats_is_as_uncertain_as_any_order_of_its_terms():
    def kernel(x: Float32[Tensor, "n"], out: Float32[Tensor, "1"]):
        atomic.add(out, 0, x[threadIdx.x])

    x = torch.tensor([1e8, 1.0, 1.0, 1.0, -1e8])
    out = torch.zeros(1)
    report = quiet(kernel, block=5, x=x, out=out)
    assert out.item() == 0
    assert report.writes["out"][0].error >= 3


def test_a_lock_orders_those_who_take_it():
    def kernel(lock: Int32[Tensor, "1"], total: Int32[Tensor, "1"]):
        while atomic.cas(lock, 0, 0, 1) != 0:
            pass
        total[0] += 1
        threadfence()
        atomic.exch(lock, 0, 0)

    total = ints(1)
    quiet(kernel, grid=2, block=3, lock=ints(1), total=total)
    assert total.item() == 6


def test_threads_and_blocks_that_spin_let_the_others_go_on():
    def kernel(flags: Int32[Tensor, "4"], out: Int32[Tensor, "n"]):
        here = shared(1, np.int32)
        if threadIdx.x == 0:
            here[0] = 0
        syncthreads()
        if threadIdx.x == 0:
            while blockIdx.x < 3 and atomic.add(flags, blockIdx.x + 1, 0) == 0:
                pass
            while atomic.add(here, 0, 0) == 0:
                pass
            out[blockIdx.x] = blockIdx.x
            threadfence()
            atomic.exch(flags, blockIdx.x, 1)
        else:
            atomic.exch(here, 0, 1)

    flags, out = ints(4), ints(4)
    quiet(kernel, grid=4, block=2, flags=flags, out=out)
    assert flags.tolist() == [1] * 4
    assert out.tolist() == [0, 1, 2, 3]


def test_threads_of_many_atomics_come_to_their_end():
    def kernel(x: Int32[Tensor, "1"], y: Int32[Tensor, "2"], out: Int32[Tensor, "1"]):
        if threadIdx.x == 0:
            rounds = local(1, np.int32)
            rounds[0] = 0
            while rounds[0] < 20_000:
                rounds[0] += 1
                atomic.add(x, 0, 0)
            for _ in range(20_000):
                atomic.add(x, 0, 0)
            for _ in range(10):
                while atomic.add(y, 0, 1) % 5_000 > 0:
                    pass
            out[0] = rounds[0]
        syncthreads()

    out = ints(1)
    quiet(kernel, block=2, x=ints(1), y=ints(2), out=out)
    assert out.item() == 20_000


def test_a_thread_that_counts_may_yet_come_to_its_end():
    def kernel(flag: Int32[Tensor, "1"], out: Int32[Tensor, "n"]):
        if threadIdx.x == 0:
            for _ in range(1000):
                for _ in range(5):
                    threadfence()
            left = 1000
            while left > 0:
                left -= 1
                threadfence()
            atomic.exch(flag, 0, 1)
        else:
            while atomic.add(flag, 0, 0) == 0:
                pass
        out[threadIdx.x] = 1

    out = ints(2)
    quiet(kernel, block=2, flag=ints(1), out=out)
    assert out.tolist() == [1, 1]


def counting(flag: Int32[Tensor, "1"], out: Int32[Tensor, "1"]):
    rounds = 0
    while atomic.add(flag, 0, 0) == 0:
        rounds += 1
    out[0] = rounds


def around_a_barrier(flag: Int32[Tensor, "1"], out: Int32[Tensor, "1"]):
    seen = shared(1, np.int32)
    while True:
        if threadIdx.x == 0:
            seen[0] = atomic.add(flag, 0, 0)
        syncthreads()
        told = seen[0]
        syncthreads()
        if told == 1:
            break
    out[0] = 1


@pytest.mark.parametrize("kernel", [counting, around_a_barrier])
def test_threads_that_wait_for_nobody_are_told_of(kernel):
    (finding,) = run(kernel, block=2, flag=ints(1), out=ints(1)).findings
    assert "livelock" in str(finding)


def test_a_block_may_wait_for_a_later_one_around_a_barrier():
    def kernel(flags: Int32[Tensor, "n"], out: Int32[Tensor, "n"]):
        seen = shared(1, np.int32)
        told = int(blockIdx.x == gridDim.x - 1)
        while told == 0:
            if threadIdx.x == 0:
                seen[0] = atomic.add(flags, blockIdx.x + 1, 0)
            syncthreads()
            told = seen[0]
            syncthreads()
        if threadIdx.x == 0:
            out[blockIdx.x] = 1
            atomic.exch(flags, blockIdx.x, 1)

    out = ints(3)
    quiet(kernel, grid=3, block=2, flags=ints(3), out=out)
    assert out.tolist() == [1, 1, 1]


# --- order ---


def race(x: Int32[Tensor, "n"], out: Int32[Tensor, "1"]):
    out[0] = x[threadIdx.x]


def test_a_write_of_what_is_there_races_with_the_read_before():
    def kernel(x: Int32[Tensor, "1"], out: Int32[Tensor, "1"]):
        if threadIdx.x == 0:
            out[0] = x[0]
        syncwarp()
        if threadIdx.x == 1:
            x[0] = 0
        syncwarp()
        if threadIdx.x == 32:
            x[0] = 0

    (finding,) = run(kernel, block=64, x=ints(1), out=ints(1)).findings
    assert "and read in line" in str(finding)


@pytest.mark.parametrize("sanitize", [False, True])
def test_races_are_sought_where_it_is_asked_for(sanitize):
    report = run(race, sanitize=sanitize, x=torch.arange(8, dtype=torch.int32), out=ints(1))
    assert len(report.findings) == sanitize


def test_equal_values_are_no_race():
    quiet(race, x=ints(8, 3), out=ints(1))


def test_a_seed_permutes_threads_and_blocks_and_repeats():
    def kernel(order: Int32[Tensor, "n"], at: Int32[Tensor, "1"]):
        for _ in range(2):
            order[atomic.add(at, 0, 1)] = blockIdx.x * blockDim.x + threadIdx.x
            syncthreads()

    def order(seed):
        given = {"order": ints(32), "at": ints(1)}
        simulate(kernel, signature_of(kernel), given, grid=2, block=8, seed=seed)
        return given["order"].tolist()

    plain = [*range(8), *range(8), *range(8, 16), *range(8, 16)]
    assert order(None) == plain
    assert order(1) == order(1) != plain
    assert order(1) != order(2)
    assert sorted(order(1)) == sorted(plain)
    assert order(1)[:8] != order(1)[8:16]


def test_an_error_in_one_thread_ends_the_launch():
    def kernel(x: Float32[Tensor, "n"]):
        syncthreads()
        x[threadIdx.x + 1] = 0.0
        syncthreads()

    with pytest.raises(SimulationError, match=r"index 8 of `x` is out of range") as caught:
        run(kernel, x=torch.zeros(8))
    assert caught.value.place == ((0, 0, 0), (7, 0, 0))
    assert caught.value.line == kernel.__code__.co_firstlineno + 2


def test_a_loop_without_end_is_stopped():
    def kernel(x: Float32[Tensor, "n"]):
        syncthreads()
        while True:
            pass

    with pytest.raises(SimulationError, match="does not end"):
        simulate(kernel, signature_of(kernel), {"x": torch.zeros(1)}, grid=1, block=2, seconds=0.2)


@pytest.mark.parametrize("sanitize", [False, True])
def test_doubt_goes_with_what_is_shared(sanitize):
    def kernel(x: Float32[Tensor, "n"], out: Int32[Tensor, "n"]):
        s = shared(2, np.int32)
        t = threadIdx.x
        s[t] = x[t]
        syncthreads()
        out[t] = s[0]

    report = run(kernel, block=2, x=torch.tensor([1e38, 1.0]), out=ints(2), sanitize=sanitize)
    assert "a float that int32 cannot hold" in report.findings[0].message
    assert report.writes["out"][1].error == math.inf


def test_doubt_goes_with_what_lanes_exchange():
    def kernel(x: Float32[Tensor, "n"], out: Int32[Tensor, "n"], spoilt: int):
        s = shared(32, np.int32)
        t = threadIdx.x
        if t == spoilt:
            s[t] = x[t]
        out[t] = shfl_sync(FULL, t, spoilt)

    x = torch.full((32,), 1e38)
    for spoilt in (0, 31):
        report = run(kernel, block=32, x=x, out=ints(32), spoilt=spoilt)
        assert all(report.writes["out"][at].error == math.inf for at in range(32))


def test_numba_kernels_work_together():
    cuda = pytest.importorskip("numba.cuda")
    from numba import float32

    def kernel(x: Float32[Tensor, "n"], total: Float32[Tensor, "1"]):
        tile = cuda.shared.array(32, float32)
        t = cuda.threadIdx.x
        tile[t] = x[t]
        cuda.syncthreads()
        x[t] = tile[31 - t] + cuda.laneid
        cuda.atomic.add(total, 0, cuda.shfl_down_sync(-1, tile[t], 1))

    x, total = torch.arange(32.0), torch.zeros(1)
    quiet(kernel, block=32, x=x, total=total)
    assert x.tolist() == [31.0] * 32
    assert total.item() == sum(range(1, 32)) + 31


def smooth(a: Int32[Tensor, "n"], b: Int32[Tensor, "n"]):
    first, stride = blockIdx.x * blockDim.x + threadIdx.x, gridDim.x * blockDim.x
    for step in range(4):
        for i in range(first, len(a), stride):
            if step % 2 == 0:
                b[i] = a[(i + 1) % len(a)] + a[i]
            else:
                a[i] = b[(i + 1) % len(a)] + b[i]
        syncgrid()


@pytest.mark.parametrize("seed", [None, 1, 2])
@pytest.mark.parametrize("grid", [1, 3, (2, 2)])
def test_blocks_wait_for_the_whole_grid(grid, seed):
    a, b = torch.arange(20, dtype=torch.int32), ints(20)
    expected = a
    for _ in range(4):
        expected = expected + expected.roll(-1)
    launched = {"grid": grid, "block": 4, "sanitize": True, "seed": seed}
    assert not simulate(smooth, signature_of(smooth), {"a": a, "b": b}, **launched).findings
    assert a.tolist() == expected.tolist()


def test_a_block_may_spin_while_others_are_at_the_grids_barrier():
    def kernel(flag: Int32[Tensor, "1"], out: Int32[Tensor, "2"]):
        if blockIdx.x == 0:
            while atomic.add(flag, 0, 0) == 0:
                pass
        else:
            atomic.add(flag, 0, 1)
        syncgrid()
        out[blockIdx.x] = atomic.add(flag, 0, 0)

    out = ints(2)
    quiet(kernel, grid=2, block=1, flag=ints(1), out=out)
    assert out.tolist() == [1, 1]


def test_a_seed_permutes_blocks_after_every_barrier_of_the_grid():
    def kernel(ticket: Int32[Tensor, "2"], out: Int32[Tensor, "2 n"]):
        for k in range(2):
            out[k, blockIdx.x] = atomic.add(ticket, k, 1)
            syncgrid()

    orders = set()
    for seed in (None, 3):
        out = torch.zeros(2, 8, dtype=torch.int32)
        arguments = {"ticket": ints(2), "out": out}
        simulate(kernel, signature_of(kernel), arguments, grid=8, block=1, seed=seed)
        orders |= {tuple(row) for row in out.tolist()}
    assert len(orders) == 3
    assert tuple(range(8)) in orders


def test_numbas_grid_waits_too():
    cuda = pytest.importorskip("numba.cuda")

    def kernel(x: Int32[Tensor, "n"], out: Int32[Tensor, "n"]):
        everyone = cuda.cg.this_grid()
        x[blockIdx.x] = blockIdx.x
        everyone.sync()
        out[blockIdx.x] = x[gridDim.x - 1 - blockIdx.x]
        cuda.cg.this_grid().sync()
        x[blockIdx.x] = 0

    out = ints(3)
    quiet(kernel, grid=3, block=1, x=ints(3), out=out)
    assert out.tolist() == [2, 1, 0]


def test_blocks_are_told_apart_by_grid():
    def kernel(out: Int32[Tensor, "n"]):
        out[blockIdx.x] = gridDim.x
        syncthreads()

    out = ints(3)
    quiet(kernel, grid=3, block=1, out=out)
    assert out.tolist() == [3, 3, 3]


# --- check, and kernels' own `simulate` ---


def checked(kernel, compiled, block=4, **arguments):
    signature = signature_of(kernel)
    signature = replace(signature, size=(Name("n"),), block=(Constant(block),))
    return check_kernel(FakeKernel(kernel, signature, compiled), [user_case(signature, arguments)], device="cpu")


def compact(x: Int32[Tensor, "n"], out: Int32[Tensor, "n"], count: Int32[Tensor, "1"]):
    i = blockIdx.x * blockDim.x + threadIdx.x
    if x[i] > 0:
        out[atomic.add(count, 0, 1)] = x[i]


@pytest.mark.parametrize(("kept", "ok"), [(6, True), (5, False)])
def test_check_takes_any_order_of_atomics_and_nothing_else(kept, ok):
    def compiled(x, out, count):
        out[:6] = x[x > 0].flip(0)
        count[0] = kept

    x = torch.tensor([1, 2, 0, 3, 4, 0, 5, 6], dtype=torch.int32)
    report = checked(compact, compiled, x=x, out=ints(8), count=ints(1))
    assert report.ok == ok
    assert "thread order" in str(report)


def ranked(x: Int32[Tensor, "n"], odd: Bool[Tensor, "n"], out: Int32[Tensor, "n"], count: Int32[Tensor, "1"]):
    i = blockIdx.x * blockDim.x + threadIdx.x
    odd[atomic.add(count, 0, 1)] = x[i] % 2 == 1
    out[i] = x[i]


@pytest.mark.parametrize("array", ["odd", "out"])
def test_check_takes_any_order_of_what_a_line_writes_where_one_element_of_it_hangs_on_it(array):
    def compiled(x, odd, out, count):
        odd[:], out[:], count[0] = x % 2 == 1, x, len(x)
        {"odd": odd, "out": out}[array][:] = 0

    x = torch.arange(8, dtype=torch.int32) // 2
    report = checked(ranked, compiled, x=x, odd=torch.zeros(8, dtype=torch.bool), out=ints(8), count=ints(1))
    assert report.ok == (array == "odd")


def ticketed(x: Int32[Tensor, "n"], count: Int32[Tensor, "1"], out: Int32[Tensor, "n"]):
    syncthreads()
    if threadIdx.x == x[blockIdx.x]:
        out[blockIdx.x] = atomic.add(count, 0, 1)


@pytest.mark.parametrize("threads", [*product(range(8), repeat=2)])
def test_check_takes_the_last_block_first(threads):
    def compiled(x, count, out):
        count[0], out[0] = 2, 1

    x = torch.tensor([*threads, *[0] * 14], dtype=torch.int32)
    assert checked(ticketed, compiled, block=8, x=x, count=ints(1), out=ints(16)).ok


def elected(x: Int32[Tensor, "n"], count: Int32[Tensor, "1"], first: Int32[Tensor, "n"], even: Int32[Tensor, "n"]):
    i = blockIdx.x * blockDim.x + threadIdx.x
    if atomic.add(count, 0, x[i]) == 0:
        first[i] = 1
    if i % 2 == 0:
        even[i] = 1


@pytest.mark.parametrize(("array", "ok"), [("first", True), ("even", False)])
def test_check_takes_any_thread_for_the_one_that_writes(array, ok):
    def compiled(x, count, first, even):
        count[0] = 8
        even[::2] = 1
        {"first": first, "even": even}[array][5] = 1

    x = torch.ones(8, dtype=torch.int32)  # thread 5 is the first one in none of the orders
    report = checked(elected, compiled, x=x, count=ints(1), first=ints(8), even=ints(8))
    assert report.ok == ok


def mixed(x: Int32[Tensor, "n"], out: Int32[Tensor, "4"]):
    i = blockIdx.x * blockDim.x + threadIdx.x
    if i == 0:
        atomic.add(out, 0, 5)
        atomic.sub(out, 1, 5)
        atomic.or_(out, 2, 1)
        atomic.exch(out, 3, 4)
    atomic.max(out, 0, x[i])
    atomic.add(out, 1, x[i])
    atomic.or_(out, 2, 2)
    atomic.add(out, 3, 0)


@pytest.mark.parametrize(("element", "ok"), [(0, True), (1, False), (2, False), (3, False)])
def test_check_takes_any_order_of_operations_that_do_not_commute(element, ok):
    def compiled(x, out):
        out[:] = torch.tensor([12, 31, 3, 4])  # the first adds to what the second has
        out[element] = 12

    x = torch.tensor([8, 7, 6, 5, 4, 3, 2, 1], dtype=torch.int32)
    assert checked(mixed, lambda x, out: out.copy_(torch.tensor([8, 31, 3, 4])), x=x, out=ints(4)).ok
    assert checked(mixed, compiled, x=x, out=ints(4)).ok == ok


def between(x: Int32[Tensor, "n"], count: Int32[Tensor, "1"], out: Int32[Tensor, "n"]):
    i = blockIdx.x * blockDim.x + threadIdx.x
    before = atomic.add(count, 0, x[i])
    out[i] = atomic.add(count, 0, x[i]) - before


def test_check_takes_what_others_do_between_the_atomics_of_a_thread():
    def compiled(x, count, out):
        count[0], out[:] = 16, 5

    x = torch.ones(8, dtype=torch.int32)
    assert checked(between, compiled, x=x, count=ints(1), out=ints(8)).ok


def test_check_holds_an_element_that_no_offer_was_taken_for_against_its_value():
    def kernel(x: Int32[Tensor, "n"], key: Int32[Tensor, "1"]):
        atomic.cas(key, 0, -1, x[blockIdx.x * blockDim.x + threadIdx.x])

    x = torch.arange(8, dtype=torch.int32)
    assert checked(kernel, lambda x, key: None, x=x, key=ints(1)).ok
    assert not checked(kernel, lambda x, key: key.fill_(7), x=x, key=ints(1)).ok


def swapped(x: Int32[Tensor, "n"], lock: Int32[Tensor, "1"], out: Int32[Tensor, "4"]):
    i = blockIdx.x * blockDim.x + threadIdx.x
    atomic.exch(out, 0, x[i])
    atomic.cas(out, 1, 0, x[i])
    atomic.exch(out, 2, 5)
    while atomic.cas(lock, 0, 0, 1) != 0:
        pass
    threadfence()
    out[3] += 1
    threadfence()
    atomic.exch(lock, 0, 0)


@pytest.mark.parametrize(("element", "ok"), [(0, True), (1, True), (2, False), (3, False)])
def test_check_takes_what_any_thread_swaps_in_last(element, ok):
    def compiled(x, lock, out):
        out[:] = torch.tensor([8, 8, 5, 8])  # of 8 threads
        out[element] = 7

    x = torch.tensor([8, 8, 8, 7, 8, 8, 8, 8], dtype=torch.int32)  # few orders have this one first, or last
    report = checked(swapped, compiled, x=x, lock=ints(1), out=ints(4))
    assert report.ok == ok


def test_check_holds_a_sum_against_any_order_of_its_terms():
    def total(x: Float32[Tensor, "n"], out: Float32[Tensor, "1"]):
        atomic.add(out, 0, x[blockIdx.x * blockDim.x + threadIdx.x])

    def in_order(x, out):
        out[0] = x.sum()

    def twice(x, out):
        out[0] = 2 * x.sum()

    x = torch.rand(64, generator=torch.Generator().manual_seed(0))
    assert checked(total, in_order, x=x, out=torch.zeros(1)).ok
    assert not checked(total, twice, x=x, out=torch.zeros(1)).ok


@pytest.mark.parametrize(
    ("terms", "takes_any"),
    [
        ([1e38, -1e38] * 4, True),  # where four of one sign come first
        ([1e38, -1e38, 1e38, -1, 1, 1, 1, 1], False),
        ([-math.inf, 1e38, 1e38, 1, 1, 1, 1, 1], False),
        ([-math.inf, math.inf, math.nan, 1, 1, 1, 1, 1], False),
    ],
)
def test_check_takes_what_a_sum_is_that_overflows_in_some_order(terms, takes_any):
    def total(x: Float32[Tensor, "n"], out: Float32[Tensor, "1"]):
        atomic.add(out, 0, x[blockIdx.x * blockDim.x + threadIdx.x])

    x = torch.tensor(terms, dtype=torch.float32)
    assert checked(total, lambda x, out: out.copy_(x.sum()), x=x, out=torch.zeros(1)).ok
    assert checked(total, lambda x, out: out.fill_(math.inf), x=x, out=torch.zeros(1)).ok == takes_any


def test_check_reports_a_race_with_its_line_and_thread():
    report = checked(race, lambda x, out: None, x=torch.arange(4, dtype=torch.int32), out=ints(1))
    (failure,) = report.failures
    assert failure.kind is Fault.DATA_RACE_OR_BARRIER
    assert failure.line == race.__code__.co_firstlineno + 1
    assert failure.thread == (1, 0, 0)
    assert "race on `out`: out[0] is written here (1), and written" in failure.message


@kernel
def rotate(i: Index["n"], x: Float32[Tensor, "n"]):
    x[i] = x[(i + 1) % len(x)]


@kernel
def seeded(i: Index["n"], x: Float32[Tensor, "n"], seed: int):
    x[i] = seed


def test_a_kernel_is_sanitized_where_it_is_asked_for():
    rotate.simulate(torch.ones(4))
    with pytest.warns(SimulationWarning, match=r"a race on `x`"):
        rotate.simulate(torch.arange(4.0), sanitize=True, seed=1)
    with pytest.warns(SimulationWarning, match=r"a race on `x`"):
        rotate.simulate[1, 4](torch.arange(4.0), sanitize=True)


def test_a_parameter_goes_before_an_option_of_the_same_name():
    x = torch.ones(2)
    seeded.simulate(x, seed=5)
    assert x.tolist() == [5, 5]


@kernel(block=8)
def sums_of_blocks(i: Index["n"], x: Float32[Tensor, "n"], count: Int32[Tensor, "1"], out: Float32[Tensor, "m"]):
    """The last block has threads past the end: they hold zeros, and wait with the others."""
    s = shared(8, np.float32)
    s[threadIdx.x] = x[i] + x[i] * 0.5
    syncthreads()
    if threadIdx.x == 0:
        total = np.float32(0)
        for k in range(8):
            total += s[k]
        out[blockIdx.x] = total
    if x[i] > 0:
        atomic.add(count, 0, 1)


def test_past_the_end_a_thread_reads_zero_and_writes_nothing():
    x, count, out = torch.arange(1.0, 12.0), ints(1), torch.zeros(2)
    report = simulate(
        sums_of_blocks.python, sums_of_blocks.signature, {"x": x, "count": count, "out": out}, sanitize=True
    )
    assert sums_of_blocks.signature.has_barrier
    assert report.threads == 16 and not report.findings
    assert out.tolist() == [1.5 * x[:8].sum().item(), 1.5 * x[8:].sum().item()]
    assert count.item() == 11


def test_columns_behind_other_letters_than_ascii_are_found(tmp_path):
    """What a thread past the end leaves out is told by characters, which CPython counts in bytes."""
    file = tmp_path / "letters.py"
    file.write_text(
        textwrap.dedent("""
            import numpy as np
            from jaxtyping import Float32
            from torch import Tensor
            from py2cu import Index, kernel, shared, syncthreads, threadIdx

            @kernel(block=8)
            def f(i: Index["n"], größe: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
                s = shared(8, np.float32)
                s[threadIdx.x] = größe[i] + größe[i // 2] + 1
                syncthreads()
                out[i] = s[7 - threadIdx.x]
        """),
        encoding="utf-8",
    )
    module = import_file(file)
    out = module.f.simulate(torch.tensor([1.0, 2.0, 3.0]))
    assert out.tolist() == [1.0, 1.0, 1.0]


@kernel(block=4)
def roots_backward(i: Index["n"], x: Float32[Tensor, "n"], out: Int32[Tensor, "n"]):
    roots = shared(4, np.int32)
    roots[threadIdx.x] = x[i] ** 0.5
    syncthreads()
    out[i] = roots[3 - threadIdx.x]


@kernel
def twice_the_root(i: Index["n"], x: Float32[Tensor, "n"], out: Int32[Tensor, "n"]):
    out[i] = x[i] ** 0.5
    out[i] = out[i] * 2


@pytest.mark.parametrize(("of", "in_doubt"), [(roots_backward, [1, 3]), (twice_the_root, [0, 2])])
@pytest.mark.parametrize("sanitize", [False, True])
def test_a_whole_number_that_may_be_another_puts_its_readers_in_doubt(of, in_doubt, sanitize):
    """The root of 4 is 2 here, and a little less elsewhere."""
    given = {"x": torch.tensor([4.0, 5.0, 4.0, 7.0]), "out": torch.zeros(4, dtype=torch.int32), "n": 4}
    writes = simulate(of.python, of.signature, given, sanitize=sanitize).writes["out"]
    assert [at for at in range(4) if writes[at].error == math.inf] == in_doubt


@pytest.mark.parametrize("name", sorted(row.name for row in ROWS.values() if row.effects.together and row.key != LANE))
def test_arguments_go_by_the_names_that_python_has_for_them(name):
    row = lookup(f"py2cu.{name}")
    for function in (PUBLIC[name], COOPERATIVE[row.key]):
        assert tuple(inspect.signature(function).parameters) == row.parameters
