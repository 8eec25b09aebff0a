"""`check` draws the elements that enter fast functions where CUDA documents their errors."""

import math

import pytest

torch = pytest.importorskip("torch")

from jaxtyping import Float32  # noqa: E402
from torch import Tensor  # noqa: E402

from py2cu import Index, fast, kernel  # noqa: E402
from py2cu.check import invent_cases  # noqa: E402
from py2cu.check.draw import EXTREME, NON_FINITE  # noqa: E402


@kernel
def angles(
    i: Index["n"], x: Float32[Tensor, "n"], y: Float32[Tensor, "n"], z: Float32[Tensor, "n"], out: Float32[Tensor, "n"]
):
    v = x[i]
    if v > 1:
        v = -y[i]
    out[i] = fast.sin(v) + fast.pow(z[i], x[i])


def test_elements_enter_fast_functions_where_their_error_is_documented():
    for case in invent_cases(angles.signature):
        if case.values in (EXTREME, NON_FINITE):
            continue
        x, y, z = (case.arguments[name] for name in "xyz")
        assert torch.all(x.abs() <= math.pi) and torch.all(y.abs() <= math.pi)
        assert torch.all(z > 0)
        assert x.numel() < 50 or (x < -1).any()  # both signs, and not one value


@pytest.mark.builds
def test_a_check_compares_nearly_all_sines():
    report = angles.check()
    assert report.ok, str(report)
    assert report.accepted < report.compared / 10
