"""Decides tests of dtypes, so that each instance of a generic kernel has only the branches for its own dtypes.

    if x.dtype == torch.bfloat16:
        out[i] = nearest(x[i])               →        out[i] = x[i]              in the instance for float32
    else:
        out[i] = x[i]

A statement behind a branch that returns is dropped with the other branch. `infer_types` decides the tests of a device
function, for every combination of argument types.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from py2cu import ir
from py2cu.analysis.account import elided_calls, elided_in
from py2cu.diagnostics import Reporter
from py2cu.dtypes import DType, Kind
from py2cu.ir.rewrite import map_blocks, map_expressions, rebuild, with_fields
from py2cu.ir.visit import all_expressions, falls_through, walk


def decide_dtypes(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """The kernel without tests of dtypes."""
    tests = [node for node in all_expressions(kernel.body) if isinstance(node, ir.IsDtype)]
    if not tests:
        return kernel
    decider = _Decider(kernel)
    body = decider.block(kernel.body)
    of_floats = (test for test in tests if decider.dtype(test.array).kind >= Kind.FLOAT)
    texts = dict.fromkeys((test.span.line, reporter.file.quote(test.span)) for test in of_floats)
    return with_fields(kernel, body=body, elided=(*kernel.elided, *decider.elided), dtype_tests=tuple(texts))


@dataclass(slots=True)
class _Decider:
    kernel: ir.Kernel
    elided: list[ir.Elided] = field(default_factory=list)

    def block(self, block: ir.Block) -> ir.Block:
        done: list[ir.Stmt] = []
        for place, stmt in enumerate(block):
            done += self.statement(stmt)
            if not falls_through(tuple(done)):  # rule: dtype-returns
                self.elided += elided_in(block[place + 1 :], ir.Elision.DTYPE)
                break
        return tuple(done)

    def statement(self, stmt: ir.Stmt) -> ir.Block:
        stmt = map_expressions(stmt, lambda expr: rebuild(expr, self.expression))
        match stmt:
            case ir.If(test=ir.Constant(value=bool(value)), body=body, orelse=orelse):
                chosen, other = (body, orelse) if value else (orelse, body)
                self.elided += (ir.Elided(stmt.span, ir.Elision.DTYPE), *elided_in(other, ir.Elision.DTYPE))
                trivia = stmt.trivia if value else ir.Trivia(above=stmt.trivia.above)  # beside: about the branch
                comments = (ir.Comment(stmt.span, trivia),) if trivia != ir.BARE else ()
                return (*comments, *self.block(chosen))
            case _:
                return (map_blocks(stmt, self.block),)

    def expression(self, expr: ir.Expr) -> ir.Expr:
        """`expr`, whose operands are decided, without what its constant operands decide."""
        match expr:
            case ir.IsDtype(array=array, dtype=dtype, span=span):
                return ir.Constant(self.dtype(array).plain is dtype, span)
            case ir.Unary(op="not", operand=ir.Constant(value=bool(value)), span=span):
                return ir.Constant(not value, span)
            case ir.BoolOp(op=op, left=ir.Constant(value=bool(value)) as left, right=right):
                return self.chosen(right, left) if value is (op == "and") else self.chosen(left, right)
            case ir.Select(test=ir.Constant(value=bool(value)), then=then, orelse=orelse):
                return self.chosen(then, orelse) if value else self.chosen(orelse, then)
            case _:
                return expr

    def chosen(self, expr: ir.Expr, other: ir.Expr) -> ir.Expr:
        self.elided += elided_calls(walk(other), ir.Elision.DTYPE)
        return expr

    def dtype(self, array: str) -> DType:
        declared = self.kernel.array_decl(array)
        return self.kernel.array_type(declared.like if declared is not None and declared.like else array).dtype
