"""Temporaries: a pass evaluates an operand before its statement, and lets the statement read a local instead."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from py2cu import ir
from py2cu.ir.names import free_name


@dataclass(slots=True)
class SavedValues:
    """The temporaries of one function. `taken` are the names in its scope, `before` the pending assignments."""

    taken: set[str]
    locals: list[tuple[str, ir.ValueType]] = field(default_factory=list)  # with their types, in a typed kernel
    before: list[ir.Stmt] = field(default_factory=list)

    def save(self, value: ir.Expr, name: str = "value") -> ir.Name:
        """A new local, called `name` if that is free, that is assigned `value` before the current statement."""
        fresh = free_name(name, self.taken)
        self.taken.add(fresh)
        if isinstance(value.type, ir.ElementType | ir.PythonType):
            self.locals.append((fresh, value.type))
        self.before.append(ir.Assign(fresh, value, value.span))
        return ir.Name(fresh, value.span, value.type)

    def ahead_of(self, stmt: ir.Stmt) -> ir.Block:
        """The pending assignments, followed by `stmt`. The comments above `stmt` move above the first assignment."""
        if not self.before:
            return (stmt,)
        (first, *rest), self.before = self.before, []
        first = replace(first, trivia=ir.Trivia(above=stmt.trivia.above))
        return (first, *rest, replace(stmt, trivia=replace(stmt.trivia, above=())))
