"""Statements of host functions: LibCST nodes → a tree of C++ lines, with the comments around them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass, field, replace

import libcst as cst

from py2cu.frontend.bodies.comments import comment_beside, comments_above, head_comment
from py2cu.frontend.names.syntax import assigned_names, is_named, nodes_in, source_text
from py2cu.hosts.model.ranks import ATOM
from py2cu.hosts.model.tree import Block, Line, Nest, Returned
from py2cu.hosts.model.values import Kind, Value, identifier
from py2cu.hosts.reading.assignments import AssignmentReader
from py2cu.hosts.reading.messages import escaped, message, raised
from py2cu.hosts.reading.reader import Refused
from py2cu.source import Span

State = tuple[dict[str, Value], set[str]]
"""What is known of the locals, and which of them may be unassigned."""


@dataclass(slots=True, kw_only=True)
class StatementReader(AssignmentReader):
    """Reads the body of one host function. A refused statement is reported, and reading goes on behind it."""

    returned: list[Returned] = field(default_factory=list)

    @property
    def state(self) -> State:
        return dict(self.locals), set(self.unassigned)

    def suite(self, suite: cst.BaseSuite) -> tuple[Block, bool]:
        """The statements of a block, and whether its end is reached."""
        if not isinstance(suite, cst.IndentedBlock):
            return self.block([cst.SimpleStatementLine(suite.body)])  # type: ignore[arg-type]
        block, is_reached = self.block(suite.body)
        if footer := comments_above(line for line in suite.footer if line.comment):
            block.append(Line("", 0, above=footer))
        return block, is_reached

    def block(self, body: Sequence[cst.BaseStatement]) -> tuple[Block, bool]:
        done: Block = []
        for statement in body:
            self.read_names = set()
            try:
                lines, is_reached = self.statement(statement)
            except Refused:
                for name in assigned_names([statement]):  # further uses of these are not reported, too
                    self.unassigned.discard(name)
                    self.locals.setdefault(name, Value(Kind.NONE, name))
                continue
            done += lines
            if not is_reached:
                return done, False
        return done, True

    def statement(self, statement: cst.BaseStatement) -> tuple[Block, bool]:
        match statement:
            case cst.SimpleStatementLine(body=small, leading_lines=lines, trailing_whitespace=trailing):
                done: Block = []
                is_reached = True
                for each in small:
                    self.origin = self.span_of(each).line
                    more, is_reached = self.small(each)
                    done += more
                if done:
                    done[0].above, done[-1].beside = comments_above(lines), comment_beside(trailing)
                elif comments := (*comments_above(lines), *filter(None, [comment_beside(trailing)])):
                    done = [Line("", 0, above=comments)]
                return done, is_reached
            case cst.If():
                return self.branch(statement)
            case cst.For():
                return [*self.loop(statement)], True
        raise self.no_statement(statement)

    def small(self, statement: cst.BaseSmallStatement) -> tuple[Block, bool]:
        match statement:
            case cst.Expr(value=cst.SimpleString() | cst.ConcatenatedString()) | cst.Pass():
                return [], True
            case cst.Expr(value=cst.Call() as value):
                return [self.line(f"{self.read(value).text};")], True
            case cst.Assign(targets=[cst.AssignTarget(target=target)], value=value):
                return [*self.assign(target, value)], True
            case cst.Assign():
                raise self.unsupported("host functions assign to one target", statement, "write two statements")
            case cst.AnnAssign(target=target, value=cst.BaseExpression() as value):
                return [*self.assign(target, value)], True
            case cst.AugAssign(target=cst.Name() as target):
                return [self.augmented(statement, target)], True
            case cst.Assert(test=test, msg=said):
                condition, shown = self.truth(test), f'"assertion failed: {escaped(source_text(test))}"'
                shown = shown if said is None else message(self, said)
                return [self.line(f"TORCH_CHECK({condition.text}, {shown});")], True
            case cst.Raise():
                check, thrown = raised(self, statement)
                return [self.line(f"{check}(false, {thrown});")], False
            case cst.Return(value=value):
                return [self.returns(value)], False
        raise self.no_statement(statement)

    def no_statement(self, node: cst.CSTNode) -> Refused:
        hint = "they assign, call, branch, loop over `range`, assert, raise and return"
        return self.unsupported("host functions have no such statement", node, hint)

    # --- control flow ---

    def branch(self, statement: cst.If) -> tuple[Block, bool]:
        origin = self.span_of(statement).line
        above, beside = comments_above(statement.leading_lines), head_comment(statement.body)
        test = self.truth(statement.test)
        reads = frozenset(self.read_names)
        match statement.body.body:
            case [cst.SimpleStatementLine(body=[cst.Raise() as throw], leading_lines=[])] if statement.orelse is None:
                check, text = raised(self, throw)
                condition = test.opposite or f"!({test.text})"
                return [Line(f"{check}({condition}, {text});", origin, reads=reads, above=above, beside=beside)], True
        before, ends = self.state, list[State]()
        parts = [(f"if ({test.text})", self.part(statement.body, ends))]
        orelse = statement.orelse
        while isinstance(orelse, cst.If):
            (self.locals, self.unassigned), self.read_names = _copy(before), set()
            test = self.truth(orelse.test)
            reads |= self.read_names
            parts.append((f"else if ({test.text})", self.part(orelse.body, ends)))
            orelse = orelse.orelse
        self.locals, self.unassigned = _copy(before)
        if orelse is not None:
            parts.append(("else", self.part(orelse.body, ends)))
        else:
            ends.append(before)
        self.join(ends, statement)
        return [Nest(parts, origin, reads, above, beside)], bool(ends)

    def part(self, suite: cst.BaseSuite, ends: list[State]) -> Block:
        """One of the blocks of a statement; its end, where that is reached, joins `ends`."""
        block, is_reached = self.suite(suite)
        if is_reached:
            ends.append(self.state)
        return block

    def join(self, ends: Sequence[State], node: cst.CSTNode) -> None:
        """What is known where these paths meet."""
        self.locals, self.unassigned = {}, set()
        for locals_, unassigned in ends:
            self.unassigned |= unassigned
            for name, local in locals_.items():
                known = self.locals.setdefault(name, local)
                if known.kind is not local.kind and Kind.NONE not in (known.kind, local.kind):
                    what = f"`{name}` is {known.kind.value} on one path, and {local.kind.value} on another"
                    raise self.refused("P306", what, node, "use another name on one of them")
                if known != local:
                    length = known.length if known.length == local.length else None
                    joined = Value(known.kind, known.text, bases=known.bases | local.bases)
                    self.locals[name] = joined.with_items(length)
        for locals_, _ in ends:
            self.unassigned |= self.locals.keys() - locals_.keys()

    def loop(self, statement: cst.For) -> Iterator[Line | Nest]:
        self.origin = origin = self.span_of(statement).line
        above, beside = comments_above(statement.leading_lines), head_comment(statement.body)
        match statement:
            case cst.For(target=cst.Name(value=name), iter=cst.Call(func=function, args=args), orelse=None) if (
                self.environment.qualify(function) == "builtins.range" and 1 <= len(args) <= 3
            ):
                nodes = [arg.value for arg in args]
            case _:
                what = "host functions loop over `range`, without an `else`"
                raise self.unsupported(what, statement.iter, "write `for i in range(n):`")
        inside = {*assigned_names(statement.body.body)}
        if name in self.locals or name in inside:
            what = f"the variable `{name}` of this loop is assigned elsewhere, too"
            raise self.unsupported(what, statement.target, "give it a name of its own")
        bounds = [self.of_kind(node, Kind.INT) for node in nodes]
        start, stop = (bounds[0], bounds[1]) if len(bounds) > 1 else (None, bounds[0])
        step = bounds[2].known if len(bounds) > 2 else 1
        if not isinstance(step, int) or step == 0:
            raise self.unsupported("the step of a loop is a constant, and not 0", nodes[-1], "write the step out")
        if "(" in stop.text or inside & self.read_names:
            saved = self.temporary("stop", stop)
            yield saved
            stop = self.locals[saved.target]
            self.read_names.add(saved.target)
        reads, ends = frozenset(self.read_names), [self.state]
        low = (0 if start is None else start.low) if step > 0 else None
        is_size = stop.is_size and (start is None or start.is_size)
        text = self.fresh(identifier(name))
        self.locals[name] = Value(Kind.INT, text, low=low, is_size=is_size)
        self.unassigned.discard(name)
        self.alias(inside, names_in(statement.body))
        block = self.part(statement.body, ends)
        self.join(ends, statement)
        del self.locals[name]
        self.unassigned.add(name)
        advance = {1: f"++{text}", -1: f"--{text}"}.get(step, f"{text} {'+' if step > 0 else '-'}= {abs(step)}")
        condition = f"{text} {'<' if step > 0 else '>'} {stop.at(ATOM)}"
        head = f"for (int64_t {text} = {'0' if start is None else start.text}; {condition}; {advance})"
        yield Nest([(head, block)], origin, reads, above, beside)

    def alias(self, assigned: Set[str], mentioned: Set[str]) -> None:
        """What a loop assigns may be, from its second round on, a view of what any name in it is a view of."""
        bases = frozenset[str]().union(*(local.bases for name, local in self.locals.items() if name in mentioned))
        for name in assigned & self.locals.keys():
            if not self.locals[name].kind.is_number:
                self.locals[name] = replace(self.locals[name], bases=bases)

    # --- returns ---

    def returns(self, node: cst.BaseExpression | None) -> Line:
        if node is None or is_named(node, "None"):
            self.returned.append(Returned(Kind.NONE, None, False, (), Span(self.origin, 0, self.origin, 1)))
            return self.line("return;")
        value = self.read(node)
        if value.kind not in (Kind.TENSOR, Kind.TENSORS):
            what = f"this returns {value.kind.value}, and host functions return tensors"
            raise self.unusable(what, node, "return tensors: `return out`, `return a, b`")
        nodes = [element.value for element in node.elements] if isinstance(node, cst.Tuple) else [node]
        names = [each.value for each in nodes if isinstance(each, cst.Name)]
        known = [self.locals[name] for name in names if name in self.locals]
        is_by_name = len(known) == len(nodes) and all(local.kind is Kind.TENSOR for local in known)
        outputs = tuple((name, local.bases) for name, local in zip(names, known, strict=False)) if is_by_name else ()
        self.returned.append(Returned(value.kind, value.length, value.is_list, outputs, self.span_of(node)))
        return self.line(f"return {self.owned(value).text};")


def _copy(state: State) -> State:
    return dict(state[0]), set(state[1])


def names_in(body: cst.BaseSuite) -> set[str]:
    """Every name in a function's body."""
    return {node.value for node in nodes_in(body) if isinstance(node, cst.Name)}


def last_items(body: cst.BaseSuite) -> dict[str, int]:
    """By name, the largest constant index into it."""
    found: dict[str, int] = {}
    for node in nodes_in(body):
        match node:
            case cst.Subscript(
                value=cst.Name(value=name),
                slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Integer(value=text)))],
            ) if len(text) < 9:
                found[name] = max(found.get(name, 0), int(text, 0))
    return found
