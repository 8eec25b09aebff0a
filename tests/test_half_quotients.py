"""`quotient`, the helper for quotients of float16 by constants, has the bits of the quotient."""

from __future__ import annotations

import pytest
import torch

from py2cu.targets.cuda.invert_divisors import inverse_of

HALVES = torch.arange(0x7C01, dtype=torch.int16).view(torch.float16)  # from 0 to infinity; the sign changes nothing
FINITE = HALVES[1:-1]
USUAL = (3, 5, 6, 7, 10, 100, 255, 0.1, 0.3, 0.7, 2.0**0.5, 3.14159, 2, 0.5, 4096, 2.0**-20)


def test_products_have_the_bits_of_quotients() -> None:
    numerators = HALVES.float()
    for divisor in map(float, FINITE):
        if (inverse := inverse_of(divisor)) is not None:
            products, quotients = numerators * torch.tensor(inverse), numerators / torch.tensor(divisor)
            assert torch.equal(products.half().view(torch.int16), quotients.half().view(torch.int16)), divisor


@pytest.mark.parametrize("divisor", USUAL)
def test_usual_divisors_have_products(divisor: float) -> None:
    assert inverse_of(divisor) is not None


@pytest.mark.parametrize("divisor", [14, 30, 1000, 0.0, -0.0, 1e-9, 1e6, float("inf"), float("nan")])
def test_other_divisors_have_none(divisor: float) -> None:
    assert inverse_of(divisor) is None
