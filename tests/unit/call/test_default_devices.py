"""Calls, simulations and checks do not ask for torch's default device."""

import math

import pytest

torch = pytest.importorskip("torch")

from jaxtyping import Float32, UInt8  # noqa: E402
from torch import Tensor  # noqa: E402

from py2cu import Index, kernel  # noqa: E402

pytestmark = pytest.mark.builds


@kernel
def rooted(i: Index["n"], x: Float32[Tensor, "n"], k: UInt8[Tensor, "n"], out: Float32[Tensor, "n"]):
    out[i] = math.sqrt(abs(x[i])) + math.nextafter(x[i], 0.0) * (k[i] >> 1)


@rooted.backward
def rooted_x(
    i: Index["n"], x: Float32[Tensor, "n"], k: UInt8[Tensor, "n"], grad_out: Float32[Tensor, "n"],
    grad_x: Float32[Tensor, "n"],
):  # fmt: skip
    grad_x[i] = grad_out[i] * (0.5 / math.sqrt(abs(x[i])) * (1 if x[i] > 0 else -1) + (k[i] >> 1))


def test_a_default_device_without_memory() -> None:
    x, k = torch.rand(5) + 1, torch.arange(5, dtype=torch.uint8)
    expected = x.sqrt() + torch.nextafter(x, torch.zeros(5)) * (k >> 1)
    with torch.device("meta"):
        for call in (rooted, rooted.simulate):
            torch.testing.assert_close(call(x, k), expected)
        report = rooted.check(grad=True)
        assert report.ok, report
        assert report.gradients == ("x",)
