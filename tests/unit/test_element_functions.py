"""Functions that elements have as methods, compared with torch's tensors and NumPy's integers."""

import pytest

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

from py2cu import opmath  # noqa: E402
from py2cu.builtins.formulas import ROWS as FORMULAS  # noqa: E402
from py2cu.builtins.methods import function_behind, methods  # noqa: E402
from py2cu.builtins.registry import Rule, lookup, names  # noqa: E402
from py2cu.dtypes import BY_NAME, DTYPES, F32, Kind  # noqa: E402
from py2cu.simulator.values.checked_int import CheckedInt  # noqa: E402
from py2cu.simulator.values.family import PyFloat, element_class  # noqa: E402
from py2cu.simulator.values.library_functions import LIBRARY  # noqa: E402

INTEGERS = [dtype for dtype in DTYPES if dtype.kind is Kind.INT]


def torch_functions():
    rows = [name for name in names() if lookup(name).rule is not Rule.CAST]
    qualified = [*rows, *(name for row in FORMULAS for name in row.names)]
    return {name.removeprefix("torch.") for name in qualified if name.startswith("torch.") and name.count(".") == 1}


def test_the_methods_of_elements_are_those_of_tensors():
    of_tensors = {name for name in torch_functions() if callable(getattr(torch.Tensor, name, None))}
    assert set(methods()) == of_tensors - {"where"}  # as a method, its first argument is the condition


@pytest.mark.parametrize("name", ["exp", "sqrt", "abs", "sigmoid", "relu", "floor", "isnan", "square", "lgamma"])
def test_a_method_is_the_function(name):
    value = element_class(F32)(1.625)
    got, expected = getattr(value, name)(), getattr(torch.tensor(1.625), name)()
    assert got.__class__ is LIBRARY["torch"][name](value).__class__
    torch.testing.assert_close(torch.tensor(float(got)), torch.tensor(float(expected)))


@pytest.mark.parametrize(
    "call",
    [
        lambda x: x.clamp(-1, 1), lambda x: x.clamp(min=2), lambda x: x.clamp(max=0.5), lambda x: x.pow(2),
        lambda x: x.maximum(x.neg()), lambda x: x.lerp(x.neg(), 0.25), lambda x: x.div(0.75, rounding_mode="floor"),
    ],
)  # fmt: skip
def test_arguments_follow_the_element(call):
    assert float(call(element_class(F32)(1.625))) == float(call(torch.tensor(1.625)))


def test_python_numbers_have_none():
    assert not any(hasattr(PyFloat, name) for name in ("exp", "clamp", "sigmoid"))
    assert function_behind("where") is None and function_behind("bit_length") is None


@pytest.mark.parametrize("dtype", INTEGERS, ids=str)
def test_bits_are_counted_as_numpy_does(dtype):
    for value in {0, 1, 5, -1, -7, int(dtype.low), int(dtype.high), int(dtype.low) + 1}:
        if dtype.holds(value):
            expected = getattr(np, dtype.name)(value).bit_count()
            assert element_class(BY_NAME[dtype.name])(value).bit_count() == expected
            assert CheckedInt(value).bit_count() == value.bit_count()


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_opmath_is_the_type_that_torch_computes_in(dtype):
    expected = {"float16": "float32", "bfloat16": "float32"}.get(dtype.name, dtype.name)
    assert opmath(element_class(dtype)(1)).dtype.name == expected
    assert opmath(torch.tensor(1, dtype=getattr(torch, dtype.name))).dtype is getattr(torch, expected)
    if hasattr(np, dtype.name):
        assert opmath(getattr(np, dtype.name)(1)).dtype.name == expected


def test_opmath_leaves_python_numbers_as_they_are():
    assert [opmath(value).__class__ for value in (True, 1, 0.5, 1j)] == [bool, int, float, complex]
