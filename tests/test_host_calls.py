"""Calls of live host functions: whose kernels they call, what they may write to, modes, and numbers."""

import pytest

pytest.importorskip("torch")

import torch
from jaxtyping import Float32
from torch import Tensor

from py2cu import Host, Index, host, kernel

pytestmark = pytest.mark.builds


def closure(by: float) -> Host:
    """A host function whose kernel has the text of others, and a constant of its own."""

    @kernel
    def added(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
        out[i] = x[i] + by

    @host
    def adds(x: Float32[Tensor, "n"]) -> Tensor:
        return added(x)

    return adds


def test_two_functions_of_one_text_have_their_own_kernels() -> None:
    one, two = closure(1.0), closure(2.0)
    for each in (one, two):
        each.build()
    x = torch.zeros(3)
    assert [float(f(x)[0]) for f in (one, two, one, two)] == [1.0, 2.0, 1.0, 2.0]


@kernel
def step(i: Index["n"], src: Float32[Tensor, "n"], dst: Float32[Tensor, "n"]):
    dst[i] = src[i] + 1


@host
def swaps(x: Float32[Tensor, "n"], n: int) -> Tensor:
    src = x
    dst = torch.empty_like(x)
    for _ in range(n):
        step(src, dst)
        src, dst = dst, src
    return src


@host
def creates(x: Tensor):
    parts = [torch.zeros(2), x * 2]
    return parts


def test_a_loop_that_swaps_its_buffers_may_write_to_its_argument() -> None:
    swaps.build()
    assert "x" in str(swaps.op._schema).partition("Tensor(a!)")[2]
    ours, theirs = torch.zeros(3), torch.zeros(3)
    torch.testing.assert_close((swaps(ours, 3), ours), (swaps.python(theirs, 3), theirs))


def test_modes_and_transforms_see_what_they_see_of_the_python() -> None:
    creates.build()
    assert isinstance(creates(torch.ones(2)), list)
    with torch.device("meta"):
        assert creates(torch.ones(2))[0].is_meta
    assert torch.vmap(creates.python)(torch.ones(3, 2))[1].shape == torch.vmap(creates)(torch.ones(3, 2))[1].shape


def test_a_whole_number_is_no_float() -> None:
    @host
    def scaled_by(x: Tensor, s: float = 1.0) -> Tensor:
        return x * s

    with pytest.raises(TypeError, match=r"`s` takes a float, got int; pass 2\.0"):
        scaled_by(torch.arange(3), 2)


def test_what_a_called_host_function_or_a_kernel_looks_up_may_be_rebound() -> None:
    factor, times = 2.0, 3.0

    @kernel
    def scaled(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
        out[i] = x[i] * factor

    @host
    def inner(x: Float32[Tensor, "n"]) -> Tensor:
        return scaled(x) * times

    @host
    def outer(x: Float32[Tensor, "n"]) -> Tensor:
        return inner(x) + 1

    x = torch.ones(1)
    outer.build()
    assert float(outer(x)) == 7.0
    times = 5.0
    outer.build()
    assert float(outer(x)) == 11.0
    factor = 4.0
    outer.build()
    assert float(outer(x)) == 21.0
