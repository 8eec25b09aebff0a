"""What `check` claims: what was compared, what was accepted, what is not checked; and how much it simulates."""

import re
import threading
import time
from dataclasses import replace

import pytest

pytest.importorskip("torch")

import torch

from py2cu import atomic, shared
from py2cu.check import CheckReport, Mismatch, Verdict, check_kernel
from py2cu.check.budget import OPERATIONS, Budget
from py2cu.check.cases import invent_cases, scale_down, user_case
from py2cu.check.differences import Fault, Snapshot
from py2cu.check.permutations import Column, unmatched
from py2cu.check.sizes import work_of
from py2cu.check.watchdog import NeverReturns, Watchdog
from py2cu.dtypes import F32, I32, Kind
from py2cu.ir.abi.parameters import Role
from py2cu.simulator import Write, simulate
from tests.support.kernels_by_hand import FakeKernel, array, scalar, signature

HERE = ((0, 0, 0), (0, 0, 0))


# --- what is compared, and what is accepted ---


def compact(i, x, out, count):
    if x[i] > 0:
        out[atomic.add(count, 0, 1)] = x[i]


COMPACT = signature(
    [
        array("x", "float32", "n"), array("out", "float32", "n", Role.OUTPUT),
        array("count", "int32", "1", Role.OUTPUT),
    ],
    indices="i=n", inits=[("count", 0), ("out", -1)],
)  # fmt: skip


def compacted(x, out, count):
    kept = x[x > 0].flip(0)
    out[: len(kept)] = kept
    count[0] = len(kept)


def compacted_wrongly(x, out, count):
    compacted(x, out, count)
    out[: count.item()] += 1


def test_a_compaction_is_not_checked_and_says_what_would_check_it():
    report = check_kernel(FakeKernel(compact, COMPACT, compacted), device="cpu")
    assert report.ok and not report.checked
    assert report.accepted > report.compared > 0
    text = str(report)
    assert text.startswith("`kernel` is not checked")
    assert f"{report.compared} elements compared, {report.accepted} accepted" in text
    assert 'hint: `kernel.check(…, unordered="out")` compares `out` in any order' in text


@pytest.mark.parametrize(("compiled", "ok"), [(compacted, True), (compacted_wrongly, False)])
def test_unordered_elements_are_compared_up_to_a_permutation(compiled, ok):
    report = check_kernel(FakeKernel(compact, COMPACT, compiled), device="cpu", unordered="out")
    assert report.ok == ok, str(report)
    assert not ok or (report.checked and report.accepted == 0)
    assert ok or "the compiled kernel computes no such element at any index" in str(report)


def test_unordered_names_written_arrays():
    kernel = FakeKernel(compact, COMPACT, compacted)
    for unordered in ("x", "nothing", "out, x"):
        with pytest.raises(ValueError, match="writes `out`, `count`"):
            check_kernel(kernel, unordered=unordered)
    with pytest.raises(ValueError, match="`out` twice"):
        check_kernel(kernel, unordered=("out", "out"))


def pairs(i, x, keys, rows, count):
    if x[i] > 0:
        slot = atomic.add(count, 0, 1)
        keys[slot] = i
        rows[slot, 0] = x[i]
        rows[slot, 1] = 2 * x[i]


PAIRS = signature(
    [
        array("x", "float32", "n"), array("keys", "int32", "n", Role.OUTPUT),
        array("rows", "float32", "n 2", Role.OUTPUT), array("count", "int32", "1", Role.OUTPUT),
    ],
    indices="i=n", inits=[("keys", -1), ("rows", 0), ("count", 0)],
)  # fmt: skip


@pytest.mark.parametrize(
    ("unordered", "ok"), [("keys, rows", False), (("keys", "rows"), True), ("rows", True), ("keys,rows", False)]
)
def test_arrays_of_one_string_are_rearranged_together(unordered, ok):
    def compiled(x, keys, rows, count):
        kept = (x > 0).nonzero().flatten().to(torch.int32)
        count[0] = len(kept)
        keys[: len(kept)] = kept
        rows[: len(kept)] = (x[x > 0][:, None] * torch.tensor([1.0, 2.0])).flip(0)  # each row beside another key

    case = user_case(PAIRS, {"x": torch.tensor([1.0, -1, 2, 3, 4])})
    report = check_kernel(FakeKernel(pairs, PAIRS, compiled), [case], device="cpu", unordered=unordered)
    assert report.ok == ok, str(report)


def weighted(i, x, out, count):
    slot = atomic.add(count, 0, 1)
    out[slot] = x[i] * slot


def test_unordered_does_not_help_where_other_orders_write_other_elements():
    case = user_case(COMPACT, {"x": torch.arange(8.0)})
    kernel = FakeKernel(weighted, COMPACT, lambda x, out, count: count.fill_(8))
    report = check_kernel(kernel, [case], device="cpu", unordered="out")
    assert not report.checked
    assert "other orders of threads change `out`, not only the order of its elements" in str(report)
    assert "pass your own arguments to" in str(report)


def column(dtype, expected, actual, error=0.0):
    before = torch.zeros_like(expected)
    writes = {at: Write(HERE, 1, error) for at in range(expected.numel())}
    return Column(Snapshot(dtype, before, expected, actual), writes, slack=0)


@pytest.mark.parametrize(
    ("expected", "actual", "error", "missing"),
    [
        ([1.0, 2.0, 3.0], [3.0, 1.0, 2.0], 0.0, []),
        ([1.0, 2.0, 2.0], [2.0, 1.0, 1.0], 0.0, [2]),
        ([1.0, 1.5], [1.75, 1.25], 0.5, []),  # 1.25 is the counterpart of the first: the second has another
        ([1.0, 1.5, 1.2], [1.75, 1.25, 1.3], 0.25, []),
        ([1.0, float("nan")], [float("nan"), 1.0], 0.0, []),
        ([0.0, 1.0], [-0.0, 1.0], 0.0, []),
        ([0.0, 1.0], [float("inf"), 1.0], 0.0, [0]),
        ([], [], 0.0, []),
    ],
)
def test_entries_are_paired(expected, actual, error, missing):
    assert unmatched([column(F32, torch.tensor(expected), torch.tensor(actual), error)]) == missing


def test_thousands_of_entries_are_paired_in_time():
    values = torch.arange(20_000, dtype=torch.int32) % 100
    start = time.process_time()
    assert unmatched([column(I32, values, values.flip(0))]) == []
    assert len(unmatched([column(I32, values, (values + 1).flip(0))])) == 200
    assert time.process_time() - start < 5


# --- sums ---


def summed(i, x, total):
    atomic.add(total, 0, x[i] * 0.5)


SUMMED = signature(
    [array("x", "float32", "n"), array("total", "float32", "1", Role.OUTPUT)], indices="i=n", inits=[("total", 0)]
)


def test_a_sum_with_a_nan_is_nan_in_any_order():
    x = torch.tensor([3e38, float("nan"), 3e38, 3e38])
    arguments = {"x": x, "total": torch.zeros(1)}
    report = simulate(summed, SUMMED, arguments, sanitize=True)
    assert arguments["total"].isnan().all()
    assert report.writes["total"][0].error == 0
    assert not report.tainted


def test_terms_that_may_be_anything_leave_the_thread_sure():
    """A product that overflows may be finite inside a multiply-add; what the thread stores elsewhere is certain."""

    def kernel(i, x, total, out):
        atomic.add(total, 0, x[i] * x[i])
        out[i] = x[i]

    sig = signature(
        [*SUMMED.parameters, array("out", "float32", "n", Role.OUTPUT)], indices="i=n", inits=[("total", 0)]
    )
    arguments = {"x": torch.tensor([3e38]), "total": torch.zeros(1), "out": torch.zeros(1)}
    report = simulate(kernel, sig, arguments)
    assert report.writes["total"][0].error == float("inf")
    assert report.writes["out"][0].error == 0


def test_a_product_with_a_nan_is_nan_whatever_the_other_factor():
    def kernel(i, x, total):
        total[0] = (x[0] * x[0]) * x[1]

    arguments = {"x": torch.tensor([3e38, float("nan")]), "total": torch.zeros(1)}
    report = simulate(kernel, replace(SUMMED, indices=ONE.indices), arguments)
    assert arguments["total"].isnan().all()
    assert report.writes["total"][0].error == 0


def test_a_read_of_a_float_that_may_be_anything_leaves_the_thread_sure():
    def kernel(i, x, out):
        part = shared(1, torch.float32)
        part[0] = x[i] * x[i]
        square = part[0]
        out[i] = x[i]
        part[0] = square

    arguments = {"x": torch.tensor([3e38]), "out": torch.zeros(1)}
    report = simulate(kernel, ONE, arguments)
    assert report.writes["out"][0].error == 0
    assert not report.tainted


ONE = signature([array("x", "float32", "m"), array("out", "float32", "m", Role.OUTPUT)], indices="i=1")


# --- races that keep the value ---


def test_a_zero_of_the_other_sign_is_another_value():
    def kernel(i, x, out):
        out[i] = x[0]
        x[0] = -0.0

    sig = signature([array("x", "float32", "1", Role.INOUT), array("out", "float32", "2", Role.OUTPUT)], indices="i=2")
    findings = simulate(kernel, sig, {"x": torch.zeros(1), "out": torch.zeros(2)}, sanitize=True).findings
    assert any(finding.is_bug for finding in findings)


def test_what_nobody_has_written_is_not_kept():
    def kernel(i, x, out):
        part = shared(1, torch.int32)
        if i == 0:
            part[0] = 0
        out[i] = part[0]

    sig = signature([array("x", "int32", "n"), array("out", "int32", "n", Role.OUTPUT)], indices="i=n")
    arguments = {"x": torch.zeros(2, dtype=torch.int32), "out": torch.zeros(2, dtype=torch.int32)}
    findings = simulate(kernel, sig, arguments, sanitize=True).findings
    assert [finding.is_bug for finding in findings] == [True]


def test_a_plain_write_beside_an_atomic_is_a_bug_whatever_it_writes():
    def kernel(i, x):
        if i == 0:
            atomic.add(x, 0, 0)
        else:
            x[0] = 0

    sig = signature([array("x", "int32", "1", Role.INOUT)], indices="i=2")
    findings = simulate(kernel, sig, {"x": torch.zeros(1, dtype=torch.int32)}, sanitize=True).findings
    assert [finding.is_bug for finding in findings] == [True]


def test_a_value_that_rounding_may_change_is_not_kept():
    def kernel(i, x, y, out):
        out[i] = x[0]
        x[0] = y[0] * y[0] - y[1]  # a multiply-add may round once

    sig = signature(
        [
            array("x", "float32", "1", Role.INOUT), array("y", "float32", "2"),
            array("out", "float32", "2", Role.OUTPUT),
        ],
        indices="i=2",
    )  # fmt: skip
    y = torch.tensor([0.1, 0.5])
    arguments = {"x": y[:1] * y[:1] - y[1:], "y": y, "out": torch.zeros(2)}
    findings = simulate(kernel, sig, arguments, sanitize=True).findings
    assert findings and all(finding.is_bug for finding in findings)


def step(i, j, d, k):
    d[i, j] = min(d[i, j], d[i, k] + d[k, j])


STEP = signature([array("d", "float32", "n n", Role.INOUT), scalar("k", Kind.INT)], indices="i=n j=n", block=(8, 8))


def stepped(d, k):
    d.copy_(torch.minimum(d, d[:, k, None] + d[k]))


def distances():
    return torch.tensor([[0.0, 3, 8, 1], [3, 0, 2, 9], [8, 2, 0, 4], [1, 9, 4, 0]])


@pytest.mark.parametrize(
    ("race", "compiled", "verdict"),
    [
        (None, stepped, Verdict.RACES),
        ("same value", stepped, Verdict.AGREES),
        (None, lambda d, k: d.add_(1), Verdict.DIFFERS),
        ("same value", lambda d, k: d.add_(1), Verdict.DIFFERS),
    ],
)
def test_a_race_that_keeps_the_value_is_accepted_on_request(race, compiled, verdict):
    case = user_case(STEP, {"d": distances(), "k": 3})
    report = check_kernel(FakeKernel(step, STEP, compiled), [case], device="cpu", race=race)
    assert report.verdict is verdict, str(report)
    assert report.ok == (verdict is Verdict.AGREES)
    assert report.compared == 16
    assert (Fault.SAME_VALUE in [failure.kind for failure in report.failures]) == (race is None)
    assert ('hint: `kernel.check(…, race="same value")`' in str(report)) == (verdict is Verdict.RACES)
    assert ("note: accepted: line" in str(report)) == (race is not None)


def test_a_race_that_changes_the_value_is_not_accepted():
    case = user_case(STEP, {"d": distances() - 1, "k": 3})
    report = check_kernel(FakeKernel(step, STEP, stepped), [case], device="cpu", race="same value")
    assert [failure.kind for failure in report.failures] == [Fault.DATA_RACE_OR_BARRIER]


def test_another_race_is_refused():
    with pytest.raises(ValueError, match='`race` takes "same value", got "any"'.replace('"any"', "'any'")):
        check_kernel(FakeKernel(step, STEP, stepped), race="any")


# --- how much is simulated ---


def bodies(i, p, out):
    total = 0.0
    for j in range(p.shape[0]):
        total += (p[j, 0] - p[i, 0]) * p[j, 1]
    out[i] = total


BODIES = signature([array("p", "float32", "n 2"), array("out", "float32", "n", Role.OUTPUT)], indices="i=n")


def attracted(p, out):
    out.copy_(((p[None, :, 0] - p[:, None, 0]) * p[None, :, 1]).double().sum(1))


def operations_of(kernel, monkeypatch):
    """The accesses of each case that a check simulates, and the report."""
    from py2cu.check import run as module

    taken = []

    def counted(*args, **options):
        report = simulate(*args, **options)
        taken.append(report.operations)
        return report

    monkeypatch.setattr(module, "simulate", counted)
    return taken, check_kernel(kernel, device="cpu")


@pytest.mark.slow
def test_a_kernel_of_quadratic_work_stays_within_the_budget(monkeypatch):
    sizes = []

    def compiled(p, out):
        sizes.append(len(p))
        attracted(p, out)

    taken, report = operations_of(FakeKernel(bodies, BODIES, compiled), monkeypatch)
    assert report.verdict is Verdict.AGREES, str(report)
    assert sum(taken) <= OPERATIONS
    assert {1, 37, 255, 257} <= set(sizes), "the edges of a block are met before cases are scaled down"
    assert len(taken) == report.cases == 9
    assert "cases are smaller than planned, to stay within" in str(report)


def test_sizes_of_a_kernel_within_the_budget_are_as_planned(monkeypatch):
    sizes = []
    copied = signature([array("x", "int32", "n"), array("out", "int32", "n", Role.OUTPUT)], indices="i=n")

    def python(i, x, out):
        out[i] = x[i]

    def compiled(x, out):
        sizes.append(len(x))
        out.copy_(x)

    taken, _ = operations_of(FakeKernel(python, copied, compiled), monkeypatch)
    assert sizes == [case.sizes["n"] for case in invent_cases(copied)]
    assert taken == [2 * size for size in sizes]


def test_the_least_case_is_compared_even_if_larger_ones_have_used_up_the_budget(monkeypatch):
    monkeypatch.setattr("py2cu.check.budget.OPERATIONS", 9_000)
    monkeypatch.setattr("py2cu.check.budget.LEAST", 0)
    first = signature([array("x", "int32", "m"), array("out", "int32", "n", Role.OUTPUT)], indices="i=n")

    def python(i, x, out):
        for _ in range(2_000):
            v = x[0]
        out[i] = v

    taken, report = operations_of(FakeKernel(python, first, lambda x, out: out.fill_(x[0])), monkeypatch)
    assert report.verdict is Verdict.AGREES, str(report)
    assert sum(taken) <= 2 * 9_000, "a second case beyond the budget is skipped"
    assert report.skipped


def test_a_budget_expects_what_lies_between_and_beyond():
    budget = Budget(9)
    assert budget.expected(100) == 0
    budget.charge(10, 1_000)
    assert budget.expected(100) == 0, "one case says nothing about larger ones"
    budget.charge(100, 100_000)
    assert budget.expected(50) == pytest.approx(25_000)
    assert budget.expected(10) == 1_000
    assert budget.expected(200) == 200_000
    assert budget.expected(5) == 500
    assert budget.left == budget.total - 101_000
    budget.charge(1000, 10, seconds=1.0)
    assert budget.expected(1000) > 10, "a case that takes long for each access counts by its time"


def test_each_case_to_come_keeps_a_share():
    budget = Budget(10)
    assert budget.allowance(9) == budget.total // 2
    budget.charge(1, budget.total)
    assert 0 < budget.allowance(5) < budget.total // 10


def test_cases_are_scaled_down_to_what_fits():
    case = max(invent_cases(BODIES), key=lambda case: case.sizes["n"])
    scaled = scale_down(BODIES, case, lambda work: work <= 100)
    assert 50 <= work_of(BODIES, scaled.sizes) <= 100
    assert scaled.arguments["p"].shape == (scaled.sizes["n"], 2)
    assert scale_down(BODIES, case, lambda work: True) is case
    smallest = next(case for case in invent_cases(BODIES) if case.sizes["n"] == 1)
    assert scale_down(BODIES, smallest, lambda work: False) is None


@pytest.mark.slow
def test_a_kernel_that_never_ends_is_given_up_by_its_accesses(monkeypatch):
    def endless(i, x, out):
        while x[i] == x[i]:
            pass

    sig = signature([array("x", "int32", "n"), array("out", "int32", "n", Role.OUTPUT)], indices="i=n")
    start = time.process_time()
    report = check_kernel(FakeKernel(endless, sig, lambda x, out: None), device="cpu")
    assert time.process_time() - start < 10
    assert report.ok and not report.checked
    assert re.search(r"line \d+: the launch exceeds the limit of [\d,.]+ array accesses", str(report))


def test_a_kernel_that_never_ends_is_given_up_by_its_time(monkeypatch):
    def endless(i, x, out):
        k = 0
        while k < 10:
            k = k * 1

    monkeypatch.setattr("py2cu.check.run.CASE_SECONDS", 0.05)
    report = check_kernel(FakeKernel(endless, BODIES_ON_ONE, lambda x, out: None), device="cpu")
    assert report.ok and not report.checked
    assert sum("does not end" in reason for reason in report.skipped) == 2
    assert "more cases, since 2 did not end" in str(report)


BODIES_ON_ONE = signature([array("x", "int32", "n"), array("out", "int32", "n", Role.OUTPUT)], indices="i=n")


def test_a_compiled_kernel_that_never_returns_is_given_up(monkeypatch):
    ends = []

    def compiled(x, out):
        while not ends:
            pass

    def python(i, x, out):
        out[i] = x[i]

    monkeypatch.setattr("py2cu.check.run.COMPILED_SECONDS", 0.2)
    report = check_kernel(FakeKernel(python, BODIES_ON_ONE, compiled), device="cpu")
    ends.append(True)
    assert [failure.kind for failure in report.failures] == [Fault.RAISED]
    assert "the compiled kernel does not return within" in str(report)


def test_a_watchdog_passes_on_what_its_calls_return_and_raise():
    with Watchdog() as watchdog:
        assert watchdog.run(lambda: 3, 1.0) == 3
        with pytest.raises(ZeroDivisionError):
            watchdog.run(lambda: 1 // 0, 1.0)
        ends = []

        def endless():
            while not ends:
                pass
            return 0

        with pytest.raises(NeverReturns):
            watchdog.run(endless, 0.2)
        ends.append(True)


def test_a_watchdog_leaves_no_thread_that_frees_tensors_while_the_interpreter_ends():
    before = {*threading.enumerate()}
    with Watchdog() as watchdog:
        watchdog.run(lambda: torch.zeros(3), 10.0)
        (thread,) = {*threading.enumerate()} - before
    assert not thread.is_alive()


def test_a_watchdog_runs_calls_in_the_callers_modes():
    with Watchdog() as watchdog, torch.inference_mode():
        x = torch.zeros(3)
        assert watchdog.run(lambda: x.add_(1), 10.0).sum() == 3


# --- reports ---


@pytest.mark.parametrize(
    ("compared", "accepted", "has_run", "verdict"),
    [
        (10, 0, True, Verdict.AGREES),
        (10, 10, True, Verdict.AGREES),
        (10, 11, True, Verdict.NOT_CHECKED),
        (0, 0, False, Verdict.NOT_CHECKED),
        (0, 0, True, Verdict.NOT_CHECKED),
    ],
)
def test_a_kernel_is_checked_where_half_of_it_was_compared(compared, accepted, has_run, verdict):
    report = CheckReport("k", "cpu", 1, compared, accepted, has_run=has_run)
    assert report.ok
    assert report.verdict is verdict
    assert report.checked == (verdict is Verdict.AGREES)


def test_a_race_over_invented_integers_says_that_the_kernel_may_rely_on_more():
    scattered = signature([array("to", "int32", "n"), array("out", "int32", "n", Role.INOUT)], indices="i=n")

    def scatter(i, to, out):
        out[to[i]] = i

    kernel = FakeKernel(scatter, scattered, lambda to, out: None)
    report = check_kernel(kernel, device="cpu")
    assert report.verdict is Verdict.DIFFERS
    assert "hint: the numbers in `to` are invented: if the kernel relies on more" in str(report)
    arguments = {"to": torch.zeros(4, dtype=torch.int32), "out": torch.zeros(4, dtype=torch.int32)}
    report = check_kernel(kernel, [user_case(scattered, arguments)], device="cpu")
    assert report.verdict is Verdict.DIFFERS
    assert "hint" not in str(report), "these numbers are the caller's"


def test_failures_come_before_what_was_not_checked():
    failure = Mismatch(Fault.VALUE, "n=1", "out[0]: …")
    report = CheckReport("k", "cpu", 1, 0, 5, (failure,))
    assert not report.ok
    assert report.verdict is Verdict.DIFFERS


def test_arrays_that_constants_make_too_large_are_not_invented():
    large = signature([array("x", "uint8", "100000 100000"), array("out", "uint8", "n", Role.INOUT)], indices="i=n")
    assert [*invent_cases(large)] == []
