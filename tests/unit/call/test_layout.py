"""A form says where a call's parameters come from, for calls, traces, operators, simulations and checks alike."""

import math

import pytest

torch = pytest.importorskip("torch")

from jaxtyping import Float32  # noqa: E402
from torch import Tensor  # noqa: E402

from py2cu import Constexpr, Index, kernel  # noqa: E402
from py2cu.call.layout import Form, Layout, type_of  # noqa: E402
from py2cu.kernels import Kernel  # noqa: E402

X, Y, OUT = torch.arange(4.0), torch.ones(4), torch.zeros(4)


@kernel
def pushed(
    i: Index["n"],
    x: Float32[Tensor, "n"],
    bias: Float32[Tensor, "n"] | None,
    out: Float32[Tensor, "n"],
    force: tuple[float, int],
    by: float = 2.0,
):
    v = x[i] * force[0] + force[1] + by
    if bias is not None:
        v += bias[i]
    out[i] = v


@kernel
def both(i: Index["n"], x: Float32[Tensor, "n"], low: Float32[Tensor, "n"], high: Float32[Tensor, "n"], n: int):
    low[i] = x[i] - n
    high[i] = x[i] + n


@kernel
def filled(i: Index["tile"], x: Float32[Tensor, "1"], out: Float32[Tensor, "tile"], tile: Constexpr[int] = 4):
    out[i] = x[0] + tile


@kernel
def shaped(i: Index["rows"], x: Float32[Tensor, "rows tile"], out: Float32[Tensor, "rows"], tile: Constexpr[int]):
    out[i] = x[i, tile - 1]


@kernel
def turned(
    i: Index["n"],
    x: Float32[Tensor, "n"],
    out: Float32[Tensor, "n"],
    by: complex = 1j,
    far: complex = complex(2, math.inf),
):
    out[i] = (x[i] * by).imag + far.real


def form(k: Kernel, *args: object, on_grid: bool = False, **kwargs: object) -> Form:
    named = tuple((name, type_of(value)) for name, value in kwargs.items())
    return Layout(k.signature).form(tuple(map(type_of, args)), named, on_grid=on_grid)


def test_arguments_items_and_defaults():
    found = form(pushed, X, None, [1.0, 2])
    assert found.names == ("x", "bias", "force")
    assert found.sources == (
        ("x", 0, None, None, None),
        ("bias", None, None, None, None),
        ("out", None, None, None, None),
        ("force_0", 2, 0, None, None),
        ("force_1", 2, 1, None, None),
        ("by", None, None, 2.0, None),
    )
    named = form(pushed, X, bias=Y, by=0.5, force=(1.0, 2), out=OUT)
    assert [source[:3] for source in named.sources] == [
        ("x", 0, None), ("bias", 1, None), ("out", 4, None), ("force_0", 3, 0), ("force_1", 3, 1), ("by", 2, None)
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("kwargs", "expected"),
    [
        ({}, ("default", (), ("low", "high"), ())),
        ({"low": OUT}, ("out", ("low",), (), ("high",))),
        ({"high": OUT, "low": Y}, ("out", ("low", "high"), (), ())),
        ({"on_grid": True, "low": OUT, "high": Y}, ("grid", ("low", "high"), (), ())),
    ],
)
def test_outputs_are_given_or_allocated(kwargs, expected):
    found = form(both, X, **kwargs)
    assert (found.overload, found.given, found.allocated, found.missing) == expected
    assert found.sources[3] == ("n", None, None, None, None)  # the op finds it


def test_an_extent_supplies_a_number_before_its_default():
    assert form(filled, X).sources[2] == ("tile", None, None, 4, None)
    assert form(filled, X, OUT).sources[2] == ("tile", None, None, None, "out")
    assert form(filled, X, OUT, 8).sources[2] == ("tile", 2, None, None, None)
    assert form(shaped, X).sources[2] == ("tile", None, None, None, "x")


def test_values_are_those_of_the_form():
    layout = Layout(pushed.signature)
    _, values = layout.bind((X, None, (1.0, 2)), {})
    assert values == {"x": X, "force_0": 1.0, "force_1": 2, "by": 2.0}
    assert Layout(shaped.signature).complete({"x": torch.ones(2, 3)})["tile"] == 3


def test_a_form_holds_constants_alone():
    """Dynamo takes it as a constant."""

    def is_plain(value: object) -> bool:
        return all(map(is_plain, value)) if type(value) is tuple else isinstance(value, str | int | float | None)

    assert is_plain(tuple(form(pushed, X, None, (1.0, 2))))


@pytest.mark.builds
def test_an_op_measures_a_given_output_as_a_call_does():
    one = torch.ones(1, requires_grad=True)
    for _ in range(2):
        for size in (4, 5):
            expected = [1.0 + size] * size
            assert filled(one.detach(), out=torch.empty(size)).tolist() == expected
            assert filled(one, out=torch.empty(size)).tolist() == expected
    compiled = torch.compile(lambda x, out: filled(x, out=out), backend="eager", fullgraph=True)
    assert compiled(one.detach(), torch.empty(6)).tolist() == [7.0] * 6


@pytest.mark.builds
def test_an_op_completes_complex_numbers():
    """A schema cannot express an infinite part of a default: it says None."""
    assert turned.op(X).tolist() == turned(X).tolist() == [2, 3, 4, 5]
    assert turned.op(X, by_imag=2.0).tolist() == [2, 4, 6, 8]
    assert turned.op(X, far_real=0.0).tolist() == [0, 1, 2, 3]


@pytest.mark.builds
@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: both(X, near=X), "has no parameter `near`"),
        (lambda: both[1, 4](X), r"both\[grid, block\]\(...\) needs every argument; missing `low`, `high`"),
        (lambda: pushed(X, None, (1.0, 2.5)), r"takes a whole number as `force\[1\]`, got float"),
    ],
)
def test_a_compiled_function_refuses_as_a_call_does(call, message):
    with pytest.raises(TypeError, match=message):
        torch.compile(call, backend="eager")()
