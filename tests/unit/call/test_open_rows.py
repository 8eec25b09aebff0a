"""Rows of `16 // x.itemsize` elements: each dtype has its own, in calls, in the simulator and in the float64 copy."""

import pytest

torch = pytest.importorskip("torch")

from jaxtyping import Float  # noqa: E402
from torch import Tensor  # noqa: E402

from py2cu import Index, blockIdx, kernel, threadIdx  # noqa: E402

pytestmark = pytest.mark.builds


@kernel(size="rows * 32", block=32)
def scaled(x: Float[Tensor, "rows c"], by: Float[Tensor, "c"], out: Float[Tensor, "rows c"], rows: int):
    W = 16 // x.itemsize
    x4, by4, out4 = x.view(rows, -1, W), by.view(-1, W), out.view(rows, -1, W)
    r = blockIdx.x
    for j in range(threadIdx.x, x4.shape[1], 32):
        out4[r, j] = tuple(v * s for v, s in zip(x4[r, j], by4[j], strict=True))


@scaled.backward
def scaled_x(
    r: Index["rows"], grad_out: Float[Tensor, "rows c"], by: Float[Tensor, "c"], grad_x: Float[Tensor, "rows c"]
):
    W = 16 // by.itemsize
    grad_out4, by4, grad_x4 = grad_out.view(len(grad_out), -1, W), by.view(-1, W), grad_x.view(len(grad_x), -1, W)
    for j in range(len(by4)):
        grad_x4[r, j] = tuple(v * s for v, s in zip(grad_out4[r, j], by4[j], strict=True))


@scaled.backward
def scaled_by(
    c: Index["c"], x: Float[Tensor, "rows c"], grad_out: Float[Tensor, "rows c"], grad_by: Float[Tensor, "c"]
):
    total = 0.0
    for r in range(len(x)):
        total += x[r, c] * grad_out[r, c]
    grad_by[c] = total


@pytest.mark.parametrize(("dtype", "width"), [(torch.float32, 4), (torch.bfloat16, 8), (torch.float64, 2)])
def test_each_dtype_has_rows_of_16_bytes(dtype: torch.dtype, width: int) -> None:
    x, by = torch.randn(5, 3 * width).to(dtype), torch.randn(3 * width).to(dtype)
    assert torch.equal(scaled(x, by), x * by)
    assert torch.equal(scaled.simulate(x, by), x * by)
    what = rf"scaled: `x` is viewed in rows of {width} elements, but has {width + 1} in its last dimension"
    with pytest.raises(RuntimeError, match=what):
        scaled(x[:, : width + 1].contiguous(), by[: width + 1].contiguous())
    with pytest.raises(RuntimeError, match="must begin at a multiple of 16 bytes"):
        scaled(torch.randn(1 + 4 * width).to(dtype)[1:].view(4, width), by[:width].clone())


def test_one_text_for_all_dtypes() -> None:
    assert scaled.cuda_source.count("__global__") == 1
    assert "constexpr int W = 16 / sizeof(T);" in scaled.cuda_source
    assert 'check_rows("scaled", "x", x.size(1), 16 / x.element_size());' in scaled.cpp_source
    assert 'check_aligned("scaled", "by", by, 16 / x.element_size());' in scaled.cpp_source


def test_check() -> None:
    report = scaled.check(grad=True)
    assert report.ok and report.checked and report.gradients == ("x", "by"), report


@kernel
def doubled(r: Index["m"], c: Index["n"], x: Float[Tensor, "m n"], out: Float[Tensor, "m n"]):
    out[r, c] = 2 * x[r, c]


@doubled.backward
def doubled_x(r: Index["rows"], j: Index["k // 2"], grad_out: Float[Tensor, "rows k"], grad_x: Float[Tensor, "rows k"]):
    W = 16 // grad_out.itemsize
    grad_outs, grad_xs = grad_out.view(len(grad_out), -1, W), grad_x.view(len(grad_x), -1, W)
    if j < grad_outs.shape[1]:
        grad_xs[r, j] = tuple(2 * v for v in grad_outs[r, j])


def test_gradients_are_compared_for_rows_that_only_the_backward_has() -> None:
    report = doubled.check(grad=True)
    assert report.ok, str(report)
    assert report.gradients == ("x",)


def test_a_header_says_what_rows_ask_of_a_caller():
    said = "Whole rows of by, out and x are accessed at once: these arrays must be aligned to a row"
    assert f"// {said}" in scaled.header
    assert "Whole rows" not in scaled_by.header
