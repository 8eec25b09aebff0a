"""The bits of a float with an error have one, which their arithmetic carries on."""

import contextlib
import math

import pytest

torch = pytest.importorskip("torch")

from py2cu.dtypes import F32, I32, U16, U32  # noqa: E402
from py2cu.simulator.state import THREAD  # noqa: E402
from py2cu.simulator.values.family import element_class  # noqa: E402
from py2cu.simulator.values.uncertain_bits import raw_value  # noqa: E402

Float, Int, Unsigned, Short = (element_class(dtype) for dtype in (F32, I32, U32, U16))
ONE = 0x3F800000


@pytest.fixture(autouse=True)
def _untainted():
    THREAD.tainted = False
    yield
    THREAD.tainted = False


def bits(value: float = 1.0, error: float = 1e-6):
    return Float.with_error(value, error).view(Unsigned)


def test_bits_of_an_exact_float_are_exact():
    assert bits(error=0.0).value == ONE and bits(error=0.0).error == 0 and not THREAD.tainted


@pytest.mark.parametrize(
    ("compute", "value", "error"),
    [
        (lambda b: b, ONE, 25),
        (lambda b: b + Unsigned(5), ONE + 5, 25),
        (lambda b: 7 + b, ONE + 7, 25),
        (lambda b: b - 1, ONE - 1, 25),
        (lambda b: b + b, 2 * ONE, 50),
        (lambda b: b >> 3, ONE >> 3, 4),
        (lambda b: (b >> 8) << 1, ONE >> 7, 2),
        (lambda b: b & 0xFFFF0000, ONE, 0x10000),
        (lambda b: (b + 0x8000) & 0xFFFF0000, ONE, 0),
        (lambda b: (b + 0x8000) & 0xFFFF, 0x8000, 25),
        (lambda b: b & 0xFFFF, 0, math.inf),
        (lambda b: b & 0xFF00FF00, ONE & 0xFF00FF00, math.inf),
        (lambda b: b ^ Unsigned(1), ONE ^ 1, math.inf),
        (lambda b: b << 8, ONE << 8 & 0xFFFFFFFF, math.inf),
        (lambda b: ~b, ONE ^ 0xFFFFFFFF, 25),
        (lambda b: Int(b), ONE, 25),
        (lambda b: b.view(Int), ONE, 25),
        (lambda b: Short(b >> 16), ONE >> 16, 1),
        (lambda b: Short(b), 0, math.inf),
        (lambda b: (b + 0x80000000).view(Int), ONE - (1 << 31), 25),
    ],
)
def test_arithmetic(compute, value, error):
    result = compute(bits())
    assert (raw_value(result), result.error) == (value, error)
    assert not THREAD.tainted


def test_floats_of_such_bits():
    again = (bits() & 0xFFFF0000).view(Float)
    assert float(again) == 1.0 and again.error == 2**-7  # above 1; below it, half as much
    assert bits().view(Float).error == pytest.approx(25 * 2**-23)
    assert (bits() ^ Unsigned(1)).view(Float).error == math.inf
    assert bits(1e-9, 1e-6).error == math.inf and bits(math.nan, 0.0).error == math.inf
    assert not THREAD.tainted


@pytest.mark.parametrize(
    "use", [bool, int, lambda b: b == 1, lambda b: [0][b - ONE], lambda b: Float(1.0) * b.view(Int)]
)
def test_other_uses_taint_the_thread(use):
    with contextlib.suppress(IndexError):
        use(bits())
    assert THREAD.tainted


def test_torch_has_the_same_bits():
    assert torch.tensor(1.0).view(torch.int32).item() == ONE
