"""Calls that pass tuples of numbers: which calls fit, what the messages say, and what the launcher gets."""

import pickle

import pytest

torch = pytest.importorskip("torch")

from jaxtyping import Float, Float32  # noqa: E402
from torch import Tensor  # noqa: E402

from py2cu import Constexpr, Index, kernel  # noqa: E402

SIZE = (2, 3)


@kernel
def pushed(
    i: Index["n"],
    x: Float32[Tensor, "n"],
    out: Float32[Tensor, "n"],
    size: tuple[int, int],
    force: tuple[float, float] = (0.5, 0.0),
    *,
    seed: tuple[bool, int] = (True, 7),
):
    v = x[i] * force[0] + force[1]
    for s in size:
        v += s
    out[i] = v + seed[1] if seed[0] else v


@kernel
def rounds(
    i: Index["n"],
    x: Float[Tensor, "n"],
    out: Float[Tensor, "n"],
    size: tuple[int, int] = SIZE,
    count: Constexpr[int] = 2,
):
    v = 0.0
    for _ in range(count):
        v += x[i] * size[0] + size[1]
        size = size[1], size[0]
    out[i] = v


@pushed.backward
def pushed_backward(
    i: Index["n"],
    grad_out: Float32[Tensor, "n"],
    grad_x: Float32[Tensor, "n"],
    force: tuple[float, float],
):
    grad_x[i] = force[0] * grad_out[i]


X = torch.arange(7.0)


@pytest.fixture(params=["compiled", "simulated"])
def run(request):
    """Makes a kernel something to call."""
    return (lambda k: k) if request.param == "compiled" else (lambda k: k.simulate)


@pytest.mark.builds
@pytest.mark.parametrize(
    ("args", "kwargs", "expected"),
    [
        ((X, (1, 2)), {}, X / 2 + 10),
        ((X, [1, 2], (2, 1)), {}, 2 * X + 11),
        ((X,), {"size": (1, 2), "seed": [False, 0]}, X / 2 + 3),
        ((), {"force": (2.0, 1), "size": (1, 2), "x": X}, 2 * X + 11),
        ((X, torch.empty(7), (1, 2), (2.0, 1.0)), {}, 2 * X + 11),
        ((X, (1, 2)), {"out": torch.empty(7), "seed": (True, -3)}, X / 2),
    ],
)
def test_tuples_and_lists_are_passed_and_left_out(run, args, kwargs, expected):
    for _ in range(2):  # the second call has a plan
        torch.testing.assert_close(run(pushed)(*args, **kwargs), expected)


@pytest.mark.builds
def test_a_tuple_of_another_length_is_refused_by_name_in_a_recorded_call():
    x = X.clone().requires_grad_()
    for good in (x.detach(), x):
        pushed(good, (1, 2))
        with pytest.raises(TypeError, match="takes a tuple of 2 numbers as `size`, got one of 1"):
            pushed(x, (1,))


@pytest.mark.builds
def test_a_generic_template_takes_tuples(run):
    for x in (X, X.double()):
        torch.testing.assert_close(run(rounds)(x), 5 * x + 5)
        torch.testing.assert_close(run(rounds)(x, (4, 5), 1), 4 * x + 5)
        torch.testing.assert_close(run(rounds)(x, count=3, size=[4, 5]), 13 * x + 14)


@pytest.mark.builds
@pytest.mark.parametrize("kwargs", [{}, {"force": (1.0, 1.0)}, {"seed": (True, 1)}])
def test_an_explicit_launch_takes_tuples_in_order(run, kwargs):
    out = torch.empty(7)
    run(pushed)[1, 32](X, out, (1, 2), **kwargs)
    torch.testing.assert_close(out, pushed(X, (1, 2), **kwargs))
    with pytest.raises(TypeError, match=r"takes a tensor as `out`, got tuple; .* in order: x, out, size, force"):
        run(pushed)[1, 32](X, (1, 2), out)


@pytest.mark.builds
def test_checks_draw_each_number():
    assert pushed.check() and rounds.check()
    assert pushed.check(X, (1, 2), force=(0.1, 0.2))


@pytest.mark.builds
@pytest.mark.parametrize("by_name", [False, True])
def test_compiled_functions_pass_tuples(by_name):
    def called(x, force):
        return pushed(x, (1, 2), force=force) if by_name else pushed(x, [1, 2], force)

    compiled = torch.compile(called, fullgraph=True, backend="eager")
    for force in ((0.25, 1.0), (0.75, 2.0), [1.0, 0.0]):
        torch.testing.assert_close(compiled(X, force), called(X, force))


@pytest.mark.builds
def test_compiled_functions_refuse_other_lengths():
    with pytest.raises(TypeError, match=r"takes a tuple of 2 numbers as `size`, got one of 3"):
        torch.compile(lambda x: pushed(x, (1, 2, 3)), backend="eager")(X)


@pytest.mark.builds
def test_backwards_take_the_same_tuples():
    x = X.clone().requires_grad_()
    pushed(x, (1, 2), (3.0, 1.0)).sum().backward()
    torch.testing.assert_close(x.grad, torch.full_like(X, 3.0))


@pytest.mark.builds
def test_signatures_with_tuples_are_pickled():
    assert pickle.loads(pickle.dumps(pushed.signature)) == pushed.signature
    torch.testing.assert_close(pickle.loads(pickle.dumps(pushed))(X, (1, 2)), pushed(X, (1, 2)))


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((X,), {}, "is missing `size`"),
        ((), {"x": X}, "is missing `size`"),
        ((X, 1, 2), {}, "takes a tuple of 2 numbers as `size`, got int"),
        ((X,), {"size": 3}, "takes a tuple of 2 numbers as `size`, got int"),
        ((X,), {"size": torch.ones(2)}, "takes a tuple of 2 numbers as `size`, got Tensor"),
        ((X, (1, 2, 3)), {}, "takes a tuple of 2 numbers as `size`, got one of 3"),
        ((X, (1, 2)), {"force": ()}, "takes a tuple of 2 numbers as `force`, got one of 0"),
        ((X, (1.0, 2)), {}, "takes a whole number as `size[0]`, got float"),
        ((X,), {"size": (1, "2")}, "takes a whole number as `size[1]`, got str"),
        ((X, (1, 2), (1, 2), (True, 1)), {}, "takes a tensor as `out`, got tuple"),
        ((X, (1, 2)), {"size": (1, 2)}, "got `size` twice"),
        ((X, (1, 2)), {"size_0": 1}, "has no parameter `size_0`"),
        (((1, 2), X), {}, "takes a tensor as `x`, got tuple"),
    ],
)
def test_other_arguments_are_refused(args, kwargs, message):
    usage = "pushed(x, size, force=(0.5, 0.0), out=None, *, seed=(True, 7)) "
    for call in (pushed, pushed.simulate):
        with pytest.raises(TypeError) as caught:
            call(*args, **kwargs)
        assert str(caught.value).startswith(usage + message)


def test_defaults_of_named_tuples_are_shown():
    with pytest.raises(TypeError, match=r"^rounds\(x, size=\(2, 3\), count=2, out=None\) is missing `x`"):
        rounds()
