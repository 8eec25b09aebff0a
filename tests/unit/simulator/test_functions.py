"""The simulator's stand-ins for functions of torch and NumPy against the functions themselves, element by element."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch

from py2cu.builtins import ROWS, Rule
from py2cu.builtins.formulas import ROWS as FORMULAS
from py2cu.builtins.formulas import Formula
from py2cu.dtypes import BF16, F16, F32, I32, I64, U8, Kind
from py2cu.simulator.substitutes import members, typed_substitute
from py2cu.simulator.values.family import element_class

FLOATS = (0.0, -0.0, 0.5, -0.5, 1.5, 2.5, -3.25, 1e30, -1e30, 1e-30, math.inf, -math.inf, math.nan)
INTEGERS = (0, 1, -1, 7, -13, 2**30)
OF_INTEGERS = ("bitwise_", "invert", "left_shift", "right_shift")


def tensor(value: float, dtype: str) -> torch.Tensor:
    return torch.tensor(value, dtype=getattr(torch, dtype))


LIBRARIES = {
    "torch": (torch, tensor),
    "torch.nn.functional": (torch.nn.functional, tensor),
    "torch.special": (torch.special, tensor),
    "numpy": (np, lambda value, dtype: getattr(np, dtype)(value)),
}


def required(row: Formula) -> int:
    """The number of arguments that a call cannot leave out."""
    return len(row.parameters) - len(row.defaults)


def functions() -> list[tuple[str, int]]:
    """Every function of torch and NumPy that kernels have, with a number of arguments."""
    rules = (Rule.CAST, Rule.SCALED)
    rows = [(name, row.arity[0]) for row in ROWS.values() if row.rule not in rules for name in row.names]
    formulas = [(name, required(row)) for row in FORMULAS if not row.options for name in row.names]
    return sorted({(n, count) for n, count in rows + formulas if n.rpartition(".")[0] in LIBRARIES and count < 3})


def same(ours: object, theirs: object) -> bool:
    a, b = float(ours), float(theirs)
    return (math.isnan(a) and math.isnan(b)) or a == b or math.isclose(a, b, rel_tol=1e-5)


@pytest.mark.parametrize(("name", "count"), functions(), ids=lambda value: str(value))
@np.errstate(all="ignore")
def test_stand_in_is_the_function(name, count):
    library, _, function = name.rpartition(".")
    module, make = LIBRARIES[library]
    real, stand_in = getattr(module, function), members(library)[function]
    integers = function.startswith(OF_INTEGERS)
    element, dtype, values = (
        (element_class(I32), "int32", INTEGERS) if integers else (element_class(F32), "float32", FLOATS)
    )
    if function.endswith("_shift"):
        values = (0, 1, 7, 30)
    if function in ("pow", "power"):
        values = tuple(value for value in values if not math.isinf(value))  # NumPy's root of -inf is NaN, C's is inf
    if function in ("elu", "leaky_relu"):
        values = tuple(value for value in values if 0 <= value < math.inf)  # what torch takes for a slope
    for arguments in itertools.product(values, repeat=count):
        ours = stand_in(*map(element, arguments))
        theirs = real(*(make(value, dtype) for value in arguments))
        assert same(ours, theirs), f"{name}{arguments}: {ours}, the function itself says {theirs}"


@pytest.mark.parametrize("dtype", [F16, BF16, U8, I64], ids=str)
@pytest.mark.parametrize(
    "row",
    [row for row in FORMULAS if row.in_float32],
    ids=lambda row: f"{row.names[-1]}{len(row.parameters)}{''.join(row.options.values())}",
)
def test_formulas_of_several_steps_are_torchs_for_halves_and_whole_numbers(row, dtype):
    library, _, function = row.names[-1].rpartition(".")
    module, make = LIBRARIES[library]
    real, stand_in, cls = getattr(module, function), members(library)[function], element_class(dtype)
    values = (0, 1, 3, 12, 70) if dtype is U8 else (0, 1, -1, 12, -12, 5000)
    values = values if dtype.kind is Kind.INT else (*values, 0.1, -0.3, 15, 100, math.inf, -math.inf, math.nan)
    numbers = [value for value in values if value >= 0] if "_" in function else values
    for arguments in itertools.product(values, *[numbers] * (required(row) - 1)):
        ours = stand_in(*map(cls.convert, arguments), **row.options)
        tensors = [make(value, dtype.name) for value in arguments]
        rest = (t.item() if library.endswith("functional") else t for t in tensors[1:])
        try:
            theirs = real(tensors[0], *rest, **row.options)
        except NotImplementedError:
            assert dtype.kind is Kind.INT
            pytest.skip("torch has none of whole numbers")
        assert str(theirs.dtype) == f"torch.{ours.dtype.name}"
        a, b = float(ours), theirs.item()
        near = math.isclose(a, b, rel_tol=max(1e-5, ours.dtype.epsilon)) or abs(a - b) <= 1e-37
        assert near or (math.isnan(a) and math.isnan(b)), f"{arguments}: {a}, torch says {b}"


@pytest.mark.parametrize("value", FLOATS)
@np.errstate(all="ignore")
def test_parts_of_floats_are_those_of_numpy(value):
    own, element, single = members("math"), element_class(F32)(value), np.float32(value)
    for power in (0, 1, -1, 7, -140, 300, -(2**40), 2**40):
        expected = np.ldexp(single, max(-5000, min(5000, power)))
        assert same(own["ldexp"](element, power), expected)
    for name in ("modf", "frexp"):
        assert [float(part).hex() for part in own[name](element)] == [
            float(part).hex() for part in getattr(np, name)(single)
        ]


def test_parts_in_doubt_may_be_any():
    own, cls = members("math"), element_class(F32)
    fraction, whole = own["modf"](cls.with_error(3.0, 1e-6))
    mantissa, _ = own["frexp"](cls.with_error(4.0, 1e-6))
    assert (fraction.error, whole.error, mantissa.error) == (2.0, 1.0, 2.0)
    fraction, whole = own["modf"](cls.with_error(3.5, 1e-6))
    mantissa, _ = own["frexp"](cls.with_error(3.5, 1e-6))
    assert (fraction.error, whole.error, mantissa.error) == (1e-6, 0.0, 1e-6 / 4)
    assert (
        own["modf"](cls.with_error(0.2, math.inf))[0].error
        == own["frexp"](cls.with_error(0.2, math.inf))[0].error
        == math.inf
    )


def test_what_may_overflow_may_be_anything():
    largest = float(np.finfo(np.float32).max)
    single = element_class(F32)
    assert members("math")["hypot"](single(largest), single(1)).error == math.inf
    assert members("math")["hypot"](single(largest / 2), single(1)).error < largest


@pytest.mark.parametrize("name", ["round", "floor", "ceil", "trunc", "fix"])
@pytest.mark.parametrize("value", [-0.0, 0.0, -0.4, 0.4, -1.5])
def test_what_is_rounded_to_zero_keeps_its_sign(name, value):
    expected = getattr(torch, name)(torch.tensor(value)).item()
    for number in (value, element_class(F32)(value)):
        found = members("torch")[name](number)
        assert (found, math.copysign(1, found)) == (expected, math.copysign(1, expected))


@pytest.mark.parametrize(("name", "arguments"), [("xlogy", (-0.0, 2.0)), ("elu", (0.0, -0.5)), ("elu", (-0.0, 0.5))])
def test_signed_zeros_are_torchs(name, arguments):
    of_torch = getattr(torch if name == "xlogy" else torch.nn.functional, name)
    first, second = arguments
    expected = of_torch(tensor(first, "float32"), tensor(second, "float32") if name == "xlogy" else second)
    found = members("torch")[name](*map(element_class(F32).convert, arguments))
    assert math.copysign(1, float(found)) == math.copysign(1, expected.item())


@pytest.mark.parametrize(
    ("module", "name"),
    [("torch.nn.functional", "logsigmoid"), ("torch.nn.functional", "threshold"), ("torch.special", "expit")],
)
def test_function_that_torch_defines_under_another_name_is_replaced(module, name):
    function = getattr(LIBRARIES[module][0], name)
    assert typed_substitute(function) is members(module)[name]
