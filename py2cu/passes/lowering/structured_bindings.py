"""Unpacks the result of a device function with a structured binding, where its items become locals right after the
call.

const auto lo_hi = minmax(x[i], y[i]);
float lo = lo_hi.lo;                        →    const auto [lo, hi] = minmax(x[i], y[i]);
float hi = lo_hi.hi;
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from py2cu import ir
from py2cu.analysis.account import elided_in
from py2cu.diagnostics import Reporter
from py2cu.ir.rewrite import map_blocks, with_fields
from py2cu.ir.visit import all_expressions, statements


def make_structured_bindings(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """The kernel with such statements merged; unread items that stay unmerged, as in `_, hi = …`, get no local."""
    reads = Counter(node.id for node in all_expressions(kernel.body) if isinstance(node, ir.Name))
    assigned = [stmt for stmt in statements(kernel.body) if isinstance(stmt, ir.Assign)]
    computed = {stmt.name for stmt in assigned if not _is_item_of_local(stmt.value)}
    unread = frozenset(stmt.name for stmt in assigned if not reads[stmt.name]) - computed
    writes = Counter(stmt.name for stmt in assigned)
    binding = _Binding(reads, writes, unread)
    body = binding.block(kernel.body)
    return with_fields(kernel, body=body, elided=kernel.elided + elided_in(tuple(binding.dropped), ir.Elision.UNREAD))


@dataclass(frozen=True, slots=True)
class _Binding:
    reads: Counter[str]
    writes: Counter[str]
    unread: frozenset[str]
    dropped: list[ir.Stmt] = field(default_factory=list)

    def block(self, block: ir.Block) -> ir.Block:
        rewritten: list[ir.Stmt] = []
        waiting = [*block]
        while waiting:
            stmt = waiting.pop(0)
            bound = self.bound(stmt, waiting)
            if bound is not None:
                del waiting[: len(bound.names)]
            elif isinstance(stmt, ir.Assign | ir.DeclareLocal) and stmt.name in self.unread:
                self.dropped.append(stmt)
                continue
            rewritten.append(bound or map_blocks(self.without_result(stmt), self.block))
        return tuple(rewritten)

    def without_result(self, stmt: ir.Stmt) -> ir.Stmt:
        """A call alone in place of the declaration of a local that takes its result, if nothing reads the local."""
        match stmt:
            case ir.Assign(name=name, value=value, declares=declares) if declares and not self.reads[name]:
                call = value.value if isinstance(value, ir.TupleItem) else ir.unconverted(value)
                if isinstance(call, ir.DeviceCall) and self.writes[name] == 1:
                    self.dropped.append(with_fields(stmt, value=ir.Constant(0, stmt.span)))
                    return ir.ExprStmt(call, stmt.span, stmt.trivia)
                return stmt
            case _:
                return stmt

    def bound(self, stmt: ir.Stmt, following: list[ir.Stmt]) -> ir.StructuredBinding | None:
        """A call merged with the statements that follow, if they declare every item with its own type; else None."""
        match stmt:
            case ir.Assign(name=holder, value=value, declares=ir.TupleType(items=types)):
                declarations = following[: len(types)]
                names = {at: name for at in range(len(types)) for name in _declared_locals(declarations, holder, at)}
                if len(names) < len(types) or self.reads[holder] > len(types):
                    return None
                is_const = all(self.writes[name] == 1 for name in names.values())
                return ir.StructuredBinding(tuple(names.values()), value, is_const, stmt.span, stmt.trivia)
            case _:
                return None


def _declared_locals(following: list[ir.Stmt], holder: str, at: int) -> list[str]:
    """The locals that are declared as item `at` of `holder`."""
    return [
        stmt.name
        for stmt in following
        if isinstance(stmt, ir.Assign)
        and isinstance(stmt.value, ir.TupleItem)
        and isinstance(stmt.value.value, ir.Name)
        and (stmt.value.value.id, stmt.value.at) == (holder, at)
        and _is_same(stmt.declares, stmt.value.type)
        and stmt.trivia == ir.BARE
    ]


def _is_item_of_local(value: ir.Expr) -> bool:
    return isinstance(value, ir.TupleItem) and isinstance(value.value, ir.Name)


def _is_same(declared: ir.ValueType | None, type_: ir.Type) -> bool:
    """True for the same type, its width included."""
    if isinstance(declared, ir.PythonType) and isinstance(type_, ir.PythonType):
        return declared == type_ and declared.width is type_.width
    return declared == type_
