"""A launch of more blocks than a `dim3` holds, or than 64 bits count, is an error and no smaller launch."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

import torch

from py2cu.pipeline import translate_file
from py2cu.simulator import plan_launch
from py2cu.source import SourceFile
from tests.support.libraries import Device, Setting, build
from tests.test_kernel_cases import PRELUDE

SOURCE = """
@kernel
def pairs(i: Index["n * n"], out: Int32[Tensor, "m"], n: int):
    out[i % 7] = 1

@kernel(block=64)
def flat(i: Index["n"], out: Int32[Tensor, "m"], n: int):
    out[i % 7] = 1

@kernel
def of_constants(i: Index["50000 * 50000"], out: Int32[Tensor, "m"]):
    out[i % 7] = 1

@kernel(size="256 * rows")
def rows_each(blockIdx, threadIdx, out: Int32[Tensor, "m"], rows: int):
    if blockIdx.x < 7:
        out[blockIdx.x] = 1
"""
TRANSLATION = translate_file(SourceFile("grids.py", PRELUDE + SOURCE))
TOO_MANY = [
    *(("pairs", "n", n) for n in (2**20 + 1, 2**32, 2**32 + 1, 2**62)),
    *(("flat", "n", n) for n in (64 * 2**31, 64 * 2**32 + 1, 2**63 - 1, -(2**40))),
    *(("rows_each", "rows", n) for n in (2**31, 2**32 + 1, 2**56 + 1)),
]


@pytest.mark.builds
def test_a_grid_that_cuda_cannot_launch_is_an_error():
    (runs,) = build([TRANSLATION], Setting(Device.EMULATED))
    for kernel, name, value in TOO_MANY:
        with pytest.raises(RuntimeError, match="the launch failed"):
            runs[kernel]({"out": torch.zeros(7, dtype=torch.int32), name: value})


@pytest.mark.builds
@pytest.mark.parametrize("device", [Device.EMULATED, Device.CPU])
def test_grids_within_reach_are_whole(device):
    (runs,) = build([TRANSLATION], Setting(device))
    for kernel, name, value in (("pairs", "n", 300), ("pairs", "n", 0), ("flat", "n", 70), ("rows_each", "rows", 7)):
        out = torch.zeros(7, dtype=torch.int32)
        runs[kernel]({"out": out, name: value})
        assert out.tolist() == [1 if value else 0] * 7


def test_the_guard_of_a_small_grid_is_compared_in_a_type_that_holds_it():
    assert "std::fabs(n) * std::fabs(n) <= INT32_MAX" in TRANSLATION.cuda.kernel.text


def test_a_product_of_constants_is_no_int():
    assert "const dim3 grid((int64_t(50000) * 50000 + " in TRANSLATION.cuda.kernel.text


def test_the_simulator_refuses_them_too():
    (signature,) = (signature for signature in TRANSLATION.signatures if signature.op == "flat")
    for grid in (None, 2**31):
        with pytest.raises(ValueError, match="no GPU launches a grid of 2147483648 × 1 × 1 blocks"):
            plan_launch(signature, {"n": 64 * 2**31, "m": 7}, grid)


@pytest.mark.builds
def test_the_cpu_refuses_what_64_bits_do_not_count():
    (runs,) = build([TRANSLATION], Setting(Device.CPU))
    for n in (2**32, 2**32 + 1, 2**62):
        with pytest.raises(RuntimeError, match="the launch failed"):
            runs["pairs"]({"out": torch.zeros(7, dtype=torch.int32), "n": n})
