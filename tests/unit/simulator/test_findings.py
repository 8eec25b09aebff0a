"""What Python allows or raises and the compiled kernel does not promise is reported: thread, line and value."""

import contextlib
import math
import operator

import numpy as np
import pytest
import torch

from py2cu import local
from py2cu.check import check_kernel
from py2cu.dtypes import F32, I32, U64, Kind
from py2cu.ir.abi.parameters import Role
from py2cu.simulator import SimulationError, simulate
from py2cu.simulator.state import THREAD
from py2cu.simulator.values.checked_int import LONG_HIGH, CheckedInt
from py2cu.simulator.values.family import element_class
from py2cu.simulator.values.library_functions import LIBRARY
from tests.support.kernels_by_hand import FakeKernel, array, scalar, signature

SECOND = ((0, 0, 0), (1, 0, 0))
STEPS = signature(
    [
        array("x", "int32", "n"), array("out", "int64", "n", Role.OUTPUT), scalar("k", Kind.INT),
        scalar("f", Kind.FLOAT),
    ],
    indices="i=n",
)  # fmt: skip


def run(kernel, x=(5, 5, 5), k=0, f=0.0):
    x = torch.tensor(x, dtype=torch.int32)
    out = torch.full((len(x),), 77)
    return out, simulate(kernel, STEPS, {"x": x, "out": out, "k": k, "f": f})


def only_finding(kernel, message, **arguments):
    """The one finding, made by the second thread in the kernel's first line."""
    _, report = run(kernel, **arguments)
    (finding,) = report.findings
    assert finding.message == message
    assert finding.line == kernel.__code__.co_firstlineno + 1
    assert finding.place == SECOND
    assert str(finding) == f"line {finding.line}: {message} (block (0, 0, 0), thread (1, 0, 0))"
    return finding


def raised(kernel, message, **arguments):
    with pytest.raises(SimulationError) as caught:
        run(kernel, **arguments)
    assert caught.value.message == message
    assert caught.value.line == kernel.__code__.co_firstlineno + 1
    assert caught.value.place == SECOND


# --- division by zero ---


def test_integer_elements_divided_by_zero():
    def floor(i, x, out, k, f):
        out[i] = x[0] // x[i]

    def rest(i, x, out, k, f):
        out[i] = x[0] % x[i]

    def quotient(i, x, out, k, f):
        out[i] = x[0] / x[i]

    raised(floor, "ZeroDivisionError: 5 // 0", x=(5, 0))
    raised(rest, "ZeroDivisionError: 5 % 0", x=(5, 0))
    raised(quotient, "ZeroDivisionError: 5 / 0", x=(5, 0))


def test_python_integers_divided_by_zero():
    def floor(i, x, out, k, f):
        out[i] = k // (i - 1)

    def rest(i, x, out, k, f):
        out[i] = 7 % (i - 1)

    def quotient(i, x, out, k, f):
        out[i] = (i + 2) / (1 - i)

    raised(floor, "ZeroDivisionError: 8 // 0", k=8)
    raised(rest, "ZeroDivisionError: 7 % 0")
    raised(quotient, "ZeroDivisionError: 3 / 0")


def test_python_floats_divided_by_zero():
    def quotient(i, x, out, k, f):
        out[i] = f / (i - 1.0)

    raised(quotient, "ZeroDivisionError: 2.5 / 0.0", f=2.5)


# --- whole numbers that no float holds ---


def test_python_integers_that_no_float_holds():
    def quotient(i, x, out, k, f):
        out[i] = k * i / 127

    def divisor(i, x, out, k, f):
        out[i] = 3 / max(k * i, 1)

    def above(i, x, out, k, f):
        out[i] = k * i > f

    about = "a Python integer is rounded when it is converted to float64"
    no_float, next_one = 2**53 + 1, 2**53 + 2
    assert only_finding(quotient, f"{about}: {no_float} / 127", k=no_float).is_open
    assert only_finding(divisor, f"{about}: 3 / {no_float}", k=no_float).is_open
    assert only_finding(above, f"{about}: {no_float}, compared with {2.0**53!r}", k=no_float, f=2.0**53).is_open
    for kernel in (quotient, divisor, above):
        assert not run(kernel, k=next_one, f=2.0**53)[1].findings
    assert not run(above, k=no_float, f=2.0**52)[1].findings, "it comes out alike"


# --- shifts ---


def test_shifts_of_elements_by_their_width_or_more():
    def left(i, x, out, k, f):
        out[i] = x[0] << x[i]

    def right(i, x, out, k, f):
        out[i] = x[0] >> (k * i)

    assert only_finding(left, "a shift of int32 by 32 bits or more: 1 << 32", x=(1, 32)).is_open
    assert only_finding(right, "a shift of int32 by 32 bits or more: -9 >> 40", x=(-9, 0), k=40).is_open
    assert not run(left, x=(1, 31))[1].findings
    assert run(right, x=(-9, 0), k=40)[0].tolist() == [-9, -1], "as Python has it"


def test_shifts_of_python_integers_by_64_or_more():
    def right(i, x, out, k, f):
        out[i] = k >> (64 * i)

    assert only_finding(right, "a shift of a Python integer by 64 bits or more: 3 >> 64", x=(1, 1), k=3).is_open


@pytest.mark.parametrize("value", ["x[0]", "k"])
def test_negative_shifts(value):
    def of_element(i, x, out, k, f):
        out[i] = x[0] << (0 - i)

    def of_integer(i, x, out, k, f):
        out[i] = k >> (0 - i)

    if value == "k":
        raised(of_integer, "ValueError: negative shift count: 3 >> -1", k=3)
    else:
        raised(of_element, "ValueError: negative shift count: 5 << -1")


# --- Python integers beyond 64 bits ---


def test_a_python_integer_that_leaves_64_bits():
    def square(i, x, out, k, f):
        out[i] = (k * k * (i + i)) % 100

    def power(i, x, out, k, f):
        out[i] = (3 ** (41 * i)) % 100

    def sum_of_literals(i, x, out, k, f):
        out[i] = ((1 << 62) * (1 + i) - 1) % 100

    def literals_alone(i, x, out, k, f):
        out[i] = (4611686018427387904 if i == 1 else 1) * 2 % 100

    def whole_function(i, x, out, k, f):
        out[i] = math.factorial(20 + i) % 100

    def far_power(i, x, out, k, f):
        out[i] = (2 ** (50000 * i)) % 100

    def count(i, x, out, k, f):
        for at in range(k, k + 5 * i, 4):
            out[i] = at % 100

    far = (1 << 63) - 6
    beyond = f"a Python integer leaves 64 bits: the number after the last of {range(far, far + 5, 4)} is {far + 8}"
    assert only_finding(count, beyond, k=far, x=(0, 0)).is_open
    big = 1 << 62
    assert only_finding(literals_alone, f"a Python integer leaves 64 bits: {big} * 2 is {2 * big}", x=(0, 0))
    beyond = f"a Python integer leaves 64 bits: math.factorial of 21 is {math.factorial(21)}"
    assert only_finding(whole_function, beyond, x=(0, 0))
    assert only_finding(far_power, "a Python integer leaves 64 bits: 2 ** 50000", x=(0, 0)).is_open
    assert only_finding(square, f"a Python integer leaves 64 bits: {big} * 2 is {2 * big}", k=1 << 31, x=(0, 0))
    assert only_finding(power, f"a Python integer leaves 64 bits: 3 ** 41 is {3**41}", x=(0, 0)).is_open
    assert only_finding(sum_of_literals, f"a Python integer leaves 64 bits: {big} * 2 is {2 * big}", x=(0, 0))


@pytest.mark.parametrize(
    "use", [int, range, operator.index, lambda v: math.gcd(v, 3), lambda v: LIBRARY["math"]["ldexp"](1.0, v)]
)
def test_a_uint64_that_no_python_integer_of_a_kernel_holds(use):
    cls = element_class(U64)
    THREAD.start()
    use(cls(7))
    assert element_class(F32).convert(cls(2**63)) == 2.0**63
    assert element_class(I32).convert(cls(2**64 - 1)) == -1
    assert not THREAD.findings
    with contextlib.suppress(OverflowError):  # of a float, by `ldexp`
        use(cls(2**63))
    assert THREAD.findings[0].message == f"a Python integer leaves 64 bits: uint64({2**63})"
    assert THREAD.findings[0].is_open


def test_a_uint64_is_loaded_and_stored_whatever_it_is():
    wide = signature([array("x", "uint64", "n"), array("out", "uint64", "n", Role.OUTPUT)], indices="i=n")
    x, out = torch.tensor([2**64 - 2], dtype=torch.uint64), torch.zeros(1, dtype=torch.uint64)

    def copied(i, x, out):
        out[i] = x[i] + 1

    assert not simulate(copied, wide, {"x": x, "out": out}).findings
    assert out.tolist() == [2**64 - 1]


@pytest.mark.parametrize("operation", [lambda v: v + 1, lambda v: 1 + v, lambda v: -(-v - 2), lambda v: v << 1])
def test_integers_at_the_edge(operation):
    THREAD.start()
    assert type(operation(CheckedInt(3))) is CheckedInt
    assert not THREAD.findings
    operation(CheckedInt(LONG_HIGH))
    (finding,) = THREAD.findings
    assert "leaves 64 bits" in finding.message


def test_python_integers_stay_typed_on_their_way():
    kinds = []

    def kernel(i, x, out, k, f):
        values = [i, k, len(x), x.shape[0], int(x[i]), round(f), abs(k), -k, min(k, 3), k & 1, divmod(k, 2)[0], ~k]
        values += list(range(k, 4))
        kinds.extend(type(value) for value in values)
        out[i] = k

    run(kernel, x=(1,), k=2, f=1.5)
    assert set(kinds) == {CheckedInt}


# --- reads of what nobody wrote ---


def test_an_output_read_before_it_is_written():
    def neighbour(i, x, out, k, f):
        out[i] = out[2] if i == 1 else x[i]

    def own(i, x, out, k, f):
        out[i] = x[i]
        out[i] = out[i] + 1

    assert not only_finding(neighbour, "an element of `out` is read before it is written: out[2]").is_open
    assert run(neighbour)[1].writes["out"][1].error == math.inf, "nothing to compare"
    assert not run(own)[1].findings


def test_an_output_with_an_initial_value_is_written():
    def kernel(i, out):
        out[i] += 1

    sig = signature([array("out", "int32", "n", Role.OUTPUT)], indices="i=n", inits=[("out", 0)])
    out = torch.zeros(3, dtype=torch.int32)
    assert not simulate(kernel, sig, {"out": out}).findings
    assert out.tolist() == [1, 1, 1]


# --- check ---


def shifted(i, x, s, out):
    out[i] = x[i] << s[i]


SHIFTED = signature(
    [array("x", "uint8", "n"), array("s", "uint8", "n"), array("out", "uint8", "n", Role.OUTPUT)], indices="i=n"
)


def test_check_leaves_out_what_is_open_and_tries_smaller_values():
    report = check_kernel(FakeKernel(shifted, SHIFTED, lambda x, s, out: out.copy_(x << s)), device="cpu")
    assert report.ok, str(report)
    assert report.compared > 500, "shifts below 8 are compared"
    assert any("a shift of uint8 by 8 bits or more" in reason for reason in report.skipped)
    wrong = check_kernel(FakeKernel(shifted, SHIFTED, lambda x, s, out: out.copy_(x)), device="cpu")
    assert wrong.failures


# --- arrays of a kernel's own ---

ROW = (10, 20, 30)
GRID = ((1, 2), (3, 4))


def test_local_element_read_before_it_is_written():
    def kernel(i, x, out, k, f):
        out[i] = local((2, 2), "int32")[0, 1] if i == 1 else 0

    only_finding(kernel, "an element of `a local array` is read before it is written: a local array[0, 1]")


def test_local_index_out_of_range():
    def kernel(i, x, out, k, f):
        local(3, np.int64)[2 + i] = 1

    raised(kernel, "index 3 of `a local array` is out of range: axis 0 has extent 3")


def test_negative_index_of_a_tuple():
    def kernel(i, x, out, k, f):
        out[i] = ROW[0 - i]

    out, _ = run(kernel, x=(5, 5))
    assert out.tolist() == [10, 30]
    only_finding(kernel, "a negative index of a tuple of constants: -1", x=(5, 5))


def test_numbers_of_tuples_are_a_kernels_own():
    def kernel(i, x, out, k, f):
        out[i] = (GRID[1][i] << (61 + i)) >> 3

    big = 1 << 64
    only_finding(kernel, f"a Python integer leaves 64 bits: 4 << 62 is {big}", x=(5, 5))


def test_local_of_pythons_types():
    def kernel(i, x, out, k, f):
        whole, real, flag = local(1, int), local(1, float), local(1, bool)
        whole[0], real[0], flag[0] = 2**55 + 1, 1e300, 2
        out[i] = whole[0] - 2**55 + (real[0] > 1e299) + flag[0]

    out, _ = run(kernel)
    assert out.tolist()[0] == 3


def test_local_of_an_unknown_type():
    def kernel(i, x, out, k, f):
        out[i] = local(1, np.str_)[0] if i == 1 else 0

    spellings = "`np.float32`, `torch.int32`, `'float32'`, or `x.dtype` of an array"
    raised(kernel, f"TypeError: {np.str_!r} is no element type; write {spellings}")


def test_local_outside_a_simulation_is_a_tensor():
    assert local((2, 3), np.float32).shape == (2, 3)
    assert local(4, torch.int16).dtype is local(4, "int16").dtype is torch.int16
