"""`k(x, out=x)`: an output that is an input, where each thread reads only the element that it writes."""

import itertools

import pytest

torch = pytest.importorskip("torch")

from jaxtyping import Float, Float32  # noqa: E402
from torch import Tensor  # noqa: E402

from py2cu import Index, blockDim, blockIdx, kernel, threadIdx  # noqa: E402
from py2cu.check.cases import invent_cases  # noqa: E402
from py2cu.simulator.tensor_bits import as_bits  # noqa: E402
from tests.support.compilers import gxx  # noqa: E402
from tests.support.libraries import Device, Setting, build  # noqa: E402
from tests.support.samples import proofs  # noqa: E402
from tests.test_kernel_cases import BATCHES, read_case, translate  # noqa: E402

pytestmark = pytest.mark.builds


@kernel
def biased(r: Index["h"], c: Index["w"], x: Float[Tensor, "h w"], bias: Float[Tensor, "w"], out: Float[Tensor, "h w"]):
    out[r, c] = 2 * x[r, c] + bias[c] if x[r, c] > 0.5 else x[r, c] - 1


@kernel(strided=True)
def negated(r: Index["h"], c: Index["w"], x: Float32[Tensor, "h w"], out: Float32[Tensor, "h w"],
            seen: Float32[Tensor, "h w"] | None = None):  # fmt: skip
    v = x[r, c]
    if seen is not None:
        seen[r, c] += v
    out[r, c] = -v


@kernel(size="n")
def of_blocks(x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    i = blockIdx.x * blockDim.x + threadIdx.x
    if i < len(x):
        out[i] = x[i] * x[i]


@kernel
def reversed_order(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    out[i] = x[len(x) - 1 - i]


@kernel
def squared(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    out[i] = x[i] * x[i]


@squared.backward
def squared_grad(i: Index["n"], x: Float32[Tensor, "n"], grad_out: Float32[Tensor, "n"], grad_x: Float32[Tensor, "n"]):
    grad_x[i] = 2 * x[i] * grad_out[i]


def ways(k):
    """Cold, warm, through the op and simulated."""
    return k._copy(), k, k, k.simulate


def refuses(message, run, *args, **kwargs):
    with pytest.raises(RuntimeError) as error:
        run(*args, **kwargs)
    assert str(error.value) == message


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_an_output_may_be_an_input(dtype):
    bias = torch.rand(9, dtype=dtype)
    for run in ways(biased):
        x = torch.rand(300, 9, dtype=dtype)  # more than a CPU thread computes
        expected = torch.where(x > 0.5, 2 * x + bias, x - 1)
        assert run(x, bias, out=x) is x
        assert torch.allclose(x, expected)
    for run in ways(of_blocks):
        x = torch.rand(700)
        expected = x * x
        assert torch.equal(run(x, out=x), expected)


def test_strided_arrays_may_be_one():
    for run in ways(negated):
        x = torch.rand(7, 10).t()[::2]
        expected = -x
        assert torch.equal(run(x, out=x), expected)
        run(x, out=x, seen=(seen := torch.ones(5, 7)))
        assert torch.equal(seen, 1 + expected)
        refuses("negated: `out` is written and overlaps `seen` in memory", run, x, out=x, seen=x)


def test_the_version_counts_once():
    x = torch.rand(5)
    squared(x, out=x)
    before = x._version
    squared(x, out=x)
    assert x._version == before + 1


def test_other_overlaps_are_refused_by_name():
    memory, square, x = torch.rand(90), torch.rand(5, 5), torch.rand(6)
    for run in ways(biased):
        a, b = memory[:45].view(5, 9), memory[9:54].view(5, 9)
        refuses("biased: `out` is written and overlaps `x` in memory", run, a, torch.rand(9), out=b)
        refuses("biased: `out` is written and overlaps `bias` in memory", run, torch.rand(5, 9), memory[9:18], out=a)
    for run in ways(negated):
        refuses("negated: `out` is written and overlaps `x` in memory", run, square, out=square.t())
    for run in ways(reversed_order):
        refuses("reversed_order: `out` is written and overlaps `x` in memory", run, x, out=x)


def test_an_explicit_launch_is_refused():
    x, bias = torch.rand(5, 9), torch.rand(9)
    message = "biased: `out` is written and overlaps `x` in memory"
    for run in (biased, biased.simulate, biased):
        refuses(message, run[(1, 1), (16, 16)], x, bias, x)
    grid = getattr(torch.ops.py2cu, biased.op._opname).grid
    refuses(message, grid, x, bias, x, [1, 1], [16, 16])


def test_autograd_refuses_what_it_may_need():
    x = torch.rand(5, requires_grad=True) * 1
    with pytest.raises(RuntimeError, match="squared: `out` and `x` are one array, and a gradient may need"):
        squared(x, out=x)
    with torch.no_grad():
        squared(x, out=x)
    y = torch.rand(2, 5)
    squared(torch.rand(5, requires_grad=True), out=y[1])


def test_compiled_and_batched():
    bias = torch.rand(9)

    def call(x):
        return biased(x, bias, out=x)

    compiled = torch.compile(call, fullgraph=True, backend="aot_eager")
    for run, x in ((compiled, torch.rand(5, 9)), (torch.func.vmap(call), torch.rand(3, 5, 9))):
        expected = torch.where(x > 0.5, 2 * x + bias, x - 1)
        assert torch.allclose(run(x), expected)
        assert torch.allclose(x, expected)


@pytest.mark.slow
@pytest.mark.parametrize("paths", proofs(BATCHES[:3], 3), ids=lambda paths: f"{paths[0].stem}-{paths[-1].stem}")
def test_kernels_compute_in_place_what_they_compute_beside_it(paths):
    gxx()
    translations = [translate(read_case(path)) for path in paths]
    judged = [each for each in translations if any(signature.in_place for signature in each.signatures)]
    different = []
    for translation, runs in zip(judged, build(judged, Setting(Device.CPU)), strict=True):
        for signature in (each for each in translation.signatures if each.op in runs):
            for case in itertools.islice(invent_cases((signature.instances or (signature,))[0]), 4):
                for written, read in signature.in_place:
                    if {written, read} <= case.arguments.keys():
                        run = runs[signature.op]
                        different += [(signature.name, written)] if differs(run, case, written, read) else []
    assert not different


def differs(run, case, written: str, read: str) -> bool:
    """Whether an array other than `read` depends on whether `written` is the array `read` or a copy of it."""
    apart = {name: v.clone() if isinstance(v, Tensor) else v for name, v in case.arguments.items()}
    apart[written].copy_(apart[read])
    together = {name: v.clone() if isinstance(v, Tensor) else v for name, v in apart.items()}
    together[written] = together[read]
    try:
        run(apart)
        run(together)
    except RuntimeError as error:
        if "assertion failed" not in str(error):
            raise
        return False
    arrays = [name for name, value in apart.items() if isinstance(value, Tensor) and name != read]
    return any(not torch.equal(as_bits(apart[name]), as_bits(together[name])) for name in arrays)
