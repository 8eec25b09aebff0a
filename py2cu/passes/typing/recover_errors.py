"""Reports the type errors of a kernel with syntax errors: those that do not depend on rejected code.

    y = unknown(x[i])          P105, and no further error about `y`
    out[i] = y & 1.5
    out[i] = x[i] & 1.5        P307 in the same run

The front end puts a number in place of rejected code, so the types of such a statement are unreliable, and so are all
values that depend on the names that it assigns. Other errors are reported.
"""

from __future__ import annotations

from collections.abc import Iterator

from py2cu import ir
from py2cu.diagnostics import Reporter
from py2cu.ir.visit import expressions, names_in, statements, walk
from py2cu.passes.typing.infer_types import infer_types


def recover_type_errors(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """Report to `reporter` the type errors that do not depend on rejected code; the kernel is unchanged.

    Nothing is reported if a parameter was rejected, or for a generic kernel: an error may concern one instance only.
    """
    rejected_lines = {item.span.line for item in reporter.errors if item.file == reporter.file}
    lines = _lines_of_body(kernel.body)
    inside = {line for function in kernel.functions for line in _lines_of_body(function.body)}
    is_in_body = bool(lines) and all(min(lines) <= line <= max(lines) or line in inside for line in rejected_lines)
    if kernel.variables or not is_in_body:
        return kernel
    trial = Reporter(reporter.file, used=reporter.used)
    infer_types(kernel, trial)
    has_wrong_function = any(item.file != reporter.file for item in reporter.errors) or bool(inside & rejected_lines)
    dependent = _dependent_lines(kernel.body, rejected_lines, has_wrong_function)
    independent = (item for item in trial.errors if item.file == reporter.file and item.span.line in lines - dependent)
    reporter.diagnostics.update(dict.fromkeys(independent))
    return kernel


def _dependent_lines(body: ir.Block, rejected_lines: set[int], has_wrong_function: bool) -> set[int]:
    """The lines of the statements that depend on rejected code: all calls, if a function was rejected."""
    lines, names = set(rejected_lines), set[str]()
    if has_wrong_function:
        exprs = (expr for stmt in statements(body) for expr in expressions(stmt))
        lines |= {node.span.line for expr in exprs for node in walk(expr) if isinstance(node, ir.DeviceCall)}
    while True:
        before = len(lines) + len(names)
        for stmt in statements(body):
            read = {name for expr in expressions(stmt) for name in names_in(expr)}
            if not lines.isdisjoint(_lines(stmt)) or not names.isdisjoint(read):
                lines |= set(_lines(stmt))
                if isinstance(stmt, ir.Assign | ir.For):
                    names.add(stmt.name if isinstance(stmt, ir.Assign) else stmt.var)
        if len(lines) + len(names) == before:
            return lines


def _lines_of_body(body: ir.Block) -> set[int]:
    return {line for stmt in statements(body) for line in _lines(stmt)}


def _lines(stmt: ir.Stmt) -> Iterator[int]:
    """The lines of a statement's own expressions."""
    for expr in expressions(stmt):
        for node in walk(expr):
            yield from _lines_of_node(node)


def _lines_of_node(node: ir.Expr) -> range:
    return range(node.span.line, node.span.end_line + 1)
