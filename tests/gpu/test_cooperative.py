"""On a real GPU: blocks that wait for each other, and grids that the device cannot hold."""

import re

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no GPU here", allow_module_level=True)

import numpy as np  # noqa: E402
from jaxtyping import Float, Float32, Int32  # noqa: E402
from torch import Tensor  # noqa: E402

from py2cu import Constexpr, blockDim, blockIdx, gridDim, kernel, shared, syncgrid, syncthreads, threadIdx  # noqa: E402
from tests.support import kernels_of_blocks  # noqa: E402

pytestmark = pytest.mark.gpu
CUDA = torch.device("cuda")


@kernel(size="n", block=256)
def shift(x: Int32[Tensor, "n"], steps: int):
    """Every element becomes the one before it, so many times."""
    i = blockIdx.x * blockDim.x + threadIdx.x
    for _ in range(steps):
        kept = x[(i + len(x) - 1) % len(x)] if i < len(x) else 0
        syncgrid()
        if i < len(x):
            x[i] = kept
        syncgrid()


@kernel(size="n", block=64)
def of_any_type(
    x: Float[Tensor, "n"], sums: Float[Tensor, "blocks"], out: Float[Tensor, "1"], tile: Constexpr[int] = 4
):
    part = shared(blockDim.x, x.dtype)
    t = threadIdx.x
    i = blockIdx.x * blockDim.x + t
    part[t] = x[i] * tile if i < len(x) else 0.0
    syncthreads()
    if t == 0:
        s = part[0]
        for k in range(1, blockDim.x):
            s += part[k]
        sums[blockIdx.x] = s
    syncgrid()
    if i == 0:
        s = sums[0]
        for k in range(1, gridDim.x):
            s += sums[k]
        out[0] = s


@kernel(size="n", block=256)
def large(x: Float32[Tensor, "n"], m: int, out: Float32[Tensor, "n"]):
    """A block needs more shared memory than 48 KB."""
    part = shared(256 * m, np.float32)
    i = blockIdx.x * blockDim.x + threadIdx.x
    for k in range(m):
        part[k * 256 + threadIdx.x] = x[i] + k if i < len(x) else 0.0
    syncgrid()
    if i < len(x):
        out[i] = part[(m - 1) * 256 + 255 - threadIdx.x]


def grid_of(n: int, block: int) -> int:
    return -(-n // block)


@pytest.mark.parametrize("n", [1, 256, 1000, 100_000])
def test_every_step_sees_the_step_before(n):
    x = torch.arange(n, dtype=torch.int32, device=CUDA)
    expected = x.roll(20)
    shift(x, 20)
    assert torch.equal(x, expected)


@pytest.mark.parametrize("n", [1, 1000, 50_000])
def test_what_a_block_has_lives_across_barriers_of_the_grid(n):
    x = torch.rand(n, dtype=torch.float64, device=CUDA)
    out = torch.empty_like(x)
    kernels_of_blocks.cumulated(x, x.new_empty(grid_of(n, 64)), out)
    sums = x.cumsum(0)
    torch.testing.assert_close(out, sums + sums.roll(-1))


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_templates_are_launched_cooperatively(dtype):
    x = torch.rand(5000, dtype=dtype, device=CUDA)
    out = of_any_type(x, x.new_empty(grid_of(5000, 64)))
    torch.testing.assert_close(out[0], 4 * x.sum(), rtol=1e-4, atol=0)


def test_dynamic_shared_memory_counts():
    """100 KB a block: one or two are what a multiprocessor holds."""
    processors = torch.cuda.get_device_properties(CUDA).multi_processor_count
    x = torch.rand(256 * processors, device=CUDA)
    out = large(x, 100)
    torch.testing.assert_close(out.view(-1, 256), x.view(-1, 256).flip(1) + 99)
    with pytest.raises(RuntimeError, match="blocks wait for each other"):
        large(x.new_empty(256 * 3 * processors), 100)


def test_a_grid_that_does_not_fit_is_refused():
    processors = torch.cuda.get_device_properties(CUDA).multi_processor_count
    x = torch.zeros(256 * 100_000, dtype=torch.int32, device=CUDA)
    refusal = r"shift: 100000 blocks wait for each other, and at most (\d+) run at once on this device"
    with pytest.raises(RuntimeError, match=refusal) as caught:
        shift(x, 1)
    found = re.search(refusal, str(caught.value))
    assert found is not None
    most = int(found[1])
    assert most % processors == 0
    assert most > 0
    with pytest.raises(RuntimeError, match=f"shift: {most + 1} blocks wait for each other, and at most {most} run"):
        shift[most + 1, 256](x, 1)
    ones = torch.arange(256 * most, dtype=torch.int32, device=CUDA)
    expected = ones.roll(3)
    shift[most, 256](ones, 3)  # as many as fit, and no error is left behind
    assert torch.equal(ones, expected)


def test_check_agrees():
    x = torch.arange(1000, dtype=torch.int32, device=CUDA)
    report = shift.check(x, 2)
    assert report.device == "cuda"
    assert report.ok, str(report)
