"""Arrays with any number of leading dimensions: the kernel sees one, and outputs get them back."""

import pytest

torch = pytest.importorskip("torch")

from jaxtyping import Float, Float32  # noqa: E402
from torch import Tensor  # noqa: E402

from py2cu import Index, kernel  # noqa: E402

pytestmark = pytest.mark.builds


@kernel
def relu(i: Index["..."], x: Float[Tensor, "..."], out: Float[Tensor, "..."]):
    out[i] = max(x[i], 0)


@kernel
def linear(
    row: Index["batch"],
    o: Index["n"],
    x: Float32[Tensor, "*batch k"],
    weight: Float32[Tensor, "n k"],
    out: Float32[Tensor, "*batch n"],
    gain: Float32[Tensor, "*batch"] | None = None,
):
    total = 0.0
    for j in range(x.shape[1]):
        total += x[row, j] * weight[o, j]
    out[row, o] = total if gain is None else total * gain[row]


@pytest.fixture(params=["compiled", "simulated", "op"])
def run(request):
    """Makes a kernel something to call."""
    return {"compiled": lambda k: k, "simulated": lambda k: k.simulate, "op": lambda k: k.op}[request.param]


@pytest.mark.parametrize("shape", [(), (3,), (2, 3), (2, 0, 3), (2, 1, 3, 2)], ids=str)
def test_an_output_has_the_shape_of_its_input(run, shape):
    x = torch.randn(shape)
    for tensor in (x, x.double(), x):
        assert torch.equal(run(relu)(tensor), tensor.relu())


@pytest.mark.parametrize("shape", [(4,), (2, 3), (2, 0, 3), (2, 1, 3, 2)], ids=str)
def test_leading_dimensions_before_others(run, shape):
    x, weight, gain = torch.randn(shape), torch.randn(5, shape[-1]), torch.randn(shape[:-1])
    expected = x @ weight.T
    for _ in range(2):
        torch.testing.assert_close(run(linear)(x, weight), expected)
        torch.testing.assert_close(run(linear)(x, weight, gain=gain), expected * gain[..., None])


def test_given_outputs_and_explicit_launches():
    x, weight, buffer = torch.randn(2, 3, 4), torch.randn(5, 4), torch.empty(2, 3, 5)
    for k in (linear, linear.simulate):
        assert k(x, weight, out=buffer.zero_()) is buffer
        torch.testing.assert_close(buffer, x @ weight.T)
        k[(1, 1), (8, 8)](x, weight, buffer.zero_())
        torch.testing.assert_close(buffer, x @ weight.T)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda k: k(linear)(torch.ones(2, 3), torch.ones(5, 3), gain=torch.ones(3)),
            r"the dimensions `\*batch` of `gain` are \[3\], but those of `x` are \[2\]",
        ),
        (
            lambda k: k(linear)(torch.tensor(1.0), torch.ones(5, 3)),
            "`x` must have at least 1 dimensions, got 0",
        ),
        (
            lambda k: k(linear)(torch.ones(2, 2, 3), torch.ones(5, 4)),
            "dimension 1 of `weight` is `k` = 3, got 4",
        ),
    ],
)
def test_what_does_not_fit_names_its_argument(run, call, message):
    run(linear)(torch.ones(2, 3), torch.ones(5, 3), gain=torch.ones(2))
    for _ in range(2):
        with pytest.raises(RuntimeError, match=message):
            call(run)


def test_a_given_output_has_the_dimensions_of_its_input():
    for k in (relu, relu, relu.simulate):
        with pytest.raises(
            RuntimeError, match=r"the dimensions `\.\.\.` of `out` are \[3, 2\], but those of `x` are \[2, 3\]"
        ):
            k(torch.ones(2, 3), out=torch.ones(3, 2))


def test_invented_cases_have_different_numbers_of_dimensions():
    assert linear.check().checked
    report = relu.check()
    assert report.ok and report.checked
