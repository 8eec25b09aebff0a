"""Kernels for Numba as they stand: what Numba's simulator computes, py2cu's simulator and its compiled code compute.

Integers are equal, floats differ by 4 units in the last place at most. `tests/from_numba/kernels.py` has the kernels.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
np = pytest.importorskip("numpy")
pytest.importorskip("numba")

import py2cu  # noqa: E402
from py2cu import TranslationError  # noqa: E402
from py2cu import numba as cuda  # noqa: E402
from py2cu.numba.stand_in import imported_as_numba  # noqa: E402
from py2cu.simulator.run import SimulationWarning  # noqa: E402
from tests.from_numba.fuzz import differences, judge, results  # noqa: E402
from tests.support.compilers import gxx  # noqa: E402

KERNELS = Path(__file__).parent / "from_numba" / "kernels.py"


@pytest.mark.slow
@pytest.mark.proof
def test_random_kernels_compute_what_numbas_simulator_does():
    assert judge(7, range(24), compiled=False) == {}


@pytest.mark.slow
@pytest.mark.proof
def test_the_simulator_computes_what_numbas_does(tmp_path):
    ours, theirs = (results(how, KERNELS, tmp_path) for how in ("simulated", "numba"))
    assert len({name.partition(":")[0] for name in ours}) >= 60
    assert len(ours.keys() & theirs.keys()) > 100
    assert differences(ours, theirs) == {}


SAMPLE = ("sigmoid_forward", "tiled_matmul", "dynamic_in_parts", "calls_for_tuple", "typed_by_codes", "warp_sum")


@pytest.mark.builds
@pytest.mark.parametrize("names", [SAMPLE, pytest.param((), marks=pytest.mark.proof, id="all")])
def test_compiled_kernels_compute_what_the_simulators_do(names, tmp_path):
    gxx()
    ours, simulated, theirs = (results(how, KERNELS, tmp_path, *names) for how in ("compiled", "simulated", "numba"))
    assert differences(ours, simulated | theirs) == {}


@cuda.jit
def doubled(x, out):
    i = cuda.grid(1)
    if i < x.shape[0]:
        out[i] = x[i] + x[i]


@pytest.mark.builds
def test_one_instance_for_each_set_of_types():
    gxx()
    for dtype in (np.float32, np.float64, np.int64):
        out = np.zeros(5, dtype)
        doubled[1, 32](np.arange(5).astype(dtype), out)
        doubled.forall(5)(np.arange(5).astype(dtype), out)
        assert out.tolist() == [0, 2, 4, 6, 8]
        assert f"({dtype.__name__}[::1], {dtype.__name__}[::1],)" in doubled._kernels


@pytest.mark.builds
def test_device_arrays_and_views():
    gxx()
    x = cuda.to_device(np.arange(8, dtype=np.float32))
    out = cuda.device_array_like(x)
    doubled[1, 32](x, out)
    cuda.synchronize()
    assert out.copy_to_host().tolist() == [0, 2, 4, 6, 8, 10, 12, 14]
    every_second = np.zeros(8, np.float32)
    doubled[1, 32](np.arange(4, dtype=np.float32)[::-1], every_second[::2])
    assert every_second.tolist() == [6, 0, 4, 0, 2, 0, 0, 0]


@pytest.mark.builds
def test_an_array_that_is_passed_twice_is_one_array():
    gxx()
    x = np.ones(4, np.float32)
    with pytest.raises(RuntimeError, match="`out` is written and overlaps `x` in memory"):
        doubled[1, 32](x, x)


@pytest.mark.builds
def test_kernel_takes_a_dispatcher_and_its_python_function():
    gxx()
    for function in (doubled, doubled.py_func):
        x, out = np.ones(4), np.zeros(4)
        py2cu.kernel(function)[1, 32](x, out)
        assert out.tolist() == [2, 2, 2, 2]


@cuda.jit(fastmath=True)
def fast(x):
    x[cuda.grid(1)] *= 2


def test_options_are_refused_at_a_launch_too():
    with pytest.raises(TranslationError, match=r"`cuda\.jit` with `fastmath` has no counterpart"):
        fast[1, 1](np.zeros(1))


def test_launches_are_checked():
    with pytest.raises(TypeError, match=r"launch it as doubled\[blocks, threads\]"):
        doubled[1]
    with pytest.raises(TypeError, match="a kernel is launched"):
        doubled(np.zeros(1), np.zeros(1))
    with pytest.raises(TypeError, match="a stream is one of torch, or 0"):
        doubled[1, 1, "fast"](np.zeros(1), np.zeros(1))
    with pytest.raises(TypeError, match=r"a kernel takes arrays, numbers and tuples of numbers, not \[1.0\]"):
        doubled[1, 1]([1.0], np.zeros(1))
    with pytest.raises(TypeError, match=r"a kernel takes arrays, numbers and tuples of numbers, not array\("):
        doubled[1, 1]((np.ones(1),), np.zeros(1))
    with pytest.raises(TranslationError, match=r"1 types, and `doubled` 2 parameters"):
        doubled[1, 1](np.zeros(1))
    with pytest.raises(TranslationError, match="`doubled` has no types"):
        _ = doubled.kernel().translation


def test_numba_itself_is_imported_behind_the_context():
    import numba

    with imported_as_numba():
        from numba import cuda as inside

        assert inside is cuda
    assert vars(numba).get("cuda") is not cuda
    assert sys.modules.get("numba.cuda") is not cuda


@cuda.jit
def shifts(x):
    i = cuda.grid(1)
    if i + 1 < x.shape[0]:
        x[i] = x[i + 1]


def test_the_simulator_reports_races(monkeypatch):
    monkeypatch.setenv("NUMBA_ENABLE_CUDASIM", "1")
    with pytest.warns(SimulationWarning, match="race"):
        shifts[1, 8](np.zeros(8))


def test_a_read_only_array_is_not_written():
    x = np.zeros(4)
    x.flags.writeable = False
    with pytest.raises(ValueError, match="`shifts` writes `x`, which is a read-only array"):
        shifts[1, 8](x)


def plain(a, b):
    return a + b


joined = cuda.jit(device=True)(plain)


@cuda.jit
def calls_what_jit_made(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] = joined(x[i], cuda.selp(i > 1, cuda.shfl_xor_sync(-1, x[i], 1), x[i]))


@pytest.mark.builds
def test_a_formula_computes_a_shuffle_once_and_in_all_threads():
    gxx()
    x = np.arange(32, dtype=np.float32)
    calls_what_jit_made[1, 32](x)
    assert x[:6].tolist() == [0, 2, 5, 5, 9, 9]
    assert calls_what_jit_made.kernel("(float32[::1],)").cuda_source.count("__shfl_xor_sync") == 1


def test_an_error_of_types_is_the_only_one():
    @cuda.jit
    def untyped(n, x):
        if cuda.grid(1) < x.size:
            cuda.atomic.add(x, 0, n)

    with pytest.raises(TranslationError) as caught:
        _ = untyped.kernel().translation
    (only,) = caught.value.diagnostics
    assert '--signature "untyped(int32, float32[:])"' in only.hint


def test_names_of_the_host_say_what_torch_has():
    with pytest.raises(AttributeError, match=r"no `stream`: write `torch\.cuda\.Stream\(\)`"):
        _ = cuda.stream
    with pytest.raises(AttributeError, match=r"py2cu\.numba has no `detect`"):
        _ = cuda.detect


from py2cu.numba import ballot_sync, eq_sync, grid, lanemask_lt, match_all_sync  # noqa: E402
from py2cu.numba import libdevice as functions  # noqa: E402
from py2cu.numba import shared as block_memory  # noqa: E402


@cuda.jit
def with_names_of_its_own(x, out):
    i = grid(1)
    swapped = block_memory.array(32, "i4")
    swapped[31 - i] = x[i]
    cuda.syncthreads()
    lanes, is_same = match_all_sync(-1, swapped[i] // 32)
    out[i, 0] = lanes if is_same else 0
    out[i, 1] = cuda.popc(ballot_sync(-1, x[i] > 3) & lanemask_lt())
    out[i, 2] = functions.abs(swapped[i] - 20) * 2 + eq_sync(-1, x[i] >= 0)


@pytest.mark.builds
def test_names_imported_from_cuda_are_simulated_as_they_are_compiled(monkeypatch):
    gxx()
    results = []
    for simulated in ("0", "1"):
        monkeypatch.setenv("NUMBA_ENABLE_CUDASIM", simulated)
        out = np.zeros((32, 3), np.int32)
        with_names_of_its_own[1, 32](np.arange(32, dtype=np.int32), out)
        results.append(out.tolist())
    assert results[0] == results[1]
    assert results[0][5] == [-1, 1, 13]


@cuda.jit(["void(float32[::1], int32)", "void(float64[::1], int32)"])
def of_two_signatures(x, n):
    buffer = cuda.shared.array(8, dtype="i4")
    i = cuda.grid(1)
    buffer[i] = n
    if i < x.size:
        x[i] += buffer[i]


@pytest.mark.builds
@pytest.mark.parametrize("simulated", ["0", "1"])
def test_a_copy_that_is_only_read_is_not_copied_back(simulated, monkeypatch):
    gxx()
    monkeypatch.setenv("NUMBA_ENABLE_CUDASIM", simulated)
    x = np.arange(5.0)
    doubled[1, 8](x[::-1], x)  # torch has no negative strides: the input is copied
    assert x.tolist() == [8, 6, 4, 2, 0]


@pytest.mark.builds
@pytest.mark.parametrize("kind", ["UniTuple", "Tuple"])
def test_type_objects_of_tuples(kind):
    gxx()
    types = pytest.importorskip("numba").types
    pair = types.UniTuple(types.int32, 2) if kind == "UniTuple" else types.Tuple((types.int32, types.float32))

    def scaled(x, p):
        i = cuda.grid(1)
        if i < x.size:
            x[i] = x[i] * p[0] + p[1]

    x = np.ones(3, np.float32)
    cuda.jit(types.void(types.float32[:], pair))(scaled)[1, 4](x, (2, 1))
    assert x.tolist() == [3, 3, 3]


@pytest.mark.builds
def test_a_launch_chooses_among_signatures():
    gxx()
    for dtype in (np.float32, np.float64):
        x = np.ones(4, dtype)
        of_two_signatures[1, 8](x, 3)
        assert x.tolist() == [4, 4, 4, 4]


@cuda.jit
def hello(n):
    print("thread", cuda.grid(1), "of", n)


@cuda.jit
def nothing(x):
    pass


@pytest.mark.builds
@pytest.mark.parametrize("simulated", ["0", "1"])
def test_kernels_without_effect_or_arrays_are_launched(simulated, monkeypatch, capfd):
    gxx()
    monkeypatch.setenv("NUMBA_ENABLE_CUDASIM", simulated)
    nothing[1, 1](np.zeros(3))
    for device in ("meta", "cpu"):  # torch's default device says nothing about Numba's
        with torch.device(device):
            hello[1, 2](2)
    cuda.synchronize()
    assert capfd.readouterr().out == "thread 0 of 2\nthread 1 of 2\n" * 2


SHARES = {"as_cuda_array": cuda.as_cuda_array, "tensor": lambda t: t, "a view": lambda t: cuda.as_cuda_array(t)[:]}


@pytest.mark.builds
@pytest.mark.parametrize("share", SHARES.values(), ids=SHARES)
def test_autograd_sees_launches_on_memory_that_a_tensor_shares(share: Callable[[torch.Tensor], Any]) -> None:
    @cuda.jit
    def double(x):
        i = cuda.grid(1)
        if i < x.shape[0]:
            x[i] = x[i] + x[i]

    own = cuda.to_device(np.ones(4, np.float32))
    for _ in range(3):
        double[1, 32](own)
    kept, weight = own.tensor, torch.ones(4, requires_grad=True)
    for array in (own, share(torch.ones(4))):
        tensor = kept if array is own else getattr(array, "memory", array)
        loss = (weight * tensor).sum()
        for _ in range(3):
            double[1, 32](array)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()
    with pytest.raises(RuntimeError, match="requires grad"):
        double[1, 32](share(torch.ones(4, requires_grad=True)))
