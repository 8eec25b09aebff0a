"""How a kernel is called: outputs made or given, a launch of one's own, and when a refused kernel is heard of."""

import pytest

torch = pytest.importorskip("torch")

from jaxtyping import Float32  # noqa: E402
from torch import Tensor  # noqa: E402

from py2cu import Index, TranslationError, blockDim, blockIdx, kernel, threadIdx  # noqa: E402


@kernel
def doubled(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    out[i] = 2 * x[i]


@kernel(size="n")
def counted(x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    i = blockIdx.x * blockDim.x + threadIdx.x
    if i < len(x):
        out[i] = blockDim.x


@pytest.fixture(params=["compiled", "simulated"])
def run(request):
    """Makes a kernel something to call."""
    return (lambda k: k) if request.param == "compiled" else (lambda k: k.simulate)


def test_an_output_is_made_and_returned(run):
    assert run(doubled)(torch.tensor([1.0, 2.0])).tolist() == [2.0, 4.0]


def test_as_many_arguments_as_parameters_fill_the_given_outputs(run):
    out = torch.zeros(2)
    assert run(doubled)(torch.tensor([1.0, 2.0]), out) is out
    assert out.tolist() == [2.0, 4.0]
    assert run(doubled)(torch.tensor([3.0, 4.0]), out=out) is out
    assert out.tolist() == [6.0, 8.0]


def test_an_explicit_launch_runs_its_threads_alone(run):
    out = torch.zeros(5)
    run(counted)[1, 2](torch.ones(5), out)
    assert out.tolist() == [2.0, 2.0, 0.0, 0.0, 0.0]
    run(counted)[(2,), (2,)](torch.ones(5), out)
    assert out.tolist() == [2.0, 2.0, 2.0, 2.0, 0.0]


def test_a_refused_kernel_raises_at_its_first_use_and_not_before():
    @kernel
    def refused(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
        out[i] = [x[i]]

    for use in (lambda: refused(torch.ones(2)), lambda: refused.cuda_source, lambda: refused.simulate(torch.ones(2))):
        with pytest.raises(TranslationError, match="P103"):
            use()
