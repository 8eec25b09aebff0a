"""The floats that a launcher of calls computes: C's results, also where Python raises."""

from __future__ import annotations

import math

import pytest

pytest.importorskip("torch")

from py2cu.call.launchers.extents import ExtentLines
from py2cu.call.launchers.values import divide, to_double, value_lines
from py2cu.ir.abi.launch import LaunchProgram
from py2cu.ir.abi.launch_values import GIVEN, TO_DOUBLE, HostExpr, LaunchValue, Operation
from py2cu.ir.abi.parameters import Parameter
from py2cu.ir.abi.signature import Signature
from py2cu.ir.types import PY_FLOAT, PY_INT, Constant, Name
from py2cu.pipeline import translate_file
from py2cu.source import SourceFile
from tests.test_kernel_cases import PRELUDE

A, K, S = Name("a"), Name("k"), Name("s")
ONE = Constant(1.0, type=PY_FLOAT)


def computed(value: HostExpr, a: object = 0.0, k: object = 0, s: object = None) -> float:
    """`value` for these numbers, by the lines of a launcher."""
    parameters = (Parameter("a", PY_FLOAT), Parameter("k", PY_INT), Parameter("s", PY_FLOAT, may_be_none=True))
    signature = Signature("f", "f", None, parameters, (), (), (), (), (), (), (), ())
    program = LaunchProgram("f", (), (), (), values=(LaunchValue("v", value),))

    names: dict[str, object] = {"v_a": a, "v_k": k, "v_s": s}
    given = {"a", "k"} if s is None else {"a", "k", "s"}
    lines = [*value_lines(ExtentLines(signature, program, {}, given), names)]
    exec("\n".join(lines), names)
    result = names["c_v"]
    assert isinstance(result, float)
    return result


def test_quotients_are_those_of_ieee() -> None:
    quotient = Operation("/", (ONE, A))
    assert [computed(quotient, a) for a in (0.0, -0.0, 4, math.inf)] == [math.inf, -math.inf, 0.25, 0.0]
    assert math.isnan(divide(0.0, 0.0)) and math.isnan(divide(math.nan, 0.0))
    assert divide(-math.inf, 0.0) == -math.inf


def test_functions_are_those_of_libm() -> None:
    assert math.isnan(computed(Operation("sqrt", (A,)), -1.0))
    assert computed(Operation("log", (A,)), 0.0) == -math.inf
    assert computed(Operation("exp", (A,)), 1000) == math.inf
    power = Operation("pow", (A, Operation(TO_DOUBLE, (K,))))
    assert computed(power, -10.0, 1001) == -math.inf
    assert computed(power, 0.9, 7) == 0.9**7
    assert math.isnan(computed(Operation("pow", (A, Constant(0.5, type=PY_FLOAT))), -1.0))


def test_integers_wrap_at_64_bits() -> None:
    after = Operation(TO_DOUBLE, (Operation("integer +", (K, Constant(1, type=PY_INT))),))
    assert computed(Operation("*", (after, ONE)), k=2**63 - 1) == -(2.0**63)
    assert to_double(2**53 + 1) == float(2**53 + 1)


def test_a_number_may_be_none() -> None:
    choice = Operation(GIVEN, (S, S, Operation("/", (ONE, A))))
    assert computed(choice, a=4.0) == 0.25
    assert computed(choice, a=0.0, s=3) == 3.0


@pytest.mark.parametrize("options", ["", "(coarsen=1)"], ids=["packs", "one element a thread"])
def test_halves_are_rounded_by_way_of_float(options: str) -> None:
    """`__half` of a double rounds once; torch, the CPU and the launcher of calls round to float32 first."""
    python = f"""
@kernel{options}
def scaled(i: Index["n"], x: Float[Tensor, "n"], out: Float[Tensor, "n"], by: float):
    out[i] = x[i] * (1 - by)
"""
    text = translate_file(SourceFile("scaled.py", PRELUDE + python)).cuda.kernel.text
    assert "by_term = round_to<T>(1 - by);" in text
