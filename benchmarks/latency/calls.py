"""A call in each of its forms, of 256 floats on a GPU and of 16 on the CPU target, by the host's clock.

All calls of a device are measured in the same rounds: plain calls beside torch's own operator, further forms beside the
plain call with as many arrays, the operator beside one by `torch.library.custom_op`, recorded calls beside an
`autograd.Function` written by hand. Targets that speak of earlier times need `--beside`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

import torch
from torch import Tensor

from benchmarks.latency import kernels as k
from benchmarks.latency.beside import Beside
from benchmarks.latency.operators import NAMESPACE, ByHand, by_custom_op
from benchmarks.latency.rounds import Options, Plan, chosen, each, measured, synchronize
from benchmarks.table import Row

GIVEN, FRESH = "torch.add(out=)", "torch.add"
TWO, TWO_BY_NAME, THREE, FOUR = "k(a, o)", "k(a, out=o)", "k(a, b, o)", "k(a, b, c, o)"
CUSTOM, CUSTOM_BY_NAME = "custom_op", "torch.ops of custom_op"
FUNCTION, FUNCTION_BACKWARD = "autograd.Function", "autograd.Function and its backward"

# Call, peer, greatest ratio on a GPU.
PLAIN: Final = (
    (THREE, GIVEN, 1.5),
    ("k(a, b, out=o)", GIVEN, 1.6),
    ("k[grid, block](a, b, o)", GIVEN, 1.7),
    ("k(a, b)", FRESH, 1.8),
)
# Call, peer, greatest ratio on either device.
FORMS: Final = (
    ("call with strided arrays", THREE, 1.3),
    ("call with an optional array", THREE, 1.3),
    ("call without an optional array", TWO_BY_NAME, 1.3),
    ("call with a default left out", TWO, 1.3),
    ("call with a template argument", TWO, 1.3),
    ("call with a generic dtype", THREE, 1.3),
    ("call with three outputs given", FOUR, 1.3),
    ("call with one array twice", FOUR, 1.3),
    ("call with a tuple", TWO, 1.5),
)
OPERATORS: Final = (
    ("operator k.op(a, b)", CUSTOM, 1.5),
    ("operator torch.ops.py2cu.NAME(a, b)", CUSTOM_BY_NAME, 1.5),
)
RECORDED: Final = (
    ("recorded call", FUNCTION, 1.25),
    ("recorded call and its backward", FUNCTION_BACKWARD, 1.25),
)
# Greatest ratios to an earlier py2cu, the first ones on the CPU target alone.
PLAIN_BESIDE: Final = {name: 1.0 if peer == FRESH else 1.1 for name, peer, _ in PLAIN}
OPERATOR_BESIDE: Final = 0.5


def rows(device: str, options: Options) -> Iterator[Row]:
    with Beside(options.beside, device) as beside:
        plans = chosen(_plans(device, beside), options)
        if not plans:
            return
        made = calls(device)
        needed = {name for plan in plans for name in plan.measures}
        for name, call in made.items():
            if name in needed:
                call.check()
        measures = {name: functools.partial(each, call.run) for name, call in made.items()}
        others = {beside.name_of(name): functools.partial(beside.measure, name) for name in made}
        yield from measured(plans, measures | others, options.rounds)


def _plans(device: str, beside: Beside) -> Iterator[Plan]:
    end = f", {_size(device)} floats, {device}"
    on_gpu = device == "cuda"
    for call, peer, ratio in PLAIN:
        yield Plan(f"call {call}{end}", (call,), peer, ratio if on_gpu else None)
    for call, peer, ratio in (*FORMS, *OPERATORS):
        yield Plan(call + end, (call,), peer, ratio)
    for call, _, _ in OPERATORS:
        yield Plan(call + end, (call,), FRESH)
    for call, peer, ratio in RECORDED:
        yield Plan(call + end, (call,), peer, ratio)
    if beside.tree:
        for call, ratio in PLAIN_BESIDE.items():
            yield Plan(f"call {call}{end}", (call,), beside.name_of(call), None if on_gpu else ratio)
        for call, _, _ in OPERATORS:
            yield Plan(call + end, (call,), beside.name_of(call), OPERATOR_BESIDE)
        for call, _, _ in (*FORMS, *RECORDED):
            yield Plan(call + end, (call,), beside.name_of(call))


def _size(device: str) -> int:
    return 256 if device == "cuda" else 16


@dataclass(frozen=True)
class Call:
    """Something to time. It writes `given`, or returns its results where nothing is given."""

    run: Callable[[], object]
    expected: Tensor | tuple[Tensor, ...]
    given: Tensor | tuple[Tensor, ...] = ()

    def check(self) -> None:
        given = _tuple(self.given)
        for tensor in given:
            tensor.zero_()
        returned = self.run()
        synchronize()
        for result, expected in zip(given or _tuple(returned), _tuple(self.expected), strict=True):
            torch.testing.assert_close(result.detach(), expected)


def _tuple(values: Any) -> tuple[Tensor, ...]:
    return values if isinstance(values, tuple) else (values,)


def calls(device: str) -> dict[str, Call]:
    """Every call by its name, with kernels of `kernels.py`."""
    a, b, c, x, y, z = (torch.rand(_size(device), device=device) for _ in range(6))
    o = torch.empty_like(a)
    a2, b2, o2 = (torch.rand(2 * _size(device), device=device)[::2] for _ in range(3))
    twice, total = a + a, a + b
    return {
        GIVEN: Call(lambda: torch.add(a, b, out=o), total, o),
        FRESH: Call(lambda: torch.add(a, b), total),
        TWO: Call(lambda: k.two(a, o), twice, o),
        TWO_BY_NAME: Call(lambda: k.two(a, out=o), twice, o),
        THREE: Call(lambda: k.three(a, b, o), total, o),
        FOUR: Call(lambda: k.four(a, b, c, o), total + c, o),
        "k(a, b, out=o)": Call(lambda: k.three(a, b, out=o), total, o),
        "k[grid, block](a, b, o)": Call(lambda: k.three[1, 256](a, b, o), total, o),
        "k(a, b)": Call(lambda: k.three(a, b), total),
        "call with strided arrays": Call(lambda: k.strided(a2, b2, o2), a2 + b2, o2),
        "call with an optional array": Call(lambda: k.optional(a, o, b), total, o),
        "call without an optional array": Call(lambda: k.optional(a, out=o), twice, o),
        "call with a default left out": Call(lambda: k.default(a, o), twice, o),
        "call with a template argument": Call(lambda: k.template(a, o, 2), twice, o),
        "call with a generic dtype": Call(lambda: k.generic(a, b, o), total, o),
        "call with three outputs given": Call(lambda: k.outputs(a, x, y, z), (twice,) * 3, (x, y, z)),
        "call with one array twice": Call(lambda: k.four(a, b, a, o), total + a, o),
        "call with a tuple": Call(lambda: k.pair(a, o, (0.5, 1.5)), twice, o),
        **_operators(a, b),
        **_recorded(a, b),
    }


def _operators(a: Tensor, b: Tensor) -> dict[str, Call]:
    custom, customs, ours = by_custom_op(), getattr(torch.ops, NAMESPACE), torch.ops.py2cu
    name = k.three.op.overloadpacket.__name__
    return {
        "operator k.op(a, b)": Call(lambda: k.three.op(a, b), a + b),
        "operator torch.ops.py2cu.NAME(a, b)": Call(lambda: getattr(ours, name)(a, b), a + b),
        CUSTOM: Call(lambda: custom(a, b), a + b),
        CUSTOM_BY_NAME: Call(lambda: customs.three(a, b), a + b),
    }


def _recorded(a: Tensor, b: Tensor) -> dict[str, Call]:
    inputs = a.clone().requires_grad_(), b.clone().requires_grad_()
    upstream = torch.ones_like(a)
    by_hand: Callable[[Tensor, Tensor], Tensor] = getattr(ByHand, "apply")  # noqa: B009 - torch leaves it untyped

    def gradients(function: Callable[[Tensor, Tensor], Tensor]) -> Call:
        return Call(lambda: torch.autograd.grad(function(*inputs), inputs, upstream), (b, a))

    return {
        "recorded call": Call(lambda: k.product(*inputs), a * b),
        "recorded call and its backward": gradients(k.product),
        FUNCTION: Call(lambda: by_hand(*inputs), a * b),
        FUNCTION_BACKWARD: gradients(by_hand),
    }
