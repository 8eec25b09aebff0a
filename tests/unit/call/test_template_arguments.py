"""Calls of kernels with template arguments: values get instances when they are asked for, others are refused."""

import typing
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from jaxtyping import Float32, Int32  # noqa: E402
from torch import Tensor  # noqa: E402

from py2cu import Constexpr, Index, TranslationError, blockIdx, kernel, pipeline, threadIdx  # noqa: E402
from py2cu.build import toolchain  # noqa: E402

needs_compiler = pytest.mark.skipif(toolchain.find_cxx() is None, reason="needs a C++ compiler")


@kernel
def tile_sums(
    i: Index["n // tile"], x: Int32[Tensor, "n"], out: Int32[Tensor, "n//tile"], tile: Constexpr[int] = 4,
    minus: Constexpr[bool] = False,
):  # fmt: skip
    total = np.int32(0)
    for k in range(tile):
        total += x[i * tile + k]
    out[i] = -total if minus else total


@kernel
def row_sums(i: Index["n"], x: Int32[Tensor, "n tile"], out: Int32[Tensor, "n"], tile: Constexpr[int]):
    total = np.int32(0)
    for k in range(tile):
        total += x[i, k]
    out[i] = total


@kernel(size=("w", "h"), block=("tw", "th", 1))
def transposed(x: Float32[Tensor, "h w"], out: Float32[Tensor, "w h"], tw: Constexpr[int], th: Constexpr[int] = 4):
    r = blockIdx.y * th + threadIdx.y
    c = blockIdx.x * tw + threadIdx.x
    if r < x.shape[0] and c < x.shape[1]:
        out[c, r] = x[r, c]


X = torch.arange(100, dtype=torch.int32)


def sums(tile: int) -> Tensor:
    return X[: 100 // tile * tile].view(-1, tile).sum(1, dtype=torch.int32)


# --- calls ---


@pytest.mark.builds
@needs_compiler
def test_a_call_says_the_value_or_leaves_it_to_the_default() -> None:
    for _ in range(2):  # the second time over what the first one learnt
        assert torch.equal(tile_sums(X), sums(4))
        assert torch.equal(tile_sums(X, 4), sums(4))
        assert torch.equal(tile_sums(X, 8), sums(8))
        assert torch.equal(tile_sums(X, tile=8), sums(8))
        assert torch.equal(tile_sums(X, tile=np.int64(8)), sums(8))
        assert torch.equal(tile_sums(X, 8, True), -sums(8))
        assert torch.equal(tile_sums(x=X, minus=True), -sums(4))


@pytest.mark.builds
@needs_compiler
def test_outputs_are_filled_for_any_value() -> None:
    for tile in (4, 8):
        out = torch.empty(100 // tile, dtype=torch.int32)
        assert tile_sums(X, out=out, tile=tile) is out
        assert torch.equal(out, sums(tile))
        assert tile_sums(X, out.zero_(), tile) is out
        assert torch.equal(out, sums(tile))
        tile_sums[2, 32](X, out.zero_(), tile)
        assert torch.equal(out, sums(tile))


@pytest.mark.builds
@needs_compiler
def test_a_shape_tells_what_a_call_leaves_out() -> None:
    for tile in (3, 5):
        x = torch.ones(2, tile, dtype=torch.int32)
        assert row_sums(x).tolist() == row_sums(x, tile=tile).tolist() == [tile, tile]
    with pytest.raises(RuntimeError, match="`tile` is 3, but dimension 1 of `x` has 5"):
        row_sums(x, 3)
    with pytest.raises(RuntimeError, match="`x` must have 2 dimensions, got 1"):
        row_sums(X)


@pytest.mark.builds
@needs_compiler
def test_every_value_is_translated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def lower_function(*args: object) -> object:
        asked.append(args[-2])
        return original(*args)

    original = pipeline.lower_function
    monkeypatch.setattr(pipeline, "lower_function", lower_function)
    monkeypatch.setattr("py2cu.build.cache.get_translation", lambda key, class_: None)
    fresh = kernel(tile_sums.python)
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda number: fresh(X, 4 + number % 2), range(16)))
    assert all(torch.equal(out, sums(4 + number % 2)) for number, out in enumerate(made))
    assert [dict(values) for values in asked] == [{}, {"tile": (5,)}]


@pytest.mark.builds
@needs_compiler
def test_blocks_follow_the_values() -> None:
    x = torch.randn(9, 21)
    for tw, th in ((1, 1), (8, 4), (16, 2)):
        assert torch.equal(transposed(x, tw, th), x.T)
        assert torch.equal(transposed.simulate(x, tw=tw, th=th), x.T)
    with pytest.raises(TranslationError, match="no block can be launched with `tw` = 64, `th` = 32"):
        transposed(x, 64, 32)


@pytest.mark.builds
@needs_compiler
def test_the_oracle_knows_the_values() -> None:
    assert torch.equal(tile_sums.simulate(X, 5), sums(5))
    assert tile_sums.check(X, tile=5).ok
    assert tile_sums.check(X).ok
    assert row_sums.check(X.view(20, 5)).ok


@pytest.mark.builds
@needs_compiler
def test_check_invents_values_where_there_is_none() -> None:
    assert not row_sums.signature.constexprs["tile"].values
    assert row_sums.check().ok
    assert transposed.check().ok
    assert row_sums.with_small_values().signature.constexprs["tile"].values == (1, 2, 4, 8, 16)
    assert tile_sums.with_small_values() is tile_sums


# --- refusals ---


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"tile": 4.0}, r"^tile_sums\(x, tile=4, minus=False, out=None\) takes a whole number as `tile`, got float"),
        ({"tile": X}, "takes a whole number as `tile`, got Tensor"),
        ({"tile": True}, "takes a whole number from 0 to 2147483647 as `tile`, got True"),
        ({"tile": -1}, "takes a whole number from 0 to 2147483647 as `tile`, got -1"),
        ({"tile": 1 << 31}, "takes a whole number from 0 to 2147483647 as `tile`, got 2147483648"),
        ({"minus": 1}, "takes a bool as `minus`, got int"),
        ({"minus": np.bool_(True)}, "takes a bool as `minus`, got numpy.bool"),
    ],
)
def test_what_no_template_argument_can_be_is_refused(values, message) -> None:
    for call in (tile_sums, tile_sums.simulate):
        with pytest.raises(TypeError, match=message):
            call(X, **values)


@pytest.mark.builds
@needs_compiler
def test_the_op_takes_any_value() -> None:
    assert torch.equal(tile_sums.op(X), sums(4))
    assert torch.equal(tile_sums.op(X, 8, True), -sums(8))
    assert torch.equal(tile_sums.with_values(tile=(8, 16)).op(X, 8), sums(8))
    assert torch.equal(row_sums.op(X.reshape(-1, 2)), X.reshape(-1, 2).sum(1, dtype=torch.int32))
    with pytest.raises(TypeError, match="takes a whole number from 0 to 2147483647 as `tile`, got -1"):
        tile_sums.op(X, -1)


def test_values_are_asked_for_by_the_name_of_a_template_argument() -> None:
    with pytest.raises(TypeError, match="tile_sums has no `Constexpr\\[int\\]` parameter `minus`"):
        tile_sums.with_values(minus=1)
    for wrong in (-1, (), (4, 1 << 31), "ab", True):
        with pytest.raises(TypeError, match="`tile` takes whole numbers from 0 to 2147483647, got"):
            tile_sums.with_values(tile=wrong)


@pytest.mark.builds
@needs_compiler
def test_no_extent_is_divided_by_zero() -> None:
    with pytest.raises(RuntimeError, match="tile_sums: `tile` is 0, and an extent is divided by it"):
        tile_sums(X, 0)
    with pytest.raises(RuntimeError, match="`tile` is 0, and an extent is divided by it"):
        tile_sums.simulate(X, 0)


# --- texts ---


def test_the_text_has_the_instances_that_were_asked_for() -> None:
    assert "template <>\ncudaError_t tile_sums_launch<4, true>(" in tile_sums.cuda_source
    assert "template <>" not in row_sums.cuda_source
    both = tile_sums.with_values(tile=(8, 16))
    for tile in (8, 16):
        assert f"template <>\ncudaError_t tile_sums_launch<{tile}, false>(" in both.cuda_source
    assert "tile_sums_launch<4" not in both.cuda_source
    assert "template <int tile, bool minus>\ncudaError_t tile_sums_launch(" in both.header


def test_to_python_it_is_a_number() -> None:
    hints = typing.get_type_hints(tile_sums.python)
    assert (hints["tile"], hints["minus"]) == (int, bool)
