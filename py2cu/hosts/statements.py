"""Statements of host functions: LibCST nodes → a tree of C++ lines, with the comments around them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import libcst as cst

from py2cu.frontend.bodies.comments import comment_beside, comments_above, head_comment
from py2cu.frontend.names.operators import SYMBOLS
from py2cu.frontend.names.syntax import assigned_names, is_named, nodes_in, source_text
from py2cu.hosts.assignments import AssignmentReader, python_name
from py2cu.hosts.messages import escaped, message, raised
from py2cu.hosts.reader import Refused
from py2cu.hosts.tree import Block, Line, Nest
from py2cu.hosts.values import ATOM, Kind, Local, identifier
from py2cu.source import Span


@dataclass(frozen=True, slots=True)
class Returned:
    """What a `return` gives. `outputs`: the names in it, if it holds nothing else, with the bases of their tensors."""

    kind: Kind
    count: int | None
    is_list: bool
    outputs: tuple[tuple[str, frozenset[str]], ...]
    span: Span


@dataclass(slots=True)
class StatementReader(AssignmentReader):
    """Reads the body of one host function. A refused statement is reported, and reading goes on behind it."""

    returned: list[Returned] = field(default_factory=list)

    def suite(self, suite: cst.BaseSuite) -> tuple[Block, bool]:
        """The statements of a block, and whether its end is reached."""
        body = suite.body if isinstance(suite, cst.IndentedBlock) else [cst.SimpleStatementLine(suite.body)]  # type: ignore[arg-type]
        block, is_reached = self.block(body)
        if isinstance(suite, cst.IndentedBlock) and (
            footer := comments_above(line for line in suite.footer if line.comment)
        ):
            block.append(Line("", 0, above=footer))
        return block, is_reached

    def block(self, body: Sequence[cst.BaseStatement]) -> tuple[Block, bool]:
        done: Block = []
        for statement in body:
            self.expressions.read_names = set()
            try:
                lines, is_reached = self.statement(statement)
            except Refused:
                for name in assigned_names([statement]):  # further uses of these are not reported, too
                    self.expressions.unassigned.discard(name)
                    self.locals.setdefault(name, Local(Kind.NONE, name))
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
                    more, is_reached = self.small(each)
                    done += more
                if done and isinstance(done[0], Line | Nest):
                    done[0].above, done[-1].beside = comments_above(lines), comment_beside(trailing)
                elif comments := (*comments_above(lines), *filter(None, [comment_beside(trailing)])):
                    done = [Line("", 0, above=comments)]
                return done, is_reached
            case cst.If():
                return self.branch(statement)
            case cst.For():
                return [*self.loop(statement)], True
            case _:
                what = "host functions have no such statement"
                hint = "they assign, call, branch, loop over `range`, assert, raise and return"
                raise self.expressions.refused("P801", what, statement, hint)

    def small(self, statement: cst.BaseSmallStatement) -> tuple[Block, bool]:
        reader, origin = self.expressions, self.expressions.span_of(statement).line
        match statement:
            case cst.Expr(value=cst.SimpleString() | cst.ConcatenatedString()) | cst.Pass():
                return [], True
            case cst.Expr(value=value):
                done = reader.read(value)
                return [self.line(f"{done.text};", origin)], True
            case cst.Assign(targets=targets, value=value):
                if len(targets) > 1:
                    raise reader.refused(
                        "P801", "host functions assign to one target", statement, "write two statements"
                    )
                return [*self.assign(targets[0].target, value, origin)], True
            case cst.AnnAssign(target=target, value=value) if value is not None:
                return [*self.assign(target, value, origin)], True
            case cst.AugAssign(target=cst.Name() as target, operator=operator, value=value):
                return [self.augmented(statement, target, SYMBOLS[type(operator)], value, origin)], True
            case cst.Assert(test=test, msg=said):
                condition, shown = reader.truth(test), f'"assertion failed: {escaped(source_text(test))}"'
                shown = shown if said is None else message(reader, said)
                return [self.line(f"TORCH_CHECK({condition.text}, {shown});", origin)], True
            case cst.Raise():
                check, thrown = raised(reader, statement)
                return [self.line(f"{check}(false, {thrown});", origin)], False
            case cst.Return(value=value):
                return [self.returns(value, origin)], False
            case _:
                what = "host functions have no such statement"
                hint = "they assign, call, branch, loop over `range`, assert, raise and return"
                raise reader.refused("P801", what, statement, hint)

    # --- control flow ---

    def branch(self, statement: cst.If) -> tuple[Block, bool]:
        reader, origin = self.expressions, self.expressions.span_of(statement).line
        above, beside = comments_above(statement.leading_lines), head_comment(statement.body)
        test = reader.truth(statement.test)
        reads = frozenset(reader.read_names)
        body = statement.body.body
        match body:
            case [cst.SimpleStatementLine(body=[cst.Raise() as throw], leading_lines=[])] if statement.orelse is None:
                check, text = raised(reader, throw)
                condition = test.opposite or f"!({test.text})"
                return [Line(f"{check}({condition}, {text});", origin, reads=reads, above=above, beside=beside)], True
        ends: list[tuple[dict[str, Local], set[str]]] = []
        before = dict(self.locals), set(reader.unassigned)

        def read(suite: cst.BaseSuite) -> Block:
            reader.locals, reader.unassigned = dict(before[0]), set(before[1])
            block, is_reached = self.suite(suite)
            if is_reached:
                ends.append((reader.locals, reader.unassigned))
            return block

        parts = [(f"if ({test.text})", read(statement.body))]
        orelse = statement.orelse
        while isinstance(orelse, cst.If):
            reader.locals, reader.unassigned, reader.read_names = dict(before[0]), set(before[1]), set()
            test = reader.truth(orelse.test)
            reads |= reader.read_names
            parts.append((f"else if ({test.text})", read(orelse.body)))
            orelse = orelse.orelse
        if orelse is not None:
            parts.append(("else", read(orelse.body)))
        else:
            ends.append(before)
        self.join(ends, statement)
        return [Nest(parts, origin, reads, above, beside)], bool(ends)

    def join(self, ends: Sequence[tuple[dict[str, Local], set[str]]], node: cst.CSTNode) -> None:
        """What is known where these paths meet."""
        reader = self.expressions
        reader.locals, reader.unassigned = {}, set()
        for locals_, unassigned in ends:
            reader.unassigned |= unassigned
            for name, local in locals_.items():
                known = reader.locals.setdefault(name, local)
                if known.kind is not local.kind and Kind.NONE not in (known.kind, local.kind):
                    what = f"`{name}` is {known.kind.value} on one path, and {local.kind.value} on another"
                    raise reader.refused("P306", what, node, "use another name on one of them")
                if known != local:
                    length = known.length if known.length == local.length else None
                    reader.locals[name] = Local(known.kind, known.text, length=length, bases=known.bases | local.bases)
        for locals_, _ in ends:
            reader.unassigned |= reader.locals.keys() - locals_.keys()

    def loop(self, statement: cst.For) -> Iterator[Line | Nest]:
        reader, origin = self.expressions, self.expressions.span_of(statement).line
        above, beside = comments_above(statement.leading_lines), head_comment(statement.body)
        match statement:
            case cst.For(target=cst.Name(value=name), iter=cst.Call(func=function, args=args), orelse=None) if (
                reader.environment.qualify(function) == "builtins.range" and 1 <= len(args) <= 3
            ):
                nodes = [arg.value for arg in args]
            case _:
                what = "host functions loop over `range`, without an `else`"
                raise reader.refused("P801", what, statement.iter, "write `for i in range(n):`")
        inside = {*assigned_names(statement.body.body)}
        if name in self.locals or name in inside:
            what = f"the variable `{name}` of this loop is assigned elsewhere, too"
            raise reader.refused("P801", what, statement.target, "give it a name of its own")
        bounds = [reader.of_kind(node, Kind.INT) for node in nodes]
        start, stop = (bounds[0], bounds[1]) if len(bounds) > 1 else (None, bounds[0])
        step = bounds[2].known if len(bounds) > 2 else 1
        if not isinstance(step, int) or step == 0:
            raise reader.refused("P801", "the step of a loop is a constant, and not 0", nodes[-1], "write the step out")
        first = start.text if start is not None else "0"
        if "(" in stop.text or inside & reader.read_names:
            saved = self.temporary("stop", stop, origin)
            yield saved
            stop = self.locals[saved.target].value
            reader.read_names.add(saved.target)
        reads = frozenset(reader.read_names)
        before = dict(self.locals), set(reader.unassigned)
        low = (0 if start is None else start.low) if step > 0 else None
        is_size = stop.is_size and (start is None or start.is_size)
        text = self.fresh(identifier(name))
        self.locals[name] = Local(Kind.INT, text, low, is_size)
        reader.unassigned.discard(name)
        block, is_reached = self.suite(statement.body)
        ends = [before]
        if is_reached:
            ends.append((reader.locals, reader.unassigned))
        self.join(ends, statement)
        del self.locals[name]
        reader.unassigned.add(name)
        sign = "<" if step > 0 else ">"
        advance = {1: f"++{text}", -1: f"--{text}"}.get(step, f"{text} {'+' if step > 0 else '-'}= {abs(step)}")
        head = f"for (int64_t {text} = {first}; {text} {sign} {stop.at(ATOM)}; {advance})"
        yield Nest([(head, block)], origin, reads, above, beside)

    # --- returns ---

    def returns(self, node: cst.BaseExpression | None, origin: int) -> Line:
        reader = self.expressions
        span = reader.span_of(node) if node is not None else Span(origin, 0, origin, 1)
        if node is None or is_named(node, "None"):
            self.returned.append(Returned(Kind.NONE, None, False, (), span))
            return self.line("return;", origin)
        value = reader.read(node)
        if value.kind not in (Kind.TENSOR, Kind.TENSORS):
            hint = "return tensors: `return out`, `return a, b`"
            raise reader.refused(
                "P802", f"this returns {value.kind.value}, and host functions return tensors", node, hint
            )
        count = None if value.items is None else len(value.items)
        if (
            value.kind is Kind.TENSORS
            and count is None
            and value.text in {local.text for local in self.locals.values()}
        ):
            count = self.locals[python_name(self.locals, value.text)].length
        nodes = [element.value for element in node.elements] if isinstance(node, cst.Tuple) else [node]
        known = [self.locals.get(each.value) for each in nodes if isinstance(each, cst.Name)]
        tensors = [local for local in known if local is not None and local.kind is Kind.TENSOR]
        names = [each.value for each in nodes if isinstance(each, cst.Name)] if len(tensors) == len(nodes) else []
        outputs = tuple((name, local.bases) for name, local in zip(names, tensors, strict=False))
        self.returned.append(Returned(value.kind, count, isinstance(node, cst.List), outputs, span))
        return self.line(f"return {value.text};", origin)


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
