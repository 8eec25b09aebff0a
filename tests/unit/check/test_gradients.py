"""`k.check(grad=True)` finds wrong gradients, and nothing but these."""

import math
import re
from pathlib import Path
from types import FunctionType

import pytest

torch = pytest.importorskip("torch")

import numpy as np  # noqa: E402
from click.testing import CliRunner  # noqa: E402
from jaxtyping import Float, Float32, Int64  # noqa: E402
from torch import Tensor  # noqa: E402

from py2cu import Index, atomic, kernel, opmath  # noqa: E402
from py2cu.check import Fault, Verdict  # noqa: E402
from py2cu.cli.app import app  # noqa: E402
from py2cu.testing import assert_matches_python  # noqa: E402

pytestmark = pytest.mark.builds


def swish(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"], by: float = 1.5):
    out[i] = x[i] / (1 + math.exp(-by * x[i]))


def right(
    i: Index["n"], x: Float32[Tensor, "n"], grad_out: Float32[Tensor, "n"], grad_x: Float32[Tensor, "n"], by: float
):
    s = 1 / (1 + math.exp(-by * x[i]))
    grad_x[i] = grad_out[i] * s * (1 + by * x[i] * (1 - s))


def wrong_sign(
    i: Index["n"], x: Float32[Tensor, "n"], grad_out: Float32[Tensor, "n"], grad_x: Float32[Tensor, "n"], by: float
):
    s = 1 / (1 + math.exp(-by * x[i]))
    grad_x[i] = grad_out[i] * s * (1 - by * x[i] * (1 - s))


def missing_term(
    i: Index["n"], x: Float32[Tensor, "n"], grad_out: Float32[Tensor, "n"], grad_x: Float32[Tensor, "n"], by: float
):
    s = 1 / (1 + math.exp(-by * x[i]))
    grad_x[i] = grad_out[i] * s


def other_derivative(
    i: Index["n"], x: Float32[Tensor, "n"], grad_out: Float32[Tensor, "n"], grad_x: Float32[Tensor, "n"], by: float
):
    s = 1 / (1 + math.exp(-by * x[i]))
    grad_x[i] = grad_out[i] * s * (1 + x[i] * (1 - s))


def not_stored(
    i: Index["n"], x: Float32[Tensor, "n"], grad_out: Float32[Tensor, "n"], grad_x: Float32[Tensor, "n"], by: float
):
    s = 1 / (1 + math.exp(-by * x[i]))
    if i > 0:
        grad_x[i] = grad_out[i] * s * (1 + by * x[i] * (1 - s))


def test_a_right_gradient_agrees() -> None:
    forward = kernel(swish)
    forward.backward(right)
    report = forward.check(grad=True)
    assert report.ok
    assert report.checked
    assert report.gradients == ("x",)
    assert "gradients compared: `x`" in str(report)
    assert forward.check().gradients is None
    assert_matches_python(forward, grad=True)
    assert forward.check(torch.randn(700), by=2.0, grad=True).gradients == ("x",)


@pytest.mark.parametrize("backward", [wrong_sign, missing_term, other_derivative, not_stored])
def test_a_wrong_gradient_differs(backward: FunctionType) -> None:
    forward = kernel(swish)
    forward.backward(backward)
    report = forward.check(grad=True)
    assert [failure.kind for failure in report.failures] == [Fault.GRADIENT]
    assert f"`grad_x` of `{backward.__name__}` is no derivative: d `out[" in str(report)
    assert re.search(r"d `out\[\d\]` / d `x\[\d\]` is \S+ by the kernel, and \S+ by differences", str(report))
    assert forward.check().ok
    with pytest.raises(AssertionError, match="wrong gradient"):
        assert_matches_python(forward, grad=True)
    assert not forward.check(torch.randn(300), grad=True).ok


def test_a_wrong_gradient_of_a_strided_argument_differs() -> None:
    @kernel(strided="x")
    def squares(i: Index["n"], j: Index["m"], x: Float[Tensor, "n m"], out: Float[Tensor, "n m"]):
        out[i, j] = x[i, j] * x[i, j]

    @squares.backward(strided="x")
    def halved(
        i: Index["n"], j: Index["m"],
        x: Float[Tensor, "n m"], grad_out: Float[Tensor, "n m"], grad_x: Float[Tensor, "n m"],
    ):  # fmt: skip
        grad_x[i, j] = x[i, j] * grad_out[i, j]

    report = squares.check(torch.rand(3, 2).T, grad=True)
    assert re.search(r"d `out\[\d, \d\]` / d `x\[\d, \d\]` is", str(report))


def test_a_backward_that_races_differs() -> None:
    @kernel
    def shifted(
        i: Index["n"], j: Index["m"], x: Float[Tensor, "n m"], bias: Float[Tensor, "m"], out: Float[Tensor, "n m"]
    ):
        out[i, j] = x[i, j] + bias[j]

    @shifted.backward
    def shifted_bias(i: Index["n"], j: Index["m"], grad_out: Float[Tensor, "n m"], grad_bias: Float[Tensor, "m"]):
        grad_bias[j] += grad_out[i, j]

    report = shifted.check(grad=True)
    assert not report.ok
    assert "in `shifted_bias`, a race on `grad_bias`" in str(report)


@kernel
def gathered(i: Index["n"], table: Float[Tensor, "m"], at: Int64[Tensor, "n"], out: Float[Tensor, "n"]):
    out[i] = table[at[i]] * table[at[i]]


@gathered.backward
def gathered_table(
    i: Index["n"],
    table: Float[Tensor, "m"],
    at: Int64[Tensor, "n"],
    grad_out: Float[Tensor, "n"],
    grad_table: Float[Tensor, "m"],
):
    atomic.add(grad_table, at[i], 2 * table[at[i]] * grad_out[i])


@kernel
def updated(i: Index["n"], x: Float32[Tensor, "n"], w: Float32[Tensor, "n"]):
    x[i] = 1 / (x[i] + w[i])


@updated.backward
def updated_x(i: Index["n"], x: Float32[Tensor, "n"], grad_x: Float32[Tensor, "n"]):
    grad_x[i] *= -x[i] * x[i]


@kernel
def rounded(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    out[i] = np.float32(x[i]) * 2


@rounded.backward
def rounded_x(i: Index["n"], grad_out: Float32[Tensor, "n"], grad_x: Float32[Tensor, "n"]):
    grad_x[i] = 2 * grad_out[i]


@kernel
def scaled(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"], grad: float):
    out[i] = grad * x[i]


def test_indices_updates_and_a_parameter_called_grad() -> None:
    assert gathered.check(grad=True).gradients == ("table",)
    assert updated.check(grad=True).gradients == ("x",)  # and none of `w`
    report = scaled.check(torch.ones(3), grad=2.0)
    assert report.ok
    assert report.gradients is None


@kernel
def root(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"], by: float):
    out[i] = math.sqrt(x[i] * x[i] + by)


@root.backward
def root_x(
    i: Index["n"],
    x: Float32[Tensor, "n"],
    out: Float32[Tensor, "n"],
    grad_out: Float32[Tensor, "n"],
    grad_x: Float32[Tensor, "n"],
):
    grad_x[i] = grad_out[i] * x[i] / out[i]


def test_results_that_are_not_finite_have_no_derivative() -> None:
    assert root.check(grad=True).ok
    report = root.check(torch.ones(3), -4.0, grad=True)
    assert report.ok
    assert report.gradients == ()
    assert "`out` is infinite or NaN, and has no derivative" in str(report)


@kernel
def softplus(i: Index["n"], x: Float[Tensor, "n"], out: Float[Tensor, "n"]):
    out[i] = math.log1p(math.exp(opmath(x[i])))


@softplus.backward
def softplus_x(i: Index["n"], x: Float[Tensor, "n"], grad_out: Float[Tensor, "n"], grad_x: Float[Tensor, "n"]):
    grad_x[i] = opmath(grad_out[i]) / (1 + math.exp(-opmath(x[i])))


def test_opmath_is_float64_in_the_copy_that_is_checked() -> None:
    report = softplus.check(grad=True)
    assert report.ok
    assert report.gradients


@kernel
def tripled(i: Index["n"], x: Float[Tensor, "n"], out: Float[Tensor, "n"]):
    out[i] = 3 * x[i]


@tripled.backward
def tripled_x(i: Index["n"], grad_out: Float[Tensor, "n"], grad_x: Float[Tensor, "n"], scratch: Float[Tensor, "n"]):
    scratch[i] = 3 * grad_out[i]
    grad_x[i] = scratch[i]


def test_a_backward_that_does_not_fit_fails_the_check() -> None:
    report = tripled.check(grad=True)
    assert not report.ok
    assert "`tripled_x` is no backward: `scratch` is no parameter of `tripled`, and no scratch: it is read" in str(
        report
    )


def test_what_cannot_be_checked() -> None:
    report = rounded.check(grad=True)
    assert report.ok
    assert report.verdict is Verdict.NOT_CHECKED
    assert "error[P413]: `np.float32(x[i])` is computed in float32, and gradients are checked in float64" in str(report)
    with pytest.raises(TypeError, match=r"rounded_x has no backward; attach one with `@rounded_x\.backward`"):
        rounded_x.check(grad=True)


TEXT = """
from jaxtyping import Float32
from torch import Tensor
from py2cu import Index, kernel


@kernel
def plain(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    out[i] = x[i]


@kernel
def doubled(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    out[i] = 2 * x[i]
"""
BACKWARD = """

@doubled.backward
def doubled_x(i: Index["n"], grad_out: Float32[Tensor, "n"], grad_x: Float32[Tensor, "n"]):
    grad_x[i] = 2 * grad_out[i]
"""


def test_the_command(tmp_path: Path) -> None:
    file = tmp_path / "kernels.py"
    results = []
    for text in (TEXT, TEXT + BACKWARD, TEXT + BACKWARD.replace("= 2 *", "= 3 *")):
        file.write_text(text)
        results.append(CliRunner().invoke(app, ["check", str(file), "--grad", "--device", "cpu"]))
    none, right, wrong = results
    assert none.exit_code == 2
    assert "no kernel here has a backward" in none.output
    assert right.exit_code == 0, right.output
    assert "no backward, so that no gradient is checked: `plain`\n" in right.output
    assert "gradients compared: `x`" in right.output
    assert wrong.exit_code == 1
    assert "wrong gradient: `grad_x` of `doubled_x` is no derivative" in wrong.output
