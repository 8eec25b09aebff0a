"""`check` accepts what a faithful translation may do, catches every planted bug, and says where."""

import math
import time

import pytest
import torch

from py2cu import atomic, testing
from py2cu.check import check_kernel, invent_cases, user_case
from py2cu.check.differences import Fault, agree, tolerance
from py2cu.check.redzones import Redzone, poison, poison_bits
from py2cu.check.sizes import axis_sizes, choose_many, choose_sizes
from py2cu.dtypes import F32, U8, Kind
from py2cu.ir.abi.dims import unravel
from py2cu.ir.abi.launch import FEW_ELEMENTS
from py2cu.ir.abi.parameters import Role
from py2cu.simulator import Write
from py2cu.simulator.tensor_bits import as_bits
from tests.support.kernels_by_hand import FakeKernel, array, scalar, signature

HERE = ((0, 0, 0), (0, 0, 0))


# --- the kernels: Python, and a correct stand-in for the C++ ---


def affine(i, x, out):
    out[i] = x[i] * 2.5 + x[i]


AFFINE = signature([array("x", "float32", "n"), array("out", "float32", "n", Role.OUTPUT)], indices="i=n")


def affine_compiled(x, out):
    out.copy_(x * 2.5 + x)


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
        array("m", "float32", "h k"), array("n", "float32", "k w"), array("out", "float32", "h w", Role.OUTPUT),
        *(scalar(name, Kind.INT) for name in "hwk"),
    ],
    launch=("blockIdx", "threadIdx", "blockDim"), size=("w", "h"), block=(16, 16),
)  # fmt: skip


def matmul_compiled(m, n, out, h, w, k):
    out.copy_((m.double() @ n.double()).float())


def grey(i, x, out):
    out[i] = 0.2989 * x[0, i] + 0.5870 * x[1, i] + 0.1140 * x[2, i]


GREY = signature([array("x", "uint8", "3 n"), array("out", "uint8", "n", Role.OUTPUT)], indices="i=n")


def grey_compiled(x, out):
    r, g, b = x.float()
    out.copy_(0.2989 * r + 0.5870 * g + 0.1140 * b)


def transpose(r, c, x, out):
    out[c, r] = x[r, c] + r


TRANSPOSE = signature(
    [array("x", "int32", "h w"), array("out", "int32", "w h", Role.OUTPUT)], indices="r=h c=w", block=(16, 16)
)


def transpose_compiled(x, out):
    out.copy_((x + torch.arange(x.shape[0], dtype=torch.int32)[:, None]).t())


def add_one(i, x):
    x[i] += 1


ADD_ONE = signature([array("x", "int32", "n", Role.INOUT)], indices="i=n")


def check(python, sig, compiled, **options):
    return check_kernel(FakeKernel(python, sig, compiled), device="cpu", **options)


CORRECT = [
    (affine, AFFINE, affine_compiled),
    (matmul, MATMUL, matmul_compiled),
    (grey, GREY, grey_compiled),
    (transpose, TRANSPOSE, transpose_compiled),
    (add_one, ADD_ONE, lambda x: x.add_(1)),
]


@pytest.mark.parametrize(("python", "sig", "compiled"), CORRECT, ids=lambda value: getattr(value, "__name__", ""))
@pytest.mark.parametrize("seed", [0, 1])
def test_a_faithful_translation_is_fine(python, sig, compiled, seed):
    start = time.perf_counter()
    report = check(python, sig, compiled, seed=seed)
    assert report.ok, str(report)
    assert report.cases >= 7
    assert not report.skipped
    assert time.perf_counter() - start < 5


# --- the seven planted bugs, and some more ---


def only_failure(report, kind):
    assert not report.ok
    assert [failure.kind for failure in report.failures] == [kind], str(report)
    return report.failures[0]


def test_a_wrong_operator_is_found_with_its_place():
    failure = only_failure(check(affine, AFFINE, lambda x, out: out.copy_(x * 2.5 - x)), Fault.VALUE)
    assert failure.array == "out"
    assert failure.line == affine.__code__.co_firstlineno + 1
    assert (failure.block, failure.thread, failure.index) == ((0, 0, 0), (0, 0, 0), (0,))
    assert failure.expected == pytest.approx(3.5 * failure.actual / 1.5)
    assert "out[0]: Python" in str(failure)


def test_a_wrong_operator_in_a_sum_is_found():
    only_failure(check(matmul, MATMUL, lambda m, n, out, h, w, k: out.copy_(m.abs() @ n)), Fault.VALUE)


def test_an_off_by_one_guard_leaves_an_element_unwritten():
    failure = only_failure(check(affine, AFFINE, lambda x, out: out[:-1].copy_((x * 2.5 + x)[:-1])), Fault.UNWRITTEN)
    assert failure.index == (0,), "found at the smallest size"


def test_an_off_by_one_guard_the_other_way_writes_outside():
    def compiled(x, out):
        affine_compiled(x, out)
        out.as_strided((1,), (1,), out.storage_offset() + len(out)).fill_(3)

    failure = only_failure(check(affine, AFFINE, compiled), Fault.OUTSIDE)
    assert "`out` of shape (1,) was written at flat position 1" in str(failure)


def test_a_missing_guard_is_found():
    def compiled(x, out):
        threads = -(-len(x) // 256) * 256
        reached = [t.as_strided((threads,), (1,), t.storage_offset()) for t in (x, out)]
        reached[1].copy_(reached[0] * 2.5 + reached[0])

    only_failure(check(affine, AFFINE, compiled), Fault.OUTSIDE)


def test_an_unwritten_element_in_the_middle_is_found():
    def compiled(x, out):
        for i in (i for i in range(len(x)) if i != 20):
            out[i] = x[i] * 2.5 + x[i]

    failure = only_failure(check(affine, AFFINE, compiled), Fault.UNWRITTEN)
    assert failure.index == (20,)
    assert failure.thread == (20, 0, 0)


def test_a_wrong_dtype_is_found():
    def compiled(x, out):
        r, g, b = (x * torch.tensor([76, 150, 29], dtype=torch.uint8)[:, None]) // 255
        out.copy_(r + g + b)

    only_failure(check(grey, GREY, compiled), Fault.VALUE)
    only_failure(check(add_one, ADD_ONE, lambda x: x.copy_((x + 1).to(torch.int16))), Fault.VALUE)


def test_swapped_axes_are_found():
    def compiled(x, out):
        (h, w), flat = x.shape, (x + torch.arange(x.shape[0], dtype=torch.int32)[:, None]).flatten()
        out.copy_(flat.reshape(w, h) if h and w else out)

    only_failure(check(transpose, TRANSPOSE, compiled), Fault.VALUE)


def test_a_write_far_outside_the_array_is_found():
    def compiled(x, out):
        affine_compiled(x, out)
        out.as_strided((1,), (1,), out.storage_offset() - 3000).fill_(3)

    assert "flat position -3000" in str(only_failure(check(affine, AFFINE, compiled), Fault.OUTSIDE))


def test_an_element_that_python_does_not_write_is_found():
    def evens(i, x, out):
        if i % 2 == 0:
            out[i] = x[i]

    failure = only_failure(check(evens, AFFINE, lambda x, out: out.copy_(x)), Fault.UNEXPECTED_WRITE)
    assert failure.index == (1,)
    assert failure.line is None


@pytest.mark.parametrize(("value", "is_fine"), [(math.nan, True), (0.5, False)])
def test_a_path_in_doubt_leaves_its_thread_open(value, is_fine):
    """The sign of a NaN is open, and with it what is written and what is written again."""

    def python(i, x, out):
        out[0, i] = 1.0
        if torch.signbit(x[i]):
            out[0, i] = 2.0
            out[1, i] = 3.0

    def compiled(x, out):
        out.copy_(torch.tensor([[2.0], [3.0]]))

    sig = signature([array("x", "float32", "n"), array("out", "float32", "2 n", Role.INOUT)], indices="i=n")
    case = user_case(sig, {"x": torch.tensor([value]), "out": torch.zeros(2, 1)})
    assert check_kernel(FakeKernel(python, sig, compiled), [case]).ok is is_fine


def test_a_changed_input_is_found():
    def compiled(x, out):
        affine_compiled(x, out)
        x.zero_()

    only_failure(check(affine, AFFINE, compiled), Fault.INPUT)


def test_an_error_of_the_compiled_side_is_a_failure():
    def compiled(x, out):
        raise RuntimeError("CUDA error: an illegal memory access was encountered")

    assert "illegal memory access" in str(only_failure(check(affine, AFFINE, compiled), Fault.RAISED))


# --- what Python leaves open ---


def test_a_case_whose_python_raises_gets_tame_values():
    def gather(i, x, index, out):
        out[i] = x[index[i]]

    sig = signature(
        [array("x", "float32", "m"), array("index", "int64", "n"), array("out", "float32", "n", Role.OUTPUT)],
        indices="i=n",
    )
    report = check(gather, sig, lambda x, index, out: out.copy_(x[index]))
    assert report.ok, str(report)
    assert any("out of range" in reason for reason in report.skipped)


def test_a_kernel_whose_python_always_raises_is_not_checked():
    def broken(i, x, out):
        out[i] = x[i + 1]

    report = check(broken, AFFINE, affine_compiled)
    assert report.ok
    assert not report.checked
    assert "`kernel` is not checked" in str(report)
    assert "no case with threads could be compared" in str(report)
    assert "out of range" in str(report)


def test_a_loop_that_never_ends_is_given_up(monkeypatch):
    def endless(i, x, out):
        while x[i] == x[i]:
            pass

    monkeypatch.setattr("py2cu.check.run.CASE_SECONDS", 0.02)
    report = check(endless, AFFINE, affine_compiled)
    assert not report.checked
    assert "does not end" in str(report)


def test_a_negative_index_is_reported():
    def shift(i, x, out):
        out[i] = x[i - 1]

    report = check(shift, AFFINE, affine_compiled)
    assert not report.checked
    assert "negative index" in str(report)


def test_contraction_to_fma_is_accepted_and_so_is_cancellation():
    def cancel(i, x, out):
        out[i] = x[i] * x[i] - 0.1 * x[i]

    def fused(x, out):
        out.copy_((x.double() * x.double() - (x * 0.1).double()).float())

    assert check(cancel, AFFINE, fused).ok


def test_integers_from_floats_may_move_by_the_error_only():
    product = Write(HERE, 1, 1e-6, 3.0)
    assert agree(U8, 3, 2, product)
    assert not agree(U8, 3, 4, product)
    assert not agree(U8, 3, 2, Write(HERE, 1, 0.0))


def test_nan_and_infinity_are_compared_as_such():
    exact = Write(HERE, 1, 0.0)
    assert agree(F32, math.nan, math.nan, exact)
    assert not agree(F32, math.nan, 1.0, exact)
    assert not agree(F32, 1.0, math.nan, exact)
    assert not agree(F32, math.inf, -math.inf, exact)
    assert not agree(F32, math.inf, 3e38, exact)
    assert tolerance(F32, 1.0) < 1e-6


def test_the_users_own_arguments_are_one_case():
    x, out = torch.randn(5), torch.zeros(5)
    case = user_case(AFFINE, {"x": x, "out": out})
    report = check(affine, AFFINE, affine_compiled, cases=[case])
    assert report.ok
    assert (report.cases, report.compared, report.accepted) == (1, 5, 0)
    assert out.sum() == 0
    assert not check(affine, AFFINE, lambda x, out: None, cases=[case]).ok
    absent = user_case(AFFINE, {"x": x})
    only_failure(check(affine, AFFINE, lambda x, out: None, cases=[absent]), Fault.UNWRITTEN)


def test_initial_values_are_what_both_sides_start_from():
    def count(i, x, hist):
        atomic.add(hist, x[i], 1)

    sig = signature(
        [array("x", "uint8", "n"), array("hist", "int32", "256", Role.OUTPUT)], indices="i=n", inits=[("hist", 0)]
    )
    report = check(count, sig, lambda x, hist: hist.add_(torch.bincount(x.long(), minlength=256)))
    assert report.ok, str(report)


# --- inputs ---


def test_cases_cover_the_edges_of_a_block_and_are_the_same_every_time():
    cases = list(invent_cases(AFFINE))
    assert {case.sizes["n"] for case in cases} == {0, 1, 37, 255, 257, 773}
    for one, other in zip(cases, invent_cases(AFFINE), strict=True):
        assert str(one) == str(other)
        assert torch.equal(as_bits(one.arguments["x"]), as_bits(other.arguments["x"]))


def test_on_a_gpu_two_launches_are_so_large_that_threads_may_have_several_elements():
    arrays = [array("x", "float32", "h w"), array("out", "float32", "h w", Role.OUTPUT)]
    picture = signature(arrays, indices="r=h c=w", size=("w", "h"), block=(16, 16))
    few, many = ([case.sizes for case in invent_cases(picture, on_gpu=on_gpu)] for on_gpu in (False, True))
    assert [sizes for sizes in many if sizes not in few] == [{"h": 7, "w": 592}, {"h": 7, "w": 593}]
    assert 7 * (592 - 16) <= FEW_ELEMENTS < 7 * 592


@pytest.mark.parametrize(
    ("x", "indices", "sizes"),
    [
        ("h 64", "r=h c=64", {"h": 80}),
        ("n 2", "i=2*n", {"n": 2064}),
        ("n n", "i=n", None),  # 16 million elements
    ],
)
def test_large_launches_grow_what_can_grow(x, indices, sizes):
    size = [each.split("=")[1] for each in indices.split()][::-1]
    kernel = signature([array("x", "float32", x), array("out", "float32", x, Role.OUTPUT)], indices=indices, size=size)
    assert choose_many(kernel, 0, is_ragged=False) == sizes


def test_pictures_are_not_square_and_stay_small():
    for place in range(6):
        sizes = choose_sizes(MATMUL, place)
        assert sizes["h"] != sizes["w"]
        assert math.prod(sizes.values()) <= 20_000
    assert axis_sizes(16) == (0, 1, 7, 15, 17, 53)


def test_strided_kernels_get_strided_inputs():
    seen = []
    sig = signature(
        [array("x", "float32", "n"), array("out", "float32", "n", Role.OUTPUT)],
        indices="i=n",
        strided=("x", "out"),
    )

    def compiled(x, out):
        seen.append(x.is_contiguous())
        affine_compiled(x, out)

    assert check(affine, sig, compiled).ok
    assert not all(seen)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.uint8, torch.int16, torch.int64, torch.bool])
def test_fences_keep_values_and_notice_writes(dtype):
    fenced = Redzone(poison(torch.empty(2, 3, dtype=dtype)), "cpu")
    assert fenced.view.is_contiguous()
    assert set(as_bits(fenced.read()).flatten().tolist()) == {poison_bits(dtype)}
    assert fenced.first_write_outside() is None
    fenced.view.as_strided((1,), (1,), fenced.view.storage_offset() + 6).fill_(1)
    assert fenced.first_write_outside() == 6


def test_unravel():
    assert unravel(11, (2, 3, 4)) == (0, 2, 3)
    assert unravel(0, ()) == ()


# --- py2cu.testing ---


class Checked:
    def __init__(self, text):
        self.cuda_source = text

    def check(self, *args):
        return check(affine, AFFINE, args[0])


def test_assert_matches_python():
    testing.assert_matches_python(Checked(""), affine_compiled)
    with pytest.raises(AssertionError, match="DIFFERS from its Python"):
        testing.assert_matches_python(Checked(""), lambda x, out: None)


def test_assert_matches_python_warns_of_what_is_not_checked():
    class Unchecked:
        def check(self):
            return check(lambda i, x, out: 1 // 0, AFFINE, affine_compiled)

    with pytest.warns(UserWarning, match="`kernel` is not checked"):
        testing.assert_matches_python(Unchecked())


def test_assert_golden_writes_then_compares(tmp_path, monkeypatch):
    path = tmp_path / "new" / "kernel.cu"
    testing.assert_golden(Checked("a\nb\n"), path)
    testing.assert_golden(Checked("a\nb\n"), path)
    with pytest.raises(AssertionError, match=r"(?s)-b\n\+c"):
        testing.assert_golden(Checked("a\nc\n"), path)
    monkeypatch.setattr(testing, "_updating", True)
    testing.assert_golden(Checked("a\nc\n"), path)
    assert path.read_text() == "a\nc\n"
