"""Negative constant indices in functions whose results nothing reads; defaults of `min` and `max` of elements."""

import warnings

import torch
from jaxtyping import Int64
from torch import Tensor

from py2cu import Index, kernel


def last(row):
    return row[-1]


@kernel
def unread(i: Index["n"], x: Int64[Tensor, "n 3"], out: Int64[Tensor, "n"]):
    out[i] = (last(x[i, 1:]), i, 5)[1:][0]


@kernel
def with_default(i: Index["n"], x: Int64[Tensor, "n"], out: Int64[Tensor, "n"]):
    least = min((q for q in (i, 5) if q > 2), default=x[i])
    out[i] = (int(x[i]) & 0xFFFFFFFFFFFFFFFF) + least


def test_a_constant_from_the_end_in_a_call_that_nothing_reads_is_no_finding():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert unread.simulate(torch.zeros(4, 3, dtype=torch.int64)).tolist() == [0, 1, 2, 3]


def test_a_default_that_is_an_element_makes_the_least_number_one():
    greatest = 2**63 - 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        values = with_default.simulate(torch.full((2,), greatest, dtype=torch.int64))
    assert values.tolist() == [greatest + 5 - 2**64] * 2
