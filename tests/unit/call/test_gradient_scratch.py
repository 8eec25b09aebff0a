"""Arrays of a backward that are neither values nor gradients of its forward: each call allocates and drops them."""

import pytest

torch = pytest.importorskip("torch")

from jaxtyping import Float, Int32  # noqa: E402
from torch import Tensor  # noqa: E402
from torch.autograd import gradcheck, gradgradcheck  # noqa: E402

from py2cu import Index, atomic, blockIdx, kernel, shared, syncthreads, threadfence, threadIdx  # noqa: E402

pytestmark = pytest.mark.builds


@kernel
def scaled(r: Index["n"], c: Index["c"], x: Float[Tensor, "n c"], w: Float[Tensor, "c"], out: Float[Tensor, "n c"]):
    out[r, c] = x[r, c] * w[c]


@scaled.backward
def scaled_x(
    r: Index["n"],
    c: Index["c"],
    doubled: Float[Tensor, "n c"],
    w: Float[Tensor, "c"],
    grad_out: Float[Tensor, "n c"],
    grad_x: Float[Tensor, "n c"],
):
    doubled[r, c] = 2 * grad_out[r, c]
    grad_x[r, c] = grad_out[r, c] * w[c]


@scaled_x.backward
def scaled_x_second(
    r: Index["n"],
    c: Index["c"],
    w: Float[Tensor, "c"],
    grad_grad_x: Float[Tensor, "n c"],
    grad_grad_out: Float[Tensor, "n c"],
):
    grad_grad_out[r, c] = grad_grad_x[r, c] * w[c]


@scaled.backward(size=4 * 32, block=32, init={"parts": 0, "done": 0})
def scaled_w(
    x: Float[Tensor, "n c"],
    grad_out: Float[Tensor, "n c"],
    parts: Float[Tensor, "4 c"],
    done: Int32[Tensor, "1"],
    grad_w: Float[Tensor, "c"],
):
    """Each block sums up every fourth row, and the last block adds up the sums."""
    is_last = shared(1, bool)
    for c in range(threadIdx.x, x.shape[1], 32):
        for r in range(blockIdx.x, x.shape[0], 4):
            parts[blockIdx.x, c] += x[r, c] * grad_out[r, c]
    threadfence()
    syncthreads()
    if threadIdx.x == 0:
        is_last[0] = atomic.add(done, 0, 1) == 3
    syncthreads()
    if is_last[0]:
        for c in range(threadIdx.x, x.shape[1], 32):
            grad_w[c] = parts[0, c] + parts[1, c] + parts[2, c] + parts[3, c]


def leaf(*shape: int) -> torch.Tensor:
    return torch.randn(*shape, dtype=torch.float64, requires_grad=True)


def test_gradients() -> None:
    assert gradcheck(scaled, (leaf(9, 5), leaf(5)))
    assert gradgradcheck(lambda x: scaled(x, torch.ones(3, dtype=torch.float64)), (leaf(2, 3),))


@pytest.mark.slow
def test_compiled() -> None:
    torch._dynamo.reset()
    compiled = torch.compile(lambda x, w: scaled(x, w).square(), fullgraph=True, dynamic=True)
    with torch._dynamo.config.patch(error_on_recompile=True):
        for n in (4, 37):
            x, w = leaf(n, 45), leaf(45)
            expected = torch.autograd.grad((x * w).square().sum(), (x, w))
            torch.testing.assert_close(torch.autograd.grad(compiled(x, w).sum(), (x, w)), expected)


def test_transforms() -> None:
    x, w = leaf(3, 9, 5).detach(), leaf(5).detach()
    by_w = torch.func.vmap(torch.func.grad(lambda w, x: scaled(x, w).square().sum()), in_dims=(None, 0))
    torch.testing.assert_close(by_w(w, x), (2 * x.square() * w).sum(1))
    by_x = torch.func.vmap(torch.func.grad(lambda x, w: scaled(x, w).square().sum()), in_dims=(0, None))
    torch.testing.assert_close(by_x(x, w), 2 * x * w.square())


def test_check() -> None:
    report = scaled.check(grad=True)
    assert report.ok and report.gradients == ("x", "w"), report
