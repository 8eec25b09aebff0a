"""Calls with tensors of any strides: `@kernel(strided=…)`, and what contiguous kernels say about others."""

import itertools
import random

import pytest

torch = pytest.importorskip("torch")

from jaxtyping import Float32  # noqa: E402
from torch import Tensor  # noqa: E402

from py2cu import Index, kernel  # noqa: E402
from py2cu.call.launchers.memory import overlap, overlaps_itself  # noqa: E402
from py2cu.pipeline import translate_file  # noqa: E402
from py2cu.source import SourceFile  # noqa: E402
from tests.support.compilers import gxx  # noqa: E402
from tests.support.libraries import Device, Setting, build  # noqa: E402

builds = pytest.mark.builds


@kernel(strided=True)
def axpy(r: Index["h"], c: Index["w"], x: Float32[Tensor, "h w"], out: Float32[Tensor, "h w"], a: float,
         y: Float32[Tensor, ""]):  # fmt: skip
    out[r, c] = a * x[r, c] + y[()]


@kernel(strided="x")
def mean(b: Index["b"], r: Index["h"], c: Index["w"], x: Float32[Tensor, "b k h w"], out: Float32[Tensor, "b h w"]):
    total = 0.0
    for j in range(x.shape[1]):
        total += x[b, j, r, c]
    out[b, r, c] = total / x.shape[1]


@kernel(strided=("x", "by"))
def scale(i: Index["n"], x: Float32[Tensor, "n"], by: Float32[Tensor, "n"]):
    x[i] *= by[i]


@kernel(strided=True)
def squared(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    out[i] = x[i] * x[i]


@squared.backward(strided=("x", "grad_out"))
def squared_grad(i: Index["n"], x: Float32[Tensor, "n"], grad_out: Float32[Tensor, "n"], grad_x: Float32[Tensor, "n"]):
    grad_x[i] = 2 * x[i] * grad_out[i]


MATRICES = {
    "contiguous": lambda: torch.rand(5, 7),
    "transposed": lambda: torch.rand(7, 5).t(),
    "sliced": lambda: torch.rand(10, 21)[::2, ::3],
    "rows of a part": lambda: torch.rand(9, 20)[3:8, 2:9],
    "expanded": lambda: torch.rand(7).expand(5, 7),
    "expanded on both axes": lambda: torch.rand(()).expand(5, 7),
    "a column": lambda: torch.rand(5, 3)[:, 1:2].expand(5, 7),
    "misaligned": lambda: torch.rand(36)[1:].view(5, 7),
    "overlapping windows": lambda: torch.rand(11).unfold(0, 7, 1),
    "one row": lambda: torch.rand(3, 7)[1:2],
    "one column": lambda: torch.rand(7, 9)[:, 4:5],
    "no rows": lambda: torch.rand(7, 4)[:, 4:].t(),
    "no columns": lambda: torch.empty(4, 0),
}
OUTPUTS = {
    "allocated": lambda h, w: None,
    "contiguous": torch.empty,
    "transposed": lambda h, w: torch.empty(w, h).t(),
    "sliced": lambda h, w: torch.empty(2 * h, 3 * w)[1::2, ::3],
    "a part": lambda h, w: torch.empty(h + 2, w + 3)[1 : h + 1, 2 : w + 2],
}


@builds
@pytest.mark.parametrize("run", [axpy, axpy.simulate], ids=["compiled", "simulated"])
@pytest.mark.parametrize("out", OUTPUTS)
@pytest.mark.parametrize("x", MATRICES)
def test_any_layout_is_read_and_written(x, out, run):
    x, y = MATRICES[x](), torch.rand(3)[1]
    out = OUTPUTS[out](*x.shape)
    given = {} if out is None else {"out": out}
    around = None if out is None else [out._base if out._is_view() else out][0]
    before = None if around is None else around.clone()
    result = run(x, 2.0, y, **given)
    assert torch.allclose(result, 2 * x + y)
    assert result.shape == x.shape
    if out is None:
        assert result.is_contiguous()
    else:
        assert result is out
        expected = before.as_strided(out.shape, out.stride(), out.storage_offset())
        expected.copy_(result)  # nothing else changed
        assert torch.equal(before.nan_to_num(), around.nan_to_num())


def overload(name: str):
    return getattr(getattr(torch.ops.py2cu, axpy.op._opname), name)


@builds
def test_every_way_to_call_takes_any_layout():
    x, y = torch.rand(7, 5).t(), torch.rand(())
    expected = 2 * x + y
    axpy[(1, 1), (16, 16)](x, out := torch.empty(7, 5).t(), 2.0, y)
    assert torch.allclose(out, expected)
    assert torch.allclose(axpy.op(x, 2.0, y), expected)
    overload("out")(x, filled := torch.empty(14, 10)[::2, ::2].t(), 2.0, y)
    assert torch.allclose(filled, expected)
    filled.zero_()
    torch.compile(lambda: axpy(x, 2.0, y, out=filled), fullgraph=True, backend="aot_eager")()
    assert torch.allclose(filled, expected)
    compiled = torch.compile(lambda x: axpy(x.t(), 2.0, y) + 1, fullgraph=True, dynamic=True, backend="aot_eager")
    for other in (torch.rand(7, 5), torch.rand(4, 6), torch.rand(8, 6)[::2]):
        assert torch.allclose(compiled(other), 2 * other.t() + y + 1)
    batch = torch.rand(5, 3, 7).transpose(0, 1)
    assert torch.allclose(torch.func.vmap(lambda x: axpy(x, 2.0, y))(batch), 2 * batch + y)
    assert axpy.check(x, a=2.0, y=y).ok


@builds
def test_channels_last():
    x = torch.rand(2, 3, 4, 5).to(memory_format=torch.channels_last)
    assert torch.allclose(mean(x), x.mean(1))
    assert torch.allclose(mean(x.unsqueeze(0).expand(2, 2, 3, 4, 5)[1]), x.mean(1))
    assert torch.allclose(mean(x.permute(0, 2, 3, 1)), x.mean(2).transpose(1, 2))
    for run in (mean, mean.simulate):
        with pytest.raises(RuntimeError, match="mean: `out` must be contiguous; give a contiguous array"):
            run(x, out=torch.empty(2, 5, 4).transpose(1, 2))


@builds
@pytest.mark.filterwarnings("ignore:.*Profiler clears events")  # torch 2.11 warns of what it does here
def test_nothing_is_copied():
    x, y = torch.rand(70, 50).t(), torch.rand(())
    axpy(x, 2.0, y, out=(out := torch.empty(70, 50).t()))
    with torch.profiler.profile() as profile:
        axpy(x, 2.0, y, out=out)
    names = {event.key for event in profile.key_averages()}
    assert not [name for name in names if any(word in name for word in ("copy", "clone", "contiguous", "empty"))], names


@builds
def test_a_written_array_whose_elements_overlap_is_refused_by_name():
    x, y = torch.rand(5, 7), torch.rand(())
    message = "axpy: `out` is written, and its elements overlap in memory; pass a tensor of its own"
    for out in (
        torch.empty(7).expand(5, 7),
        torch.empty(40).as_strided((5, 7), (2, 1)),
        torch.empty(5, 1).expand(5, 7),
    ):
        for run in (axpy, axpy.simulate, axpy):
            with pytest.raises(RuntimeError) as error:
                run(x, 2.0, y, out=out)
            assert str(error.value) == message
        with pytest.raises(RuntimeError, match="its elements overlap in memory"):
            axpy[1, 256](x, out, 2.0, y)
        with pytest.raises(RuntimeError, match="its elements overlap in memory"):
            overload("out")(x, out, 2.0, y)
    with pytest.raises(RuntimeError, match="scale: `x` is written, and its elements overlap in memory"):
        scale(torch.ones(1).expand(4), torch.ones(4))


@builds
def test_columns_of_one_matrix_may_be_read_and_written():
    whole, y = torch.rand(5, 14), torch.zeros(())
    expected = whole[:, :7].clone()
    assert torch.equal(axpy(whole[:, :7], 1.0, y, out=whole[:, 7:]), expected)
    vector = torch.arange(8.0)
    scale(vector[::2], vector[1::2])
    assert vector.tolist() == [0.0, 1.0, 6.0, 3.0, 20.0, 5.0, 42.0, 7.0]
    for run in (axpy, axpy.simulate, axpy):
        with pytest.raises(RuntimeError, match="axpy: `out` is written and overlaps `x` in memory"):
            run(whole[:, :7], 1.0, y, out=whole[:, 3:10])


@builds
def test_a_gradient_of_any_strides_reaches_the_backward():
    x = torch.rand(2, 6)[:, ::2].reshape(6).requires_grad_()
    squared(x).sum().backward()  # autograd expands one number
    assert torch.allclose(x.grad, 2 * x)
    loss = squared(x).sum()
    with torch.profiler.profile() as profile:
        torch.autograd.grad(loss, x)
    assert not [event.key for event in profile.key_averages() if "copy" in event.key or "clone" in event.key]
    weights = torch.rand(12)
    (grad,) = torch.autograd.grad((squared(x) * weights[::2]).sum(), x)
    assert torch.allclose(grad, 2 * x * weights[::2])


FAR = """
from jaxtyping import UInt8
from torch import Tensor
from py2cu import Index, kernel


@kernel(strided="x")
def far(i: Index["n"], x: UInt8[Tensor, "n"], out: UInt8[Tensor, "n"]):
    out[i] = x[i]
"""


@builds
@pytest.mark.parametrize("device", [Device.CPU, Device.EMULATED])
def test_elements_farther_apart_than_32_bits_hold(device):
    gxx()
    translation = translate_file(SourceFile("far.py", FAR))
    (runs,) = build([translation], Setting(device))
    memory = torch.empty(2**31 + 8, dtype=torch.uint8)  # two pages of it are touched
    memory[3], memory[2**31 + 3] = 17, 42
    x, out = memory[3 :: 2**31], torch.zeros(2, dtype=torch.uint8)
    runs["far"]({"x": x, "out": out})
    assert out.tolist() == [17, 42]


# --- what overlaps ------------------------------------------------------------------------------------------------


def addresses(tensor: Tensor) -> list[int]:
    indices = itertools.product(*map(range, tensor.shape))
    return [
        tensor.storage_offset() + sum(i * s for i, s in zip(index, tensor.stride(), strict=True)) for index in indices
    ]


def random_view(memory: Tensor, draw: random.Random) -> Tensor:
    rank = draw.randrange(4)
    shape = [draw.randrange(1, 4) for _ in range(rank)]
    strides = [draw.choice((0, 1, 2, 3, 4, 6, 8, 12)) for _ in range(rank)]
    return memory.as_strided(shape, strides, draw.randrange(20))


def test_no_overlap_is_missed():
    draw, memory = random.Random(1), torch.zeros(200)
    told_apart = 0
    for _ in range(4000):
        a, b = random_view(memory, draw), random_view(memory, draw)
        mine, others = addresses(a), addresses(b)
        if len(set(mine)) < len(mine):
            assert overlaps_itself(a), (a.shape, a.stride())
        is_shared = not set(mine).isdisjoint(others)
        if is_shared:
            assert overlap(a, b), (a.shape, a.stride(), a.storage_offset(), b.shape, b.stride(), b.storage_offset())
        told_apart += not is_shared and not overlap(a, b)
    assert told_apart > 1000


def test_views_that_torch_makes_do_not_overlap_themselves():
    x = torch.zeros(4, 6, 8)
    for view in (x, x.transpose(0, 2), x[::2, 1:, ::3], x[:, 0], x[0, 0, 0], x[:0], x[:1].expand(1, 6, 8)):
        assert not overlaps_itself(view)
