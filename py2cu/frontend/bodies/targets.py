"""Targets of assignments: names of numbers, names of parts of arrays, and elements.

In: a target and the value that it takes. Out: `Assign`, `Store`, or for a part of an array a name in the scope.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import libcst as cst

from py2cu import ir
from py2cu.frontend.bodies.expressions import ExpressionReader
from py2cu.frontend.bodies.parts import is_array, is_indexed, is_list_part, is_part
from py2cu.frontend.bodies.scope import Scope
from py2cu.frontend.bodies.tuples.row_stores import store_part
from py2cu.frontend.bodies.views import View
from py2cu.frontend.names.syntax import is_named, nodes_in
from py2cu.ir.visit import walk


@dataclass(frozen=True, slots=True)
class TargetReader:
    """Reads targets in one scope."""

    scope: Scope
    expressions: ExpressionReader

    def assign(
        self, target: cst.BaseExpression, value: ir.Expr | View, statement: cst.CSTNode, augmented: bool = False
    ) -> ir.Block:
        span = self.scope.span_of(statement)
        match target:
            case cst.Name() if isinstance(value, View):
                return self._define_view(target, value)
            case cst.Subscript() if is_part(target, self.scope) and not is_list_part(target, self.scope):
                return store_part(target, value, self.scope, self.expressions.read)
            case _ if isinstance(value, View):
                what = "a part of an array is named, or stored into another one"
                self.scope.error("P103", what, target, "copy its elements in a loop")
            case cst.Name(value=name):
                return (self.scope.assign(name, value, span, augmented),) if self.scope.takes_number(target) else ()
            case cst.Subscript() if self.scope.form(value) is not None and is_part(target, self.scope):
                return store_part(target, value, self.scope, self.expressions.read)
            case cst.Subscript() if is_indexed(target, self.scope) or is_array(target.value, self.scope):
                loaded = self.expressions.read(target)
                if not isinstance(loaded, ir.Load):
                    return ()
                return (ir.Store(loaded.array, loaded.indices, value, self.scope.span_of(target), augmented=augmented),)
            case cst.Subscript(value=base) if self.scope.table(base) is not None:
                self.scope.error("P203", "a tuple of constants cannot be changed", target, "use an array parameter")
            case cst.Subscript():
                self.refuse(target)
            case _:
                self.scope.error(
                    "P103", "kernels assign to names and array elements", target, "`v = …` or `out[i] = …`"
                )
        return ()

    def _define_view(self, target: cst.Name, view: View) -> ir.Block:
        """`row = x[i]`: a name from here to the end of the block, which has no code.

        The IR keeps the place of a part of an array that may be None: Python refuses it there, not where it is used.
        """
        name = target.value
        if not self.scope.is_assignable(target):
            return ()
        if (known := self.scope.views.named_list(name)) is not None:
            if known == view:  # `v = v`
                self.scope.elide(target, ir.Elision.VIEW)
                return ()
            what = f"`{name}` is a list, and would be a second name for another one"
            other = self.scope.views.lists.get(view.array)
            is_flat = other is not None and self.scope.views.named_list(other) == view and view.rank == 1
            hint = f"copy it: `{name} = {other}.copy()`" if is_flat else "copy the elements in a loop"
            self.scope.error("P203", what, target, hint)
            return ()
        if (problem := self.scope.views.problem(name)) is not None:
            self.scope.error("P203", problem, target, "use another name")
            return ()
        self.scope.views.views[name] = view
        self.scope.elide(target, ir.Elision.VIEW)
        is_optional = self.scope.base_array(view.array) in self.scope.optional_parameters
        return (ir.Comment(self.scope.span_of(target), array=view.array),) if is_optional else ()

    def may_be_list(self, target: cst.Name, known: View | None) -> bool:
        """True if `target` may take a list, where it is the list `known` already or none; False after a diagnostic."""
        name, views = target.value, self.scope.views
        if not self.scope.is_assignable(target):
            return False
        if known is None and (problem := views.problem(name, "a list")) is not None:
            self.scope.error("P203", problem, target, "use another name")
            return False
        parts = [part for part, view in views.views.items() if known and view.array == known.array and part != name]
        if parts:
            what = f"`{parts[0]}` is part of the list that `{name}` is so far, and stays it in Python"
            self.scope.error("P203", what, target, "use another name for the new list")
        return not parts

    def refuse(self, target: cst.Subscript) -> None:
        """Refuse a target that is not an array element, unless reading it already reported an error."""
        before = len(self.scope.reporter.diagnostics)
        self.expressions.read(target)
        may_report = not any(is_named(node, name) for node in nodes_in(target) for name in self.scope.broken)
        if may_report and len(self.scope.reporter.diagnostics) == before:
            hint = "assign the whole name, or store the value in an array"
            self.scope.error("P401", "only elements of arrays can be assigned to", target, hint)

    def update(self, element: ir.Load, operator: str, statement: cst.AugAssign) -> ir.Block:
        """`x[i, f(i)] += v`: an index that calls something is computed once, and before `v`."""
        calls = any(isinstance(node, ir.DeviceCall) for index in element.indices for node in walk(index))
        saved: list[ir.Assign] = []

        def once(index: ir.Expr) -> ir.Expr:
            if not calls or isinstance(index, ir.Constant | ir.Name):  # rule: index-call-once
                return index
            saved.append(ir.Assign(self.scope.fresh("index"), index, index.span))
            return ir.Name(saved[-1].name, index.span)

        indices = tuple(map(once, element.indices))
        value = self.expressions.read(statement.value)
        value = ir.Binary(operator, replace(element, indices=indices), value, self.scope.span_of(statement))
        return (*saved, ir.Store(element.array, indices, value, self.scope.span_of(statement.target), augmented=True))
