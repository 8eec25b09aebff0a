"""The simulator runs the user's own code object, thread by thread, on typed elements."""

import math
import math as m
import sys
from dataclasses import replace
from math import sqrt as root

import numpy as np
import pytest
import torch

from py2cu.builtins.launch import LaunchObject
from py2cu.dtypes import Kind
from py2cu.ir.abi.parameters import Role
from py2cu.simulator import SimulationError, simulate
from py2cu.simulator.values.checked_int import CheckedInt, Truth
from py2cu.source import Span
from tests.support.kernels_by_hand import array, element, scalar, signature

LIMIT = 3


def grey(i, x, out):
    out[i] = 0.2989 * x[0, i] + 0.5870 * x[1, i] + 0.1140 * x[2, i]


GREY = signature([array("x", "uint8", "3 n"), array("out", "uint8", "n", Role.OUTPUT)], indices="i=n")


def matmul(blockIdx, threadIdx, blockDim, m, n, out, h, w, k):
    r = blockIdx.y * blockDim.y + threadIdx.y
    c = blockIdx.x * blockDim.x + threadIdx.x
    if r >= h or c >= w:
        return
    o = 0.0
    for i in range(k):
        o += m[r, i] * n[i, c]
    out[r, c] = o


MATMUL = signature(
    [
        array("m", "float32", "h k"),
        array("n", "float32", "k w"),
        array("out", "float32", "h w", Role.OUTPUT),
        *(scalar(name, Kind.INT) for name in "hwk"),
    ],
    launch=("blockIdx", "threadIdx", "blockDim"),
    size=("w", "h"),
    block=(4, 4),
)


def unary(dtype="float32", out="float32", **more):
    return signature([array("x", dtype, "n"), array("out", out, "n", Role.OUTPUT)], indices="i=n", **more)


def run(function, x, out_dtype=torch.float32, sig=None, **scalars):
    out = torch.full_like(x, 7, dtype=out_dtype)
    names = {torch.float32: "float32", torch.uint8: "uint8", torch.int32: "int32", torch.bool: "bool"}
    sig = sig or unary(names[x.dtype], names[out_dtype])
    report = simulate(function, sig, {"x": x, "out": out, **scalars})
    return out, report


def test_an_index_kernel_fills_its_output():
    x = torch.randint(0, 256, (3, 300), dtype=torch.uint8)
    out = torch.zeros(300, dtype=torch.uint8)
    report = simulate(grey, GREY, {"x": x, "out": out})
    weights = torch.tensor([0.2989, 0.5870, 0.1140])
    assert torch.equal(out, (weights[:, None] * x).sum(0).to(torch.uint8))
    assert report.threads == 300
    assert report.launch.grid == (2, 1, 1)
    assert report.writes["out"][299].place == ((1, 0, 0), (43, 0, 0))
    assert report.writes["out"][0].line == grey.__code__.co_firstlineno + 1


def test_a_block_kernel_sees_its_launch_and_dimensions_come_from_shapes():
    a, b, out = torch.randn(5, 3), torch.randn(3, 7), torch.zeros(5, 7)
    report = simulate(matmul, MATMUL, {"m": a, "n": b, "out": out})
    torch.testing.assert_close(out, a @ b)
    assert report.launch.grid == (2, 2, 1)
    assert report.threads == 64


def test_no_launch_where_a_size_is_zero():
    out = torch.zeros(0, dtype=torch.uint8)
    assert simulate(grey, GREY, {"x": torch.zeros(3, 0, dtype=torch.uint8), "out": out}).threads == 0


def test_an_explicit_launch_runs_only_its_threads():
    x, out = torch.ones(3, 100, dtype=torch.uint8), torch.zeros(100, dtype=torch.uint8)
    report = simulate(grey, GREY, {"x": x, "out": out}, grid=3, block=(32,))
    assert report.threads == 96
    assert report.launch.block == (32, 1, 1)


def test_a_guard_that_the_translator_added_skips_threads():
    def double(blockIdx, threadIdx, blockDim, x, out):
        i = blockIdx * blockDim + threadIdx
        out[i] = x[i] * 2

    sig = signature(
        [array("x", "int32", "n"), array("out", "int32", "n", Role.OUTPUT)],
        launch=("blockIdx", "threadIdx", "blockDim"), size=("n",), guards=[("i", "n", "x")],
    )  # fmt: skip
    x, out = torch.arange(300, dtype=torch.int32), torch.zeros(300, dtype=torch.int32)
    assert simulate(double, sig, {"x": x, "out": out}).threads == 300
    assert torch.equal(out, 2 * x)


def test_math_is_typed_however_it_was_imported():
    kinds = []

    def kernel(i, x, out):
        kinds.extend([type(math.exp(x[i])), type(m.sin(x[i])), type(root(x[i])), type(np.float64(x[i]))])
        out[i] = abs(np.exp(x[i])) + min(x[i], 0.1) + float(x[i]) + torch.exp(x[i])

    run(kernel, torch.ones(1))
    assert [kind.__name__ for kind in kinds] == ["Float32", "Float32", "Float32", "Float64"]


def helper(v):
    return math.sqrt(v) * LIMIT


def calls_helper(i, x, out):
    out[i] = helper(x[i])


def test_helpers_of_the_module_are_typed_too():
    out, _ = run(calls_helper, torch.tensor([-1.0, 4.0]))
    assert math.isnan(out[0])
    assert out[1] == 6


def test_the_code_is_the_users_but_for_literals():
    seen = []

    def kernel(i, x, out):
        seen.append(sys._getframe().f_code)
        out[i] = len(x) + x.shape[0]

    out, _ = run(kernel, torch.ones(2))
    assert seen[0].replace(co_consts=kernel.__code__.co_consts) == kernel.__code__
    assert out.tolist() == [4, 4]


def test_integers_wrap_and_floats_truncate_on_store():
    def kernel(i, x, out):
        out[i] = x[i] * 100

    out, _ = run(kernel, torch.tensor([1.999, -1.5, 3.0]), torch.uint8)
    assert out.tolist() == [199, 106, 44]


def test_a_python_integer_that_wraps_is_reported():
    def kernel(i, x, out):
        out[i] = i + 255

    out, report = run(kernel, torch.zeros(2), torch.uint8)
    assert out.tolist() == [255, 0]
    (finding,) = report.findings
    assert "wraps in `out`" in str(finding)
    assert finding.line == kernel.__code__.co_firstlineno + 1


@pytest.mark.parametrize("is_natural", [False, True])
def test_natural_numbers_of_64_bits_are_no_finding(is_natural):
    """At the places that the signature names: there the compiled kernel computes in uint64."""

    def product(i, x, out):
        out[i] = ("é" < "ê") * (int(x[i]) + 2**32 - 1) * 0xFFFFFFFF >> 32

    line = product.__code__.co_firstlineno + 1
    places = (Span(line, 17, line, 67),) if is_natural else ()
    sig = replace(unary("int64", "int64"), natural_places=places)
    out, report = run(product, torch.zeros(2, dtype=torch.int64), torch.int64, sig=sig)
    assert out.tolist() == [2**32 - 2] * 2
    assert len(report.findings) == (0 if is_natural else 1)


def test_a_negative_index_is_reported_and_means_the_end():
    def kernel(i, x, out):
        out[i] = x[i - 1]

    out, report = run(kernel, torch.tensor([1.0, 2.0, 3.0]))
    assert out.tolist() == [3, 1, 2]
    (finding,) = report.findings
    assert "negative index of `x`: -1" in finding.message
    assert finding.line == kernel.__code__.co_firstlineno + 1
    assert finding.place == ((0, 0, 0), (0, 0, 0))


def test_a_negative_index_of_a_slice_is_reported_and_means_its_end():
    def kernel(i, x, out):
        out[i] = x[1:][i - 1]

    out, report = run(kernel, torch.tensor([1.0, 2.0, 3.0]))
    assert out.tolist() == [3, 2, 3]
    (finding,) = report.findings
    assert "negative index of `a part of x`: -1" in finding.message


def test_an_index_out_of_range_names_array_thread_and_line():
    def kernel(i, x, out):
        out[i] = x[i + 1]

    with pytest.raises(SimulationError, match=r"index 3 of `x` is out of range") as caught:
        run(kernel, torch.ones(3))
    assert caught.value.place == ((0, 0, 0), (2, 0, 0))
    assert caught.value.line == kernel.__code__.co_firstlineno + 1
    assert isinstance(caught.value.__cause__, IndexError)


@pytest.mark.parametrize("index", [lambda x, i: x[i, 0], lambda x, i: x[0.5], lambda x, i: x[x[i]]])
def test_wrong_indices_are_refused(index):
    def kernel(i, x, out):
        out[i] = index(x, i)

    with pytest.raises(SimulationError):
        run(kernel, torch.ones(1))


def test_what_the_kernel_raises_carries_its_place():
    def kernel(i, x, out):
        out[i] = 1 // (i - 1)

    with pytest.raises(SimulationError, match="ZeroDivisionError") as caught:
        run(kernel, torch.zeros(3), torch.int32)
    assert caught.value.place[1] == (1, 0, 0)


def test_tensors_of_any_layout():
    x = torch.arange(12, dtype=torch.float32).reshape(3, 4).t()
    out = torch.zeros(8, 3)[::2]

    def kernel(r, c, x, out):
        out[r, c] = x[r, c]

    sig = signature([array("x", "float32", "h w"), array("out", "float32", "h w", Role.OUTPUT)], indices="r=h c=w")
    simulate(kernel, sig, {"x": x, "out": out})
    assert torch.equal(out, x)


def test_scalars_are_what_they_are_annotated_as():
    kinds = []

    def kernel(i, x, out, a, n, flag, e):
        kinds.extend([type(n), type(flag), type(e).__name__, type(a).__name__])
        out[i] = a * x[i]

    sig = signature(
        [
            array("x", "float32", "n"), array("out", "float32", "n", Role.OUTPUT), scalar("a", Kind.FLOAT),
            scalar("n", Kind.INT), scalar("flag", Kind.BOOL), element("e", "uint8"),
        ],
        indices="i=n",
    )  # fmt: skip
    out, _ = run(kernel, torch.ones(1), sig=sig, a=0.1, flag=True, e=3)
    assert kinds == [CheckedInt, Truth, "UInt8", "Double"]
    assert out[0] == torch.tensor(0.1)


def test_shapes_that_disagree_are_an_error():
    with pytest.raises(ValueError, match="axis 0 of `n` has extent 4, expected 3"):
        simulate(matmul, MATMUL, {"m": torch.ones(5, 3), "n": torch.ones(4, 7), "out": torch.ones(5, 7)})


def test_without_a_size_only_an_explicit_launch_works():
    sig = signature([array("out", "float32", "n", Role.INOUT)], launch=("threadIdx",))

    def kernel(threadIdx, out):
        out[threadIdx.x] = threadIdx.x

    out = torch.zeros(3)
    with pytest.raises(ValueError, match=r"number of threads of .* is unknown"):
        simulate(kernel, sig, {"out": out})
    simulate(kernel, sig, {"out": out}, grid=1, block=3)
    assert out.tolist() == [0, 1, 2]


thread_index, block_index = LaunchObject("threadIdx"), LaunchObject("blockIdx")
FREE = signature([array("out", "int32", "n", Role.INOUT)], size=("n",), block=(4,), guards=[("i", "n", "x")])


def place_in(block_dim):
    return block_index * block_dim + thread_index.x


def test_imported_launch_objects_are_the_threads():
    blockDim = LaunchObject("blockDim")

    def kernel(out):
        out[place_in(blockDim.x)] = thread_index + 10 * block_index.x

    out = torch.zeros(6, dtype=torch.int32)
    simulate(kernel, FREE, {"out": out})
    assert out.tolist() == [0, 1, 2, 3, 10, 11]


def test_numba_kernels_see_their_launch():
    cuda = pytest.importorskip("numba.cuda")

    def kernel(out):
        i = cuda.grid(1)
        out[i] = cuda.threadIdx.x + cuda.blockDim.x + i

    out = torch.zeros(6, dtype=torch.int32)
    simulate(kernel, FREE, {"out": out})
    assert out.tolist() == [4, 6, 8, 10, 8, 10]


@pytest.mark.parametrize("name", ["positional", "keyword"])
def test_parameters_of_every_kind(name):
    def positional(i, x, /, out):
        out[i] = x[i]

    def keyword(i, x, *, out):
        out[i] = x[i]

    out, _ = run(locals()[name], torch.ones(2))
    assert out.tolist() == [1, 1]


def test_a_number_that_its_element_type_does_not_hold():
    def kernel(i, a, out):
        out[i] = a

    narrow = signature([element("a", "int8"), array("out", "int32", "n", Role.OUTPUT)], indices="i=n")
    out = torch.zeros(2, dtype=torch.int32)
    simulate(kernel, narrow, {"a": -128, "out": out})
    assert out.tolist() == [-128, -128]
    with pytest.raises(ValueError, match="kernel: `a` = 300 does not fit int8"):
        simulate(kernel, narrow, {"a": 300, "out": out})


@pytest.mark.parametrize("value", [np.float32(0.1), np.float32(np.inf), np.float32(1e30), np.float16(0.1), np.int32(5)])
def test_numbers_of_numpy_are_numbers(value):
    def kernel(i, a, b, out):
        out[i] = a if i == 0 else b

    of_two = signature(
        [element("a", "float32"), scalar("b", Kind.FLOAT), array("out", "float64", "n", Role.OUTPUT)], indices="i=n"
    )
    out = torch.zeros(2, dtype=torch.float64)
    simulate(kernel, of_two, {"a": value, "b": value, "out": out})
    assert out.tolist() == [float(value)] * 2


def test_a_whole_number_beyond_every_float_is_infinite():
    def kernel(i, a, out):
        out[i] = a

    of_one = signature([scalar("a", Kind.FLOAT), array("out", "float64", "n", Role.OUTPUT)], indices="i=n")
    for whole in (10**400, -(10**400)):
        out = torch.zeros(1, dtype=torch.float64)
        simulate(kernel, of_one, {"a": whole, "out": out})
        assert out.item() == (math.inf if whole > 0 else -math.inf)


@pytest.mark.parametrize("at", [1, 2, 3])
def test_a_float_beyond_64_bits_is_no_integer(at):
    table = (2.5, 1e20, 1e20, 1e20)

    def kernel(i, out):
        large = table[i]
        out[i] = math.floor(large) if i == 1 else round(large) if i == 2 else int(large)

    def tail(i, out):
        kernel(i + at, out)

    of_one = signature([array("out", "float64", "n", Role.OUTPUT)], indices="i=n")
    simulate(kernel, of_one, {"out": (out := torch.zeros(1, dtype=torch.float64))})
    assert out[0] == 2
    with pytest.raises(SimulationError, match=r"1e\+20 does not fit a 64-bit integer"):
        simulate(tail, of_one, {"out": torch.zeros(1, dtype=torch.float64)})
