"""What `launch_bounds` allows is all that is launched, on the CPU and in the simulator."""

import pytest
import torch
from jaxtyping import Float32
from torch import Tensor

from py2cu import Constexpr, Index, blockIdx, kernel, local, threadIdx
from py2cu.check import small_values


@kernel(block=32, launch_bounds=(64, 2))
def double(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    out[i] = 2 * x[i]


@kernel(size="n", block="tile", launch_bounds=8)
def tiled(x: Float32[Tensor, "n"], out: Float32[Tensor, "n"], n: int, tile: Constexpr[int]):
    i = blockIdx.x * tile + threadIdx.x
    if i < n:
        out[i] = 2 * x[i]


@pytest.mark.builds
def test_a_block_within_the_bounds_is_launched():
    x = torch.arange(100.0)
    assert torch.equal(double(x), 2 * x)
    out = torch.empty_like(x)
    double[2, 64](x, out)
    assert torch.equal(out, 2 * x)


@pytest.mark.builds
def test_a_larger_block_is_refused():
    x = torch.arange(100.0)
    with pytest.raises(RuntimeError, match="double: a block has at most 64 threads, got 66"):
        double[2, (33, 2)](x, torch.empty_like(x))
    with pytest.raises(ValueError, match="`double` is for blocks of at most 64 threads, got 66"):
        double.simulate[2, (33, 2)](x, torch.empty_like(x))


def test_a_template_is_tried_with_blocks_that_can_be_launched():
    assert max(small_values(tiled.signature)["tile"]) <= 8


@kernel
def halves(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"], k: Constexpr[int]):
    kept = local(k // 2, "float32")
    kept[0] = x[i]
    out[i] = kept[0]


def test_a_template_is_tried_with_arrays_that_have_elements():
    assert min(halves.with_small_values().signature.constexprs["k"].values) == 2


@kernel(size="n", block="wide", launch_bounds=64)
def told(x: Float32[Tensor, "n"], out: Float32[Tensor, "n"], n: int, wide: int):
    i = blockIdx.x * wide + threadIdx.x
    if i < n:
        out[i] = 2 * x[i]


@pytest.mark.builds
@pytest.mark.parametrize("wide", [1, 48, 64])
def test_a_call_tells_the_block(wide):
    x = torch.arange(100.0)
    assert torch.equal(told(x, wide=wide), 2 * x)
    assert torch.equal(told.simulate(x, wide=wide), 2 * x)


@pytest.mark.builds
@pytest.mark.parametrize("wide", [65, 2000, 0, -3])
def test_a_block_that_cannot_be_launched_is_refused(wide):
    x = torch.arange(100.0)
    with pytest.raises(RuntimeError, match=f"told: blocks of {wide} x 1 x 1 threads; there may be 1 to 64"):
        told(x, wide=wide)
    with pytest.raises(ValueError, match=f"{wide} threads|at most 64 threads, got {wide}"):
        told.simulate(x, wide=wide)
