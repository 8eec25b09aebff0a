"""How a kernel is called: outputs made or given, a launch of one's own, and when a refused kernel is heard of."""

import pytest

torch = pytest.importorskip("torch")

from jaxtyping import BFloat16, Float32  # noqa: E402
from torch import Tensor, bfloat16  # noqa: E402

from py2cu import (  # noqa: E402
    Index,
    TranslationError,
    blockDim,
    blockIdx,
    kernel,
    shared,
    syncthreads,
    threadIdx,
)
from py2cu.simulator import SimulationError  # noqa: E402


@kernel
def doubled(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    out[i] = 2 * x[i]


@kernel(size="n")
def counted(x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    i = blockIdx.x * blockDim.x + threadIdx.x
    if i < len(x):
        out[i] = blockDim.x


def forgetful(v, w):
    for _ in range(2):
        w = v  # noqa: F841
    return v + 1


@kernel
def of_a_forgetful_function(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    out[i] = forgetful(x[i], 2 * x[i])


def capped(v):
    return min(30000.0, max(bfloat16(1e30), v))


@kernel
def of_a_function_of_builtins(i: Index["n"], x: BFloat16[Tensor, "n"], out: Float32[Tensor, "n"]):
    out[i] = capped(x[i])


@pytest.fixture(params=["compiled", "simulated"])
def run(request):
    """Makes a kernel something to call."""
    return (lambda k: k) if request.param == "compiled" else (lambda k: k.simulate)


@pytest.mark.builds
def test_an_output_is_made_and_returned(run):
    assert run(doubled)(torch.tensor([1.0, 2.0])).tolist() == [2.0, 4.0]


@pytest.mark.builds
def test_as_many_arguments_as_parameters_fill_the_given_outputs(run):
    out = torch.zeros(2)
    assert run(doubled)(torch.tensor([1.0, 2.0]), out) is out
    assert out.tolist() == [2.0, 4.0]
    assert run(doubled)(torch.tensor([3.0, 4.0]), out=out) is out
    assert out.tolist() == [6.0, 8.0]


@pytest.mark.builds
def test_an_explicit_launch_runs_its_threads_alone(run):
    out = torch.zeros(5)
    run(counted)[1, 2](torch.ones(5), out)
    assert out.tolist() == [2.0, 2.0, 0.0, 0.0, 0.0]
    run(counted)[(2,), (2,)](torch.ones(5), out)
    assert out.tolist() == [2.0, 2.0, 2.0, 2.0, 0.0]


@pytest.mark.parametrize("launch", [4, (4,), (1, 2, 3), (1.0, 8), ("a", 8), (1, (2, 0.5))])
def test_a_launch_is_a_grid_and_a_block_of_whole_numbers(run, launch):
    with pytest.raises(TypeError, match=r"launch it as counted\[grid, block\]"):
        run(counted)[launch](torch.zeros(4), torch.zeros(4))


@pytest.mark.builds
@pytest.mark.parametrize(
    "launch", [(0, 256), (1, 0), (-1, 256), ((1, 0), 256), (1, (256, 1, 0)), ((), 8), (1, (8, 1, 1, 1))]
)
def test_a_launch_has_at_least_one_thread_and_three_extents_at_most(run, launch):
    with pytest.raises((RuntimeError, ValueError), match=r"has an extent of|no GPU launches|one to three extents"):
        run(counted)[launch](torch.zeros(4), torch.zeros(4))


def test_a_function_without_a_name_is_no_kernel():
    nameless = kernel(lambda x: x)
    with pytest.raises(TranslationError, match="a lambda cannot be a kernel"):
        nameless(torch.zeros(4))


def test_a_refused_kernel_raises_at_its_first_use_and_not_before():
    @kernel
    def refused(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
        out[i] = [x[i]]

    for use in (lambda: refused(torch.ones(2)), lambda: refused.cuda_source, lambda: refused.simulate(torch.ones(2))):
        with pytest.raises(TranslationError, match="P103"):
            use()


@pytest.mark.builds
def test_an_argument_that_is_only_assigned_to(run):
    assert run(of_a_forgetful_function)(torch.tensor([1.0, 2.0])).tolist() == [2.0, 3.0]


@pytest.mark.builds
def test_builtins_in_device_functions_are_those_of_kernels(run):
    halves = torch.tensor([1.0, 2.0], dtype=torch.bfloat16)
    assert run(of_a_function_of_builtins)(halves).tolist() == [29952.0, 29952.0], "30000 is rounded beside bfloat16"


def test_a_number_beyond_all_floats_fills_no_output():
    far = kernel(init={"out": 10**400})(doubled.python)
    with pytest.raises(TranslationError, match="float32 cannot hold"):
        far(torch.ones(2))


@kernel
def differences(i: Index["n-1"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n-1"]):
    out[i] = x[i + 1] - x[i]


@kernel
def repeated(i: Index["n"], x: Float32[Tensor, "n"], w: int, out: Float32[Tensor, "w n"]):
    for j in range(w):
        out[j, i] = x[i]


@kernel(size="n", block=4)
def in_shared_memory(x: Float32[Tensor, "n"], out: Float32[Tensor, "n"], m: int):
    kept = shared((m + 1, 2), "float32")
    i = blockIdx.x * blockDim.x + threadIdx.x
    if threadIdx.x == 0:
        kept[0, 1] = m
    syncthreads()
    if i < len(x):
        out[i] = x[i] + kept[0, 1]


@pytest.mark.builds
@pytest.mark.parametrize("m", [-2, -(2**40), 2**40, 2**62])
def test_shared_memory_of_an_extent_that_no_memory_has(m):
    assert in_shared_memory(torch.ones(5), 2).tolist() == [3] * 5
    with pytest.raises(RuntimeError, match=rf"in_shared_memory: an extent of `kept` is `m \+ 1` = {m + 1}$"):
        in_shared_memory(torch.ones(5), m)
    if m < 0:
        with pytest.raises(SimulationError, match=rf"an array of extent {m + 1} × 2"):
            in_shared_memory.simulate(torch.ones(5), m)


@pytest.mark.builds
def test_an_output_of_a_negative_extent_is_none():
    assert differences(torch.zeros(1)).shape == (0,)
    with pytest.raises(RuntimeError, match=r"differences: dimension 0 of `out` is `n - 1` = -1$"):
        differences(torch.zeros(0))
    assert repeated(torch.zeros(3), 0).shape == (0, 3)
    with pytest.raises(RuntimeError, match=r"repeated: dimension 0 of `out` is `w` = -2$"):
        repeated(torch.zeros(3), -2)
