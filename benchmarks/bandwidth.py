"""Index kernels that memory bounds, beside torch's own operators and torch.compile, and beside one element a thread.

`python -m benchmarks bandwidth`, on a GPU. Every form is checked against torch first, on an output filled with NaN; the
inputs are larger than the caches. The second row of a kernel is the same kernel with `coarsen=1`.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import torch
from jaxtyping import Float, Float32, Int64, UInt8
from torch import Tensor
from torch.nn.functional import gelu

from benchmarks.gpu import in_turns
from benchmarks.table import Row
from py2cu import Index, kernel

COUNT: Final = 2**28
SIDE: Final = 16384
NOISE: Final = 0.01


def add(i: Index["n"], a: Float32[Tensor, "n"], b: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    out[i] = a[i] + b[i]


def sigmoid(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    if x[i] >= 0:
        res = 1.0 / (1.0 + math.exp(-x[i]))
    else:
        res = math.exp(x[i]) / (1.0 + math.exp(x[i]))
    out[i] = res


def gelu_erf(i: Index["n"], x: Float[Tensor, "n"], out: Float[Tensor, "n"]):
    out[i] = 0.5 * x[i] * (1 + math.erf(x[i] / math.sqrt(2.0)))


def gelu_tanh(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    cubed = x[i] * x[i] * x[i]
    out[i] = 0.5 * x[i] * (1 + math.tanh(0.7978845608028654 * (x[i] + 0.044715 * cubed)))


def gather(i: Index["n"], x: Float32[Tensor, "m"], at: Int64[Tensor, "n"], out: Float32[Tensor, "n"]):
    out[i] = x[at[i]]


def grayscale(i: Index["n"], x: UInt8[Tensor, "3 n"], out: UInt8[Tensor, "n"]):
    out[i] = 0.2989 * x[0, i] + 0.5870 * x[1, i] + 0.1140 * x[2, i]


def to_float(i: Index["n"], x: UInt8[Tensor, "n"], out: Float32[Tensor, "n"]):
    out[i] = x[i] / 255


def to_bytes(i: Index["n"], x: Float32[Tensor, "n"], out: UInt8[Tensor, "n"]):
    out[i] = x[i] * 255


def bias(r: Index["h"], c: Index["w"], a: Float32[Tensor, "h w"], b: Float32[Tensor, "w"], out: Float32[Tensor, "h w"]):
    out[r, c] = a[r, c] + b[c]


@dataclass(frozen=True)
class Case:
    """A kernel's function on inputs that `make` draws, and what torch computes; `is_eager`: by its own operator."""

    name: str
    function: Callable[..., None]
    make: Callable[[], list[Tensor]]
    peer: Callable[..., Tensor]
    ratio: float
    is_eager: bool = False
    tolerance: float | None = None


def _normal(dtype: torch.dtype = torch.float32, *, offset: int = 0) -> Tensor:
    return torch.randn(COUNT + offset, device="cuda", dtype=dtype)[offset:]


def _picture() -> Tensor:
    return torch.randint(0, 256, (3, SIDE * SIDE), dtype=torch.uint8, device="cuda")


def _near() -> Tensor:
    return (torch.arange(COUNT, device="cuda") + torch.randint(0, 32, (COUNT,), device="cuda")).clamp_(max=COUNT - 1)


CASES: Final = (
    Case("add f32", add, lambda: [_normal(), _normal()], lambda a, b: a + b, 1.0, is_eager=True),
    Case("sigmoid f32, two branches", sigmoid, lambda: [_normal()], torch.sigmoid, 1.01, tolerance=1e-6),
    Case("GELU erf f32", gelu_erf, lambda: [_normal()], gelu, 1.01, tolerance=1e-6),
    Case(
        "GELU tanh f32", gelu_tanh, lambda: [_normal()], lambda x: gelu(x, approximate="tanh"), 1.0, tolerance=1e-5
    ),
    Case("GELU erf f16", gelu_erf, lambda: [_normal(torch.float16)], gelu, 0.85, tolerance=5e-3),
    Case("GELU erf bf16", gelu_erf, lambda: [_normal(torch.bfloat16)], gelu, 0.85, tolerance=4e-2),
    Case("gather of near indexes f32", gather, lambda: [_normal(), _near()], lambda x, at: x[at], 0.85),
    Case(
        "add f32, views off by one", add, lambda: [_normal(offset=1), _normal(offset=1)], lambda a, b: a + b, 1.03,
        is_eager=True,
    ),
    Case(
        "grayscale u8, 3 planes", grayscale, lambda: [_picture()],
        lambda x: (0.2989 * x[0] + 0.5870 * x[1] + 0.1140 * x[2]).to(torch.uint8), 1.0, tolerance=1,
    ),
    Case("u8 to f32", to_float, lambda: [_picture()[0]], lambda x: x / 255, 1.0, tolerance=1e-6),
    Case(
        "f32 to u8", to_bytes, lambda: [torch.rand(COUNT, device="cuda")], lambda x: (x * 255).to(torch.uint8), 1.0,
        tolerance=1,
    ),
    Case(
        "a[r, c] + b[c] f32", bias,
        lambda: [torch.randn(SIDE, SIDE, device="cuda"), torch.randn(SIDE, device="cuda")], lambda a, b: a + b, 0.99,
    ),
)  # fmt: skip


def rows() -> Iterator[Row]:
    for case in CASES:
        yield from _rows(case)


def _rows(case: Case) -> Iterator[Row]:
    inputs = case.make()
    expected = case.peer(*inputs)
    out, other = torch.empty_like(expected), torch.empty_like(expected)
    if case.name.endswith("off by one"):
        out = torch.empty(COUNT + 1, device="cuda")[1:]
        other = torch.empty(COUNT + 1, device="cuda")[1:]
    peer = _eager(other, inputs) if case.is_eager else _compiled(case.peer, inputs)
    forms = [kernel(case.function), kernel(coarsen=1)(case.function)]
    calls: list[Callable[[], Any]] = [lambda form=form: form(*inputs, out=out) for form in forms]  # type: ignore[misc]
    for call in calls:
        out.fill_(float("nan") if out.is_floating_point() else 0)
        call()
        torch.testing.assert_close(out, expected, rtol=case.tolerance or 0, atol=case.tolerance or 0)
    del expected
    packed, single, theirs = in_turns(*calls, peer)
    moved = sum(tensor.numel() * tensor.element_size() for tensor in (*inputs, out))
    name = "torch.add(out=)" if case.is_eager else "torch.compile"
    met = packed / theirs <= case.ratio + NOISE
    yield Row(
        case.name,
        _speed(moved, packed),
        f"{name} {_speed(moved, theirs)}",
        packed / theirs,
        f"ratio ≤ {case.ratio:g}",
        met,
    )
    yield Row(f"{case.name}, coarsen=1", _speed(moved, single), f"{name} {_speed(moved, theirs)}", single / theirs)


def _eager(out: Tensor, inputs: list[Tensor]) -> Callable[[], Any]:
    return lambda: torch.add(*inputs, out=out)


def _compiled(function: Callable[..., Tensor], inputs: list[Tensor]) -> Callable[[], Any]:
    torch._dynamo.reset()
    compiled = torch.compile(function, dynamic=False)
    return lambda: compiled(*inputs)


def _speed(moved: int, seconds: float) -> str:
    return f"{moved / seconds / 1e12:.2f} TB/s"
