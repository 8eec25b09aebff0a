"""An optimiser whose parameters take the bits of a float: `check` compares all that it writes."""

import math

import pytest

pytest.importorskip("torch")

import numpy as np
import torch
from jaxtyping import BFloat16, Float32, Int32
from torch import Tensor

from py2cu import Index, kernel
from py2cu.check.differences import agree
from py2cu.dtypes import U32
from py2cu.simulator import Write

pytestmark = pytest.mark.builds


@kernel
def adamw(
    i: Index["n"],
    grad: Float32[Tensor, "n"],
    m: Float32[Tensor, "n"],
    v: Float32[Tensor, "n"],
    master: Float32[Tensor, "n"],
    param: BFloat16[Tensor, "n"],
    seed: int,
    lr: float = 1e-3,
):
    m[i] = 0.9 * m[i] + 0.1 * grad[i]
    v[i] = 0.95 * v[i] + 0.05 * grad[i] * grad[i]
    p = master[i] - lr * m[i] / (math.sqrt(v[i]) + 1e-8)
    master[i] = p
    noise = np.uint32((i * 40503 + seed) % 65536)
    param[i] = ((p.view(torch.uint32) + noise) & np.uint32(0xFFFF0000)).view(torch.float32)


@kernel
def hashed(i: Index["n"], x: Float32[Tensor, "n"], y: Float32[Tensor, "n"], out: Int32[Tensor, "n"]):
    value = 0.3 * x[i] + 0.1
    y[i] = value
    out[i] = value.view(torch.int32) ^ 12345


def arguments(n: int = 300):
    return torch.randn(n), torch.randn(n), torch.rand(n), torch.randn(n), torch.zeros(n).bfloat16(), 12345


def test_all_elements_are_compared() -> None:
    report = adamw.check(*arguments())
    assert report.ok and report.checked and (report.compared, report.accepted) == (1200, 0), report
    exact = adamw.without_fma().check(*arguments())
    assert exact.ok and (exact.compared, exact.accepted) == (1200, 0), exact


def test_arrays_that_no_bits_reach_are_compared() -> None:
    report = hashed.check(torch.randn(100))
    assert report.ok and (report.compared, report.accepted) == (100, 100), report


def test_bits_agree_within_their_error() -> None:
    write = Write(None, 1, 0x10000, None)
    assert agree(U32, 0x3F800000, 0x3F810000, write) and not agree(U32, 0x3F800000, 0x3F820000, write)


def test_the_hint_fits_the_call() -> None:
    @kernel
    def scattered(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
        out[i] = 1.0 if 0.3 * x[i] + 0.1 > 0.3 * x[i] + 0.1 else 2.0

    assert "pass your own arguments to" in str(scattered.check())
    own = str(scattered.check(torch.randn(100)))
    assert "own arguments" not in own and "`scattered.without_fma().check(…)`" in own
    assert "hint" not in str(scattered.without_fma().check(torch.randn(100)))
