"""The heads of loops: the range that a `for` counts through, and the assignments that each round begins with.

for v in row                  for k in range(len(row)): v = row[k]
for k, v in enumerate(row)    for k in range(len(row)): v = row[k]
for dy in (-1, 0, 1)          for dy in range(-1, 2)
for a, b in zip(x, y)         for k in range(min(len(x), len(y))): a = x[k]; b = y[k]
for v in (p, q)               for k in range(2): v = p if k == 0 else q
unroll(range(0, n, 2), 4)     range(0, n, 2), unrolled four times
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import libcst as cst

from py2cu import ir
from py2cu.frontend.bodies.expressions import ExpressionReader
from py2cu.frontend.bodies.scope import Scope
from py2cu.frontend.bodies.sequences.kinds import Enumerate, Reversed, Sequence, Table, displays
from py2cu.frontend.bodies.sequences.ranges import ONE, Range
from py2cu.frontend.bodies.sequences.reader import SequenceReader
from py2cu.frontend.bodies.sequences.unrolling import read_unroll
from py2cu.frontend.bodies.tuples.items import Item
from py2cu.frontend.bodies.views import ZERO, minus
from py2cu.frontend.names.syntax import conjuncts, source_text
from py2cu.source import Span


@dataclass(frozen=True, slots=True)
class LoopHead:
    """What a loop counts, how it is unrolled (0: fully, None: as the compiler likes), and what a round begins with.

    `name` is the user's name for the counter, None where the counter is new. At the start of a round `item` goes to
    `target`, after `computed`; both are None where the counter is all that the user named.
    """

    counter: str
    name: cst.Name | None
    numbers: Range
    unroll: int | None
    target: cst.BaseExpression | None = None
    item: Item | None = None
    computed: ir.Block = ()


def read_loop_head(statement: cst.For, expressions: ExpressionReader, sequences: SequenceReader) -> LoopHead | None:
    """The head of a loop; None after a diagnostic."""
    node, unroll = read_unroll(statement.iter, expressions.scope)
    scope = expressions.scope
    target: cst.BaseExpression = statement.target
    if isinstance(target, cst.Name) and (numbers := sequences.read_range(node, lambda bound, _: bound)) is not None:
        return LoopHead(target.value, target, numbers, unroll)
    instead = f"`for {source_text(target)} in {_countable(node, scope)}`"
    sequence = sequences.read_iterable(node, "a kernel's `for`", instead)
    if sequence is None:
        return None
    if not all(display.is_uniform for display in displays(sequence)):
        what = "a loop over a tuple takes numbers, or tuples of one length"
        hint = "fill up short ones, or write the rounds out"
        scope.error("P104", what, node, hint)
        return None
    if isinstance(target, cst.Name) and (counted := as_count(sequence)) is not None:
        return LoopHead(target.value, target, counted, unroll)
    rounds = Range(ZERO, sequence.rounds)
    counter, name = "", None
    match sequence, target:
        case Enumerate(part, ir.Constant(value=0)), cst.Tuple(elements=[first, rest]) if isinstance(
            first.value, cst.Name
        ):
            counter, name, target, sequence = first.value.value, first.value, rest.value, part
        case _:
            counter, name = scope.fresh("k"), None
    with scope.hoisted.inner(), scope.counting(counter, rounds.constant):
        item = sequence.item(ir.Name(counter, sequences.span))
        computed = scope.hoisted.take()
    return LoopHead(counter, name, rounds, unroll, target, item, computed)


def _countable(node: cst.BaseExpression, scope: Scope) -> str:
    """What a loop may run over in place of `node`."""
    match node:
        case cst.Set(elements=[*elements]):
            return f"({', '.join(source_text(element.value) for element in elements)},)"
        case cst.Integer() | cst.BinaryOperation() | cst.Subscript():
            return f"range({source_text(node)})"
        case cst.Name(value=name) if name in scope.values:
            return f"range({name})"
        case _:
            return "range(…)"


def read_tests(
    test: cst.BaseExpression, expressions: ExpressionReader, splits: bool = True
) -> list[tuple[ir.Block, ir.Expr]]:
    """The parts of a test that Python evaluates one by one while they hold, each with the statements that it needs.

    One part, unless `splits` and an operand of `and` behind the first needs statements.
    """
    scope, operands = expressions.scope, conjuncts(test)
    needing = [at for at, each in enumerate(operands) if at and expressions.calls.needs_statements(each)]
    if not (needing and splits):
        read = expressions.read(test)
        return [(scope.hoisted.take(), read)]
    parts: list[tuple[ir.Block, ir.Expr]] = []
    for start, stop in pairwise((0, *needing, len(operands))):
        read = expressions.read(operands[start])
        for operand in operands[start + 1 : stop]:
            read = ir.BoolOp("and", read, expressions.read(operand), scope.span_of(test))
        parts.append((scope.hoisted.take(), read))
    return parts


def make_while(
    tests: list[tuple[ir.Block, ir.Expr]], body: ir.Block, orelse: ir.Block, span: Span, trivia: ir.Trivia, scope: Scope
) -> ir.Block:
    """A `while` of what `read_tests` read: statements that a test needs begin each round, `if not …: break` ends it.

    while (v := x[k]) > 0:                while True:
        k += 1                      →         v = x[k]
                                              if not v > 0: break
                                              k += 1
    """
    (before, test), *others = tests
    if not (before or others):
        return (ir.While(test, body, span, trivia, orelse),)
    if before or orelse:  # rule: walrus-else
        others, test = tests, ir.Constant(True, span)  # rule: walrus-tests
    flag = ir.Name(scope.fresh("finished"), span) if orelse else None
    leave: ir.Block = (ir.Break(span),)
    if flag is not None:
        leave = (ir.Assign(flag.id, ir.Constant(True, span), span), *leave)
    ends = (stmt for needed, each in others for stmt in (*needed, ir.If(ir.Unary("not", each, span), leave, span=span)))
    loop = ir.While(test, (*ends, *body), span, trivia)
    if flag is None:
        return (loop,)
    return (ir.Assign(flag.id, ir.Constant(False, span), span), loop, ir.If(flag, orelse, span=span))


def as_count(sequence: Sequence) -> Range | None:
    """The range of numbers that a sequence goes through in equal steps; None where it does not."""
    match sequence:
        case Reversed(Range(start, stop, ir.Constant(value=1))):
            return Range(minus(stop, ONE), minus(start, ONE), ir.Constant(-1, type=ir.PY_INT))
        case Table(values=(int(first), int(second), *_) as values, span=span) if second != first:
            step = second - first
            bounds = (first, first + step * len(values), step)
            if values == tuple(range(*bounds)) and all(type(value) is int for value in values):
                return Range(*(ir.Constant(value, span, ir.PY_INT) for value in bounds))
    return None
