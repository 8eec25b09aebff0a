"""Elements compute as torch does: promotion, wrapping, rounding; and know how far a translation may be from them."""

import itertools
import math
import operator

import pytest
import torch

from py2cu.dtypes import DTYPES, Kind
from py2cu.runtime.elements import (
    THREAD,
    Bool,
    Double,
    ElementRangeError,
    Float32,
    Float64,
    Int8,
    Int32,
    Int64,
    UInt8,
    element_class,
)
from py2cu.runtime.functions import BUILTINS, LIBRARY, MATH, typed

SAMPLES = {Kind.BOOL: (True, False), Kind.INT: (0, 1, 7, 100, 127), Kind.FLOAT: (0.0, 0.1, -2.5, 1e30, math.inf)}
ARITHMETIC = [operator.add, operator.mul, operator.sub]


@pytest.fixture(autouse=True)
def no_doubt():
    THREAD.doubt = False


def tensor(value, dtype):
    return torch.tensor(value, dtype=getattr(torch, dtype.name))


def same(element, expected):
    assert element.dtype.name == str(expected.dtype).removeprefix("torch.")
    value = expected.item()
    assert element == value or (math.isnan(element) and math.isnan(value))


@pytest.mark.parametrize("operation", ARITHMETIC)
@pytest.mark.parametrize(("a", "b"), list(itertools.product(DTYPES, DTYPES)), ids=str)
def test_arithmetic_promotes_and_wraps_as_torch_does(a, b, operation):
    if operation is operator.sub and Kind.BOOL in (a.kind, b.kind):
        pytest.skip("torch refuses to subtract bools")
    for x, y in itertools.product(SAMPLES[a.kind], SAMPLES[b.kind]):
        same(operation(element_class(a)(x), element_class(b)(y)), operation(tensor(x, a), tensor(y, b)))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("number", [3, 0.5])
def test_python_numbers_are_weak(dtype, number):
    for value in SAMPLES[dtype.kind]:
        same(element_class(dtype)(value) * number, tensor(value, dtype) * number)
        same(number + element_class(dtype)(value), number + tensor(value, dtype))


def test_division_and_remainder_have_pythons_signs():
    assert (Int32(-7) // 2, Int32(-7) % 3) == (-4, 2)
    assert (Float32(-7.5) // 2, Float32(-7.5) % 2) == (-4.0, 0.5)
    assert Int32(-(2**31)) // Int32(-1) == -(2**31)
    assert type(UInt8(7) / UInt8(2)) is Float32


def test_float_elements_divide_by_zero_as_ieee_says_and_integers_raise():
    assert Float32(-1.0) / 0 == -math.inf
    assert math.isnan(Float32(0.0) / 0.0)
    assert math.isnan(Float32(1.0) % 0.0)
    for operation in (operator.truediv, operator.floordiv, operator.mod):
        with pytest.raises(ZeroDivisionError):
            operation(UInt8(1), UInt8(0))
    with pytest.raises(ZeroDivisionError):
        Double(1.0) / 0


def test_comparisons_happen_in_the_element_type():
    assert Float32(0.1) == 0.1
    assert not Float32(0.1) < 0.1
    assert (UInt8(200) > UInt8(100)) is True
    assert Float64(0.1) != Float32(0.1)


def test_a_number_that_the_type_cannot_hold_is_refused():
    with pytest.raises(ElementRangeError, match="300 does not fit uint8"):
        assert UInt8(1) < 300
    with pytest.raises(ValueError, match="float32"):
        Float32(1) * 1e300


def test_bools():
    assert repr(~Bool(True)) == "False"
    assert type(Bool(True) & True) is Bool
    assert type(Bool(True) + 1) is Int64
    assert type(Bool(True) | UInt8(2)) is UInt8


def test_shifts_and_powers():
    assert UInt8(200) << 1 == 144
    assert Int8(-3) >> 1 == -2
    assert UInt8(3) ** 200 == pow(3, 200, 256)
    assert Float32(2) ** 0.5 == torch.tensor(2.0).sqrt().item()
    assert math.isnan(Float32(-2) ** 0.5)
    assert Float32(0.0) ** -1 == math.inf


def test_conversions_to_python():
    assert type(int(Float32(2.9))) is int
    assert (int(Float32(-2.9)), round(Float32(2.5)), round(Float32(3.5))) == (-2, 2, 4)
    assert type(round(Float32(2.26), 1)) is Float32
    assert math.floor(Float32(-0.5)) == -1
    with pytest.raises(OverflowError):
        int(Float32(1e30))
    assert {Float32(0.5): 1}[0.5] == 1


def test_casts_convert_as_torch_does_on_the_cpu():
    for value in (-1.0, 300.7, -300.7, 1e10):
        assert UInt8(Float32(value)) == torch.tensor(value).to(torch.uint8).item()
    assert not THREAD.doubt
    Int32(Float32(1e20))
    assert THREAD.doubt, "C++ leaves it open"


def test_math_of_elements():
    assert type(MATH["exp"](Float32(1))) is Float32
    assert type(MATH["exp"](UInt8(1))) is Float32
    assert type(MATH["exp"](Float64(1))) is Float64
    assert type(MATH["exp"](1)) is float
    assert math.isnan(MATH["sqrt"](Float32(-1)))
    assert (MATH["log"](Float32(0)), MATH["exp"](Float32(100))) == (-math.inf, math.inf)
    with pytest.raises(ValueError):
        MATH["sqrt"](-1)
    assert MATH["floor"](Float32(1.5)) == 1
    assert type(LIBRARY["torch"]["floor"](Float32(1.5))) is Float32


def test_min_and_max_keep_the_element():
    assert type(BUILTINS["min"](Float32(3), 0.1)) is Float32
    assert BUILTINS["max"](UInt8(3), UInt8(5), 4) == 5
    assert BUILTINS["min"](3, 2) == 2
    assert math.isnan(BUILTINS["min"](Float32(math.nan), 1.0)), "the first one wins where nothing compares"
    assert BUILTINS["min"](1.0, Float32(math.nan)) == 1.0


def test_scalar_types_of_the_libraries_are_casts():
    np = pytest.importorskip("numpy")
    assert typed(np.float32) is Float32
    assert typed(torch.uint8) is UInt8
    assert typed(np.exp) is MATH["exp"]
    assert typed(torch.exp) is MATH["exp"]
    assert typed(math.exp) is MATH["exp"]
    assert typed(42) is None


def test_exact_operations_have_no_error_and_products_have_their_rounding():
    x, y = Float32(0.1), Float32(0.3)
    assert (x + y).error == 0
    assert (x / y).error == 0
    assert 0 < (x * y).error < 2**-24
    assert (Float32(0.5) * Float32(3)).error == 0


def test_cancellation_keeps_the_error_of_what_cancelled():
    product = Float32(0.1) * Float32(0.3)
    assert (product - Float32(float(product))).error >= product.error


def test_overflow_in_a_product_leaves_everything_open_and_infinite_operands_nothing():
    assert (Float32(3e38) * 2).error == math.inf
    assert (Float32(math.inf) * 2).error == 0
    assert (Float32(math.nan) * Float32(2)).error == 0


def test_doubt_is_raised_where_a_branch_hangs_on_a_rounding_error():
    product = Float32(0.1) * Float32(0.3)
    assert product > 0.01
    assert not THREAD.doubt
    assert not product > float(product)
    assert THREAD.doubt
