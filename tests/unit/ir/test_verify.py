"""What `verify` and `account` find in kernels as a faulty front end or pass would make them."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from dataclasses import replace

import pytest

from py2cu.analysis.account import dropped
from py2cu.diagnostics import InternalError, Reporter
from py2cu.frontend.bodies.scope import Scope
from py2cu.frontend.bodies.statements import StatementReader
from py2cu.frontend.bodies.targets import TargetReader
from py2cu.ir.elisions import Elision
from py2cu.ir.expressions import BoolOp, Call, Convert, DeviceCall, Expr, Extent, Load
from py2cu.ir.kernels import Kernel
from py2cu.ir.rewrite import rebuild_statements, with_fields
from py2cu.ir.statements import Assign, Break, EachThread, Store
from py2cu.ir.types import PY_FLOAT, PY_INT, UNKNOWN, Binary, Constant, Name
from py2cu.ir.verify import Stage, verify
from py2cu.passes.manager import Pass, Step, observing
from py2cu.passes.verified import verify_step
from py2cu.pipeline import translate_file
from py2cu.source import SourceFile

HEAD = """\
from jaxtyping import Float32
from torch import Tensor
from py2cu import Index, kernel, local
"""
SUMS = """
@kernel
def sums(i: Index["n"], x: Float32[Tensor, "n k"], out: Float32[Tensor, "n"], k: int):
    s = 0.0
    for j in range(k):
        if x[i, j] > 0:
            break
        s += x[i, j]
    out[i] = s
"""
ELEMENT = Load("x", (Name("i", type=PY_INT),), type=PY_FLOAT)


def after(name: str, text: str = SUMS) -> Kernel:
    """The first kernel of `text` after the pass `name`."""
    kernels: list[Kernel] = []

    def keep(step: Step, before: Kernel | None, after: Kernel, reporter: Reporter) -> None:
        if step.name == name:
            kernels.append(after)

    with observing(keep):
        translate_file(SourceFile("k.py", HEAD + textwrap.dedent(text)))
    return kernels[0]


def storing(value: Expr) -> Callable[[Kernel], Kernel]:
    """The kernel with `value` in place of every value that is stored."""

    def damage(kernel: Kernel) -> Kernel:
        body = rebuild_statements(kernel.body, lambda s: (replace(s, value=value) if isinstance(s, Store) else s,))
        return with_fields(kernel, body=body)

    return damage


def without(kind: type) -> Callable[[Kernel], Kernel]:
    """The kernel without its statements of this kind."""

    def damage(kernel: Kernel) -> Kernel:
        return with_fields(kernel, body=rebuild_statements(kernel.body, lambda s: () if isinstance(s, kind) else (s,)))

    return damage


def twice(kernel: Kernel) -> Kernel:
    return with_fields(kernel, body=(kernel.body[0], *kernel.body))


DAMAGES = {
    "no array": ("read_kernel", storing(Load("y", ())), "there is no array `y`"),
    "no function": ("read_kernel", storing(DeviceCall("g(,)", ())), "`g(,)` does not exist"),
    "early conversion": ("read_kernel", storing(Convert(Name("s"), PY_INT)), "a conversion stands in untyped IR"),
    "early helper": ("read_kernel", storing(Call("floor_div", ())), "the helper `floor_div` stands in untyped IR"),
    "early local": ("read_kernel", lambda k: with_fields(k, locals=(("s", PY_INT),)), "untyped IR has typed locals"),
    "no type": ("infer_types", storing(replace(ELEMENT, type=UNKNOWN)), "Load has no type"),
    "extent": ("infer_types", storing(Extent("x", 0)), "an extent was not resolved"),
    "no local": ("infer_types", lambda k: with_fields(k, locals=()), "`s` has no type"),
    "no name": ("infer_types", storing(Name("t", type=PY_FLOAT)), "nothing defines `t`"),
    "early cut": (
        "infer_types",
        lambda k: with_fields(k, body=(EachThread(k.body),)),
        "EachThread stands before the passes of a target",
    ),
    "ranks": ("lower_semantics", storing(replace(ELEMENT, indices=ELEMENT.indices * 2)), "an access was not flattened"),
    "quotient": (
        "lower_semantics",
        storing(Binary("//", ELEMENT, ELEMENT, type=PY_FLOAT)),
        "`//` was not lowered",
    ),
    "operand": (
        "lower_semantics",
        storing(BoolOp("or", ELEMENT, ELEMENT, type=PY_FLOAT)),
        "`or` gives one of its operands",
    ),
    "no width": ("lower_semantics", storing(Name("i", type=PY_INT)), "Name has no width"),
    "undeclared": (
        "rename",
        lambda k: with_fields(k, body=(replace(k.body[0], declares=None), *k.body[1:])),
        "`s` has no declaration",
    ),
    "declared twice": ("rename", twice, "`s` is declared twice"),
}
STAGES = {
    "read_kernel": Stage.UNTYPED,
    "infer_types": Stage.TYPED,
    "lower_semantics": Stage.LOWERED,
    "rename": Stage.FINISHED,
}


@pytest.mark.parametrize("name", DAMAGES)
def test_a_rule_of_a_stage_that_is_broken(name: str) -> None:
    step, damage, message = DAMAGES[name]
    kernel = after(step)
    verify(kernel, STAGES[step])
    with pytest.raises(InternalError, match="py2cu bug: ") as error:
        verify(damage(kernel), STAGES[step])
    assert message in str(error.value)


def test_a_call_that_is_a_statement_is_exempt_as_that_node_alone() -> None:
    """A second call with the same fields, as a value, has to have a type."""
    text = """
    def put(x, i):
        x[i, 0] = 1.0

    @kernel
    def f(i: Index["n"], x: Float32[Tensor, "n 1"]):
        put(x, i)
    """
    kernel = after("infer_types", text)
    verify(kernel, Stage.TYPED)
    call = replace(kernel.body[0].call)
    stored = Store("x", (Name("i", type=PY_INT), Constant(0, type=PY_INT)), call)
    with pytest.raises(InternalError, match="DeviceCall has no type"):
        verify(with_fields(kernel, body=(*kernel.body, stored)), Stage.TYPED)


@pytest.mark.parametrize(("kind", "what"), [(Store, "store"), (Break, "break"), (Assign, "assignment")])
def test_a_statement_that_a_pass_drops(kind: type, what: str) -> None:
    kernel = after("infer_types")
    assert [each for each, _ in dropped(kernel, without(kind)(kernel))][:1] == [what]
    assert not [*dropped(kernel, kernel)]


def test_a_pass_that_drops_a_statement_is_named() -> None:
    kernel = after("infer_types")
    step = Pass("careless", Stage.TYPED, lambda kernel, _: without(Store)(kernel))
    with pytest.raises(InternalError, match="`careless` dropped a store of `sums`"):
        verify_step(step, kernel, step.run(kernel, Reporter(SourceFile("k.py", ""))), Reporter(SourceFile("k.py", "")))


def test_a_call_that_only_stood_in_an_expression_is_missed() -> None:
    text = """
    def put(x, i):
        x[i] = 1.0
        return 2.0

    @kernel
    def f(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
        out[i] = put(x, i) + 1
    """
    kernel = after("infer_types", text)
    assert [what for what, _ in dropped(kernel, storing(ELEMENT)(kernel))] == ["call"]


# --- the front end ---

DROPPED = {
    "an extent": "x.shape[0] = 3",
    "an extent beside an element": "x[i], x.shape[0] = 1, 3",
    "an extent in a tuple": "t, (x.shape[0], u) = 1, (3, 4)",
}


@pytest.mark.parametrize("line", DROPPED.values(), ids=DROPPED)
def test_a_target_that_the_front_end_drops(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As `x.shape[0] = 3` once was: accepted, and nowhere in the text."""
    monkeypatch.setattr(TargetReader, "refuse", lambda *_: None)
    text = f"""
    @kernel
    def f(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
        {line}
        out[i] = x[i]
    """
    with pytest.raises(InternalError, match=r"`read_kernel` dropped a (target|statement) of `f` \(at line 7"):
        after("read_kernel", text)


@pytest.mark.parametrize("lost_block", ["_read_else", "read_suite"])
def test_a_block_that_the_front_end_drops(lost_block: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The source is read anew, so that a block which no reader looks at is missed too."""
    whole = getattr(StatementReader, lost_block)

    def first_alone(self: StatementReader, suite: object) -> object:
        block = whole(self, suite)
        return block[:1] if lost_block == "read_suite" else ()

    monkeypatch.setattr(StatementReader, lost_block, first_alone)
    text = """
    @kernel
    def f(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
        if x[i] > 0:
            out[i] = 1
            x[i] = 2
        else:
            out[i] = 3
    """
    with pytest.raises(InternalError, match="`read_kernel` dropped a statement of `f`"):
        after("read_kernel", text)


SILENT = """
@kernel
def f(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    \"\"\"Nothing of this line.\"\"\"
    t: float
    def half(v): return v / 2
    if x[i] > 0:
        pass
    else:
        ...
    breakpoint()
    a = local(4, 'float32'); a[0] = 1
    é, t = x[i], 2.0; é, t = t, é
    out[i] = half(t) + a[0]; "no docstring"
"""


def test_statements_without_code_are_noted_where_that_is_decided() -> None:
    kernel = after("read_kernel", SILENT)
    assert [note.why for note in kernel.elided] == [
        Elision.EMPTY, Elision.ANNOTATION, Elision.DEFINITION, Elision.EMPTY, Elision.EMPTY, Elision.BREAKPOINT,
        Elision.EMPTY,
    ]  # fmt: skip


def test_statements_without_code_that_nobody_notes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Scope, "elide", lambda *_: None)
    with pytest.raises(InternalError, match=r"`read_kernel` dropped a statement of `f` \(at line 7"):
        after("read_kernel", SILENT)


def test_passes_note_what_they_leave_out() -> None:
    text = """
    DEBUG = False

    def one(x, i):
        return x[i, 0]

    @kernel
    def f(i: Index["h"], x: Float32[Tensor, "h w"], out: Float32[Tensor, "h"]):
        h, w = x.shape
        t = 0.0 and one(x, i)
        while True:
            if x[i, 0] > 0:
                break
            if DEBUG:
                out[i] = 1
            x[i, 0] += 1
        out[i] = x[i, w - 1] + t
    """
    kernel = after("uniquify_symbols", text)
    assert {note.why for note in kernel.elided} == {Elision.RESTATEMENT, Elision.UNREACHABLE}
