"""`@f.backward`: host functions that have a backward, and that are one, of host functions and of kernels."""

import pickle
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

import torch
from jaxtyping import Float
from torch import Tensor
from torch.autograd import gradcheck, gradgradcheck

from py2cu import Host, Index, host, kernel
from py2cu.diagnostics import TranslationError
from tests.support.compilers import GXX_STRICT, gxx, torch_headers

pytestmark = pytest.mark.builds


@kernel
def double(i: Index["n"], x: Float[Tensor, "n"], out: Float[Tensor, "n"]):
    out[i] = 2 * x[i]


@host
def scaled(x: Float[Tensor, "n"], w: Tensor, s: float = 1.5):
    """Two outputs, of a kernel without a backward."""
    y = double(x)
    z = torch.tanh(y) * w * s
    return y, z


@scaled.backward
def scaled_backward(x: Float[Tensor, "n"], w: Tensor, s: float, y: Tensor, grad_y: Tensor, grad_z: Tensor):
    t = torch.tanh(y)
    grad_w = (grad_z * t * s).sum()
    grad_x = 2 * grad_y + 2 * grad_z * w * s * (1 - t * t)
    return grad_x, grad_w


@host
def joined(x: Float[Tensor, "n"], w: Tensor, *, s: float = 2.0):
    """Calls a host function with a backward."""
    y, z = scaled(x, w, s)
    return y + z


@kernel
def square(i: Index["n"], x: Float[Tensor, "n"], out: Float[Tensor, "n"]):
    out[i] = x[i] * x[i]


@square.backward
@host
def square_backward(x: Tensor, grad_out: Tensor):
    grad_x = 2 * x * grad_out
    return grad_x


FUNCTIONS = (scaled, joined)


@pytest.fixture(scope="module")
def built() -> None:
    for each in (scaled, scaled_backward, joined, square_backward):
        each.build()


def arguments() -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(5, dtype=torch.float64, generator=generator)
    return x.requires_grad_(), torch.tensor(0.7, dtype=torch.float64).requires_grad_()


def gradients(function: Callable[..., Any]) -> list[Tensor]:
    x, w = arguments()
    result = function(x, w)
    total = sum(each.sum() * place for place, each in enumerate(result if isinstance(result, tuple) else (result,), 1))
    return [*torch.autograd.grad(total, (x, w))]


def test_the_python_has_the_gradients(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("py2cu.hosts.live.library.Library.is_ready", lambda *_: False)
    assert all(gradcheck(function, arguments()) for function in FUNCTIONS)
    assert gradcheck(square, arguments()[:1])


@pytest.mark.usefixtures("built")
def test_the_cpp_has_the_gradients() -> None:
    assert all(gradcheck(function, arguments()) for function in FUNCTIONS)
    assert gradcheck(square, arguments()[:1])
    assert gradgradcheck(square, arguments()[:1])
    assert scaled.check(*arguments()).ok and joined.check(*arguments()).ok


@pytest.mark.usefixtures("built")
@pytest.mark.parametrize("function", FUNCTIONS)
def test_the_operator_is_a_good_citizen(function: Host) -> None:
    torch.library.opcheck(function.op, arguments())


@pytest.mark.slow
@pytest.mark.parametrize("function", [scaled, pytest.param(joined, marks=pytest.mark.proof)])
def test_a_compiled_graph_has_the_gradients(function: Host) -> None:
    compiled = torch.compile(function, fullgraph=True)
    torch.testing.assert_close(gradients(compiled), gradients(function))
    torch.compiler.reset()


def test_the_text_registers_an_operator_that_may_have_gradients() -> None:
    assert "DispatchKey::CompositeExplicitAutograd, TORCH_FN(scaled)" in scaled.cpp_source
    assert "DispatchKey::CompositeImplicitAutograd, TORCH_FN(joined)" in joined.cpp_source
    assert "auto parts = scaled_operator(x, w, s);" in joined.cpp_source


@pytest.mark.proof
def test_the_text_compiles_without_a_warning(tmp_path: Path) -> None:
    source = tmp_path / "joined.cpp"
    source.write_text(joined.cpp_source, encoding="utf-8")
    command = [gxx(), *GXX_STRICT, *torch_headers(), "-DTORCH_EXTENSION_NAME=t", "-fsyntax-only", str(source)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_a_gradient_that_nothing_computes_is_an_error() -> None:
    @host
    def product(x: Tensor, w: Tensor):
        y = x * w
        return y

    @product.backward
    def product_x(w: Tensor, grad_y: Tensor):
        grad_x = w * grad_y
        return grad_x

    x, w = arguments()
    torch.testing.assert_close(torch.autograd.grad(product(x, w.detach()).sum(), x), (w.detach().expand(5),))
    with pytest.raises(RuntimeError, match=r"no backward of product computes `grad_w`; attach one with"):
        product(x, w).sum().backward()

    @product.backward
    def product_w(x: Tensor, grad_y: Tensor):
        grad_w = (x * grad_y).sum()
        return grad_w

    assert gradcheck(product, (x, w))


def test_a_kernel_without_a_backward_is_named() -> None:
    @host
    def through(x: Float[Tensor, "n"]):
        return double(x) + 1

    with pytest.raises(RuntimeError, match="double has no backward"):
        through(arguments()[0]).sum().backward()


def test_what_fits_no_backward_is_refused() -> None:
    @host
    def unnamed(x: Tensor):
        return torch.tanh(x)

    @unnamed.backward
    def unnamed_grad(x: Tensor, grad_y: Tensor):
        grad_x = x * grad_y
        return grad_x

    with pytest.raises(TranslationError, match=r"P412.*returns its outputs by name"):
        unnamed(arguments()[0])
    with pytest.raises(TypeError, match="`scaled_backward` cannot be its own backward"):
        scaled_backward.backward(scaled)


def test_the_gradients_of_a_kernel_are_not_checked_by_a_copy_in_float64() -> None:
    report = square.check(grad=True)
    assert report.ok
    assert any("`square_backward` is a host function" in reason for reason in report.skipped)


def test_a_pickled_function_keeps_its_backward() -> None:
    assert pickle.loads(pickle.dumps(scaled)) is scaled
