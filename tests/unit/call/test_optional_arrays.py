"""Calls that leave out arrays, or pass None for them."""

import pytest

torch = pytest.importorskip("torch")

from jaxtyping import Float32, Int32  # noqa: E402
from torch import Tensor  # noqa: E402

from py2cu import Index, kernel  # noqa: E402

pytestmark = pytest.mark.builds


@kernel(strided=True)
def linear(
    r: Index["m"],
    o: Index["n"],
    x: Float32[Tensor, "m k"],
    weight: Float32[Tensor, "n k"],
    out: Float32[Tensor, "m n"],
    bias: Float32[Tensor, "n"] | None = None,
):
    total = 0.0 if bias is None else bias[o]
    for j in range(x.shape[1]):
        total += x[r, j] * weight[o, j]
    out[r, o] = total


@kernel
def looked_up(
    i: Index["n"],
    x: Int32[Tensor, "n"],
    out: Int32[Tensor, "n"],
    table: Int32[Tensor, "k"] | None = None,
    seen: Int32[Tensor, "n"] | None = None,
):
    if seen is not None:
        seen[i] = x[i]
    if table is None:
        out[i] = -1
    else:
        out[i] = len(table)


@pytest.fixture(params=["compiled", "simulated"])
def run(request):
    """Makes a kernel something to call."""
    return (lambda k: k) if request.param == "compiled" else (lambda k: k.simulate)


X, WEIGHT, BIAS = torch.rand(3, 4), torch.rand(5, 4), torch.rand(5)


@pytest.mark.parametrize(
    ("args", "kwargs", "bias"),
    [
        ((X, WEIGHT), {}, None),
        ((X, WEIGHT, None), {}, None),
        ((X, WEIGHT), {"bias": None}, None),
        ((X, WEIGHT, BIAS), {}, BIAS),
        ((X, WEIGHT), {"bias": BIAS}, BIAS),
        ((X, WEIGHT, torch.empty(3, 5), BIAS), {}, BIAS),
        ((X, WEIGHT, torch.empty(3, 5), None), {}, None),
        ((X, WEIGHT), {"out": torch.empty(3, 5)}, None),
        ((X, WEIGHT, torch.rand(5, 2)[:, 0]), {}, ...),
    ],
)
def test_an_array_is_given_or_left_out(run, args, kwargs, bias):
    expected = torch.nn.functional.linear(X, WEIGHT, args[2] if bias is ... else bias)
    for _ in range(2):  # the second call has a plan
        torch.testing.assert_close(run(linear)(*args, **kwargs), expected)


def test_an_explicit_launch_takes_none(run):
    out = torch.empty(3, 5)
    run(linear)[(1, 1), (16, 16)](X, WEIGHT, out, None)
    torch.testing.assert_close(out, X @ WEIGHT.T)
    run(linear)[(1, 1), (16, 16)](X, WEIGHT, out, bias=BIAS)
    torch.testing.assert_close(out, X @ WEIGHT.T + BIAS)


def test_an_empty_array_is_not_none(run):
    x = torch.arange(3, dtype=torch.int32)
    assert run(looked_up)(x).tolist() == [-1] * 3
    assert run(looked_up)(x, torch.empty(0, dtype=torch.int32)).tolist() == [0] * 3
    assert run(looked_up)(x, table=torch.empty(7, dtype=torch.int32)).tolist() == [7] * 3


def test_an_array_that_is_written_is_filled_where_it_is_given(run):
    x, seen = torch.arange(3, dtype=torch.int32), torch.zeros(3, dtype=torch.int32)
    assert run(looked_up)(x, seen=seen).tolist() == [-1] * 3
    assert seen.tolist() == [0, 1, 2]


def test_a_given_array_is_checked(run):
    with pytest.raises(RuntimeError, match="dimension 0 of `bias` is `n` = 5, got 6"):
        run(linear)(X, WEIGHT, torch.rand(6))
    with pytest.raises(RuntimeError, match="`bias` must be float32, got float64"):
        run(linear)(X, WEIGHT, bias=BIAS.double())
    with pytest.raises(TypeError, match="takes a tensor as `bias`, got float"):
        run(linear)(X, WEIGHT, bias=1.0)
    with pytest.raises(TypeError, match="takes a tensor as `weight`, got NoneType"):
        run(linear)(X, None)
    x = torch.arange(4, dtype=torch.int32)
    with pytest.raises(RuntimeError, match="`seen` is written and overlaps `x` in memory"):
        run(looked_up)(x[:3], seen=x[1:])
    run(looked_up)(x, seen=x)  # one array: each thread reads the element that it writes
    assert x.tolist() == [0, 1, 2, 3]


def test_the_op_has_optional_tensors():
    schema = str(looked_up.op._schema).partition("(")[2]
    assert schema == "Tensor x, Tensor? table=None, Tensor(a!)? seen=None) -> Tensor"
    torch.testing.assert_close(linear.op(X, WEIGHT, BIAS), X @ WEIGHT.T + BIAS)
    with pytest.raises(RuntimeError, match="dimension 0 of `bias`"):
        linear.op(X, WEIGHT, BIAS[1:].clone())


def test_checks_leave_arrays_out():
    report = looked_up.check()
    assert report.ok
    assert report.checked
    assert looked_up.check(torch.arange(3, dtype=torch.int32)).ok


def test_the_header_counts_instances():
    assert "// table and seen may be null: the kernel has 8 instances.\n" in looked_up.header


@kernel
def shifted(i: Index["n"], by: Float32[Tensor, "n"], x: Float32[Tensor, "n"] | None = None):
    if x is not None:
        x[i] = 2 * x[i] + by[i]


@shifted.backward
def shifted_gradients(i: Index["n"], grad_by: Float32[Tensor, "n"], grad_x: Float32[Tensor, "n"] | None = None):
    grad_by[i] = 0.0
    if grad_x is not None:
        grad_by[i] = grad_x[i]
        grad_x[i] = 2 * grad_x[i]


@pytest.mark.parametrize("call", [shifted, lambda *args: shifted.op(*args)], ids=["call", "op"])
def test_a_recorded_call_may_leave_out_an_array_that_it_would_write(call):
    by, leaf = torch.rand(3).requires_grad_(), torch.rand(3).requires_grad_()
    for args in ((by,), (by, None), (by,)):
        assert call(*args) is None
        x = leaf.clone()
        call(by, x)
        x.sum().backward()
        assert by.grad.tolist() == [1] * 3
        assert leaf.grad.tolist() == [2] * 3
        by.grad = leaf.grad = None
