"""Arrays that are like those of an earlier call need no tests of their own; all others are tested one by one."""

import contextlib
from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from jaxtyping import Float32  # noqa: E402
from torch import Tensor  # noqa: E402

from py2cu import Index, Kernel, kernel  # noqa: E402
from py2cu.call.launchers import likeness  # noqa: E402
from py2cu.call.launchers.likeness import Likeness  # noqa: E402

pytestmark = pytest.mark.builds


def learned(*arrays: Tensor) -> Callable[..., bool]:
    made = Likeness(len(arrays))
    made.learn(*arrays)
    return made.alike[0]


def test_extents_and_strides_do_not_matter() -> None:
    is_alike = learned(torch.zeros(2, 3), torch.zeros(()))
    assert is_alike(torch.zeros(8, 12)[::2, 1:].t(), torch.ones(()))


@pytest.mark.parametrize(
    "other",
    [
        torch.zeros(4, 1),
        torch.zeros(4).double(),
        torch.zeros(4, device="meta"),
        torch.zeros(4, requires_grad=True),
        torch.nn.Parameter(torch.zeros(4), requires_grad=False),
        torch._neg_view(torch.zeros(4)),
        torch.zeros(4).to_sparse(),
        torch._efficientzerotensor((4,)),
    ],
    ids=["rank", "dtype", "device", "requires grad", "type", "negation", "layout", "zeros"],
)
def test_another_kind_of_array_is_not_alike(other: Tensor) -> None:
    is_alike = learned(torch.zeros(4), torch.zeros(4))
    assert not is_alike(torch.zeros(4), other)
    assert is_alike(torch.zeros(4), torch.ones(4))


def test_what_is_active_is_not_alike() -> None:
    x = torch.zeros(4)
    is_alike = learned(x)
    found = []
    with torch.inference_mode():
        found += [is_alike(x), is_alike(torch.zeros(4))]
    with torch.autocast("cpu"):
        found.append(is_alike(x))

    def add(each: Tensor) -> Tensor:
        found.append(is_alike(x))
        return each + 1

    torch.vmap(add)(torch.zeros(2))
    torch.func.grad(lambda each: add(each).sum())(torch.zeros(2))
    torch.jit.trace(add, torch.zeros(2), check_trace=False)
    assert found == [False] * 6
    assert is_alike(x)


def test_an_array_that_is_passed_twice_is_compared_once() -> None:
    x, y, wrong = torch.zeros(4), torch.ones(4), torch.zeros(4).double()
    is_alike = learned(x, y, x, x)
    assert is_alike(y, torch.zeros(8), y, y)
    for others in ((x, y, x, wrong), (x, y, wrong, x), (x, y, wrong, wrong), (wrong, y, wrong, wrong), (x, x, x, x)):
        assert not is_alike(*others)
    assert not learned(x, y)(x, x)


def test_calls_in_place_and_of_one_array_twice() -> None:
    for extent in (4, 4, 4, 5, 4, 4):
        x = torch.arange(1.0 * extent)
        y = x.clone()
        for _ in range(3):
            assert twice(y, y) is y
        assert torch.equal(y, 8 * x)
        with pytest.raises(RuntimeError, match="out"):
            twice(x, torch.empty(extent + 1))
        assert torch.equal(twice(x, torch.empty(extent)), 2 * x)


def test_only_so_many_are_learned() -> None:
    made = Likeness(1)
    for rank in range(40):
        made.learn(torch.zeros([1] * (rank % 2)))
    assert not made.alike[0](torch.zeros(()))
    assert made.alike[0](torch.zeros(3))


def test_same_arrays_have_the_same_extents_and_strides() -> None:
    made = Likeness(2)
    made.remember((torch.zeros(2, 3), torch.zeros(())), -1, False, False, (2, 3), ())
    is_same, *facts = made.same
    assert facts == [-1, False, False, (2, 3), ()]
    assert is_same(torch.ones(2, 3), torch.zeros(()))
    for other in (torch.zeros(2, 4), torch.zeros(3, 2).t(), torch.zeros(2, 3, requires_grad=True)):
        assert not is_same(other, torch.zeros(()))


def test_two_calls_are_remembered() -> None:
    made, a, b, c = Likeness(1), torch.zeros(1), torch.zeros(2), torch.zeros(3)

    def recall(array: Tensor) -> object:
        is_same, *_, fact = made.same
        if not is_same(array):
            is_same, *_, fact = made.other()
        if not is_same(array):
            made.remember([array], -1, False, False, len(array))
            return None
        return fact

    assert [recall(each) for each in (a, b, a, b, b)] == [None, None, 1, 2, 2]
    assert [recall(each) for each in (c, c, c, a, b)] == [None, None, 3, 1, None]  # after four in place of another


def test_shapes_are_remembered_ever_more_rarely() -> None:
    made, remembered = Likeness(1), []
    for extent in range(1, 40):
        made.remember([torch.zeros(extent)], -1, False, False, (extent,))
        remembered.append(made.same[-1][0])
    assert [*dict.fromkeys(remembered)] == [1, 2, 4, 8, 16, 32]


def test_calls_of_many_shapes_are_checked() -> None:
    for extent in (*range(1, 20), 4, 4, 4, 0, 4):
        x, out = torch.arange(1.0 * extent), torch.empty(extent)
        assert torch.equal(twice(x, out), 2 * x)
        with pytest.raises(RuntimeError, match="out"):
            twice(x, torch.empty(extent + 1))
        with pytest.raises(RuntimeError, match="contiguous"):
            twice(torch.zeros(max(extent, 2), 2)[:, 0], torch.empty(max(extent, 2)))


@pytest.mark.parametrize("before", [torch.inference_mode, torch._C._AutoDispatchBelowAutograd, contextlib.nullcontext])
def test_an_inference_tensor_is_refused_after_a_call_without_autograds_keys(before: Callable[..., Any]) -> None:
    fresh = Kernel(twice.python)
    with torch.inference_mode():
        x, made = torch.zeros(4), torch.zeros(4)
    with before():
        for _ in range(3):
            fresh(torch.zeros(4), torch.zeros(4))
    for given in (x, torch.zeros(4)) * 2:
        with pytest.raises(RuntimeError, match="inference tensor"):
            fresh(given, made)
        assert fresh(given, torch.zeros(4)).tolist() == [0.0] * 4


def test_a_negative_view_does_not_teach_that_its_copy_requires_grad() -> None:
    with torch.no_grad():
        added(torch._neg_view(torch.ones(4)).requires_grad_(), torch.zeros(4))
    view = torch.zeros(2, 4)[0]  # which autograd refuses to record beside another output
    assert added(torch.ones(4), view).tolist() == [2.0] * 4
    assert view.tolist() == [1.0] * 4


@kernel
def added(i: Index["n"], x: Float32[Tensor, "n"], total: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    total[i] += x[i]
    out[i] = x[i] + 1


@kernel
def twice(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    out[i] = x[i] + x[i]


@twice.backward
def twice_gradient(i: Index["n"], grad_out: Float32[Tensor, "n"], grad_x: Float32[Tensor, "n"]):
    grad_x[i] = 2 * grad_out[i]


@pytest.mark.parametrize("guards", [likeness.Guards, None], ids=["at once", "one by one"])
def test_gradients_are_recorded_after_calls_without(guards: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(likeness, "Guards", guards)
    x = torch.arange(4.0, requires_grad=True)
    with torch.no_grad():
        for _ in range(3):
            assert not twice(x).requires_grad
    for extent in (4, 4, *range(1, 8)):
        for given in (torch.zeros(extent, requires_grad=True), torch.zeros(2 * extent, requires_grad=True)):
            assert twice(given).requires_grad
        assert not twice(given.detach()).requires_grad
    twice(x).sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [2.0] * 4
