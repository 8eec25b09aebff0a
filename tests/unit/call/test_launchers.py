"""What a launcher leaves to torch's dispatcher, and what it leaves behind: no argument, no second launch, no op."""

import gc
import math
import weakref
from collections.abc import Callable

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from jaxtyping import Float, Float32  # noqa: E402
from torch import Tensor  # noqa: E402
from torch.autograd.graph import saved_tensors_hooks  # noqa: E402

from py2cu import Index, kernel, shared, syncthreads  # noqa: E402

pytestmark = pytest.mark.builds


@kernel
def plus(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    out[i] = x[i] + 1


@kernel
def plus_each(r: Index["h"], c: Index["w"], x: Float32[Tensor, "h w"], out: Float32[Tensor, "h w"]):
    out[r, c] = x[r, c] + 1


@kernel
def grow(i: Index["n"], x: Float32[Tensor, "n"], by: Float32[Tensor, "n"]):
    x[i] = x[i] * by[i] + 1


@grow.backward
def grow_grad(i: Index["n"], by: Float32[Tensor, "n"], grad_x: Float32[Tensor, "n"]):
    grad_x[i] = grad_x[i] * by[i]


@kernel
def cut(i: Index["n-k"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n-k"], k: int):
    out[i] = x[i + k]


@kernel(size="n", block=4)
def exchanged(threadIdx, blockIdx, x: Float32[Tensor, "n"], h: int, w: int):
    tile = shared((h, w), np.float32)
    i = blockIdx * 4 + threadIdx
    tile[threadIdx, 0] = x[i]
    syncthreads()
    x[i] = tile[3 - threadIdx, 0]


@pytest.mark.parametrize(("h", "w"), [(100_000, 100_000), (2**31 - 1, 2**31 - 1)])
def test_more_shared_memory_than_there_is(h: int, w: int) -> None:
    x = torch.arange(8.0)
    exchanged(x, 4, 1)
    assert x.tolist() == [3, 2, 1, 0, 7, 6, 5, 4]
    for _ in range(2):
        with pytest.raises(RuntimeError, match=f"exchanged: a block has at most 2147483647 bytes .* got {4 * h * w}"):
            exchanged(x, h, w)


def plain() -> Tensor:
    return torch.arange(4.0)


@pytest.mark.parametrize("error", [RuntimeError, ValueError, KeyError])
def test_a_recorded_call_whose_hook_fails_has_run_once(error: type[Exception]):
    grow(plain(), plain())  # later calls have a launcher
    x = plain().requires_grad_() * 1

    def fail(_: Tensor) -> Tensor:
        raise error("hook")

    with pytest.raises(error, match="hook"), saved_tensors_hooks(fail, lambda kept: kept):
        grow(x, torch.full((4,), 3.0))
    assert x.tolist() == [1, 4, 7, 10]
    assert x._version == 1


def in_device_mode(x: Tensor) -> None:
    with torch.device("cpu"):
        plus(x)


def refused(x: Tensor) -> None:
    with pytest.raises(RuntimeError):
        plus(x, out=torch.empty(5))


@pytest.mark.parametrize(
    "call",
    [in_device_mode, refused, lambda x: torch.vmap(lambda y: plus(y) + plus(x))(torch.ones(2, 4))],
)
def test_a_call_that_its_launcher_refuses_keeps_no_tensor(call: Callable[[Tensor], object]):
    plus(plain(), out=plain())
    plus(plain())
    x = plain()
    known = weakref.ref(x)
    call(x)
    del x
    gc.collect()
    assert known() is None


def test_an_op_goes_with_its_kernel():
    def made():
        @kernel
        def generic(i: Index["n"], x: Float[Tensor, "n"], out: Float[Tensor, "n"]):
            out[i] = x[i] + 3

        return generic

    shortlived = made()
    shortlived(plain())
    shortlived(plain().requires_grad_())
    shortlived.op(plain())
    name = shortlived.op.name().split("::")[1]
    assert name in vars(torch.ops.py2cu)
    del shortlived
    gc.collect()
    assert name not in vars(torch.ops.py2cu)


def test_a_profiler_sees_plain_calls():
    plus(plain())
    with torch.autograd.profiler.profile() as profile:
        plus(plain())
        plus[1, 4](plain(), plain())
    seen = [event.key for event in profile.key_averages() if "::plus" in event.key]
    assert sum(each.count for each in profile.key_averages() if each.key in seen) == 2


def test_a_functional_tensor_goes_through_the_op():
    for _ in range(2):
        out = plus(torch._to_functional_tensor(plain()))
        assert torch._from_functional_tensor(out).tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize(
    "x",
    [
        torch.arange(21.0).view(3, 7)[:1, :3],
        torch.arange(9.0).as_strided((3, 1), (1, 9)),
        torch.arange(9.0).as_strided((1, 1), (4, 5)),
        torch.empty(0).as_strided((0, 5), (1, 1)),
    ],
)
def test_an_allocated_output_has_the_strides_of_a_new_tensor(x: Tensor):
    for _ in range(2):
        assert plus_each(x).stride() == torch.empty(x.shape).stride()


def test_messages_of_refused_calls_have_no_context():
    with pytest.raises(RuntimeError, match="dimension 0 of `out` is `n - k` = -1") as caught:
        cut(plain(), 5)
    assert caught.value.__context__ is None
    with pytest.raises(RuntimeError, match=f"`n - k` = {2**63 + 4}"):
        cut(plain(), -(2**63))


def test_a_meta_tensor_is_refused_as_such():
    with pytest.raises(RuntimeError, match="`x` is on meta"):
        plus(plain().to("meta"))


@pytest.mark.parametrize("given", [0.0, -0.0])
def test_an_optional_number_keeps_the_sign_of_zero(given: float):
    for _ in range(2):
        assert math.copysign(1, optional(torch.ones(1), given).item()) == math.copysign(1, given)


@kernel
def optional(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"], by: float | None = None):
    out[i] = x[i] if by is None else x[i] * by


@kernel
def pushed(
    i: Index["n"],
    x: Float32[Tensor, "n"],
    out: Float32[Tensor, "n"],
    force: tuple[float, float] = (1.0, 2.0),
    flags: tuple[bool, int] = (True, 1),
):
    out[i] = x[i] * force[0] + force[1] + (flags[1] if flags[0] else 0)


@pytest.mark.parametrize(
    "named",
    [
        {"force": (None, 1.0)},
        {"force": (torch.tensor(1.0), 1.0)},
        {"force": ("1", 1.0)},
        {"force": (1j, 1.0)},
        {"flags": ("no", 1)},
        {"flags": (1, 1)},
        {"flags": (True, torch.tensor(1))},
        {"flags": (True, 1.0)},
    ],
)
def test_a_later_call_reads_the_types_in_a_tuple(named: dict[str, object]):
    pushed(plain(), force=(1.0, 2.0))
    pushed(plain(), flags=(True, 1))
    with pytest.raises(TypeError, match="takes a"):
        pushed(plain(), **named)
