"""The kernels of examples whose threads work together, thread by thread: they are right, and nothing races.

Inputs are small and of odd sizes: the last block is not full. A row is a call, and what its outputs are to become.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor  # noqa: E402
from torch.nn import functional  # noqa: E402

from py2cu.simulator import SimulationWarning  # noqa: E402
from tests.support.modules import import_file  # noqa: E402

EXAMPLES = Path(__file__).parent.parent / "examples"
Outputs = dict[str, Tensor]


def example(name: str) -> ModuleType:
    return import_file(EXAMPLES / f"{name}.py")


@dataclass(frozen=True)
class Run:
    """One launch: the arguments, outputs among them, and the tensors that they are to become."""

    file: str
    kernel: str
    arguments: dict[str, Any]
    expected: Outputs
    launch: tuple[Any, Any] | None = None  # grid and block

    def __str__(self) -> str:
        return f"{self.file}.{self.kernel}"


def product(
    kernel: str, rows: int, inner: int, columns: int, launch: tuple[Any, Any] | None = None, **more: int
) -> Run:
    m, n = torch.rand(rows, inner), torch.rand(inner, columns)
    arguments = {"m": m, "n": n, "out": torch.zeros(rows, columns), **more}
    return Run("tiled_matmul", kernel, arguments, {"out": m @ n}, launch)


def runs() -> list[Run]:
    torch.manual_seed(0)
    rand, zeros = torch.rand, torch.zeros
    x, y = rand(2, 300)
    rows = torch.randn(2, 133)
    upstream = torch.randn(2, 133)
    softmax = torch.softmax(rows, 1)
    weight, bias = torch.randn(2, 133)
    mean = rows.mean(1)
    scale = (rows.var(1, correction=0) + 1e-5).rsqrt()
    leaves = [each.clone().requires_grad_() for each in (rows, weight, bias)]
    normed = functional.layer_norm(leaves[0], (133,), leaves[1], leaves[2])
    grad_x, grad_weight, grad_bias = torch.autograd.grad(normed, leaves, upstream)
    of_norm = {"x": rows, "mean": mean, "scale": scale, "grad_out": upstream}
    q, k, v = rand(2, 5, 8), rand(2, 35, 8), rand(2, 35, 8)
    picture = rand(18, 21)
    stencil, convolution, dequantise = example("stencil"), example("convolution"), example("dequantise")
    cooperative = example("cooperative")
    weights, column = torch.randn(2, 64), torch.randn(64)
    packed, scales, zeros_ = dequantise.quantise(weights)
    bytes_ = torch.randint(0, 7, (5000,), dtype=torch.uint8)
    return [
        product("matmul_static", 18, 19, 21),
        product("matmul_dynamic", 5, 7, 6, ((2, 2), (4, 4)), h=5, k=7, w=6, tw=4),
        product("matmul_template", 7, 5, 6, tile=4),
        product("matmul_registers", 5, 17, 67),
        Run("reductions", "tree_sums", {"x": x, "out": zeros(2)}, {"out": sums_of_blocks(x)}),
        Run("reductions", "warp_sums", {"x": x, "out": zeros(1)}, {"out": x.sum()[None]}),
        Run(
            "scan",
            "scan_blocks",
            {"x": x, "out": zeros(300), "totals": zeros(2)},
            {"out": torch.cat([x[:256].cumsum(0), x[256:].cumsum(0)]), "totals": sums_of_blocks(x)},
        ),
        Run("scan", "add_totals", {"out": x.clone(), "totals": y[:2]}, {"out": x + y[0] * (torch.arange(300) >= 256)}),
        Run("transpose", "transpose", {"x": picture, "out": zeros(21, 18)}, {"out": picture.T}),
        Run("bitonic_sort", "sort_rows", {"x": rows, "out": zeros(2, 133)}, {"out": rows.sort().values}),
        Run(
            "bitonic_sort",
            "compare_pairs",
            {"x": torch.tensor([3.0, 1, 2, 5, 1, 9, 4, 0]), "run": 4, "distance": 2},
            {"x": torch.tensor([2.0, 1, 3, 5, 4, 9, 1, 0])},
        ),
        Run(
            "stencil",
            "smooth",
            {"x": x, "out": zeros(300)},
            {"out": functional.avg_pool1d(x[None], 7, stride=1, padding=3)[0]},
        ),
        Run(
            "stencil",
            "diffuse",
            {"x": picture, "rate": 0.2, "out": zeros(18, 21)},
            {"out": stencil.diffused(picture, 0.2)},
        ),
        Run("rows", "softmax", {"x": rows, "out": zeros(2, 133)}, {"out": softmax}),
        Run(
            "rows",
            "softmax_backward",
            {"out": softmax, "grad_out": upstream, "grad_x": zeros(2, 133)},
            {"grad_x": softmax * (upstream - (softmax * upstream).sum(1, keepdim=True))},
        ),
        Run(
            "rows",
            "layer_norm",
            {"x": rows, "weight": weight, "bias": bias, "eps": 1e-5}
            | {"out": zeros(2, 133), "mean": zeros(2), "scale": zeros(2)},
            {"out": normed.detach(), "mean": mean, "scale": scale},
        ),
        Run("rows", "layer_norm_backward", of_norm | {"weight": weight, "grad_x": zeros(2, 133)}, {"grad_x": grad_x}),
        Run(
            "rows",
            "layer_norm_backward_weights",
            of_norm | {"grad_weight": zeros(133), "grad_bias": zeros(133)},
            {"grad_weight": grad_weight, "grad_bias": grad_bias},
        ),
        Run(
            "attention",
            "attention",
            {"q": q, "k": k, "v": v, "out": zeros(2, 5, 8), "d": 8},
            {"out": functional.scaled_dot_product_attention(q, k, v)},
        ),
        Run(
            "convolution",
            "convolve",
            {"x": picture, "out": zeros(18, 21)},
            {
                "out": functional.conv2d(picture[None, None], torch.tensor(convolution.FILTER)[None, None], padding=2)[
                    0, 0
                ]
            },
        ),
        Run(
            "dequantise",
            "matvec",
            {"packed": packed, "scales": scales, "zeros": zeros_, "x": column, "out": zeros(2)},
            {"out": dequantise.dequantise(packed, scales, zeros_) @ column},
        ),
        Run(
            "cooperative",
            "total",
            {"x": x, "sums": zeros(3), "out": zeros(1)},
            {"out": x.sum()[None]},
        ),
        Run(
            "cooperative",
            "relax",
            {"x": x.clone(), "other": zeros(300), "steps": 4},
            {"x": cooperative.relaxed(x, 4)},
        ),
        Run(
            "histogram",
            "histogram",
            {"x": bytes_, "counts": zeros(256, dtype=torch.int32)},
            {"counts": torch.bincount(bytes_, minlength=256).int()},
        ),
    ]


def sums_of_blocks(x: Tensor) -> Tensor:
    return torch.stack([each.sum() for each in x.split(256)])


def is_long(run: Run) -> bool:
    return run.kernel == "matmul_registers"


@pytest.mark.parametrize(
    "run", [pytest.param(run, marks=[pytest.mark.slow] if is_long(run) else []) for run in runs()], ids=str
)
def test_example_is_right_and_nothing_races(run):
    kernel = getattr(example(run.file), run.kernel)
    launched = kernel.simulate if run.launch is None else kernel.simulate[run.launch]
    with warnings.catch_warnings():
        warnings.simplefilter("error", SimulationWarning)
        launched(**run.arguments, sanitize=True)
    for name, expected in run.expected.items():
        torch.testing.assert_close(run.arguments[name], expected, rtol=1e-4, atol=1e-4)
