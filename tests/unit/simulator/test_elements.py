"""Elements compute as torch does: promotion, wrapping, rounding; and know how far a translation may be from them."""

import cmath
import itertools
import math
import operator
import random

import pytest
import torch

from py2cu.builtins import ROWS, Rule
from py2cu.dtypes import BOOL, C64, C128, DTYPES, F16, F32, F64, I8, I32, I64, U8, Kind, promote
from py2cu.simulator.state import THREAD
from py2cu.simulator.substitutes import typed_substitute
from py2cu.simulator.values.family import PyComplex, PyFloat, element_class
from py2cu.simulator.values.library_functions import LIBRARY
from py2cu.simulator.values.math_functions import BUILTINS
from py2cu.simulator.values.operators import ElementRangeError

Bool, UInt8, Int8, Int32, Int64, Float32, Float64 = map(element_class, (BOOL, U8, I8, I32, I64, F32, F64))
Complex64 = element_class(C64)

SAMPLES = {
    Kind.BOOL: (True, False), Kind.INT: (0, 1, 7, 100, 127), Kind.FLOAT: (0.0, 0.1, -2.5, 1e30, math.inf),
    Kind.COMPLEX: (0j, 0.1 - 2j, -2.5 + 0.3j, 1e15j, complex(math.inf, 1), complex(1, -math.inf)),
}  # fmt: skip
ARITHMETIC = [operator.add, operator.mul, operator.sub]


@pytest.fixture(autouse=True)
def no_doubt():
    THREAD.tainted = False


def tensor(value, dtype):
    return torch.tensor(value, dtype=getattr(torch, dtype.name))


def bare(dtype):
    """Torch computes with unsigned integers beyond 8 bits only by way of others."""
    return dtype.kind is Kind.INT and not dtype.signed and dtype.bits > 8


def computed(operation, x, y, dtype):
    """What torch computes with elements of `dtype`."""
    if not bare(dtype):
        return operation(x, y)
    wide = [value.to(torch.int64) if isinstance(value, torch.Tensor) else value for value in (x, y)]
    return operation(*wide).to(getattr(torch, dtype.name))


def weak(operation, x, number, dtype):
    return computed(operation, x, number, dtype) if number == 3 else operation(x, number)


def same(element, expected):
    assert element.dtype.name == str(expected.dtype).removeprefix("torch.")
    value = expected.item()
    if isinstance(value, complex):
        assert same_number(element.real, value.real)
        assert same_number(element.imag, value.imag)
    else:
        assert same_number(element, value)


def same_number(element, value):
    return element == value or (math.isnan(element) and math.isnan(value))


@pytest.mark.parametrize("operation", ARITHMETIC)
@pytest.mark.parametrize(("a", "b"), list(itertools.product(DTYPES, DTYPES)), ids=str)
def test_arithmetic_promotes_and_wraps_as_torch_does(a, b, operation):
    if operation is operator.sub and Kind.BOOL in (a.kind, b.kind):
        pytest.skip("torch refuses to subtract bools")
    for x, y in itertools.product(SAMPLES[a.kind], SAMPLES[b.kind]):
        if (
            Kind.COMPLEX in (a.kind, b.kind)
            and operation is not operator.mul
            and not cmath.isfinite(element_class(b)(y))
        ):
            continue  # torch multiplies what it adds by an alpha of 1+0j, which makes NaN of an infinite part
        left, right = element_class(a)(x), element_class(b)(y)
        if promote(a, b) is None:
            with pytest.raises(TypeError):
                operation(left, right)
        else:
            same(operation(left, right), computed(operation, tensor(x, a), tensor(y, b), a))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("number", [3, 0.5])
def test_python_numbers_are_weak(dtype, number):
    for value in SAMPLES[dtype.kind]:
        same(element_class(dtype)(value) * number, weak(operator.mul, tensor(value, dtype), number, dtype))
        same(number + element_class(dtype)(value), weak(operator.add, tensor(value, dtype), number, dtype))


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_python_complex_numbers_are_weak(dtype):
    cls = element_class(dtype)
    for value in SAMPLES[dtype.kind]:
        wanted = torch.result_type(tensor([value], dtype), 1j)
        if dtype is F16:
            assert wanted is torch.complex32
            with pytest.raises(TypeError):
                cls(value) * PyComplex(1j)
        else:
            assert (cls(value) * PyComplex(1j)).dtype.name == str(wanted).removeprefix("torch.")
            assert (PyComplex(1j) + cls(value)).dtype.name == str(wanted).removeprefix("torch.")


@pytest.mark.parametrize(("a", "b"), list(itertools.product(DTYPES, DTYPES)), ids=str)
def test_promotion_is_torchs(a, b):
    try:
        wanted = torch.promote_types(getattr(torch, a.name), getattr(torch, b.name))
    except RuntimeError:
        wanted = None
    if a is not b and (bare(a) or bare(b)):
        wanted = None  # torch lets them meet a float alone
    found = promote(a, b)
    assert (found and getattr(torch, found.name)) is wanted


@pytest.mark.parametrize("dtype", [C64, C128], ids=str)
def test_complex_elements_compute_as_torch_does(dtype):
    cls, kind = element_class(dtype), getattr(torch, dtype.name)
    generator = torch.Generator().manual_seed(0)
    for x, y in torch.randn(300, 2, dtype=torch.complex128, generator=generator).to(kind):
        a, b = cls(x.item()), cls(y.item())
        for operation in (operator.add, operator.sub):
            same(operation(a, b), operation(x, y))
        for found, wanted in ((a * b, x * y), (a / b, x / y), (a**2, x**2), (a**3, x**3), (abs(a), abs(x))):
            assert found.dtype.name == str(wanted.dtype).removeprefix("torch.")
            for part in ("real", "imag") if wanted.is_complex() else ("real",):
                assert abs(float(getattr(found, part)) - getattr(wanted, part).item()) <= 8 * dtype.epsilon * abs(
                    wanted
                )


def test_a_complex_product_is_the_formula_and_repairs_nothing():
    infinite, one = Complex64(complex(math.inf, math.inf)), Complex64(1)
    assert math.isnan((infinite * one).real)
    assert (Complex64(complex(math.inf, 1)) * Complex64(1)).real == math.inf
    same(Complex64(1 - 1j) / Complex64(0), torch.tensor(complex(math.inf, -math.inf), dtype=torch.complex64))
    with pytest.raises(ZeroDivisionError):
        PyComplex(1) / 0


def test_complex_numbers_have_parts_and_no_order():
    z = Complex64(3 - 4j)
    assert (z.real, z.imag, abs(z), z.conjugate()) == (3, -4, 5, 3 + 4j)
    assert (type(z.real), type(abs(z)), type(-z), type(z + 1j)) == (Float32, Float32, Complex64, Complex64)
    assert (Float32(2).real, Float32(2).imag, UInt8(3).conjugate()) == (2, 0, 3)
    assert (str(z), repr(z), repr(PyComplex(1j))) == ("3.0-4.0j", "complex64(3.0-4.0j)", "0.0+1.0j")
    assert not Complex64(0)
    assert Complex64(1j)
    assert z == Complex64(3) - 4j
    for operation in (operator.lt, operator.floordiv, operator.mod, operator.and_):
        with pytest.raises(TypeError):
            operation(z, 1)
    for convert in (int, float, round):
        with pytest.raises(TypeError):
            convert(z)


@pytest.mark.parametrize("name", sorted(row.name for row in ROWS.values() if row.rule is Rule.COMPLEX))
def test_complex_functions_are_within_their_error(name):
    x = 2 * torch.randn(100, dtype=torch.complex64, generator=torch.Generator().manual_seed(1))
    for value, wanted in zip(x.tolist(), getattr(torch, name)(x).tolist(), strict=True):
        found = LIBRARY["cmath"][name](Complex64(value))
        assert type(found) is Complex64
        assert abs(complex(found) - wanted) <= 2 * found.error
        assert type(LIBRARY["torch"][name](Float32(0.5))) is Float32


def test_functions_of_cmath_are_complex_whatever_they_are_given():
    assert type(LIBRARY["cmath"]["sqrt"](Float32(-4))) is Complex64
    assert LIBRARY["cmath"]["sqrt"](Float32(-4)) == 2j
    assert type(LIBRARY["cmath"]["exp"](1)) is PyComplex
    assert type(BUILTINS["complex"](Float32(1), 2)) is PyComplex
    assert math.isinf(LIBRARY["cmath"]["exp"](Complex64(1e3)).error), "libraries overflow as they like"
    assert math.isinf(abs(Complex64(3.4028234e38)).error), "so does a magnitude that a last bit takes there"
    assert abs(Complex64(3 + 4j)).error < 1e-5
    assert LIBRARY["cmath"]["exp"](Complex64(complex(-math.inf, 1))).error < 1e-5
    with pytest.raises(TypeError):
        LIBRARY["cmath"]["exp"](element_class(F16)(1))


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
        PyFloat(1.0) / 0


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
    assert (str(~Bool(True)), repr(Bool(True))) == ("False", "bool(True)")
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
    assert not THREAD.tainted
    Int32(Float32(1e20))
    assert THREAD.tainted, "C++ leaves it open"


FLOAT_ROWS = [dtype for dtype in DTYPES if dtype.kind is Kind.FLOAT]
INT_ROWS = [dtype for dtype in DTYPES if dtype.kind is Kind.INT]


def doubles(dtype):
    """Random doubles of every magnitude, ties between two elements of `dtype`, and the edges."""
    generator = random.Random(0)
    edges = [0.0, -0.0, math.inf, -math.inf, math.nan, dtype.high, dtype.high * (1 + dtype.epsilon / 4), 1e300]
    tiny = torch.finfo(getattr(torch, dtype.name)).smallest_normal
    ties = [1 + k * dtype.epsilon / 2 for k in range(-9, 9)] + [tiny * k * dtype.epsilon / 2 for k in range(-9, 9)]
    spread = [generator.choice((1, -1)) * 10 ** generator.uniform(-9, 6) for _ in range(500)]
    return edges + ties + spread


@pytest.mark.parametrize("dtype", FLOAT_ROWS, ids=str)
def test_floats_round_as_torch_does(dtype):
    for value in doubles(dtype):
        same(element_class(dtype)(value), torch.tensor(value, dtype=torch.float64).to(getattr(torch, dtype.name)))


@pytest.mark.parametrize("dtype", FLOAT_ROWS, ids=str)
def test_integers_round_once_on_their_way_to_floats(dtype):
    generator = random.Random(0)
    wholes = [generator.randrange(-(1 << bits), 1 << bits) for bits in range(1, 64) for _ in range(20)]
    wholes += [sign * ((1 << 54) + (1 << 30) + step) for sign in (1, -1) for step in (-1, 0, 1)]
    for whole in wholes:
        same(element_class(dtype)(whole), torch.tensor(whole).to(getattr(torch, dtype.name)))


@pytest.mark.parametrize(
    "operation", [operator.add, operator.sub, operator.mul, operator.truediv], ids=lambda f: f.__name__
)
@pytest.mark.parametrize("dtype", FLOAT_ROWS, ids=str)
def test_every_operation_rounds_at_the_dtype(dtype, operation):
    generator, cls = torch.Generator().manual_seed(0), element_class(dtype)
    a, b = (3 * torch.randn(2, 300, generator=generator, dtype=torch.float64)).to(getattr(torch, dtype.name))
    for x, y, wanted in zip(a.tolist(), b.tolist(), operation(a, b), strict=True):
        same(operation(cls(x), cls(y)), wanted)


@pytest.mark.parametrize("dtype", FLOAT_ROWS, ids=str)
def test_math_of_every_float_is_within_its_error(dtype):
    x = torch.linspace(0.1, 5, 50, dtype=torch.float64).to(getattr(torch, dtype.name))
    for name in ("exp", "log", "sin", "tanh"):
        for value, wanted in zip(x.tolist(), getattr(torch, name)(x), strict=True):
            found = LIBRARY["math"][name](element_class(dtype)(value))
            assert found.dtype is dtype
            assert abs(float(found) - wanted.item()) <= found.error


@pytest.mark.parametrize("dtype", INT_ROWS, ids=str)
def test_integers_wrap_at_every_width(dtype):
    cls, kind = element_class(dtype), getattr(torch, dtype.name)
    for whole in (0, 1, -1, 127, 128, 255, 256, 1 << 16, (1 << 31) + 5, (1 << 63) - 1, -(1 << 63)):
        assert int(cls(whole)) == torch.tensor(whole).to(kind).item()
    top, low = int(dtype.high), int(dtype.low)
    assert (int(cls(top) + 1), int(cls(low) - 1), int(cls(top) * 2)) == (low, top, -2 if dtype.signed else top - 1)
    assert (str(cls(top)), repr(cls(top))) == (str(top), f"{dtype}({top})")


@pytest.mark.parametrize("dtype", INT_ROWS, ids=str)
def test_a_float_becomes_an_integer_through_int64(dtype):
    for value in (-1.0, -300.7, 3.99, 70000.5, 9.5e9):
        THREAD.tainted = False
        found = element_class(dtype)(element_class(F64)(value))
        if dtype.low <= math.trunc(value) <= dtype.high or not dtype.signed:
            assert int(found) == torch.tensor(int(value)).to(getattr(torch, dtype.name)).item()
            assert not THREAD.tainted
        else:
            assert THREAD.tainted, "C++ leaves it open"


def test_elements_show_the_fewest_digits_of_their_type():
    shown = {dtype.name: (str(element_class(dtype)(0.1)), repr(element_class(dtype)(1e30))) for dtype in FLOAT_ROWS}
    assert shown["float32"] == ("0.1", "float32(1e+30)")
    assert shown["float64"] == ("0.1", "float64(1e+30)")
    assert f"{Float32(0.1)} {Float32(0.1):.3f} {UInt8(200)} {UInt8(200):#x}" == "0.1 0.100 200 0xc8"
    assert str(Float64(Float32(0.1))) == "0.10000000149011612"
    assert (repr(Float32(math.nan)), repr(PyFloat(0.5))) == ("float32(nan)", "0.5")


def test_division_with_remainder():
    assert [repr(part) for part in divmod(Float32(-7.5), 2)] == ["float32(-4.0)", "float32(0.5)"]
    assert [repr(part) for part in divmod(9, Int8(-2))] == ["int8(-5)", "int8(-1)"]


def test_math_of_elements():
    assert type(LIBRARY["math"]["exp"](Float32(1))) is Float32
    assert type(LIBRARY["math"]["exp"](UInt8(1))) is Float32
    assert type(LIBRARY["math"]["exp"](Float64(1))) is Float64
    assert type(LIBRARY["math"]["exp"](1)) is PyFloat
    assert 0 < LIBRARY["math"]["cos"](1e12).error < 1e-14  # of a literal, too: C has functions of its own
    assert math.isnan(LIBRARY["math"]["sqrt"](Float32(-1)))
    assert (LIBRARY["math"]["log"](Float32(0)), LIBRARY["math"]["exp"](Float32(100))) == (-math.inf, math.inf)
    with pytest.raises(ValueError):
        LIBRARY["math"]["sqrt"](-1)
    assert LIBRARY["math"]["floor"](Float32(1.5)) == 1
    assert type(LIBRARY["torch"]["floor"](Float32(1.5))) is Float32


def test_min_and_max_keep_the_element():
    assert type(BUILTINS["min"](Float32(3), 0.1)) is Float32
    assert BUILTINS["max"](UInt8(3), UInt8(5), 4) == 5
    assert BUILTINS["min"](3, 2) == 2
    assert math.isnan(BUILTINS["min"](Float32(math.nan), 1.0)), "the first one wins where nothing compares"
    assert BUILTINS["min"](1.0, Float32(math.nan)) == 1.0


def test_scalar_types_of_the_libraries_are_casts():
    np = pytest.importorskip("numpy")
    assert typed_substitute(np.float32) is Float32
    assert typed_substitute(torch.uint8) is UInt8
    assert typed_substitute(np.exp) is LIBRARY["numpy"]["exp"]
    assert typed_substitute(torch.exp) is LIBRARY["torch"]["exp"]
    assert typed_substitute(np.log1p) is LIBRARY["math"]["log1p"]
    assert typed_substitute(math.exp) is LIBRARY["math"]["exp"]
    assert typed_substitute(cmath.exp) is LIBRARY["cmath"]["exp"]
    assert typed_substitute(42) is None


def test_exact_operations_have_no_error_and_products_have_their_rounding():
    x, y = Float32(0.1), Float32(0.3)
    assert (x + y).error == 0
    assert (x / y).error == 0
    assert 0 < (x * y).error < 2**-24
    assert (Float32(0.5) * Float32(3)).error == 0


def test_products_are_exact_where_nothing_contracts():
    THREAD.start(contracts=False)
    try:
        assert (Float32(0.1) * Float32(0.3)).error == 0
        assert (Float64(0.1) * 0.3).error == 0
    finally:
        THREAD.start()


def test_the_sign_of_a_nan_is_open():
    assert LIBRARY["math"]["copysign"](Float32(2), Float32(math.nan)).error == 4
    assert LIBRARY["math"]["copysign"](Float32(2), Float32(-1)).error == 0
    assert THREAD.tainted is False
    LIBRARY["numpy"]["signbit"](Float32(math.nan))
    assert THREAD.tainted is True
    THREAD.start()


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
    assert not THREAD.tainted
    assert not product > float(product)
    assert THREAD.tainted


def test_beside_an_infinite_part_the_other_keeps_its_error():
    result = LIBRARY["cmath"]["log10"](Complex64(complex(math.inf, math.inf)))
    assert math.isinf(result.real) and 0 < result.imag.error < 1e-5


def test_an_open_error_stays_open_when_a_value_is_cast():
    infinite, unknown = Float32.with_error(math.inf, math.inf), Float32.with_error(math.nan, math.inf)
    assert (PyFloat.convert(infinite).error, PyFloat.convert(unknown).error) == (math.inf, math.inf)


def test_a_remainder_of_many_is_any_remainder():
    by = Float32.with_error(0.3, 1e-7)
    assert (Float32(0.5) % by).error < 1e-6
    assert (Float32(1e30) % by).error >= 0.3
    assert (Float32(1e30) % Float32(0.3)).error == 0
    assert (Float32(1.0) % Float32.with_error(0.0, 1e-9)).error == math.inf
