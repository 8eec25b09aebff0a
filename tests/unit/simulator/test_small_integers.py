"""Python integers of simulated kernels: Python's own where the kernel's bounds hold, and else aware of 64 bits."""

import pytest
import torch
from jaxtyping import Int64
from torch import Tensor

from py2cu import Index, kernel
from py2cu.simulator import SimulationError, SimulationWarning
from py2cu.simulator import run as simulator
from py2cu.simulator.values.checked_int import CheckedInt
from py2cu.simulator.values.integer_choice import choose_int_class


@kernel
def cubes(i: Index["n"], a: int, out: Int64[Tensor, "n"]):
    out[i] = a * a * a // (i + 1) + i


@kernel
def quotients(i: Index["n"], a: int, out: Int64[Tensor, "n"]):
    out[i] = i // a


@kernel
def shifted(i: Index["n"], a: int, out: Int64[Tensor, "n"]):
    out[i] = i >> a


@kernel
def halved(i: Index["n"], out: Int64[Tensor, "n"]):
    out[i] = i >> 1


@kernel
def doubled(i: Index["n"], a: int, out: Int64[Tensor, "n"]):
    v = 1
    for _ in range(a):
        v = v * 2
    out[i] = v


@kernel(size="n", block=4)
def flat(blockIdx, threadIdx, blockDim, out: Int64[Tensor, "n"]):
    out[blockIdx * blockDim + threadIdx] = blockIdx.x * blockDim.x + threadIdx.x


@pytest.fixture
def chosen(monkeypatch):
    """The classes of integers that launches chose, in order."""
    classes = []

    def choose(*arguments):
        classes.append(choose_int_class(*arguments))
        return classes[-1]

    monkeypatch.setattr(simulator, "choose_int_class", choose)
    return classes


def run(k, *arguments, n=8):
    out = torch.zeros(n, dtype=torch.int64)
    k.simulate(*arguments, out)
    return out.tolist()


@pytest.mark.parametrize(("a", "kind"), [(1000, int), (-1000, int), (1291, CheckedInt), (2**20, CheckedInt)])
def test_the_launch_decides_as_its_launcher_does(a, kind, chosen):
    assert run(cubes, a) == [a**3 // (i + 1) + i for i in range(8)]
    assert chosen[-1] is kind


def test_what_leaves_64_bits_is_reported():
    with pytest.warns(SimulationWarning) as told:
        run(cubes, 2**21)
    text = f"line 17: a Python integer leaves 64 bits: {2**42} * {2**21} is {2**63} (block (0, 0, 0), thread (0, 0, 0))"
    assert text in [str(warning.message) for warning in told]


def test_an_error_says_what_was_divided():
    with pytest.raises(SimulationError, match=r"line 22, .*thread \(0, 0, 0\): ZeroDivisionError: 0 // 0"):
        run(quotients, 0)
    assert run(quotients, 3) == [i // 3 for i in range(8)]


def test_counts_of_shifts_are_looked_at(chosen):
    with pytest.warns(SimulationWarning, match="a shift of a Python integer by 64 bits or more: 0 >> 64"):
        run(shifted, 64)
    assert run(halved) == [i >> 1 for i in range(8)]
    assert chosen[-1] is int


def test_what_nothing_bounds_is_looked_at(chosen):
    assert doubled.signature.bounds is None
    assert run(doubled, 30) == [2**30] * 8
    assert chosen[-1] is CheckedInt


def test_launch_objects_are_plain_then(chosen):
    assert run(flat) == [*range(8)]
    assert chosen[-1] is int
