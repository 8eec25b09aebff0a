"""Rewrites the bodies of loops that the threads of a block leave in different rounds.

    while test:                     while True:
        if a: break           →         each thread: if not goes_on: return; goes_on = test; …
        syncthreads()                   if no thread goes on: break
                                        each thread: if a: goes_on = False; return

`split_at_barriers` builds the loop on the right; this file renames its variable and replaces its exits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from py2cu import ir
from py2cu.ir.rewrite import map_blocks, rebuild_block
from py2cu.ir.substitution import renamed
from py2cu.ir.visit import blocks, statements
from py2cu.targets.cpu.inline_collectives import CannotSplit


def statements_of_loop(body: ir.Block) -> Iterator[ir.Stmt]:
    """The statements of a loop's body, except those of inner loops."""
    for stmt in body:
        yield stmt
        if not isinstance(stmt, ir.For | ir.While):
            for inner in blocks(stmt):
                yield from statements_of_loop(inner)


def replace_exits(body: ir.Block, replacements: Mapping[type[ir.Stmt], ir.Block]) -> ir.Block:
    """The body with each `break` and `continue` of this loop replaced by the statements in `replacements`."""
    done: list[ir.Stmt] = []
    for stmt in body:
        if type(stmt) in replacements:
            done += replacements[type(stmt)]
        elif isinstance(stmt, ir.For | ir.While):
            done.append(stmt)
        else:
            done.append(map_blocks(stmt, lambda inner: replace_exits(inner, replacements)))
    return tuple(done)


def has_next_round(var: ir.Name, stop: ir.Expr, step: ir.Expr, direction: int) -> ir.Expr:
    """The test for another round of a loop that counts with `var`."""
    up, down = ir.Compare("<", var, stop), ir.Compare(">", var, stop)
    if direction:
        return up if direction > 0 else down
    return ir.Select(ir.Compare(">", step, ir.Constant(0, type=step.type)), up, down, type=ir.PY_BOOL)


def with_variable(body: ir.Block, old: str, new: ir.Name) -> ir.Block:
    """The body with `new` in place of the loop's variable.

    Raises:
        CannotSplit: an inner loop has the same variable.
    """
    for stmt in statements(body):
        if isinstance(stmt, ir.For) and stmt.var == old:
            raise CannotSplit(f"two loops around a place where threads wait count with `{old}`", stmt.span)
    return rebuild_block(body, lambda expr: renamed(expr, {old: new.id}))
