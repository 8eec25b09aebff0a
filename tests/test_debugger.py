"""A debugger stops inside a simulated kernel and shows elements as the numbers they are."""

import bdb
import linecache
import re
import sys

import pytest

torch = pytest.importorskip("torch")

from jaxtyping import Float32, UInt8  # noqa: E402
from torch import Tensor  # noqa: E402

from py2cu import Index, kernel, shared, syncthreads, threadIdx  # noqa: E402
from py2cu.simulator import simulate  # noqa: E402
from tests.support.kernels_by_annotations import signature_of  # noqa: E402


@kernel
def blend(i: Index["n"], x: UInt8[Tensor, "2 n"], w: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    mixed = x[0, i] * w[i] + x[1, i] * (1 - w[i])
    out[i] = mixed


@kernel
def stops(i: Index["n"], w: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    if w[i] > 1:
        breakpoint()
    out[i] = w[i]


class Debugger(bdb.Bdb):
    """Evaluates expressions at a breakpoint, as pdb's `p` does."""

    def __init__(self, *expressions):
        super().__init__()
        self.expressions = expressions
        self.shown = []

    def user_line(self, frame):
        if self.break_here(frame):
            self.shown.append([repr(eval(text, frame.f_globals, frame.f_locals)) for text in self.expressions])
        self.set_continue()


def line_of(text):
    return next(n for n, line in enumerate(linecache.getlines(__file__), 1) if line.strip() == text)


def test_a_breakpoint_stops_in_every_thread_and_shows_values_with_their_types():
    debugger = Debugger("x[0, i]", "w[i]", "mixed", "i", "x.shape", "1 - w[i]", "x")
    assert debugger.set_break(__file__, line_of("out[i] = mixed")) is None
    x, w = torch.tensor([[200, 7], [3, 100]], dtype=torch.uint8), torch.tensor([0.1, 1.0])
    traced = sys.gettrace()
    try:
        debugger.runcall(blend.simulate, x, w)
    finally:
        sys.settrace(traced)
    assert debugger.shown == [
        [
            "uint8(200)",
            "float32(0.1)",
            "float32(22.7)",
            "0",
            "(2, 2)",
            "float32(0.9)",
            "<uint8 array `x` of shape (2, 2)>",
        ],
        [
            "uint8(7)",
            "float32(1.0)",
            "float32(7.0)",
            "1",
            "(2, 2)",
            "float32(0.0)",
            "<uint8 array `x` of shape (2, 2)>",
        ],
    ]


def test_breakpoint_written_in_the_kernel_stops_there_and_is_no_cuda(monkeypatch):
    stopped = []

    def hook():
        frame = sys._getframe(1)
        stopped.append((frame.f_code, frame.f_lineno, repr(frame.f_locals["w"][frame.f_locals["i"]])))

    monkeypatch.setattr(sys, "breakpointhook", hook)
    out = stops.simulate(torch.tensor([0.5, 2.5, 0.0]))
    assert stopped == [(stops.python.__code__, line_of("breakpoint()"), "float32(2.5)")]
    assert out.tolist() == [0.5, 2.5, 0.0]
    assert "breakpoint" not in stops.cuda_source


def reverse(x: Float32[Tensor, "n"]):
    tile = shared(4, "float32")
    t = threadIdx.x
    tile[t] = x[t]
    breakpoint()
    syncthreads()
    x[t] = tile[3 - t]
    x[t] += 1


def test_a_breakpoint_stops_in_the_chosen_thread_alone():
    debugger = Debugger("i", "w[i]")
    assert debugger.set_break(__file__, line_of("out[i] = mixed")) is None
    x, w = torch.ones(2, 4, dtype=torch.uint8), torch.rand(4)
    traced = sys.gettrace()
    try:
        debugger.runcall(blend.simulate, x, w, break_at=(0, 2))
        debugger.runcall(blend.simulate, x, w)
    finally:
        sys.settrace(traced)
    assert [shown[0] for shown in debugger.shown] == ["2", "0", "1", "2", "3"]


def one_by_one():
    blend.simulate(torch.ones(2, 4, dtype=torch.uint8), torch.rand(4), break_at=(0, 2))


def in_turns():
    given = {"x": torch.zeros(4)}
    simulate(reverse, signature_of(reverse), given, grid=1, block=4, stops=False, break_at=(0, 1))


@pytest.mark.parametrize("launch", [one_by_one, in_turns])
def test_the_debugger_goes_on_after_the_launch(launch):
    traced, mine = sys.gettrace(), lambda *_: None
    sys.settrace(mine)
    try:
        launch()
        assert sys.gettrace() is mine
    finally:
        sys.settrace(traced)


def test_threads_that_wait_for_each_other_are_stepped_through_one_at_a_time():
    debugger = Debugger("t", "tile[3 - t]")
    assert debugger.set_break(__file__, line_of("x[t] = tile[3 - t]")) is None
    assert debugger.set_break(__file__, line_of("x[t] += 1")) is None

    def stopped(**options):
        debugger.shown = []
        x = torch.tensor([10.0, 11.0, 12.0, 13.0])
        traced = sys.gettrace()
        try:
            debugger.runcall(
                simulate, reverse, signature_of(reverse), {"x": x}, grid=2, block=4, stops=False, **options
            )
        finally:
            sys.settrace(traced)
        return debugger.shown

    assert stopped(break_at=(1, (2,))) == [["2", "float32(13.0)"]] * 2
    assert [t for t, _ in stopped()] == [str(t) for t in range(4) for _ in range(2)] * 2


@pytest.mark.parametrize(
    ("place", "error", "said"),
    [
        (5, TypeError, "a pair of a block and a thread, `(0, 5)`, not 5"),
        ("x", TypeError, "not 'x'"),
        (((0, 0),), TypeError, "a pair"),
        ((0, 1, 2), TypeError, "a pair"),
        ((0, "x"), TypeError, "the thread of `break_at` is a whole number"),
        ((1.5, 0), TypeError, "the block of `break_at` is a whole number"),
        ((0, (0, 0, 0, 0)), TypeError, "one to three of them"),
        ((0, ()), TypeError, "one to three of them"),
        ((2, 0), ValueError, "names block (2, 0, 0), but this launch has 2 × 1 × 1 blocks"),
        ((0, (0, 1)), ValueError, "names thread (0, 1, 0), but this launch has 4 × 1 × 1 threads"),
        ((-1, 0), ValueError, "names block (-1, 0, 0)"),
    ],
)
def test_a_place_to_break_at_that_the_launch_has_not(place, error, said):
    with pytest.raises(error, match=re.escape(said)):
        simulate(reverse, signature_of(reverse), {"x": torch.zeros(4)}, grid=2, block=4, break_at=place)


def test_breakpoint_in_the_chosen_thread_alone(monkeypatch):
    stopped = []
    monkeypatch.setattr(sys, "breakpointhook", lambda: stopped.append(sys._getframe(1).f_locals["t"]))
    simulate(reverse, signature_of(reverse), {"x": torch.zeros(4)}, grid=1, block=4, break_at=(0, 3))
    assert stopped == [3]
    simulate(reverse, signature_of(reverse), {"x": torch.zeros(4)}, grid=1, block=4)
    assert stopped == [3, 0, 1, 2, 3]
