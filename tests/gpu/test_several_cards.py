"""On two GPUs: calls on the one that is not current, arguments on both, and two processes with NCCL."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
if torch.cuda.device_count() < 2:
    pytest.skip(f"needs two GPUs, {torch.cuda.device_count()} here", allow_module_level=True)

from jaxtyping import Float32  # noqa: E402
from torch import Tensor  # noqa: E402

from py2cu import host  # noqa: E402
from tests.support.distributed import (  # noqa: E402
    bump,
    dtensors,
    first_call,
    on_processes,
    reversed_block,
    scaled,
    trained,
)

pytestmark = pytest.mark.gpu
CURRENT, OTHER = torch.device("cuda", 0), torch.device("cuda", 1)


@host
def scaled_sum(x: Float32[Tensor, "n m"], b: Float32[Tensor, "m"]):
    return scaled(x, b) + x


@host
def biased(x: Float32[Tensor, "n m"], b: Float32[Tensor, "m"]):
    return x + b


@pytest.fixture(autouse=True)
def _current_device_stays() -> Iterator[None]:
    torch.cuda.set_device(CURRENT)
    yield
    assert torch.cuda.current_device() == CURRENT.index


# --- one process ---


def on(device: torch.device) -> tuple[Tensor, Tensor]:
    x, b = torch.linspace(-2, 2, 96).reshape(32, 3), torch.tensor([1.0, 2.0, 3.0])
    return x.to(device), b.to(device)


def out_of(x: Tensor, b: Tensor) -> Tensor:
    out = torch.empty_like(x)
    scaled(x, b, out=out)
    return out


def launched(line: Tensor, out: Tensor) -> Tensor:
    reversed_block[1, 32](line, out)
    return out


def bumped(x: Tensor) -> Tensor:
    bump(x)
    return x


def gradients(x: Tensor, b: Tensor) -> list[Tensor]:
    leaves = [x.requires_grad_(), b.requires_grad_()]
    return [*torch.autograd.grad(scaled(*leaves).sum(), leaves)]


def built(x: Tensor, b: Tensor) -> list[Tensor]:
    scaled_sum.build()
    return [scaled_sum(x, b), scaled_sum.op(x, b), scaled_sum.python(x, b)]


WAYS: dict[str, tuple[Callable[[Tensor, Tensor], object], Callable[[Tensor, Tensor], object]]] = {
    "call": (scaled, lambda x, b: x * b + 1),
    "out": (out_of, lambda x, b: x * b + 1),
    "op": (lambda x, b: scaled.op(x, b), lambda x, b: x * b + 1),
    "launch": (lambda x, b: launched(x[:, 0].contiguous(), x.new_empty(32)), lambda x, b: x[:, 0].flip(0)),
    "in place": (lambda x, b: bumped(x.flatten()), lambda x, b: x.flatten() + 1),
    "gradients": (gradients, lambda x, b: [b.expand_as(x), x.sum(0)]),
    "host function": (built, lambda x, b: 3 * [x * b + 1 + x]),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_call_runs_on_the_card_of_its_arguments(way: str) -> None:
    ours, expected = WAYS[way]
    torch.testing.assert_close(ours(*on(OTHER)), expected(*on(OTHER)))  # the device, too


def test_arguments_of_a_kernel_on_two_cards_are_refused() -> None:
    (x, b), (x0, b0) = on(OTHER), on(CURRENT)
    for call in (scaled, scaled.op, scaled_sum):
        with pytest.raises(RuntimeError, match="`b` is on device 0 and `x` on device 1"):
            call(x, b0)
    with pytest.raises(RuntimeError, match="`out` is on device 0 and `x` on device 1"):
        scaled(x, b, out=torch.empty_like(x0))
    with pytest.raises(RuntimeError, match="`out` is on device 0 and `x` on device 1"):
        launched(torch.ones(32, device=OTHER), torch.ones(32, device=CURRENT))


def test_arguments_of_a_host_function_on_two_cards_are_refused() -> None:
    (x, _), (_, b) = on(OTHER), on(CURRENT)
    biased.build()
    with pytest.raises(RuntimeError, match="biased: `b` is on device 0 and `x` on device 1"):
        biased(x, b)


# --- two processes ---


@pytest.mark.parametrize("what", [dtensors, trained], ids=lambda what: what.__name__)
def test_kernels_under_nccl(tmp_path: Path, what: Callable[[str], None]) -> None:
    on_processes(tmp_path / "meeting", what, "cuda")


def test_a_new_kernel_that_both_processes_call_is_built_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PY2CU_CACHE_DIR", str(tmp_path / "cache"))
    on_processes(tmp_path / "meeting", first_call, "cuda")
