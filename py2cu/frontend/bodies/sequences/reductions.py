"""`sum`, `min`, `max`, `any` and `all` of a sequence or of a generator → a loop before the statement.

    sum(x[k] * y[k] for k in range(n))   →   total = 0
                                             for k in range(n): total += x[k] * y[k]

    max(row)                             →   assert len(row) > 0
                                             highest = row[0]
                                             for k in range(1, len(row)): highest = max(highest, row[k])

    any(v < 0 for v in row)              →   found = False
                                             for k in range(len(row)):
                                                 if row[k] < 0: found = True; break

In: a call. Out: a local with its result, which the statements before assign.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import Final

import libcst as cst

from py2cu import ir
from py2cu.analysis.effects import commute
from py2cu.frontend.bodies.scope import Scope
from py2cu.frontend.bodies.sequences.comprehensions import binding, clauses, is_of_arrays, read_first
from py2cu.frontend.bodies.sequences.kinds import Sequence
from py2cu.frontend.bodies.sequences.ranges import ONE, Range
from py2cu.frontend.bodies.sequences.reader import SequenceReader
from py2cu.frontend.bodies.sequences.unpacking import dimension
from py2cu.frontend.bodies.sequences.unrolling import read_unroll
from py2cu.frontend.bodies.tables import Read
from py2cu.frontend.bodies.tuples.items import Item
from py2cu.frontend.bodies.views import ZERO, View
from py2cu.frontend.hints.targets import unpacked_names
from py2cu.frontend.names.syntax import source_text
from py2cu.source import Span

RESULTS: Final = {
    "builtins.sum": "total", "builtins.min": "lowest", "builtins.max": "highest", "builtins.any": "found",
    "builtins.all": "holds",
}  # fmt: skip
"""The functions, and the local that each computes its result in."""
_INITIAL: Final = {"builtins.sum": "start", "builtins.min": "default", "builtins.max": "default"}
Step = Callable[[ir.Expr], ir.Block]


@dataclass(frozen=True, slots=True)
class _Initial:
    """`start` of `sum` or `default` of `max`, which Python computes behind the sequence, and what it needs."""

    value: ir.Expr
    before: ir.Block = ()


@dataclass(frozen=True, slots=True)
class ReductionReader:
    """Reads the calls of these functions in one scope."""

    scope: Scope
    read: Read

    def read_reduction(self, node: cst.Call, function: str) -> ir.Expr | None:
        """The result, in a local that a loop before the statement computes; None where the call is another one."""
        places = [arg.value for arg in node.args if arg.keyword is None and not arg.star]
        named = {arg.keyword.value: arg.value for arg in node.args if arg.keyword is not None}
        if function == "builtins.sum" and len(places) == 2 and not named:
            named = {"start": places.pop()}
        if len(places) != 1 or not named.keys() <= {_INITIAL.get(function)}:
            return None
        if any(arg.star for arg in node.args):
            return None
        if self.scope.hoisted.barrier:
            what = f"this needs a loop before the statement, but {self.scope.hoisted.barrier}"
            self.scope.error("P103", what, node, f"assign it before: `{RESULTS[function]} = {source_text(node)}`")
            return ir.Constant(0, self.scope.span_of(node))
        at = len(self.scope.hoisted.statements)
        values = [self.read(value) for value in named.values()]
        initial = _Initial(values[0], tuple(self.scope.hoisted.statements[at:])) if values else None
        result = ir.Name(self.scope.fresh(RESULTS[function]), self.scope.span_of(node))
        if function in ("builtins.min", "builtins.max"):
            return self._extreme(places[0], function, result, initial)
        if function == "builtins.sum":
            initial = initial or _Initial(ir.Constant(0, result.span))
            return self._fold(places[0], result, initial, lambda value: _add(result, value))
        is_any = function == "builtins.any"
        if (head := clauses(places[0])) is not None and head[1].inner_for_in is not None:
            what = f"`{function.removeprefix('builtins.')}` of a generator with two loops is not supported"
            self.scope.error("P104", what, places[0], f"`{_nested(function, *head)}`")
        first = ir.Constant(not is_any, result.span)
        return self._fold(places[0], result, _Initial(first), lambda value: _decide(result, value, is_any))

    # --- folds ---

    def _fold(self, node: cst.BaseExpression, result: ir.Name, initial: _Initial, step: Step) -> ir.Expr | None:
        """`result`, which is `initial` before the loop and which `step` changes for each value."""
        statements, span = self.scope.hoisted.statements, result.span
        at = len(statements)
        self.scope.hoist((ir.Assign(result.id, initial.value, span),), span)
        block = self._rounds(node, span, step)
        if block is None:
            del statements[at:]
            return None
        late = self.scope.footprint((*statements[at + 1 :], *block))
        if not commute(self.scope.footprint(initial.before, initial.value), late):
            what = "Python computes this behind the sequence, and one of the two may change the other"
            self.scope.reporter.error("P409", what, initial.value.span, "assign it in a statement of its own")
        self.scope.hoist(block, span)
        return result

    def _rounds(self, node: cst.BaseExpression, span: Span, step: Step) -> ir.Block | None:
        """The loop, or the loops of a generator, with `step` for each value; None where `node` is no sequence."""
        if (generator := clauses(node)) is not None:
            elt, head = generator
            return self._loops(head, lambda: step(self.read(elt)))
        sequence = self._sequence(node, span)
        return None if sequence is None else (self._loop(sequence, node, "k", lambda item: self._of(item, node, step)),)

    def _loops(self, head: cst.CompFor, innermost: Callable[[], ir.Block]) -> ir.Block:
        node, unroll = read_unroll(head.iter, self.scope)
        sequence = SequenceReader(self.scope, self.read, self.scope.span_of(node)).read_iterable(node, "a generator")
        if sequence is None:
            return ()

        def inside(item: Item) -> ir.Block:
            with binding(head.target, item, self.scope):
                return self._filtered(head.ifs, lambda: self._behind(head, innermost))

        if isinstance(sequence, Range) and isinstance(head.target, cst.Name):
            return (self._count(sequence, node, head.target.value, inside, unroll),)
        return (self._loop(sequence, node, "k", inside, unroll=unroll),)

    def _filtered(self, filters: Collection[cst.CompIf], inside: Callable[[], ir.Block]) -> ir.Block:
        """`inside` under an `if` for each filter of a generator, each behind what it needs."""
        if not filters:
            block = inside()
            return (*self.scope.hoisted.take(), *block)
        first, *others = filters
        test, before = self.read(first.test), self.scope.hoisted.take()
        return (*before, ir.If(test, self._filtered(others, inside), span=test.span))  # rule: walrus-filter

    def _behind(self, head: cst.CompFor, innermost: Callable[[], ir.Block]) -> ir.Block:
        """What a round of a generator's loop does: the next loop, or the innermost step."""
        return innermost() if head.inner_for_in is None else self._loops(head.inner_for_in, innermost)

    def _loop(
        self,
        sequence: Sequence,
        node: cst.BaseExpression,
        name: str,
        inside: Callable[[Item], ir.Block],
        start: ir.Expr = ZERO,
        unroll: int | None = None,
    ) -> ir.For:
        """A loop over `sequence` from its item at `start`; `inside` makes the body of an item."""

        def inside_at(at: ir.Expr) -> ir.Block:
            item = sequence.item(at)
            return read_first(item, inside(item), self.scope)

        return self._count(Range(start, sequence.rounds), node, name, inside_at, unroll)

    def _count(
        self,
        numbers: Range,
        node: cst.BaseExpression,
        name: str,
        inside: Callable[[ir.Name], ir.Block],
        unroll: int | None,
    ) -> ir.For:
        """A loop that counts; `inside` makes the body of a number."""
        span, counter = self.scope.span_of(node), self.scope.fresh(name)
        with self.scope.hoisted.inner(), self.scope.counting(counter, numbers.constant):
            body = inside(ir.Name(counter, span))
            body = (*self.scope.hoisted.take(), *body)
        return ir.For(counter, numbers.start, numbers.stop, numbers.step, body, span, unroll=unroll)

    def _of(self, item: Item, node: cst.BaseExpression, step: Step) -> ir.Block:
        """`step` of an item, which must be a number."""
        if not isinstance(item, tuple | View):
            return step(item)
        text = source_text(node)
        names = unpacked_names(cst.Name("v"), len(item)) if isinstance(item, tuple) else ""
        hint = f"`v0 * v1 for {names} in {text}`" if names else f"`v for row in {text} for v in row`"
        self.scope.error("P104", "the items are no numbers", node, f"write a generator: {hint}")
        return ()

    def _sequence(self, node: cst.BaseExpression, span: Span) -> Sequence | None:
        """The sequence that `node` is; Python takes its items at `span`."""
        return SequenceReader(self.scope, self.read, span).read_sequence(node)

    # --- extremes ---

    def _extreme(
        self, node: cst.BaseExpression, function: str, result: ir.Name, default: _Initial | None
    ) -> ir.Expr | None:
        """The least or the greatest of a sequence: the first value, then the better one of each round."""

        def better(value: ir.Expr) -> ir.Block:
            return (ir.Assign(result.id, ir.Call(function, (result, value), value.span), value.span),)

        if default is not None:
            return self._with_default(node, function, result, default)
        sequence = self._sequence(node, result.span)
        if sequence is None and clauses(node) is None:
            return None
        if sequence is None or not self._has_items(sequence, result.span):
            what = f"`{function.removeprefix('builtins.')}` of a generator that may be empty needs a default"
            text = (
                source_text(node) if not isinstance(node, cst.GeneratorExp) or node.lpar else f"({source_text(node)})"
            )
            self.scope.error("P105", what, node, f"`{function.removeprefix('builtins.')}({text}, default=0.0)`")
            return ir.Constant(0, result.span)
        first = self._of(sequence.item(ZERO), node, lambda value: (ir.Assign(result.id, value, value.span),))
        loop = self._loop(sequence, node, "k", lambda item: self._of(item, node, better), ONE)
        self.scope.hoist((*first, loop), result.span)
        return result

    def _has_items(self, sequence: Sequence, span: Span) -> bool:
        """True where a sequence has an item; for the elements of an array, the kernel asserts it."""
        match dimension(sequence.rounds, self.scope):
            case ir.Constant(value=length):
                return length > 0
            case ir.Name(id=name) if name in self.scope.declarations.extents.row_lengths:  # rule: row-has-items
                return True
        if not is_of_arrays(sequence, self.scope):
            return False
        has_items = ir.Compare(">", sequence.rounds, ZERO, span)
        self.scope.hoist((ir.Assert(has_items, ("the array is not empty",), "", span),), span)
        return True

    def _with_default(
        self, node: cst.BaseExpression, function: str, result: ir.Name, default: _Initial
    ) -> ir.Expr | None:
        """`default` where there is no value, which a flag says."""
        flag = ir.Name(self.scope.fresh("has_value"), result.span)

        def better(value: ir.Expr) -> ir.Block:
            chosen = ir.Select(flag, ir.Call(function, (result, value), value.span), value, value.span)
            yes = ir.Constant(True, value.span)
            return ir.Assign(result.id, chosen, value.span), ir.Assign(flag.id, yes, value.span)

        statements = self.scope.hoisted.statements
        at = len(statements)
        folded = self._fold(node, result, default, better)
        if folded is not None:
            statements.insert(at, ir.Assign(flag.id, ir.Constant(False, flag.span), flag.span))
        return folded


def _nested(function: str, elt: cst.BaseExpression, head: cst.CompFor) -> str:
    """`any(…)` of a generator with two loops as an `any` of `any`s."""
    name, inner, test = function.removeprefix("builtins."), head.inner_for_in, source_text(elt)
    if inner is not None:
        test = _nested(function, elt, inner)
    filters = "".join(f" if {source_text(each.test)}" for each in head.ifs)
    return f"{name}({test} for {source_text(head.target)} in {source_text(head.iter)}{filters})"


def _add(result: ir.Name, value: ir.Expr) -> ir.Block:
    return (ir.Assign(result.id, ir.Binary("+", result, value, value.span), value.span, augmented=True),)


def _decide(result: ir.Name, value: ir.Expr, is_any: bool) -> ir.Block:
    """`if value: found = True; break`, or `if not value: holds = False; break`."""
    test = value if is_any else ir.Unary("not", value, value.span)
    return (ir.If(test, (ir.Assign(result.id, ir.Constant(is_any, value.span), value.span), ir.Break(value.span))),)
