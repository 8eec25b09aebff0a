"""Negative constant indices in functions whose results nothing reads; defaults of `min` and `max` of elements."""

import warnings

import pytest
import torch
from jaxtyping import Int64
from torch import Tensor

from py2cu import Index, kernel
from py2cu.simulator import SimulationWarning


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


@kernel
def behind(i: Index["n"], x: Int64[Tensor, "n 4"], k: int, out: Int64[Tensor, "n"]):
    out[i] = sum(x[i, k:]) + sum(x[i, -2:])


def test_a_bound_of_a_slice_that_is_negative_at_run_time_is_a_finding():
    x = torch.arange(8).reshape(2, 4)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert behind.simulate(x, k=1).tolist() == [11, 31]
    with pytest.warns(SimulationWarning, match=r"a negative bound of a slice of `x`: -3"):
        assert behind.simulate(x, k=-3).tolist() == [11, 31]
