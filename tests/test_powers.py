"""Powers that torch computes without `pow` are torch's bit for bit, compiled and simulated."""

import math

import numpy as np
import pytest
import torch
from jaxtyping import Float
from torch import Tensor

from py2cu import Index, kernel

EXPONENTS = (2, 3, 0.5, -1, -2, -0.5)


@kernel
def powers(i: Index["n"], x: Float[Tensor, "n"], out: Float[Tensor, "6 n"]):
    out[0, i] = x[i] ** 2
    out[1, i] = x[i] ** 3
    out[2, i] = x[i] ** 0.5
    out[3, i] = x[i] ** -1
    out[4, i] = x[i] ** -2
    out[5, i] = x[i] ** -0.5


@kernel
def powers_of_sums(i: Index["n"], x: Float[Tensor, "n"], y: Float[Tensor, "n"], out: Float[Tensor, "6 n"]):
    out[0, i] = (x[i] - y[i]) ** 2
    out[1, i] = (x[i] - y[i]) ** 3
    out[2, i] = (x[i] - y[i]) ** 0.5
    out[3, i] = (x[i] - y[i]) ** -1
    out[4, i] = (x[i] - y[i]) ** -2
    out[5, i] = (x[i] - y[i]) ** -0.5


def torch_power(x: Tensor, exponent: float) -> Tensor:
    """torch's power on a GPU. Its CPU kernels differ: roots by MKL are off by a bit, `pow` of float16 rounds once."""
    if abs(exponent) == 0.5:
        wide = x.float() if x.dtype.itemsize == 2 else x
        with np.errstate(invalid="ignore"):
            root = torch.from_numpy(np.sqrt(wide.numpy()))
        return (root if exponent > 0 else 1 / root).to(x.dtype)
    return {3: x * x * x, -2: 1 / (x * x)}.get(exponent, x**exponent) if x.dtype is torch.float16 else x**exponent


def assert_same(got: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(got, expected, rtol=0, atol=0, equal_nan=True)
    assert torch.equal(torch.signbit(got[~got.isnan()]), torch.signbit(expected[~got.isnan()]))


@pytest.mark.builds
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.float16, torch.bfloat16], ids=str)
def test_powers_are_those_of_torch(dtype: torch.dtype) -> None:
    special = [0.0, -0.0, math.inf, -math.inf, math.nan, 1e-30, -1e-30, 1e30, 2.0**-140, 3e4, 6e-8]
    generator = torch.Generator().manual_seed(1)
    x = torch.cat([torch.tensor(special), 30 * torch.randn(2000, generator=generator)]).to(dtype)
    y = torch.randn(x.shape, generator=generator).to(dtype)
    expected = torch.stack([torch_power(x, exponent) for exponent in EXPONENTS])
    assert_same(powers(x), expected)
    assert_same(powers.simulate(x[:200]), expected[:, :200])
    expected = torch.stack([torch_power(x - y, exponent) for exponent in EXPONENTS])
    assert_same(powers_of_sums.without_fma()(x, y), expected)
