"""Views in rows, `x.view(-1, 4)`: what the simulator says of them, what a call refuses, and what nvcc makes of them."""

import re
import subprocess

import numpy as np
import pytest
import torch
from jaxtyping import Float32, Int32, UInt8
from torch import Tensor

from py2cu import Index, atomic, blockDim, blockIdx, kernel, shared, syncthreads, threadIdx
from py2cu.simulator import SimulationError, SimulationWarning
from tests.support.compilers import nvcc


@kernel
def doubled(i: Index["n // 4"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    x4, out4 = x.view(-1, 4), out.view(-1, 4)
    a, b, c, d = x4[i]
    out4[i] = 2 * a, 2 * b, 2 * c, 2 * d


@kernel
def spread(i: Index["k"], x: UInt8[Tensor, "n"], at: Int32[Tensor, "k"], out: UInt8[Tensor, "n"]):
    x2, out2 = x.view(-1, 2), out.view(-1, 2)
    out2[at[i]] = x2[at[i]]


@kernel
def elements(i: Index["n // 4"], x: Int32[Tensor, "n"], out: Int32[Tensor, "m"]):
    x4, out2 = x.view(-1, 4), out.view(-1, 2)
    rows, row = x4.shape
    last = x4[-1]
    out2[i, 0] = x4[i, -1] + rows * row + len(x4)
    atomic.add(out2, (i, 1), last[3])


@kernel(size="n // 2", block=2)
def waiting(x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    sums = shared(2, np.float32)
    x2, out2 = x.view(-1, 2), out.view(-1, 2)
    i = blockIdx.x * blockDim.x + threadIdx.x
    a, b = x2[i]
    sums[threadIdx.x] = a + b + x2[i, 1]
    syncthreads()
    out2[i] = a, sums[1 - threadIdx.x]


@kernel
def overtaken(i: Index["n // 2"], x: Float32[Tensor, "n"]):
    x2 = x.view(-1, 2)
    a, _ = x2[0]
    x2[i] = a, 1.0


def test_the_binding_holds_arrays_against_their_rows():
    """First, since what comes without these checks ends the process."""
    for name in ("x", "out"):
        assert f'check_rows("doubled", "{name}", {name}.numel(), 4);' in doubled.cpp_source
        assert f'check_aligned("doubled", "{name}", {name}, 4);' in doubled.cpp_source


def test_rows_are_tuples_of_elements():
    x, out = torch.randn(12), torch.zeros(12)
    doubled.simulate(x, out)
    assert torch.equal(out, 2 * x)


@pytest.mark.builds
def test_elements_of_rows_are_those_of_the_array():
    x, out = torch.arange(8, dtype=torch.int32), torch.zeros(4, dtype=torch.int32)
    elements.simulate(x, out)
    assert out.tolist() == [3 + 8 + 2, 7, 7 + 8 + 2, 7]
    filled = torch.zeros(4, dtype=torch.int32)
    elements(x, filled)
    assert torch.equal(out, filled)


@pytest.mark.builds
def test_a_length_that_rows_do_not_divide_is_refused():
    for run in (doubled, doubled.simulate):
        with pytest.raises(RuntimeError, match=r"doubled: `x` is viewed in rows of 4 elements, but has 10"):
            run(torch.zeros(10))


@pytest.mark.builds
def test_an_output_of_another_length_is_refused_before_it_is_filled():
    x = torch.zeros(8, dtype=torch.int32)
    with pytest.raises(RuntimeError, match=r"elements: `out` is viewed in rows of 2 elements, but has 5"):
        elements(x, torch.zeros(5, dtype=torch.int32))


@pytest.mark.builds
def test_an_array_that_begins_between_rows_is_refused():
    x = torch.randn(13)
    with pytest.raises(RuntimeError, match=r"doubled: `x` must begin at a multiple of 16 bytes; pass `x.clone\(\)`"):
        doubled(x[1:])
    for run in (doubled, doubled.simulate):
        with pytest.raises(RuntimeError, match="`out` must begin at a multiple of 16 bytes"):
            run(x[:12], out=torch.zeros(14)[2:])
    assert torch.equal(doubled(x[:12], out=torch.zeros(16)[4:]), 2 * x[:12])
    assert doubled(x[:0]).numel() == 0


@pytest.mark.builds
def test_arrays_of_which_only_elements_are_taken_begin_anywhere():
    x = torch.arange(9, dtype=torch.int32)
    with pytest.raises(RuntimeError, match="`x` must begin at a multiple of 16 bytes"):
        elements(x[1:], torch.zeros(4, dtype=torch.int32))
    out = torch.zeros(5, dtype=torch.int32)
    elements(x[:8], out[1:])
    assert out.tolist() == [0, 13, 7, 17, 7]


@pytest.mark.parametrize("at", [3, -4])
def test_a_row_out_of_range_names_the_view(at):
    x = torch.zeros(6, dtype=torch.uint8)
    with pytest.raises(SimulationError, match=rf"index {at} of `x.view\(-1, 2\)` is out of range: axis 0 has extent 3"):
        spread.simulate(x, torch.tensor([at], dtype=torch.int32), torch.zeros_like(x))


def test_a_negative_row_is_reported():
    x = torch.arange(6, dtype=torch.uint8)
    with pytest.warns(SimulationWarning, match=r"a negative index of `(x|out).view\(-1, 2\)`"):
        spread.simulate(x, torch.tensor([-1], dtype=torch.int32), torch.zeros_like(x))


def test_rows_race_like_their_elements():
    with pytest.warns(SimulationWarning, match="a race on `x`"):
        overtaken.simulate(torch.arange(8.0), sanitize=True)


@pytest.mark.builds
def test_past_the_end_a_row_is_zeros_and_none_is_stored():
    x, out = torch.tensor([1.0, 2, 3, 4, 5, 6]), torch.zeros(6)
    waiting.simulate(x, out)
    assert out.tolist() == [1, 11, 3, 5, 5, 0]
    assert torch.equal(waiting(x), out)


@pytest.mark.builds
@pytest.mark.parametrize("each", [doubled, elements, waiting, spread], ids=lambda each: each.__name__)
def test_check_invents_arrays_that_have_rows(each):
    report = each.check()
    assert report.ok, str(report)


@pytest.mark.builds
def test_nvcc_makes_one_access_of_a_row(tmp_path):
    source, ptx = tmp_path / "doubled.cu", tmp_path / "doubled.ptx"
    source.write_text(doubled.cuda_source, encoding="utf-8")
    source.with_suffix(".h").write_text(doubled.header, encoding="utf-8")
    subprocess.run([nvcc(), "-std=c++17", "-arch=sm_90", "-ptx", str(source), "-o", str(ptx)], check=True)
    accesses = re.findall(r"\b(ld|st)\.global\.(\S+)", ptx.read_text(encoding="utf-8"))
    assert set(accesses) == {("ld", "nc.v4.f32"), ("st", "v4.f32")}
