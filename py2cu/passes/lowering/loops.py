"""Gives a loop a separate counter where its body changes the variable, or where the variable is read after the loop:
assigning to the variable ends no loop in Python, but may in C.

    for i in range(n):             for (int i_count = 0; i_count < n; ++i_count) {
        i = i + 1           →          i = i_count;
                                       i = i + 1;

A loop's `else` becomes statements after the loop, under a flag where a `break` skips them:

    for i in range(n):             bool stopped = false;
        if c: break                for (int i = 0; i < n; ++i) {
    else:                   →          if (c) { stopped = true; break; }
        s = 0                      }
                                   if (!stopped) s = 0;

Once locals are declared, a `while` whose counter is set directly before, tested, and stepped last becomes C's `for`:

    int half = THREADS / 2;
    while (half > 0) {             for (int half = THREADS / 2; half > 0; half /= 2) {
        f(half);            →          f(half);
        half /= 2;                 }
    }
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from py2cu import ir
from py2cu.analysis.account import elided_in
from py2cu.analysis.effects import commute, footprint
from py2cu.diagnostics import Reporter
from py2cu.dtypes import Kind
from py2cu.ir.complex_numbers import of_real
from py2cu.ir.names import names_in_scope, underscored_name
from py2cu.ir.rewrite import map_blocks, rebuild_statements, with_fields
from py2cu.ir.visit import assigned_names, blocks, names_in, reads, statements, walk


def lower_loops(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """The kernel, and its device functions, with loops that C's `for` runs like Python's.

    Bounds that the body changes, or whose calls have effects, are saved before.
    """
    functions = {function.key: function for function in kernel.functions}
    lowered = tuple(_lowered(function, functions) for function in kernel.functions)
    return with_fields(_lowered(kernel, functions), functions=lowered)


def _lowered(kernel: ir.Kernel, functions: Mapping[str, ir.Kernel]) -> ir.Kernel:
    lowering = _Lowering(kernel, functions)
    body = rebuild_statements(kernel.body, lowering.statement)
    remaining = set(assigned_names(body))  # without locals of an unreachable `else`
    types = tuple(item for item in lowering.types.items() if item[0] in remaining)
    return with_fields(kernel, body=body, locals=types, elided=kernel.elided + tuple(lowering.elided))


class _Lowering:
    """Lowers the loops of one kernel: first the counter, then the `else`."""

    def __init__(self, kernel: ir.Kernel, functions: Mapping[str, ir.Kernel]) -> None:
        self.functions = functions
        self.types = dict(kernel.locals)
        self.taken = names_in_scope(kernel)
        self.assigned = {*assigned_names(kernel.body)}
        self.used_elsewhere = _variables_used_elsewhere(kernel.body)
        self.elided: list[ir.Elided] = []

    def statement(self, stmt: ir.Stmt) -> ir.Block:
        match stmt:
            case ir.For():
                before, loop = self.lower_counter(stmt)
                return self.lower_else(before, loop)
            case ir.While():
                return self.lower_else((), stmt)
            case _:
                return (stmt,)

    def lower_counter(self, loop: ir.For) -> tuple[ir.Block, ir.For]:
        """Statements to insert before the loop, and the loop with a counter that only C's `for` changes."""
        before: list[ir.Stmt] = []
        stop, step = (self.once(loop, what, before) for what in ("stop", "step"))
        loop = replace(loop, stop=stop, step=step)
        if before:
            before[0] = replace(before[0], trivia=replace(loop.trivia, beside=""))
            loop = replace(loop, trivia=replace(loop.trivia, above=()))
        if loop.var in self.used_elsewhere or loop.type != ir.PY_INT:  # rule: range-variable
            counter = ir.Name(self.fresh(f"{loop.var}_count", ir.PY_INT), loop.span, ir.PY_INT)
            copy = ir.Assign(loop.var, _as_type(counter, loop.type), loop.span)
            loop = replace(loop, var=counter.id, type=ir.PY_INT, body=(copy, *loop.body))  # rule: range-counter-type
        return tuple(before), loop

    def once(self, loop: ir.For, what: str, before: list[ir.Stmt]) -> ir.Expr:
        """The `stop` or `step` of the loop; saved in a local before the loop if C may not compute it in every round."""
        value = loop.stop if what == "stop" else loop.step
        if isinstance(value, ir.Constant) or (isinstance(value, ir.Name) and value.id not in self.assigned):
            return value
        bound = footprint((), [value], self.functions)
        rounds = footprint((replace(loop, stop=value, step=value, orelse=()),), (), self.functions)
        if not bound.acts and commute(bound, rounds):  # rule: range-bound-commutes
            return value
        name = self.fresh(f"{loop.var}_{what}", ir.PY_INT)
        before.append(ir.Assign(name, value, loop.span))
        return ir.Name(name, loop.span, ir.PY_INT)

    def lower_else(self, before: ir.Block, loop: ir.For | ir.While) -> ir.Block:
        """The loop, followed by the statements of its `else`."""
        orelse, bare = loop.orelse, replace(loop, orelse=())
        if isinstance(loop, ir.While) and isinstance(loop.test, ir.Constant) and loop.test.value:
            self.elided += elided_in(orelse, ir.Elision.UNREACHABLE)  # rule: dropped-else
            return (bare,)  # rule: else-unreachable
        if not (orelse and _breaks(loop.body)):  # rule: else-breaks
            return (*before, bare, *orelse)
        name = self.fresh("stopped", ir.PY_BOOL)
        first, *rest = (*before, replace(bare, body=_flag_breaks(loop.body, name)))
        flag = ir.Assign(name, ir.Constant(False, type=ir.PY_BOOL), loop.span, ir.Trivia(above=first.trivia.above))
        first = replace(first, trivia=replace(first.trivia, above=()))
        otherwise = ir.If(ir.Unary("not", ir.Name(name, type=ir.PY_BOOL), type=ir.PY_BOOL), orelse, span=orelse[0].span)
        return (flag, first, *rest, otherwise)

    def fresh(self, name: str, type_: ir.ScalarType) -> str:
        """A name for a new local of this type."""
        name = underscored_name(name, self.taken)
        self.taken.add(name)
        self.types[name] = type_
        return name


def _as_type(counter: ir.Name, type_: ir.ScalarType) -> ir.Expr:
    """The counter converted to the type of the loop's variable, which other assignments determine too."""
    if type_ == ir.PY_INT:
        return counter
    if ir.is_complex(type_):
        return of_real(ir.Convert(counter, ir.part_of(type_), counter.span), type_)
    return ir.Convert(counter, type_, counter.span)


def _breaks(body: ir.Block) -> bool:
    """True where a `break` in `body` leaves the loop that `body` belongs to."""
    return any(
        isinstance(stmt, ir.Break) or (isinstance(stmt, ir.If) and (_breaks(stmt.body) or _breaks(stmt.orelse)))
        for stmt in body
    )


def _flag_breaks(body: ir.Block, name: str) -> ir.Block:
    """`body` with the flag set before every `break` that leaves its loop."""
    flagged: list[ir.Stmt] = []
    for stmt in body:
        match stmt:
            case ir.Break():
                flag = ir.Assign(name, ir.Constant(True, type=ir.PY_BOOL), stmt.span, stmt.trivia)
                flagged += [flag, replace(stmt, trivia=ir.Trivia())]  # rule: else-flag
            case ir.If():
                flagged.append(map_blocks(stmt, lambda block: _flag_breaks(block, name)))
            case _:
                flagged.append(stmt)
    return tuple(flagged)


def _variables_used_elsewhere(body: ir.Block) -> set[str]:
    """Loop variables that are assigned in some other way, or read outside their loop."""
    loops: dict[str, list[ir.For]] = {}
    for stmt in statements(body):
        if isinstance(stmt, ir.For):
            loops.setdefault(stmt.var, []).append(stmt)
    assigned = {stmt.name for stmt in statements(body) if isinstance(stmt, ir.Assign)}
    shared = set(loops) & assigned  # rule: range-shared-variable
    for var, loops_of_var in loops.items():
        inside = sum(reads(loop.body, var) for loop in _outermost(loops_of_var))
        bounds = sum(var in names_in(e) for loop in loops_of_var for e in (loop.start, loop.stop, loop.step))
        rebinds = any(isinstance(s, ir.For) and s.var == var for loop in loops_of_var for s in statements(loop.body))
        # rule: range-read-after
        if reads(body, var) > inside or bounds or rebinds:
            shared.add(var)
    return shared


def _outermost(loops: list[ir.For]) -> Iterator[ir.For]:
    for loop in loops:
        if not any(loop is not other and any(loop is inner for inner in statements(other.body)) for other in loops):
            yield loop


def make_counting_loops(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """The kernel, with declarations, in which counters are declared in the heads of their loops."""
    return with_fields(kernel, body=_counting(kernel.body))


def _counting(block: ir.Block) -> ir.Block:
    done: list[ir.Stmt] = []
    rest = list(block)
    while rest:
        stmt = rest.pop(0)
        match stmt, rest[:1]:
            case ir.Assign() as first, [ir.While() as loop] if _counts(first, loop):
                place = next((at for at, later in enumerate(rest[1:], 1) if _mentions(later, first.name)), None)
                match None if place is None else rest[place]:
                    case None:
                        pass
                    case ir.Assign(name=first.name, value=value) as later if first.name not in names_in(value):
                        rest[place or 0] = replace(later, declares=first.declares)
                    case _:  # the counter is read after its loop
                        done.append(stmt)
                        continue
                *body, step = loop.body
                two = first.trivia.beside and loop.trivia.beside
                above = (*first.trivia.above, *((first.trivia.beside,) if two else ()), *loop.trivia.above)
                trivia = ir.Trivia(above, loop.trivia.beside or first.trivia.beside)
                if comments := tuple(filter(None, (*step.trivia.above, step.trivia.beside))):
                    body.append(ir.Comment(step.span, ir.Trivia(comments)))
                start, step = (replace(each, trivia=ir.BARE) for each in (first, step))
                rest[0] = replace(loop, body=tuple(body), trivia=trivia, start=(start,), advance=(step,))
            case _:
                done.append(map_blocks(stmt, _counting))
    return tuple(done)


def _counts(first: ir.Assign, loop: ir.While) -> bool:
    """True if `loop` tests the counter that `first` declares, and steps it only at the end of each round."""
    *body, step = loop.body or (loop,)
    is_counter = isinstance(first.declares, ir.PythonType) and first.declares.kind is Kind.INT
    if not is_counter or not body or not isinstance(step, ir.Assign) or step.name != first.name:
        return False
    names = {*names_in(step.value)}
    is_simple = not any(isinstance(node, ir.Load | ir.DeviceCall) for node in walk(step.value))
    return (
        first.name in names_in(loop.test)
        and first.name in names
        and is_simple
        and names.isdisjoint(assigned_names(tuple(body)))  # rule: counter-step
        and not any(_continues(tuple(body)))  # rule: counter-continue
    )


def _continues(body: ir.Block) -> Iterator[bool]:
    """Whether each statement goes on with the next round of the loop that `body` belongs to."""
    for stmt in body:
        yield isinstance(stmt, ir.Continue)
        if not isinstance(stmt, ir.For | ir.While):
            for block in blocks(stmt):
                yield from _continues(block)


def _mentions(stmt: ir.Stmt, name: str) -> bool:
    return reads((stmt,), name) > 0 or name in assigned_names((stmt,))
