"""Calls that leave out numbers, or pass None for them."""

import pytest

torch = pytest.importorskip("torch")

from jaxtyping import Float32  # noqa: E402
from torch import Tensor  # noqa: E402

from py2cu import Index, kernel  # noqa: E402
from py2cu.call.launchers.launcher import Order, write_launcher  # noqa: E402
from py2cu.pipeline import lower_file  # noqa: E402
from py2cu.source import SourceFile  # noqa: E402
from py2cu.translation import TargetName  # noqa: E402

pytestmark = pytest.mark.builds


@kernel
def scaled(
    i: Index["n"],
    x: Float32[Tensor, "n"],
    out: Float32[Tensor, "n"],
    scale: float | None = None,
    shift: int | None = None,
    negates: bool | None = None,
):
    if scale is None:
        scale = 0.25
    v = scale * x[i]
    if shift is not None:
        v += shift
    out[i] = -v if negates is not None and negates else v


X = torch.rand(7)


@pytest.fixture(params=["compiled", "simulated"])
def run(request):
    """Makes a kernel something to call."""
    return (lambda k: k) if request.param == "compiled" else (lambda k: k.simulate)


@pytest.mark.parametrize(
    ("args", "kwargs", "expected"),
    [
        ((), {}, X / 4),
        ((None,), {}, X / 4),
        ((2,), {}, 2 * X),
        ((0.5, 3), {}, X / 2 + 3),
        ((None, 0, True), {}, -X / 4),
        ((), {"negates": True}, -X / 4),
        ((), {"shift": None, "scale": 0.0}, 0 * X),
        ((torch.empty(7), None, 1), {}, X / 4 + 1),
        ((torch.empty(7),), {"shift": 2}, X / 4 + 2),
    ],
)
def test_a_number_is_given_or_left_out(run, args, kwargs, expected):
    for _ in range(2):  # the second call has a plan
        torch.testing.assert_close(run(scaled)(X, *args, **kwargs), expected)


def test_an_explicit_launch_takes_none(run):
    out = torch.empty(7)
    run(scaled)[1, 32](X, out, None, None, None)
    torch.testing.assert_close(out, X / 4)
    run(scaled)[1, 32](X, out, 2.0, 1, negates=True)
    torch.testing.assert_close(out, -(2 * X + 1))


@pytest.mark.parametrize(
    ("args", "said"),
    [
        (("a",), "takes a number as `scale`, got str"),
        ((1.0, 2.5), "takes a whole number as `shift`, got float"),
        ((1.0, 2, 3), "takes a bool as `negates`, got int"),
    ],
)
def test_a_value_of_another_type_is_refused(run, args, said):
    with pytest.raises(TypeError, match=said):
        run(scaled)(X, *args)


def test_the_op_takes_none():
    assert str(scaled.op._schema).endswith(
        "(Tensor x, float? scale=None, SymInt? shift=None, bool? negates=None) -> Tensor"
    )
    torch.testing.assert_close(scaled.op(X), X / 4)
    torch.testing.assert_close(scaled.op(X, 2.0, None, True), -2 * X)
    torch.library.opcheck(scaled.op, (X, None, 3))


def test_a_compiled_function_calls_it():
    compiled = torch.compile(lambda x, scale: scaled(x, scale), backend="eager", fullgraph=True)
    torch.testing.assert_close(compiled(X, None), X / 4)
    torch.testing.assert_close(compiled(X, 3.0), 3 * X)


def test_a_check_leaves_numbers_out_and_gives_them():
    report = scaled.check()
    assert report.ok
    assert scaled.check(X, None, 2).ok


class Idle:
    """An engine that launches nothing."""

    is_cuda = False
    launch = "7q"

    def lines(self, names, program, values):
        return iter([f"values = {', '.join(values)}"])


@pytest.mark.parametrize("name", ["grad", "same", "alike"])
@pytest.mark.parametrize("value", [None, 2.0])
def test_a_number_may_have_any_name(name, value):
    """Launchers for CUDA compute the term: they have a name that says whether the number is given."""
    text = f"""
from jaxtyping import Float32
from torch import Tensor
from py2cu import Index, kernel

@kernel
def scaled(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"], {name}: float | None = None):
    out[i] = x[i] * (1.0 if {name} is None else {name})
"""
    lowered = lower_file(SourceFile("scaled.py", text))
    (signature,) = lowered.signatures
    (program,) = lowered.for_calls(TargetName.CUDA).text(TargetName.CUDA).programs_of(signature.op)
    assert program.values
    names = ("x", "out", name)
    order = Order.of(signature, names, (X, X, value), on_grid=False, of_call=True)
    launch = write_launcher(signature, program, order, (), Idle(), record=lambda *_: "recorded")
    for _ in range(3):
        out = torch.empty(7)
        assert launch(X, out, value) is out
        assert launch(X.clone().requires_grad_(), torch.empty(7), value) == "recorded"


@kernel
def affine(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"], self: float = 1.0, kernel: float = 2.0):
    out[i] = x[i] * self + kernel


def test_numbers_may_be_called_as_the_methods_call_their_own() -> None:
    uses = [affine, affine.simulate, affine.op, torch.compile(lambda x, **named: affine(x, **named))]
    for use in uses:
        torch.testing.assert_close(use(X, self=3.0, kernel=4.0), 3 * X + 4)
    assert affine.check(X, self=3.0, kernel=4.0).ok
    torch.compiler.reset()
