"""LibCST statements → IR, one method per kind. Comments and blank lines stay with their statement."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import libcst as cst

from py2cu import ir
from py2cu.frontend.bodies.assignments import Unpacker
from py2cu.frontend.bodies.comments import comment_beside, comments_above, head_comment
from py2cu.frontend.bodies.expressions import ExpressionReader
from py2cu.frontend.bodies.lists.displays import is_list, is_list_call
from py2cu.frontend.bodies.lists.fill import ListReader
from py2cu.frontend.bodies.lists.open_rows import read_assignment
from py2cu.frontend.bodies.lists.uses import refuse_changed_items
from py2cu.frontend.bodies.loops import LoopHead, make_while, read_loop_head, read_tests
from py2cu.frontend.bodies.printing import read_assert, read_print
from py2cu.frontend.bodies.scope import Scope
from py2cu.frontend.bodies.sequences.reader import SequenceReader
from py2cu.frontend.bodies.sequences.unpacking import bind
from py2cu.frontend.bodies.targets import TargetReader
from py2cu.frontend.bodies.tuples.forms import Form, count_numbers, describe_form, flatten
from py2cu.frontend.declarations.annotations import AnnotationReader
from py2cu.frontend.names.operators import SYMBOLS
from py2cu.frontend.names.syntax import assigned_names, bound_by_blocks, has_tuple, inner_suites, name_nodes, nodes_in
from py2cu.frontend.numba.launch import gives_aliases
from py2cu.source import Span

_WORDS: Final[dict[type[cst.CSTNode], str]] = {
    cst.With: "`with`", cst.Try: "`try`", cst.TryStar: "`try`", cst.Match: "`match`",
    cst.ClassDef: "a class", cst.Import: "`import`", cst.ImportFrom: "`import`", cst.Global: "`global`",
    cst.FunctionDef: "a function that a branch or a loop defines, or that is defined twice,",
    cst.Nonlocal: "`nonlocal`", cst.Raise: "`raise`", cst.TypeAlias: "`type`",
}  # fmt: skip

_INSTEAD: Final[dict[type[cst.CSTNode], str]] = {
    cst.Match: "write `if` and `elif`", cst.FunctionDef: "define each once, before its calls",
    cst.Raise: "write `assert`, or do it outside the kernel",
    cst.AnnAssign: "assign without the annotation: locals take the type of what they are assigned",
    cst.Import: "import at the top of the file", cst.ImportFrom: "import at the top of the file",
}  # fmt: skip


@dataclass(slots=True)
class StatementReader:
    """Reads the body of one kernel."""

    scope: Scope
    expressions: ExpressionReader
    annotated: list[ir.Annotation] = field(default_factory=list)
    following: Sequence[cst.BaseStatement] = ()  # of the block that is read: this statement and those behind it

    @property
    def targets(self) -> TargetReader:
        return TargetReader(self.scope, self.expressions)

    def lists(self, statement: cst.CSTNode) -> ListReader:
        return ListReader(self.scope, self.targets, self.expressions.read, self._span(statement), self.following)

    def read_suite(self, suite: cst.BaseSuite) -> ir.Block:
        """The statements of an indented block, or of the line behind a colon, and the comments that end it."""
        if isinstance(suite, cst.IndentedBlock):
            footer = comments_above(line for line in suite.footer if line.comment)
            return self.read_body(suite.body) + ((ir.Comment(trivia=ir.Trivia(above=footer)),) if footer else ())
        assert isinstance(suite, cst.SimpleStatementSuite)
        return self._read_line(suite.body, ir.Trivia(beside=comment_beside(suite.trailing_whitespace)))

    def read_body(self, body: Iterable[cst.BaseStatement]) -> ir.Block:
        """Statements in order."""
        statements, around = tuple(body), self.following
        done: list[ir.Stmt] = []
        with self.scope.block():
            for at, statement in enumerate(statements):
                self.following = statements[at:]
                done += self._read(statement)
        self.following = around
        return tuple(done)

    def _read(self, statement: cst.BaseStatement) -> ir.Block:
        match statement:
            case cst.SimpleStatementLine(body=small, leading_lines=lines, trailing_whitespace=trailing):
                return self._read_line(small, ir.Trivia(comments_above(lines), comment_beside(trailing)))
            case cst.If():
                return self._read_if(statement, comments_above(statement.leading_lines))
            case cst.For():
                return self._read_for(statement)
            case cst.While():
                return self._read_while(statement)
            # rule: function-again
            case cst.FunctionDef(name=name) if self.scope.environment.functions.get(name.value) is statement:
                self._refuse_calls_of_def(statement)  # rule: refused-def
                return self._elide(statement, ir.Elision.DEFINITION)
            case _:
                return self._refuse(statement)

    def _refuse_calls_of_def(self, function: cst.FunctionDef) -> None:
        """Refuse calls in decorators, defaults and annotations: Python makes them when the `def` runs."""
        for part in (*function.decorators, function.params, function.returns):
            for node in nodes_in(part) if part is not None else ():
                if isinstance(node, cst.Call):
                    what, hint = "this call runs where the function is defined", "call it on a line of its own"
                    self.scope.error("P103", what, node, hint)
                    return

    # --- one line ---

    def _read_line(self, small: Sequence[cst.BaseSmallStatement], trivia: ir.Trivia) -> ir.Block:
        """The statements of one line; the first one carries the comments."""
        done: list[ir.Stmt] = []
        for statement in small:
            block = self._read_small(statement)
            done += (*self.scope.hoisted.take(), *block)
        if not done and (any(trivia.above) or trivia.beside):
            return (ir.Comment(trivia=trivia),)
        return (replace(done[0], trivia=trivia), *done[1:]) if done else ()

    def _read_small(self, statement: cst.BaseSmallStatement) -> ir.Block:
        span = self._span(statement)
        match statement:
            case cst.Assign(targets=[cst.AssignTarget(target=target)]) if reserved := self._declared_arrays(target):
                if self.scope.array_decls[reserved[0]].space is ir.Space.CONSTANT:
                    return self._elide(statement, ir.Elision.TABLE)
                return tuple(ir.Alloc(name, span, start=self.scope.starts.get(name)) for name in reserved)
            case cst.Assign() | cst.Expr() if (block := read_assignment(statement, self.lists(statement))) is not None:
                return block
            case cst.Assign():
                return self._read_assign(statement)
            case cst.AugAssign():
                return self._read_augmented(statement)
            case cst.AnnAssign():
                return self._read_annotated(statement)
            case cst.Del(target=target):
                return self._read_del(target)
            case cst.Pass() | cst.Expr(value=cst.Ellipsis() | cst.SimpleString() | cst.ConcatenatedString()):
                return self._elide(statement, ir.Elision.EMPTY)
            case cst.Break():
                return (ir.Break(span),)
            case cst.Continue():
                return (ir.Continue(span),)
            case cst.Return(value=cst.BaseExpression() as value) if self.scope.returns:
                return self._read_return(value, span)
            case cst.Return(value=value):
                if value is not None and not (isinstance(value, cst.Name) and value.value == "None"):
                    self.scope.error("P106", "a kernel returns nothing", statement, "store the value in an array")
                return (ir.Return(span),)
            case cst.Assert():
                return read_assert(statement, self.expressions)
            case cst.Expr(value=cst.NamedExpr() as named):
                self.expressions.read(named)
                return ()
            case cst.Expr(value=cst.Call() as call) if (acting := self.expressions.calls.read_acting(call)) is not None:
                return acting
            case cst.Expr(value=cst.Call() as call) if self.expressions.calls.meaning(call.func) == "builtins.print":
                return (read_print(call, self.expressions),)
            case cst.Expr(value=cst.Call(func=callee, args=args)) if self._is_breakpoint(callee):
                if args:  # the compiled kernel would leave their effects out  # rule: refused-breakpoint
                    self.scope.error("P105", "`breakpoint` takes no arguments in a kernel", args[0], "`breakpoint()`")
                return self._elide(statement, ir.Elision.BREAKPOINT)
            case cst.Expr(value=value):
                return self._refuse_idle(value, statement)
            case _:
                return self._refuse(statement)

    def _refuse_idle(self, value: cst.BaseExpression, statement: cst.CSTNode) -> ir.Block:
        """Report an expression statement without effect, unless reading it reported an error."""
        if isinstance(value, cst.Call):
            before = len(self.scope.reporter.diagnostics)
            self.expressions.read(value)
            is_known = self.scope.broken.isdisjoint(name.value for name in name_nodes(value.func))
            if not is_known or len(self.scope.reporter.diagnostics) > before:
                return ()
        self.scope.error("P103", "this line has no effect in a kernel", statement, "store its value, or leave it out")
        return ()

    def _declared_arrays(self, target: cst.BaseExpression) -> tuple[str, ...]:
        """The arrays that an assignment to `target` declares: all of its names, or none."""
        names = [element.value for element in target.elements] if isinstance(target, cst.Tuple) else [target]
        declared = [name.value for name in names if isinstance(name, cst.Name) and self.scope.declares(name)]
        return tuple(declared) if len(declared) == len(names) else ()

    def _read_return(self, value: cst.BaseExpression, span: Span) -> ir.Block:
        """`return (a, b) if c else (b, a)` is an `if` with two returns."""
        match value:
            case cst.IfExp(test=test, body=body, orelse=orelse) if has_tuple(body) or has_tuple(orelse):
                head = self.expressions.read(test)
                with self.scope.hoisted.conditional("only one of the two results is computed"):
                    results = self._read_return(body, span), self._read_return(orelse, span)
                return (ir.If(head, results[0], span=self._span(test)), *results[1])
            case _:
                result = self.expressions.read(value)
                self._note_form(self.scope.form(result), value)
                return (ir.Return(span, value=flatten(result)),)

    def _note_form(self, form: Form, node: cst.BaseExpression) -> None:
        """Note the form of a result; type inference checks the number of values on each path."""
        known = self.scope.returned[0] if self.scope.returned else form
        if known != form and count_numbers(known) == count_numbers(form):
            what = f"this function returns {describe_form(known)} on one path and {describe_form(form)} here"
            self.scope.error("P312", what, node, "a tuple of one form on every path")
        self.scope.returned.append(form)

    def _is_breakpoint(self, callee: cst.BaseExpression) -> bool:
        """True for `breakpoint`, which stops `simulate` and has no code in the compiled kernel."""
        return self.scope.environment.qualify(callee) == "builtins.breakpoint"

    def _read_assign(self, statement: cst.Assign) -> ir.Block:
        """Targets from left to right, once the right side is read whole: `a, b = b, a`, `a = b = 0`."""
        match statement:
            case cst.Assign() if self.scope.aliases and gives_aliases(statement, self.scope.aliases):
                return self._elide(statement, ir.Elision.LAUNCH)
            case cst.Assign(targets=[cst.AssignTarget(cst.Name(value=name))], value=group) if (
                self.expressions.calls.is_grid(group)
            ):
                self.scope.grids.add(name)
                return self._elide(statement, ir.Elision.GRID)  # rule: dropped-grid
            case cst.Assign(targets=[cst.AssignTarget(cst.Name() as name)], value=cst.IfExp() as value) if (
                self.expressions.calls.needs_statements(value.body)
                or self.expressions.calls.needs_statements(value.orelse)
            ):
                return self._read_chosen(name, value, statement)
        unpacker = Unpacker(self.scope, self.expressions, statement, self.following)
        pairs = unpacker.read()
        broken = self.scope.broken
        if broken and not broken.isdisjoint(name.value for name in name_nodes(statement.value)):
            broken.update(assigned_names((statement,)))
        return (*unpacker.saved, *(stmt for to, v in pairs for stmt in self.targets.assign(to, v, statement)))

    def _read_chosen(self, name: cst.Name, value: cst.IfExp, statement: cst.Assign) -> ir.Block:
        """`t = sum(row) if c else 0` as an `if`: only one of the two loops runs."""
        test, before = self.expressions.read(value.test), self.scope.hoisted.take()

        def assigned(branch: cst.BaseExpression) -> ir.Block:
            result = self.expressions.read(branch)
            return (*self.scope.hoisted.take(), *self.targets.assign(name, result, statement))

        return (*before, ir.If(test, assigned(value.body), assigned(value.orelse), self._span(statement)))

    def _read_augmented(self, statement: cst.AugAssign) -> ir.Block:
        operator = SYMBOLS.get(type(statement.operator))
        if operator is None:
            self.scope.error("P103", "this operator is not supported", statement, "multiply elements in a loop")
            return ()
        self.scope.report_flag(statement.operator, statement.target, statement.value)
        match statement.target:
            case cst.Name(value=name) if name in self.scope.values:
                left = self.scope.hoisted.hold(local := ir.Name(name, self._span(statement.target)), at=0)
            case cst.Subscript() as target:
                loaded = self.expressions.read(target)
                if isinstance(loaded, ir.Load):
                    return self.targets.update(loaded, operator, statement)
                self.targets.refuse(target)
                return ()
            case target:
                return self.targets.assign(target, self.expressions.read(statement.value), statement)
        right = self.expressions.read(statement.value)
        value = ir.Binary(operator, left.value, right, self._span(statement))
        return self.targets.assign(statement.target, value, statement, augmented=left.value is local)

    def _read_annotated(self, statement: cst.AnnAssign) -> ir.Block:
        """`v: float = 0.0`: an assignment, and the declared type of `v`."""
        match statement.target:
            case cst.Name() as target if (value := statement.value) is not None and (
                is_list(value) or is_list_call(value, self.scope)
            ):
                return self.lists(statement).assign(target, value)  # `acc: list[float] = [0.0] * 4`
            case cst.Name(value=name) if name in self.scope.values:
                self._read_annotation(name, statement.annotation.annotation)
            case cst.Name():
                pass  # no local: the assignment reports it
            case target:
                self.scope.error("P103", "only names are annotated in a kernel", target, "leave the annotation out")
        if statement.value is None:
            return self._elide(statement, ir.Elision.ANNOTATION)
        return self.targets.assign(statement.target, self.expressions.read(statement.value), statement)

    def _read_annotation(self, name: str, node: cst.BaseExpression) -> None:
        reader = AnnotationReader(self.scope.reporter, self.scope.environment, self.scope.span_of)
        match reader.read(node, name):
            case ir.ElementType() | ir.PythonType() as type_:
                self.annotated.append(ir.Annotation(name, type_, self._span(node)))
            case None:
                pass
            case _:
                self.scope.error(
                    "P301", f"the local `{name}` must have a scalar type", node, "`int`, `float`, `bool`, `np.int32`, …"
                )

    def _read_del(self, target: cst.BaseExpression) -> ir.Block:
        match target:
            case cst.Name(value=name) if name in self.scope.values and name not in self.scope.indices:
                return (ir.Delete(name, self._span(target)),)
            case cst.Tuple(elements=elements):
                return tuple(stmt for element in elements for stmt in self._read_del(element.value))
            case cst.Name() if self.scope.is_unknown(target):
                self.scope.unknown_name(target)
            case _:
                what = "`del` takes numbers in a kernel: locals and parameters"
                self.scope.error("P103", what, target, "leave it out")
        return ()

    # --- blocks ---

    def _read_if(self, statement: cst.If, above: tuple[str, ...], chained: bool = False) -> ir.Block:
        """An `if`, after what its test needs; an `elif` that needs something is an `if` in the `else`.

        Where only the second operand of `and` needs something, it is the test of an `if` in the first one.
        """
        span = self._span(statement.test)
        (before, test), *others = read_tests(statement.test, self.expressions, splits=statement.orelse is None)
        body = self.read_suite(statement.body)
        trivia = ir.Trivia(above, head_comment(statement.body))
        for needed, other in reversed(others):
            body = (*needed, ir.If(other, body, span=span))
        match statement.orelse:
            case cst.If() as branch:
                orelse = self._read_if(branch, comments_above(branch.leading_lines), chained=True)
            case cst.Else() | None as branch:
                orelse = self._read_else(branch)
        is_chained = chained and not before
        return (*before, ir.If(test, body, orelse, span, trivia, is_chained))

    def _read_while(self, statement: cst.While) -> ir.Block:
        span, orelse = self._span(statement.test), statement.orelse
        trivia = ir.Trivia(comments_above(statement.leading_lines), head_comment(statement.body))
        tests = read_tests(statement.test, self.expressions)
        inner = self.read_suite(statement.body)
        return make_while(tests, inner, self._read_else(orelse), span, trivia, self.scope)

    def _read_else(self, branch: cst.Else | None) -> ir.Block:
        """The block behind `else`; the comments of that line go to its first statement."""
        if branch is None:
            return ()
        block = self.read_suite(branch.body)
        lead = tuple(line for line in (*comments_above(branch.leading_lines), head_comment(branch.body)) if line)
        if not (lead and block):
            return block
        first = block[0]
        return (replace(first, trivia=replace(first.trivia, above=lead + first.trivia.above)), *block[1:])

    def _read_for(self, statement: cst.For) -> ir.Block:
        if statement.asynchronous is not None:
            return self._refuse(statement)
        with self.scope.block():
            assigned = self.scope.named.union(assigned_names((statement,)))
            reader = SequenceReader(self.scope, self.expressions.read, self._span(statement.iter), assigned)
            head = read_loop_head(statement, self.expressions, reader)
            before = self.scope.hoisted.take()
            start: ir.Block = ()
            if head is not None and head.target is not None and head.item is not None:
                bound = bind(head.target, head.item, self.scope, lambda to, item: self.targets.assign(to, item, to))
                start = (*head.computed, *bound)
            body = self._read_rounds(statement, head)
        refuse_changed_items(statement.iter, start, body, self.scope)
        orelse = self._read_else(statement.orelse)
        if head is None or (head.name is not None and not self.scope.takes_number(head.name)):
            return ()
        trivia = ir.Trivia(comments_above(statement.leading_lines), head_comment(statement.body))
        span, body, numbers = self._span(statement.iter), (*start, *body), head.numbers
        bounds = numbers.start, numbers.stop, numbers.step
        loop = ir.For(head.counter, *bounds, body, span, trivia, orelse=orelse, unroll=head.unroll)
        return (*before, loop)

    def _read_rounds(self, statement: cst.For, head: LoopHead | None) -> ir.Block:
        """The body of a loop, which may index tuples by a counter that it does not change."""
        if head is None or head.counter in assigned_names(statement.body.body):
            return self.read_suite(statement.body)
        with self.scope.counting(head.counter, head.numbers.constant):
            return self.read_suite(statement.body)

    def _elide(self, statement: cst.CSTNode, why: ir.Elision) -> ir.Block:
        """Note a statement that has no code; `analysis/account.py` reports those without a note."""
        self.scope.elide(statement, why)
        return ()

    def _refuse(self, statement: cst.CSTNode) -> ir.Block:
        word = _WORDS.get(type(statement), "this statement")
        hint = _INSTEAD.get(type(statement), "leave it out, or do it outside the kernel")
        self.scope.error("P103", f"{word} is not supported in a kernel", statement, hint)  # rule: refused-statement
        self.scope.broken.update(name.value for part in bound_by_blocks(statement) for name in name_nodes(part))
        return tuple(stmt for suite in inner_suites(statement) for stmt in self.read_suite(suite))

    def _span(self, node: cst.CSTNode) -> Span:
        return self.scope.span_of(node)
