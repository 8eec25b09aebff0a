"""LibCST statements → IR, one method a kind. Comments and blank lines stay with the statement they stand by."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

import libcst as cst

from py2cu.frontend.expressions import BINARY, ExpressionReader, is_starred
from py2cu.frontend.scope import Scope
from py2cu.ir.extents import Binary, Constant, Name
from py2cu.ir.nodes import Expr, Extent, Load
from py2cu.ir.statements import Assign, Block, Break, Continue, For, If, Remark, Return, Stmt, Store, Trivia, While
from py2cu.ir.visit import names_in, walk
from py2cu.source import Span

_WORDS: Final[dict[type[cst.CSTNode], str]] = {
    cst.With: "`with`", cst.Try: "`try`", cst.TryStar: "`try`", cst.Match: "`match`",
    cst.FunctionDef: "a nested function",
    cst.ClassDef: "a class", cst.Import: "`import`", cst.ImportFrom: "`import`", cst.Global: "`global`",
    cst.Nonlocal: "`nonlocal`", cst.Raise: "`raise`", cst.Assert: "`assert`", cst.Del: "`del`", cst.AnnAssign:
    "an annotated local", cst.TypeAlias: "`type`",
}  # fmt: skip

_INSTEAD: Final[dict[type[cst.CSTNode], str]] = {
    cst.Match: "write `if` and `elif`", cst.FunctionDef: "write what it does where it is called",
    cst.AnnAssign: "assign without the annotation: locals take the type of what they are assigned",
    cst.Import: "import at the top of the file", cst.ImportFrom: "import at the top of the file",
}  # fmt: skip


@dataclass(slots=True)
class StatementReader:
    """Reads the body of one kernel."""

    scope: Scope
    expressions: ExpressionReader

    def read_suite(self, suite: cst.BaseSuite) -> Block:
        """The statements of an indented block, or of the line behind a colon, and the comments that end it."""
        if isinstance(suite, cst.IndentedBlock):
            footer = tuple(_comment(line) for line in suite.footer if line.comment)
            return self.read_body(suite.body) + ((Remark(trivia=Trivia(above=footer)),) if footer else ())
        assert isinstance(suite, cst.SimpleStatementSuite)
        return self._read_line(suite.body, Trivia(beside=_beside(suite.trailing_whitespace)))

    def read_body(self, body: Iterable[cst.BaseStatement]) -> Block:
        """Statements in order."""
        done: list[Stmt] = []
        for statement in body:
            done += self._read(statement)
        return tuple(done)

    def _read(self, statement: cst.BaseStatement) -> Block:
        match statement:
            case cst.SimpleStatementLine(body=small, leading_lines=lines, trailing_whitespace=trailing):
                return self._read_line(small, Trivia(_above(lines), _beside(trailing)))
            case cst.If():
                return (self._read_if(statement, _above(statement.leading_lines)),)
            case cst.For():
                return self._read_for(statement)
            case cst.While(test=test, body=body, orelse=orelse):
                self._refuse_else(orelse)
                trivia = Trivia(_above(statement.leading_lines), _head_comment(body))
                return (While(self.expressions.read(test), self.read_suite(body), self._span(test), trivia),)
            case _:
                return self._refuse(statement)

    # --- one line ---

    def _read_line(self, small: Sequence[cst.BaseSmallStatement], trivia: Trivia) -> Block:
        """The statements of one line; the first one carries the comments."""
        done: list[Stmt] = []
        for statement in small:
            done += self._read_small(statement)
        if not done and (any(trivia.above) or trivia.beside):
            return (Remark(trivia=trivia),)
        return (replace(done[0], trivia=trivia), *done[1:]) if done else ()

    def _read_small(self, statement: cst.BaseSmallStatement) -> Block:
        span = self._span(statement)
        match statement:
            case cst.Assign():
                return self._read_assign(statement)
            case cst.AugAssign():
                return self._read_augmented(statement)
            case cst.Pass() | cst.Expr(value=cst.Ellipsis() | cst.SimpleString() | cst.ConcatenatedString()):
                return ()
            case cst.Break():
                return (Break(span),)
            case cst.Continue():
                return (Continue(span),)
            case cst.Return(value=value):
                if value is not None and not (isinstance(value, cst.Name) and value.value == "None"):
                    self.scope.error("P106", "a kernel returns nothing", statement, "store the value in an array")
                return (Return(span),)
            case cst.Expr(value=cst.Call() as call):
                before = len(self.scope.reporter.found)
                self.expressions.read(call)
                if len(self.scope.reporter.found) == before:
                    self.scope.error(
                        "P103", "this line has no effect in a kernel", statement, "store its value, or leave it out"
                    )
                return ()
            case cst.Expr():
                self.scope.error(
                    "P103", "this line has no effect in a kernel", statement, "store its value, or leave it out"
                )
                return ()
            case _:
                return self._refuse(statement)

    def _read_assign(self, statement: cst.Assign) -> Block:
        targets = [target.target for target in statement.targets]
        if isinstance(targets[0], cst.Tuple | cst.List):
            if len(targets) == 1:
                return self._read_unpacking(targets[0], statement)
            self.scope.error("P103", "assign to one tuple at a time", statement, "on a line for each")
            return ()
        done = [*self._assign(targets[0], self.expressions.read(statement.value), statement)]
        for target in targets[1:]:
            done += self._assign(target, self._reread(targets[0]), statement)
        return tuple(done)

    def _reread(self, target: cst.BaseExpression) -> Expr:
        return self.expressions.read(target)

    def _assign(
        self, target: cst.BaseExpression, value: Expr, statement: cst.CSTNode, augmented: bool = False
    ) -> Block:
        span = self._span(statement)
        match target:
            case cst.Name(value=name):
                return (Assign(name, value, span, augmented=augmented),) if self._is_local(target) else ()
            case cst.Subscript(value=cst.Name(value=name)) if name in self.scope.arrays:
                indices = self.expressions.read_indices(target, name)
                return (Store(name, indices, value, span, augmented=augmented),) if indices is not None else ()
            case cst.Subscript():
                self.expressions.read(target)
            case _:
                self.scope.error(
                    "P103", "kernels assign to names and array elements", target, "`v = …` or `out[i] = …`"
                )
        return ()

    def _is_local(self, target: cst.Name) -> bool:
        """True where `target` may be bound here; False, and a diagnostic, where it is a parameter that may not."""
        name = target.value
        if name in self.scope.arrays or name in self.scope.launch:
            self.scope.error("P203", f"the parameter `{name}` cannot be assigned to", target, "use another name")
        elif name in self.scope.indices:
            self.scope.error("P203", f"the element index `{name}` cannot be assigned to", target, "use another name")
        else:
            return True
        return False

    def _read_augmented(self, statement: cst.AugAssign) -> Block:
        operator = _AUGMENTED.get(type(statement.operator))
        if operator is None:
            self.scope.error("P103", "this operator is not supported", statement, "multiply elements in a loop")
            return ()
        match statement.target:
            case cst.Name(value=name) if name in self.scope.values:
                left: Expr = Name(name, self._span(statement.target))
            case cst.Subscript():
                left = self.expressions.read(statement.target)
                if not isinstance(left, Load):
                    return ()
            case target:
                return self._assign(target, self.expressions.read(statement.value), statement)
        value = Binary(operator, left, self.expressions.read(statement.value), self._span(statement))
        return self._assign(statement.target, value, statement, augmented=True)

    def _read_unpacking(self, target: cst.Tuple | cst.List, statement: cst.Assign) -> Block:
        """`h, w = x.shape` and `a, b = b, a`: the right side is read whole before anything is assigned."""
        starred = [element for element in target.elements if is_starred(element)]
        for element in starred:
            self.scope.error("P103", "`*` has no meaning in a kernel", element, "write a name for each value")
        names = [element.value for element in target.elements]
        values = None if starred else self._unpacked(statement.value, len(names))
        if values is None:
            return ()
        saved, values = self._save_overwritten(names, values, self._span(statement))
        done = [*saved]
        for name, value in zip(names, values, strict=True):
            done += self._assign(name, value, statement)
        return tuple(done)

    def _save_overwritten(
        self, names: list[cst.BaseExpression], values: list[Expr], span: Span
    ) -> tuple[list[Stmt], list[Expr]]:
        """Values that an earlier target of the same line overwrites are taken into locals first."""
        saved: list[Stmt] = []
        kept: list[Expr] = []
        assigned: set[str] = set()
        for name, value in zip(names, values, strict=True):
            reads = {*names_in(value), *(node.array for node in walk(value) if isinstance(node, Load))}
            if reads & assigned:
                temporary = self._fresh(f"new_{name.value}" if isinstance(name, cst.Name) else "new_value", saved)
                saved.append(Assign(temporary, value, span))
                value = Name(temporary, span)
            kept.append(value)
            base = name.value if isinstance(name, cst.Subscript) else name
            assigned.add(base.value if isinstance(base, cst.Name) else "")
        return saved, kept

    def _fresh(self, name: str, saved: list[Stmt]) -> str:
        taken = self.scope.values | {stmt.name for stmt in saved if isinstance(stmt, Assign)}
        numbered = (f"{name}{number}" for number in itertools.count(2))
        return next(n for n in itertools.chain([name], numbered) if n not in taken)

    def _unpacked(self, value: cst.BaseExpression, count: int) -> list[Expr] | None:
        match value:
            case cst.Tuple(elements=elements) | cst.List(elements=elements) if not any(map(is_starred, elements)):
                values = [self.expressions.read(element.value) for element in elements]
            case cst.Attribute(value=cst.Name(value=name), attr=cst.Name(value="shape")) if name in self.scope.arrays:
                rank = len(self.scope.arrays[name].dims)
                values = [Extent(name, axis, self._span(value)) for axis in range(rank)]
            case _:
                self.scope.error("P103", "only a tuple or `.shape` can be unpacked", value, "assign one by one")
                return None
        if len(values) != count:
            self.scope.error("P103", f"{len(values)} values for {count} names", value, "as many names as values")
            return None
        return values

    # --- blocks ---

    def _read_if(self, statement: cst.If, above: tuple[str, ...], chained: bool = False) -> If:
        test, body = self.expressions.read(statement.test), self.read_suite(statement.body)
        trivia = Trivia(above, _head_comment(statement.body))
        orelse: Block = ()
        match statement.orelse:
            case cst.If() as branch:
                orelse = (self._read_if(branch, _above(branch.leading_lines), chained=True),)
            case cst.Else() as branch:
                orelse = self.read_suite(branch.body)
                lead = tuple(line for line in (*_above(branch.leading_lines), _head_comment(branch.body)) if line)
                if lead and orelse:
                    first = orelse[0]
                    orelse = (
                        replace(first, trivia=replace(first.trivia, above=lead + first.trivia.above)),
                        *orelse[1:],
                    )
        return If(test, body, orelse, self._span(statement.test), trivia, chained)

    def _read_for(self, statement: cst.For) -> Block:
        self._refuse_else(statement.orelse)
        if statement.asynchronous is not None:
            return self._refuse(statement)
        bounds = self._read_range(statement.iter)
        body = self.read_suite(statement.body)
        if not isinstance(statement.target, cst.Name):
            self.scope.error("P104", "a loop counts in one name", statement.target, "`for k in range(n):`")
            return ()
        if not self._is_local(statement.target) or bounds is None:
            return ()
        trivia = Trivia(_above(statement.leading_lines), _head_comment(statement.body))
        start, stop, step = bounds
        span = self._span(statement.iter)
        return (For(statement.target.value, start, stop, step, body, span, trivia),)

    def _read_range(self, node: cst.BaseExpression) -> tuple[Expr, Expr, Expr] | None:
        match node:
            case cst.Call(func=func, args=args) if (
                self.scope.environment.qualify(func) == "builtins.range"
                and 1 <= len(args) <= 3
                and not any(arg.keyword or arg.star for arg in args)
            ):
                values = [self.expressions.read(arg.value) for arg in args]
                span = self._span(node)
                start, stop = (Constant(0, span), values[0]) if len(values) == 1 else (values[0], values[1])
                step = values[2] if len(values) == 3 else Constant(1, span)
                if isinstance(step, Constant) and step.value == 0:
                    self.scope.error(
                        "P104", "the step of `range` must not be zero", node, "count up by 1 or more, or down"
                    )
                return start, stop, step
        self.scope.error("P104", "a kernel's `for` runs over `range(…)`", node, "index the array: `for i in range(n)`")
        return None

    def _refuse_else(self, orelse: cst.Else | None) -> None:
        if orelse is not None:
            self.scope.error("P103", "`else` after a loop is not supported yet", orelse, "note in a local how it ended")

    def _refuse(self, statement: cst.CSTNode) -> Block:
        word = _WORDS.get(type(statement), "this statement")
        hint = _INSTEAD.get(type(statement), "leave it out, or do it outside the kernel")
        self.scope.error("P103", f"{word} has no meaning in a kernel", statement, hint)
        return ()

    def _span(self, node: cst.CSTNode) -> Span:
        return self.scope.span_of(node)


_AUGMENTED: Final[dict[type[cst.BaseAugOp], str]] = {
    getattr(cst, f"{operator.__name__}Assign"): text for operator, text in BINARY.items()
}  # fmt: skip


def _comment(line: cst.EmptyLine) -> str:
    return _clean(line.comment.value) if line.comment else ""


def _above(lines: Sequence[cst.EmptyLine]) -> tuple[str, ...]:
    return tuple(_comment(line) for line in lines)


def _beside(trailing: cst.TrailingWhitespace) -> str:
    return _clean(trailing.comment.value) if trailing.comment else ""


def _head_comment(suite: cst.BaseSuite) -> str:
    return _beside(suite.header) if isinstance(suite, cst.IndentedBlock) else ""


def _clean(comment: str) -> str:
    return comment.removeprefix("#").strip()
