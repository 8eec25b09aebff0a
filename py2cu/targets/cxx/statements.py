"""Emits IR statements as lines of C++: declarations, braces only around what needs them, the user's comments."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import PurePath
from typing import Final, assert_never

from py2cu import ir
from py2cu.analysis.effects import YIELD, is_grid_barrier
from py2cu.dtypes import DType
from py2cu.ir.abi.parameters import Role
from py2cu.ir.complex_numbers import is_complex_constructor
from py2cu.ir.visit import walk
from py2cu.targets.cxx.c_types import HALVES, UNSIGNED_INDEX, arithmetic_type, common_type
from py2cu.targets.cxx.calls import CallEmitter
from py2cu.targets.cxx.cxx_text import PRECEDENCE, PRIMARY, TERNARY, CxxText
from py2cu.targets.cxx.lines import Line, comment_lines, comment_text
from py2cu.targets.cxx.literals import array_literal, is_constant_expression, is_one, string_literal
from py2cu.targets.cxx.wrap_lines import wrap_line

_INDENT: Final = "    "


class Emitter(CallEmitter):
    """Emits the body of one kernel."""

    def body(self) -> Iterator[Line]:
        """The kernel's body."""
        yield from self.block(self.kernel.body)

    def block(self, block: ir.Block, depth: int = 1) -> Iterator[Line]:
        """The statements of a block, indented; blank lines between them survive, those at its start do not."""
        first = True
        for stmt in block:
            for line in self.statement(stmt, depth):
                if first and not line.text:
                    continue
                first = False
                yield line

    def statement(self, stmt: ir.Stmt, depth: int) -> Iterator[Line]:
        pad = _INDENT * depth
        yield from comment_lines(stmt.trivia, pad)
        if isinstance(stmt, ir.For) and stmt.unroll is not None:
            yield from self.unrolling(stmt.unroll, Line(pad, stmt.span.line))
        comment = f"// {comment_text(stmt.trivia.beside)}" if stmt.trivia.beside else ""
        is_first = True
        for line in self.spell_statement(stmt, depth):
            first, *rest = wrap_line(line.code)  # rule: comment-kept
            beside = f"  {comment}" if comment and is_first else ""
            yield Line(first, line.origin or stmt.span.line, line.comment + beside)
            for code in rest:
                yield Line(code, line.origin or stmt.span.line)
            is_first = False
        if comment and is_first:
            yield Line(pad, comment=comment)

    def spell_statement(self, stmt: ir.Stmt, depth: int) -> Iterator[Line]:
        pad = _INDENT * depth
        match stmt:
            case ir.Assign():
                yield Line(f"{pad}{self.assignment(stmt)}")
            case ir.DeclareLocal(name=name, type=type_):
                yield Line(f"{pad}{self.type_text(type_)} {self.name(name)};")
            case ir.StructuredBinding(names=names, value=value, is_const=is_const):
                declared = f"{'const ' if is_const else ''}auto [{', '.join(map(self.name, names))}]"
                yield Line(f"{pad}{declared} = {self.expr(value).text};")
            case ir.Store():
                yield Line(f"{pad}{self.row_access(stmt) or self.store(stmt)}")
            case ir.Alloc(array=array, values=values) if values is not None:
                yield Line(f"{pad}{self.declaration(array)} = {self.filled(array, values)};")
            case ir.Alloc(array=array, start=start):
                for declared in self.reservation(array, start):
                    yield Line(f"{pad}{declared};")
            case ir.Sync() if is_grid_barrier(stmt):
                self.record_header("grid_barrier")
                yield Line(f"{pad}{self.dialect.grid_barrier};")
            case ir.Sync(function=function) if function == YIELD:
                yield Line(f"{pad}FiberScheduler::{YIELD}();")
            case ir.Sync() if self.dialect.fence:
                self.record_header("fence")
                yield Line(f"{pad}{self.dialect.fence};")
            case ir.Sync(function=function, args=args):
                yield Line(f"{pad}__{function}({', '.join(map(self.mask, args))});")
            case ir.If():
                yield from self.conditional(stmt, depth)
            case ir.For():
                yield from self.controlled(f"{pad}{self.loop_head(stmt)}", stmt.body, depth)
            case ir.While():
                yield from self.controlled(f"{pad}{self.while_head(stmt)}", stmt.body, depth)
            case ir.Return(value=ir.Tuple(items=items)) if isinstance(self.kernel.result, ir.TupleType):
                yield Line(f"{pad}return {self.braced(items, self.kernel.result.items)};")
            case ir.Return(value=value) if value is not None:
                assert self.kernel.result is not None
                yield Line(f"{pad}return {self.assigned(value, self.c_type(self.kernel.result)).text};")
            case ir.ExprStmt(call=call):
                yield Line(f"{pad}{self.expr(call).text};")
            case ir.Break() | ir.Continue() | ir.Return():
                yield Line(f"{pad}{type(stmt).__name__.lower()};")
            case ir.Print():
                yield Line(f"{pad}{self.function('printf')}({self.format_arguments(stmt.texts, stmt)});")
            case ir.Assert():
                yield from (Line(f"{pad}{part};") for part in self.assertion(stmt))
            case ir.EachPack() | ir.EachThread():
                raise AssertionError(f"only one target emits {stmt}")
            case ir.Delete() | ir.Comment():
                return
            case _:
                assert_never(stmt)

    def store(self, stmt: ir.Store) -> str:
        """`out[i] = v;`, `x4[i] = {a, b, c, d};`, `__stcs(&out[i], v);`."""
        type_, place = self.kernel.array_type(stmt.array), self.element(stmt.array, stmt.indices)
        if accessor := self.accessor(stmt):
            return f"{accessor}(&{place}, {self.stored(stmt.value, type_.element)});"
        if isinstance(stmt.value, ir.Tuple) or isinstance(stmt.value.type, ir.TupleType):
            return f"{place} = {self.stored(stmt.value, type_.element)};"
        return self.assign(place, ir.Load(stmt.array, stmt.indices), stmt.value, type_.dtype.c, stmt.augmented)

    def assertion(self, stmt: ir.Assert) -> Iterator[str]:
        """C's `assert`, a macro, behind a `printf` of a message with values; or a call that throws the line and the
        message.
        """
        message = "".join(stmt.message)
        if self.dialect.throws:
            yield self.throwing(stmt, message)
            return
        if stmt.values:
            texts = (*stmt.message[:-1], f"{stmt.message[-1]}\n")  # rule: assert-newline
            yield f"{self.function('printf')}({self.format_arguments(texts, stmt)})"
            message = " ".join(stmt.text.split())
        tested = self.expr(stmt.test)
        condition = self.junction("and", tested, string_literal(message)).text if message else tested.text
        calls = [node for node in walk(stmt.test) if isinstance(node, ir.DeviceCall)]
        has_bare_comma = any(len(self.callees[call.function].template) > 1 for call in calls)  # it splits the argument
        # rule: assert-comma
        yield f"{self.function('assert')}{f'(({condition}))' if has_bare_comma else f'({condition})'}"

    def throwing(self, stmt: ir.Assert, message: str) -> str:
        """A call of `assert_that` or, for a message with values, of `fail_assert`."""
        origin = self.kernel.origin
        place = f"{f'{PurePath(origin.file.name).name}, ' if origin else ''}line {stmt.span.line}"
        line = string_literal(place).text
        if stmt.values:
            return f"fail_assert({line}, {self.format_arguments(stmt.message, stmt)})"
        text = (message or " ".join(stmt.text.split())).replace("\0", "\\0")  # a NUL ends a C string
        return f"assert_that({self.expr(stmt.test).text}, {line}, {string_literal(text).text})"

    def filled(self, name: str, values: tuple[ir.Expr, ...]) -> str:
        """`{{a, b}, {c, d}}`: the elements of an array."""
        type_ = self.kernel.array_type(name)
        shape = [int(extent.value) for extent in type_.dims if isinstance(extent, ir.Constant)]
        return array_literal(self.items(values, (type_.element,) * len(values)), shape) if values else "{}"

    def reservation(self, name: str, start: ir.Expr | None) -> Iterator[str]:
        """The declarations of a kernel-local array, or of a pointer into another array."""
        decl = self.kernel.array_decl(name)
        assert decl is not None, name
        element = self.type_text(decl.type.element)
        if decl.vector_width:
            parameter = self.kernel.parameter(decl.base)
            const = "const " if parameter is not None and parameter.role is Role.INPUT else ""
            rows = f"reinterpret_cast<{const}{self.row_text(name)}*>({self.name(decl.base)})"
            yield f"{const}auto* {self.name(name)} = {rows}"
        elif start is not None:
            place = self.name(decl.base)
            is_cast = decl.space is ir.Space.SHARED and self.kernel.array_type(decl.base).dtype != decl.type.dtype
            if is_cast and not decl.is_dynamic:  # it counts in its own elements
                place = f"reinterpret_cast<{element}*>({place})"
            if start != ir.Constant(0, type=start.type):
                place = f"{place} + {self.expr(start).within(PRECEDENCE['+'] + 1)}"
            if is_cast and decl.is_dynamic:
                place = f"reinterpret_cast<{element}*>({place})"
            yield f"{element}* {self.name(name)} = {place}"
        elif decl.is_extern:
            yield f"extern __shared__ {element} {self.name(name)}[]"
        elif decl.is_dynamic:
            yield f"extern __shared__ __align__(16) unsigned char {self.name(name)}_bytes[]"
            yield f"{element}* {self.name(name)} = reinterpret_cast<{element}*>({self.name(name)}_bytes)"
        elif decl.is_constructed:
            extents = self.extents(decl)
            yield f"__shared__ __align__(16) unsigned char {self.name(name)}_bytes[sizeof({element}{extents})]"
            yield f"auto& {self.name(name)} = reinterpret_cast<{element}(&){extents}>({self.name(name)}_bytes)"
        elif decl.space is ir.Space.SHARED:
            yield f"__shared__ {self.declaration(name)}"
        else:
            yield self.declaration(name)

    def assignment(self, stmt: ir.Assign) -> str:
        match stmt.value:
            case ir.Constant(named=ir.NamedConstant(name=stmt.name, dtype=DType() as dtype)):  # the length of rows
                element = self.type_text(ir.ElementType(dtype))
                return f"constexpr int {self.name(stmt.name)} = {ir.ROW_BYTES} / sizeof({element});"
        if isinstance(stmt.declares, ir.TupleType):
            return f"const auto {self.name(stmt.name)} = {self.expr(stmt.value).text};"
        if stmt.declares is not None:
            c_type = self.c_type(stmt.declares)
            if is_complex_constructor(stmt.value) and stmt.value.type == stmt.declares:
                return f"auto {self.name(stmt.name)} = {self.expr(stmt.value).text};"
            return f"{self.type_text(stmt.declares)} {self.name(stmt.name)} = {self.assigned(stmt.value, c_type).text};"
        target = self.locals.get(stmt.name) or self.parameter_type(stmt.name)
        c_type = self.c_type(target)
        return self.assign(self.name(stmt.name), ir.Name(stmt.name), stmt.value, c_type, stmt.augmented)

    def parameter_type(self, name: str) -> ir.Type:
        declared = self.kernel.parameter(name)
        assert declared is not None, name
        return declared.type

    def assign(self, target: str, place: ir.Expr, value: ir.Expr, c_type: str, augmented: bool) -> str:
        """`target = value;`, or `target op= operand;` if the user wrote that and C computes the same."""
        inner = ir.unconverted(value)
        if augmented and isinstance(inner, ir.Binary):
            left = inner.left.value if isinstance(inner.left, ir.Convert) else inner.left
            if _same_place(left, place):
                right = self.operand(inner.right, self.c_type(inner.type))
                computed = common_type(c_type, right.c_type)
                # `op=` of a half, which is a class, first converts its operand to a half.
                keeps_precision = c_type not in HALVES or computed == c_type  # rule: half-assigned
                if keeps_precision and computed == arithmetic_type(self.c_type(inner.type)):
                    is_increment = not isinstance(inner.type, ir.ElementType) and is_one(ir.unconverted(inner.right))
                    if is_increment and inner.op in "+-":
                        return f"{inner.op * 2}{target};"
                    return f"{target} {inner.op}= {right.text};"
        return f"{target} = {self.assigned(value, c_type).text};"

    def format_arguments(self, texts: tuple[str, ...], stmt: ir.Print | ir.Assert) -> str:
        """`"i = %d, x = %g", i, x`: what `printf` takes. The C type of a value decides its length modifier."""
        text, values = texts[0].replace("%", "%%"), []
        for value, field, after in zip(stmt.values, stmt.fields, texts[1:], strict=True):
            spelled, letter = self.expr(value), field.letter
            if letter == "s":
                spelled = CxxText(f'{spelled.within(TERNARY + 1)} ? "True" : "False"', TERNARY, "const char*")
            elif letter in ("d", "x", "X", "o") and spelled.c_type in ("index_t", UNSIGNED_INDEX, "int64_t"):
                spelled = CxxText(f"static_cast<long long>({spelled.text})", PRIMARY, "long long")
                letter = f"ll{letter}"
            elif letter in ("d", "x", "X", "o") and spelled.c_type == "uint64_t":
                spelled = CxxText(f"static_cast<unsigned long long>({spelled.text})", PRIMARY, "unsigned long long")
                letter = f"ll{letter.replace('d', 'u')}"  # rule: print-long
            elif letter == "d" and spelled.c_type in ("unsigned", "uint32_t"):  # rule: print-unsigned
                letter = "u"
            text += f"%{field.layout}{letter}{after.replace('%', '%%')}"
            values.append(spelled.text)
        return ", ".join([string_literal(text).text, *values])

    def conditional(self, stmt: ir.If, depth: int) -> Iterator[Line]:
        """An `if` with its `elif` chain and `else`: braces around all branches or none."""
        pad = _INDENT * depth
        braces = any(self.needs_braces(body) for body in _branches(stmt)) or _has_comments(stmt)
        # Where a branch leaves, compilers would warn that what follows is never reached.
        may_discard = not any(
            isinstance(last, ir.Return | ir.Break | ir.Continue) for body in _branches(stmt) for last in body[-1:]
        )
        lines = [*self.controlled(f"{pad}{self.if_head(stmt, may_discard)}", stmt.body, depth, braces, not stmt.orelse)]
        rest = stmt.orelse
        while rest:
            head = f"{pad}else"
            if braces:
                lines.pop()
                head = f"{pad}}} else"
            body = rest
            comments: tuple[str, ...] = ()
            match rest:
                case (ir.If(chained=True) as branch,):
                    head += f" {self.if_head(branch, may_discard)}"
                    body, rest = branch.body, branch.orelse
                    comments = tuple(text for text in (*branch.trivia.above, branch.trivia.beside) if text)
                case _:
                    rest = ()
            lines += self.controlled(head, body, depth, braces, inline=False, preface=comments)
        yield from lines

    def if_head(self, stmt: ir.If, may_discard: bool) -> str:
        """`if constexpr` where template arguments alone decide, and branches may be discarded."""
        is_known = may_discard and is_constant_expression(stmt.test, self.kernel.template_values)
        return f"if {'constexpr ' if is_known else ''}({self.expr(stmt.test).text})"

    def controlled(
        self,
        head: str,
        body: ir.Block,
        depth: int,
        braces: bool | None = None,
        inline: bool = True,
        preface: tuple[str, ...] = (),
    ) -> Iterator[Line]:
        """A head and the block that it controls: braces unless the block is one short statement."""
        if braces is None:
            braces = self.needs_braces(body)
        inner = [*comment_lines(ir.Trivia(above=preface), _INDENT * (depth + 1)), *self.block(body, depth + 1)]
        if braces:
            yield Line(f"{head} {{")
            yield from (line for place, line in enumerate(inner) if place or line.text)
            yield Line(f"{_INDENT * depth}}}")
        elif inline and len(inner) == 1 and isinstance(body[0], ir.Return | ir.Break | ir.Continue):
            yield Line(f"{head} {inner[0].code.strip()}", inner[0].origin, inner[0].comment)
        else:
            yield Line(head)
            yield from inner

    def needs_braces(self, body: ir.Block) -> bool:
        if len(body) != 1 or any(body[0].trivia.above):
            return True
        if isinstance(body[0], ir.Assert) and body[0].values and not self.dialect.throws:  # rule: assert-throws
            return True
        return isinstance(
            body[0], ir.If | ir.For | ir.While | ir.Delete | ir.Comment | ir.DeclareLocal | ir.StructuredBinding
        ) or (isinstance(body[0], ir.Assign) and body[0].declares is not None)

    def unrolling(self, by: int, line: Line) -> Iterator[Line]:
        """`#pragma unroll 4`, which stands above a loop."""
        if by or self.dialect.unrolls_wholly:  # rule: unroll-whole
            yield Line(f"{line.code}{self.dialect.unroll}{f' {by}' if by else ''}", line.origin)

    def loop_head(self, loop: ir.For) -> str:
        """`for (int k = 0; k < n; ++k)`."""
        var, c_type = self.name(loop.var), self.named(self.c_type(loop.type))
        start = self.assigned(loop.start, c_type).text
        stop, step = self.expr(loop.stop).within(11), loop.step
        match step:
            case ir.Constant(value=1) if self.by_name(step, c_type) is None:
                test, advance = f"{var} < {stop}", f"++{var}"
            case ir.Constant(value=-1) if self.by_name(step, c_type) is None:
                test, advance = f"{var} > {stop}", f"--{var}"
            case ir.Constant(value=value):
                test = f"{var} < {stop}" if value > 0 else f"{var} > {stop}"
                number = self.by_name(step, c_type)
                text = str(value) if number is None else number.text
                advance = f"{var} -= {text[1:]}" if text.startswith("-") else f"{var} += {text}"
            case _:
                text = self.expr(step).within(11)
                either = f"{text} > 0 ? {var} < {stop} : {var} > {stop}"
                test = {1: f"{var} < {stop}", -1: f"{var} > {stop}", 0: either}[loop.direction]
                advance = f"{var} += {self.expr(step).text}"
        return f"for ({c_type} {var} = {start}; {test}; {advance})"

    def while_head(self, loop: ir.While) -> str:
        """`while (low < high)`, `for (int half = 64; half > 0; half /= 2)`."""
        test = self.expr(loop.test).text
        assignments = [self.assignment(each) for each in (*loop.start, *loop.advance) if isinstance(each, ir.Assign)]
        if not assignments:
            return f"while ({test})"
        start, advance = assignments
        return f"for ({start} {test}; {advance.removesuffix(';')})"


def _branches(stmt: ir.If) -> Iterator[ir.Block]:
    """The blocks of an `if` and its `elif` chain, which all get braces if one of them does."""
    chain = _chain(stmt)
    yield from (branch.body for branch in chain)
    if chain[-1].orelse:
        yield chain[-1].orelse


def _has_comments(stmt: ir.If) -> bool:
    _, *chained = _chain(stmt)
    return any(any(branch.trivia.above) or bool(branch.trivia.beside) for branch in chained)


def _chain(stmt: ir.If) -> list[ir.If]:
    """An `if` and each `elif` behind it."""
    chain = [stmt]
    while True:
        match chain[-1].orelse:
            case (ir.If(chained=True) as branch,):
                chain.append(branch)
            case _:
                return chain


def _same_place(left: ir.Expr, place: ir.Expr) -> bool:
    match left, place:
        case ir.Name(id=a), ir.Name(id=b):
            return a == b
        case ir.Load(array=a, indices=i), ir.Load(array=b, indices=j):
            return a == b and i == j
        case _:
            return False
