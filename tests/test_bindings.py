"""The checks of the emitted binding, in one library of several kernels. Calls do not go through it, C++ programs do."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from py2cu.build import library, toolchain  # noqa: E402
from py2cu.pipeline import translate_file  # noqa: E402
from py2cu.source import SourceFile  # noqa: E402
from py2cu.translation import TargetName  # noqa: E402

pytestmark = [
    pytest.mark.builds,
    pytest.mark.skipif(toolchain.find_cxx() is None, reason="needs a C++ compiler"),
]

KERNELS = """
from jaxtyping import Float32, Int32
from torch import Tensor
from py2cu import Index, blockIdx, kernel, threadIdx

@kernel
def scaled(i: Index["..."], x: Float32[Tensor, "..."], y: Float32[Tensor, "..."], out: Float32[Tensor, "..."]):
    out[i] = x[i] * y[i]

@kernel(strided=True)
def copied(r: Index["m"], c: Index["n"], x: Float32[Tensor, "m n"], out: Float32[Tensor, "m n"]):
    out[r, c] = x[r, c]

@kernel
def doubled(i: Index["n // 4"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    x4, out4 = x.view(-1, 4), out.view(-1, 4)
    a, b, c, d = x4[i]
    out4[i] = 2 * a, 2 * b, 2 * c, 2 * d

@kernel
def looked_up(i: Index["n"], out: Int32[Tensor, "n"], x: Int32[Tensor, "n"], table: Int32[Tensor, "k"] | None = None):
    if table is None:
        out[i] = -1
    else:
        out[i] = len(table)

@kernel
def lengths(r: Index["rows"], start: Int32[Tensor, "rows+1"], out: Int32[Tensor, "rows"]):
    out[r] = start[r + 1] - start[r]

@kernel(block=32, launch_bounds=64)
def bounded(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    out[i] = 2 * x[i]

@kernel(size="n", block="wide", launch_bounds=64)
def told(x: Float32[Tensor, "n"], out: Float32[Tensor, "n"], n: int, wide: int):
    i = blockIdx.x * wide + threadIdx.x
    if i < n:
        out[i] = 2 * x[i]
"""
X = torch.arange(12.0)


@pytest.fixture(scope="module")
def ops() -> object:
    artifacts = translate_file(SourceFile("bindings.py", KERNELS)).artifacts(TargetName.CPU)
    return getattr(torch.ops, library.load(artifacts))


def test_leading_dimensions_agree(ops) -> None:
    assert torch.equal(ops.scaled(X.view(3, 4), X.view(3, 4)), X.view(3, 4) ** 2)
    with pytest.raises(RuntimeError, match=r"of `y` are \[4, 3\], but those of `x` are \[3, 4\]"):
        ops.scaled(X.view(3, 4), X.view(4, 3))


def test_a_written_array_does_not_overlap_itself(ops) -> None:
    out = torch.empty(4, 3)
    ops.copied.out(X.view(3, 4).t(), out)
    assert torch.equal(out, X.view(3, 4).t())
    with pytest.raises(RuntimeError, match="copied: `out` is written, and its elements overlap in memory"):
        ops.copied.out(X.view(3, 4).t(), torch.empty(3).expand(4, 3))


def test_arrays_have_whole_rows_that_are_aligned(ops) -> None:
    assert torch.equal(ops.doubled(X), 2 * X)
    with pytest.raises(RuntimeError, match="`x` is viewed in rows of 4 elements, but has 11"):
        ops.doubled(X[:11])
    with pytest.raises(RuntimeError, match="`x` must begin at a multiple of 16 bytes"):
        ops.doubled(torch.zeros(13)[1:])


def test_an_empty_array_is_not_none(ops) -> None:
    x = torch.zeros(3, dtype=torch.int32)
    assert ops.looked_up(x).tolist() == [-1] * 3
    assert ops.looked_up(x, x[:0]).tolist() == [0] * 3


def test_an_extent_that_has_no_solution_is_zero(ops) -> None:
    start = torch.tensor([1, 3, 7], dtype=torch.int32)
    assert ops.lengths(start).tolist() == [2, 4]
    with pytest.raises(RuntimeError, match=r"dimension 0 of `start` is `rows \+ 1` = 1, got 0"):
        ops.lengths(start[:0])


def test_a_block_is_within_the_bounds(ops) -> None:
    out = torch.empty(12)
    ops.bounded.grid(X, out, [1], [64])
    assert torch.equal(out, 2 * X)
    with pytest.raises(RuntimeError, match="bounded: a block has at most 64 threads, got 66"):
        ops.bounded.grid(X, out, [1], [33, 2])


def test_a_block_that_a_call_tells_can_be_launched(ops) -> None:
    assert torch.equal(ops.told(X, 12, 4), 2 * X)
    for wide in (0, 65):
        with pytest.raises(RuntimeError, match=f"told: blocks of {wide} x 1 x 1 threads; there may be 1 to 64"):
            ops.told(X, 12, wide)
