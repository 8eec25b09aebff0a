"""On a real GPU: arrays of any strides, and outputs that are inputs."""

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no GPU here", allow_module_level=True)

from jaxtyping import Float, Float32, Int32, UInt8  # noqa: E402
from torch import Tensor  # noqa: E402

from py2cu import Index, atomic, kernel  # noqa: E402

pytestmark = pytest.mark.gpu


def row_sum(x, r):
    total = 0.0
    for j in range(x.shape[1]):
        total += x[r, j]
    return total


@kernel(strided=True)
def axpy(r: Index["h"], c: Index["w"], x: Float32[Tensor, "h w"], out: Float32[Tensor, "h w"], a: float):
    out[r, c] = a * x[r, c] + 1


@kernel(strided="x")
def mean(b: Index["b"], r: Index["h"], c: Index["w"], x: Float[Tensor, "b k h w"], out: Float[Tensor, "b h w"]):
    total = x[b, 0, r, c]
    for j in range(1, x.shape[1]):
        total += x[b, j, r, c]
    out[b, r, c] = total / x.shape[1]


@kernel(strided="x")
def sums(i: Index["n"], x: Float32[Tensor, "n k"], y: Float32[Tensor, "n 3"], out: Float32[Tensor, "n"]):
    out[i] = row_sum(x, i) + row_sum(y, i)


@kernel(strided=True, init={"counts": 0})
def counted(i: Index["n"], x: UInt8[Tensor, "n"], counts: Int32[Tensor, "256 2"]):
    atomic.add(counts, (x[i], i % 2), 1)


@kernel(strided=True)
def copied(i: Index["n"], x: UInt8[Tensor, "n"], out: UInt8[Tensor, "n"]):
    out[i] = x[i]


@kernel
def biased(r: Index["h"], c: Index["w"], x: Float[Tensor, "h w"], bias: Float[Tensor, "w"], out: Float[Tensor, "h w"]):
    out[r, c] = 2 * x[r, c] + bias[c] if x[r, c] > 0.5 else x[r, c] - 1


@pytest.fixture(autouse=True)
def _on_the_gpu():
    with torch.device("cuda"):
        yield


@pytest.mark.parametrize("out", ["allocated", "transposed", "sliced"])
@pytest.mark.parametrize("x", ["contiguous", "transposed", "sliced", "expanded", "misaligned", "empty"])
def test_any_layout_is_read_and_written(x, out):
    x = {
        "contiguous": lambda: torch.rand(500, 70),
        "transposed": lambda: torch.rand(70, 500).t(),
        "sliced": lambda: torch.rand(1000, 210)[::2, ::3],
        "expanded": lambda: torch.rand(70).expand(500, 70),
        "misaligned": lambda: torch.rand(35001)[1:].view(500, 70),
        "empty": lambda: torch.rand(70, 0).t(),
    }[x]()
    h, w = x.shape
    given = {
        "allocated": dict,
        "transposed": lambda: {"out": torch.zeros(w, h).t()},
        "sliced": lambda: {"out": torch.zeros(2 * h, 3 * w)[1::2, ::3]},
    }[out]()
    result = axpy(x, a=2.0, **given)
    assert torch.equal(result, 2 * x + 1)
    if given:
        assert result is given["out"]
        base = result._base if result._base is not None else result
        assert base.count_nonzero() == result.count_nonzero()  # nothing else is written
        axpy[((w + 15) // 16 or 1, (h + 15) // 16 or 1), (16, 16)](x, result.zero_(), 2.0)
        assert torch.equal(result, 2 * x + 1)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.float64])
def test_channels_last(dtype):
    x = torch.rand(4, 3, 33, 17, dtype=dtype).to(memory_format=torch.channels_last)
    assert torch.allclose(mean(x), x.mean(1), rtol=1e-2 if dtype is torch.float16 else 1e-5)


def test_functions_and_atomics_get_strides():
    x, y = torch.rand(40, 300).t(), torch.rand(300, 3)
    assert torch.allclose(sums(x, y), x.sum(1) + y.sum(1))
    values = torch.randint(256, (9000,), dtype=torch.uint8)
    counts = torch.zeros(2, 256, dtype=torch.int32).t()
    counted(values[::3], counts=counts)
    for parity in range(2):
        assert torch.equal(counts[:, parity], torch.bincount(values[::3][parity::2], minlength=256).int())


def test_nothing_is_copied():
    x, out = torch.rand(700, 500).t(), torch.empty(700, 500).t()
    axpy(x, a=2.0, out=out)
    before = torch.cuda.memory_stats()["allocation.all.allocated"]
    axpy(x, a=2.0, out=out)
    assert torch.cuda.memory_stats()["allocation.all.allocated"] == before


def test_elements_farther_apart_than_32_bits_hold():
    memory = torch.zeros(2 * 2**31 + 8, dtype=torch.uint8)
    memory[3 :: 2**31] = torch.tensor([1, 2, 3], dtype=torch.uint8)
    assert copied(memory[3 :: 2**31]).tolist() == [1, 2, 3]
    copied(torch.tensor([7, 8, 9], dtype=torch.uint8), out=memory[5 :: 2**31])
    assert memory[5 :: 2**31].tolist() == [7, 8, 9]
    assert memory.count_nonzero() == 6


def test_more_elements_than_32_bits_count():
    memory = torch.zeros(2**32 + 6, dtype=torch.uint8)
    memory[-2] = 5
    assert copied(memory[::2])[-1] == 5


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16])
def test_an_output_may_be_an_input(dtype):
    x, bias = torch.rand(3000, 257, dtype=dtype), torch.rand(257, dtype=dtype)
    expected = biased(x, bias)
    assert biased(x, bias, out=x) is x
    assert torch.equal(x, expected)
    with pytest.raises(RuntimeError, match="biased: `out` is written and overlaps `x` in memory"):
        biased(x[:-1], bias, out=x[1:])
    with pytest.raises(RuntimeError, match="biased: `out` is written and overlaps `x` in memory"):
        biased[(17, 188), (16, 16)](x, bias, x)
    graph = torch.cuda.CUDAGraph()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        biased(x, bias, out=x)
    torch.cuda.synchronize()
    x.copy_(expected)
    with torch.cuda.graph(graph):
        biased(x, bias, out=x)
    graph.replay()
    assert torch.equal(x, biased(expected, bias))


def test_the_check_agrees():
    for k in (axpy, mean, sums, biased):
        report = k.check()
        assert report.ok, report
