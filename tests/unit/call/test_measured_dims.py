"""Dimensions that a call takes from arithmetic in an extent, or from an output that it gives."""

import pytest

torch = pytest.importorskip("torch")

from jaxtyping import Float32, Int32  # noqa: E402
from torch import Tensor  # noqa: E402

from py2cu import Constexpr, Index, kernel  # noqa: E402

pytestmark = pytest.mark.builds


@kernel
def resize(
    r: Index["h2"],
    c: Index["w2"],
    x: Float32[Tensor, "h w"],
    out: Float32[Tensor, "h2 w2"],
    h2: int,
    w2: int,
):
    out[r, c] = x[r * x.shape[0] // h2, c * x.shape[1] // w2]


@kernel
def repeated(i: Index["m"], x: Float32[Tensor, "1"], out: Float32[Tensor, "2*m+1"], m: int = 4):
    out[2 * i] = x[0]
    out[2 * i + 1] = x[0]
    out[2 * m] = x[0]


@kernel
def tiled(i: Index["tile"], x: Float32[Tensor, "1"], out: Float32[Tensor, "tile"], tile: Constexpr[int] = 4):
    out[i] = x[0]


@kernel
def lengths(r: Index["rows"], start: Int32[Tensor, "rows+1"], out: Int32[Tensor, "rows"]):
    out[r] = start[r + 1] - start[r]


@kernel
def columns(i: Index["n"], one: Float32[Tensor, "k"], x: Float32[Tensor, "n*k"], out: Float32[Tensor, "n"]):
    out[i] = x[i * len(one)]


@pytest.fixture(params=["compiled", "simulated"])
def run(request):
    """Makes a kernel something to call."""
    return (lambda k: k) if request.param == "compiled" else (lambda k: k.simulate)


PICTURE = torch.arange(12.0).reshape(3, 4)


@pytest.mark.parametrize("calls", [1, 2], ids=["cold", "warm"])
def test_integers_are_taken_from_a_given_output(run, calls):
    expected = PICTURE[torch.arange(6) * 3 // 6][:, torch.arange(2) * 4 // 2]
    for shape in [(6, 2)] * calls:
        buffer = torch.empty(shape)
        assert run(resize)(PICTURE, out=buffer) is buffer
        assert torch.equal(buffer, expected)
        assert torch.equal(run(resize)(PICTURE, torch.empty(shape)), expected)
        assert torch.equal(run(resize)(PICTURE, 6, 2), expected)


def test_an_explicit_launch_takes_them_from_its_output(run):
    for shape in [(6, 2), (3, 4)]:
        buffer = torch.empty(shape)
        run(resize)[(1, 1), (16, 16)](PICTURE, buffer)
        assert torch.equal(buffer, resize(PICTURE, *shape))


def test_a_given_output_goes_before_a_default(run):
    one = torch.ones(1)
    for _ in range(2):
        assert len(run(repeated)(one)) == 9
        assert run(repeated)(one, out=torch.zeros(5)).tolist() == [1] * 5
        assert run(tiled)(one, out=torch.zeros(4)).tolist() == [1] * 4


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda run: run(resize)(PICTURE), "is missing `h2`, `w2`"),
        (lambda run: run(resize)(PICTURE, out=torch.empty(3)), "`out` must have 2 dimensions, got 1"),
        (
            lambda run: run(resize)(PICTURE, 5, 2, out=torch.empty(6, 2)),
            "dimension 0 of `out` is `h2` = 5, got 6",
        ),
        (
            lambda run: run(repeated)(torch.ones(1), out=torch.empty(4)),
            r"dimension 0 of `out` is `\(2 \* m\) \+ 1` = 3, got 4",
        ),
        (
            lambda run: run(lengths)(torch.empty(0, dtype=torch.int32)),
            r"dimension 0 of `start` is `rows \+ 1` = 1, got 0",
        ),
        (
            lambda run: run(columns)(torch.ones(2), torch.ones(5)),
            r"dimension 0 of `x` is `n \* k` = 4, got 5",
        ),
        (lambda run: run(columns)(torch.ones(0), torch.ones(0)), "`k` is 0, and an extent is divided by it"),
    ],
)
def test_what_does_not_fit_names_its_argument(run, call, message):
    if "missing" not in message:  # a plan is warm before the argument that it refuses
        run(resize)(PICTURE, out=torch.empty(6, 2))
        run(repeated)(torch.ones(1), out=torch.empty(5))
    for _ in range(2):
        with pytest.raises((RuntimeError, TypeError), match=message):
            call(run)


def test_the_op_checks_the_same():
    with pytest.raises(RuntimeError, match=r"dimension 0 of `start` is `rows \+ 1` = 1, got 0"):
        lengths.op(torch.empty(0, dtype=torch.int32))
    with pytest.raises(RuntimeError, match="`k` is 0, and an extent is divided by it"):
        columns.op(torch.ones(0), torch.ones(0))
