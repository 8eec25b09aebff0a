"""On a real GPU: arrays and grids of more than 2³¹ elements, whose extents are partly constants or products."""

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no GPU here", allow_module_level=True)

from jaxtyping import Int64, UInt8  # noqa: E402
from torch import Tensor  # noqa: E402

from py2cu import Index, atomic, kernel  # noqa: E402

pytestmark = pytest.mark.gpu
ROWS = 2**22 + 1  # of 1,024 bytes: the last one lies behind 2³²


@kernel
def row_first(blockIdx, threadIdx, x: UInt8[Tensor, "rows 1024"], out: UInt8[Tensor, "rows"]):
    out[blockIdx.x] = x[blockIdx.x, threadIdx.x]


@kernel
def first_of_each(i: Index["rows"], x: UInt8[Tensor, "rows 1024"], out: UInt8[Tensor, "rows"]):
    out[i] = x[i, 0]


def element(x: UInt8[Tensor, "rows 1024"], row: int, column: int) -> int:
    return x[row, column]


@kernel
def through_a_function(blockIdx, threadIdx, x: UInt8[Tensor, "rows 1024"], out: UInt8[Tensor, "rows"]):
    out[blockIdx.x] = element(x, blockIdx.x, threadIdx.x)


@kernel
def corner(blockIdx, threadIdx, x: UInt8[Tensor, "b 64 64"], out: UInt8[Tensor, "b"]):
    for k in range(1):
        out[blockIdx.x] = x[blockIdx.x, k, threadIdx.x]


@kernel
def last_of_each(i: Index["100000"], x: UInt8[Tensor, "100000 100000"], out: UInt8[Tensor, "100000"]):
    out[i] = x[i, 99999]


@kernel
def marks(i: Index["n * n"], side: UInt8[Tensor, "n"], out: UInt8[Tensor, "n n"]):
    n = len(side)
    out[i // n, i % n] = side[i % n]


@kernel(init={"count": 0})
def counts(i: Index["n * n"], side: UInt8[Tensor, "n"], count: Int64[Tensor, "1"]):
    atomic.add(count, 0, 1)


@pytest.fixture(autouse=True)
def free_memory():
    yield
    torch.cuda.empty_cache()


@pytest.mark.parametrize("run", [row_first[ROWS, 1], through_a_function[ROWS, 1]], ids=["kernel", "function"])
def test_rows_of_a_constant_extent(run):
    x = torch.zeros(ROWS, 1024, dtype=torch.uint8, device="cuda")
    x[:, 0] = 7
    out = torch.zeros(ROWS, dtype=torch.uint8, device="cuda")
    run(x, out)
    assert (out == 7).all()


def test_rows_of_a_constant_extent_by_index():
    x = torch.zeros(ROWS, 1024, dtype=torch.uint8, device="cuda")
    x[:, 0] = 7
    assert (first_of_each(x) == 7).all()


def test_planes_of_constant_extents():
    b = 2**20 + 1
    x = torch.zeros(b, 64, 64, dtype=torch.uint8, device="cuda")
    x[:, 0, 0] = 7
    out = torch.zeros(b, dtype=torch.uint8, device="cuda")
    corner[b, 1](x, out)
    assert (out == 7).all()


def test_constant_extents_beyond_32_bits():
    x = torch.zeros(100_000, 100_000, dtype=torch.uint8, device="cuda")
    x[:, -1] = 7
    assert (last_of_each(x) == 7).all()


def test_a_grid_over_a_product():
    n = 2**16 + 1
    assert (marks(torch.full((n,), 7, dtype=torch.uint8, device="cuda")) == 7).all()


@pytest.mark.parametrize("n", [2**20 + 1, 2**32])
def test_a_grid_that_cuda_cannot_launch_is_an_error(n):
    side = torch.zeros(n, dtype=torch.uint8, device="cuda")
    with pytest.raises(RuntimeError, match="counts"):
        counts(side)


def test_threads_of_a_product_are_counted():
    n = 2**16 + 1
    assert counts(torch.zeros(n, dtype=torch.uint8, device="cuda")).item() == n * n
