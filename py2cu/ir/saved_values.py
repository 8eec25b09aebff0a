"""Locals that a pass adds: each is assigned an operand before the statement, which then reads the local."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from py2cu import ir
from py2cu.ir.names import free_name


@dataclass(slots=True)
class SavedValues:
    """The locals added to one function, whose own names are `taken`; `before` waits for the current statement."""

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
        """The assignments that wait, and `stmt` behind them; the comments above it stay above all."""
        if not self.before:
            return (stmt,)
        (first, *rest), self.before = self.before, []
        first = replace(first, trivia=ir.Trivia(above=stmt.trivia.above))
        return (first, *rest, replace(stmt, trivia=replace(stmt.trivia, above=())))
