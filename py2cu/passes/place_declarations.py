"""Python's locals belong to the function, C's to a block: each is declared where it is first assigned, if every use
lies in that block, else before the statement that first needs it.

    if c: r = 1                float r;
    else: r = 2         →      if (c) r = 1; else r = 2;
    out[i] = r                 out[i] = r;
"""

from __future__ import annotations

from dataclasses import replace

from py2cu.diagnostics import Reporter
from py2cu.ir.statements import Assign, Block, Declare, Kernel, Stmt, Trivia
from py2cu.ir.types import ScalarType
from py2cu.ir.visit import blocks, expressions, names_in, statements


def place_declarations(kernel: Kernel, reporter: Reporter) -> Kernel:
    """The kernel with every local declared once, as deep as C allows."""
    body = kernel.body
    assigned = {stmt.name for stmt in statements(body) if isinstance(stmt, Assign)}
    for name, type_ in kernel.locals:
        if name not in assigned:
            continue  # a loop's own variable: `for (int i = …` declares it
        body = _declare(body, name, type_)
    return replace(kernel, body=body)


def _declare(block: Block, name: str, type_: ScalarType) -> Block:
    users = [place for place, stmt in enumerate(block) if _mentions(stmt, name)]
    if not users:
        return block
    first = block[users[0]]
    if len(users) == 1 and (inner := _only_block(first, name)) is not None:
        # Everything happens in one nested block: declare it there.
        return (*block[: users[0]], _in_block(first, inner, name, type_), *block[users[0] + 1 :])
    if isinstance(first, Assign) and first.name == name:
        declared: tuple[Stmt, ...] = (replace(first, declares=type_),)
    else:
        lead = Declare(name, type_, first.span, Trivia(above=first.trivia.above))
        declared = (lead, replace(first, trivia=replace(first.trivia, above=())))
    return (*block[: users[0]], *declared, *block[users[0] + 1 :])


def _mentions(stmt: Stmt, name: str) -> bool:
    return any(_itself_mentions(inner, name) for inner in statements((stmt,)))


def _itself_mentions(stmt: Stmt, name: str) -> bool:
    if isinstance(stmt, Assign) and stmt.name == name:
        return True
    return any(name in names_in(expr) for expr in expressions(stmt))


def _only_block(stmt: Stmt, name: str) -> int | None:
    """Which nested block of `stmt` holds every mention of `name`; None where there is no such one."""
    if _itself_mentions(stmt, name):
        return None
    holders = [place for place, block in enumerate(blocks(stmt)) if any(_mentions(inner, name) for inner in block)]
    return holders[0] if len(holders) == 1 else None


def _in_block(stmt: Stmt, place: int, name: str, type_: ScalarType) -> Stmt:
    field = ("body", "orelse")[place]
    return replace(stmt, **{field: _declare(blocks(stmt)[place], name, type_)})  # type: ignore[arg-type]
