"""Reports of Python integers that leave 64 bits, beside integers that the compiled kernel computes in uint64."""

import math
import warnings

import pytest

torch = pytest.importorskip("torch")

from jaxtyping import Int64  # noqa: E402
from torch import Tensor  # noqa: E402

from py2cu import Index, kernel  # noqa: E402

MASK = 0xFFFFFFFFFFFFFFFF
LEAST, GREATEST = -(2**63), 2**63 - 1


@kernel
def silent(i: Index["n"], x: Int64[Tensor, "n"], out: Int64[Tensor, "n 4"]):
    h = int(x[i]) & MASK
    out[i, 0] = (h | 1 << 63) >> 33
    out[i, 1] = (int(x[i]) * int(x[i]) + h & MASK) >> 33
    h ^= (h << 13) & MASK
    quotient, rest = divmod(h | 1 << 63, i + 1)
    out[i, 2] = h // 3 + max(h, 5) % 7 + quotient % 7 + rest
    out[i, 3] = (h + h) & 1023 | int(x[i]).bit_count()


@kernel
def negated(i: Index["n"], x: Int64[Tensor, "n"], out: Int64[Tensor, "n"]):
    v = -((int(x[i]) & 0xFFFFFFFF) << 32)
    out[i] = v & 1023


def scaled(a, b):
    product = a * 0xFFFFFFFF
    return (product & 1023) + b


@kernel
def scaled_twice(i: Index["n"], x: Int64[Tensor, "n"], out: Int64[Tensor, "n 3"]):
    out[i, 0] = scaled(int(x[i]) & 0xFFFFFFFF, 1)
    out[i, 1] = scaled(int(x[i]), x[i])
    out[i, 2] = scaled(int(x[i]) & 0xFFFFFFFF, 0.5)


@kernel
def compared(i: Index["n"], x: Int64[Tensor, "n"], out: Int64[Tensor, "n 3"]):
    out[i, 0] = ((i < 1) - int(x[i])) & 1023
    out[i, 1] = ((x[i] < 1) - int(x[i])) & 1023
    out[i, 2] = (x[i] * 0.5 < 1.0) >> (int(x[i]) + 1 & 127)


@kernel
def denied(i: Index["n"], x: Int64[Tensor, "n"], out: Int64[Tensor, "n 2"]):
    difference = (not i) - int(x[i])
    out[i, 0] = difference > 3
    out[i, 1] = difference & 1023
    out[i, 0] = math.gcd(int(difference), 10)


@kernel
def printed(i: Index["n"], x: Int64[Tensor, "n"], out: Int64[Tensor, "n"]):
    print(i < 1, x[i] < 1, (i < 1) & (x[i] < 1), True | (x[i] < 1), f"{i < 1}", (i < 1) + 1)
    out[i] = int(x[i]) * 3 & 1023


def reported(function, x):
    """The lines of `function` that a simulation for the element `x` reports, counted from its decorator."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        function.simulate(torch.tensor([x]))
    return [each.lineno - function.python.__code__.co_firstlineno for each in caught]


@pytest.mark.parametrize("x", [-1, LEAST, 12345])
def test_integers_in_uint64_and_below_masks_are_not_reported(x):
    assert reported(silent, x) == []


def test_a_negative_integer_beside_a_natural_is_reported():
    assert reported(negated, -1) == [2]
    assert reported(negated, 0) == []


def test_a_place_of_several_integers_is_reported():
    assert reported(scaled_twice, GREATEST) == [-4]


def test_arithmetic_of_truth_values_is_checked():
    assert reported(compared, LEAST) == [2, 3]
    assert reported(compared, -65) == [4]


def test_what_python_computes_of_its_own_bools_is_reported_later():
    assert reported(denied, LEAST) == [3, 4, 5]


def test_truth_values_are_printed_as_bools(capsys):
    printed.simulate(torch.tensor([2**60]))
    assert capsys.readouterr().out == "True False False True True 2\n"
