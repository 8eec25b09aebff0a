"""Named lambdas → functions: Python gives both the same meaning.

    square = lambda v: v * v        →        def square(v): return v * v

In: a parsed file and its positions. Out: the same tree, with a `def` in the place of each line that only gives a lambda
its name. The `def` has the position of the line, and its `return` that of the lambda. Other lambdas stay.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from py2cu.frontend.source.positions import Positions

_AROUND = (cst.BaseCompoundStatement, cst.BaseSuite, cst.Else, cst.Finally, cst.ExceptHandler, cst.MatchCase)


def name_lambdas(tree: cst.Module, positions: Positions) -> None:
    """Replace each line of `tree` that only names a lambda, in place: positions are found by identity."""
    for block in _blocks(tree) if positions.has_lambdas else ():
        body = tuple(_as_function(statement, positions) for statement in block.body)
        object.__setattr__(block, "body", body)  # rule: lambda-body


def is_lambda(function: cst.FunctionDef, positions: Positions) -> bool:
    """True for a function that the source writes as a lambda: no `def` stands before its name."""
    start, name = positions.span(function), positions.span(function.name)
    return (start.line, start.column) == (name.line, name.column)


def lambda_line(function: cst.FunctionDef, positions: Positions) -> int:
    """The line on which the lambda of `function` starts, as in its code object."""
    return positions.span(function.body.body[0]).line  # rule: lambda-line


def _blocks(node: cst.CSTNode) -> Iterator[cst.Module | cst.IndentedBlock]:
    """The indented blocks of a tree and the tree itself, innermost first."""
    for child in node.children:
        if isinstance(child, _AROUND):
            yield from _blocks(child)
    if isinstance(node, cst.Module | cst.IndentedBlock):
        yield node


def _as_function(line: cst.BaseStatement, positions: Positions) -> cst.BaseStatement:
    """The `def` that `line` means; `line` itself if it does anything else than to name a lambda."""
    match line:
        case cst.SimpleStatementLine(
            body=[
                (
                    cst.Assign(targets=[cst.AssignTarget(cst.Name() as name)], value=cst.Lambda() as value)
                    | cst.AnnAssign(target=cst.Name() as name, value=cst.Lambda() as value)
                ) as statement
            ],
            leading_lines=leading,
            trailing_whitespace=trailing,
        ):
            result = cst.Return(value.body)
            body = cst.SimpleStatementSuite([result], trailing_whitespace=trailing)
            function = cst.FunctionDef(name, value.params, body, leading_lines=leading)
            positions.add(function, statement)
            positions.add(result, value)
            if value in positions.named:
                positions.named[function] = positions.named[value]
            return function
        case _:
            return line
