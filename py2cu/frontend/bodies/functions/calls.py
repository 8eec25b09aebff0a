"""Calls of device functions → IR: their arguments, and the variables that nested functions read around them.

In: a LibCST call in a scope. Out: an `ir.DeviceCall`; None, after a diagnostic, if the call does not fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import libcst as cst

from py2cu import ir
from py2cu.analysis.effects import commute
from py2cu.frontend.bodies.functions.interface import ArgumentKind, ClosureCapture
from py2cu.frontend.bodies.lists.uses import refuses_arguments
from py2cu.frontend.bodies.parts import read_part
from py2cu.frontend.bodies.scope import Scope
from py2cu.frontend.bodies.tables import Read
from py2cu.frontend.bodies.tuples.forms import numbers_of
from py2cu.frontend.bodies.tuples.values import open_tuple
from py2cu.frontend.bodies.views import ArrayArgument
from py2cu.frontend.declarations.arguments import Argument
from py2cu.frontend.names.closures import free_variables, reached_functions
from py2cu.frontend.names.syntax import all_parameters
from py2cu.frontend.source.imports import DeviceFunction


@dataclass(frozen=True, slots=True)
class FunctionCallReader:
    """Reads calls of device functions in one kernel's scope, and their arguments by `read`."""

    scope: Scope
    read: Read

    def is_invoke(self, node: cst.Call) -> bool:
        """True for a call of a device function."""
        return not self.scope.is_local(node.func) and self.scope.functions.named(node.func) is not None

    def read_invoke(self, node: cst.Call) -> ir.DeviceCall | None:
        """A call of a device function: arrays are passed as pointers, everything else by value."""
        function = self.scope.functions.named(node.func)
        assert function is not None
        values = self.scope.functions.arguments(node, function)
        if values is None:
            return None
        for value in values:
            if isinstance(value, cst.Name) and self.scope.is_row_view(value.value):
                what = f"`{value.value}` is a view in rows; device functions cannot take it"
                hint = f"pass `{self.scope.base_array(value.value)}`, or an element that was loaded"
                self.scope.error("P410", what, value, hint)
                return None
        if refuses_arguments(node, values, self.scope):
            return None
        if (fixed := self.scope.functions.with_fixed(function, values)) is None:
            return None
        function, values = fixed
        captured = self._capture(function, node)
        if captured is None:
            return None
        arguments = self._read_arguments(node, values)
        kinds, args = [kind for kind, _ in arguments], [number for _, numbers in arguments for number in numbers]
        key = self.scope.functions.key(node, function, kinds, captured)
        if key is None:
            return None
        span = self.scope.span_of(node)
        around = tuple(ir.ArrayName(name, span, array) for name, array in captured.arrays.items())
        values_around = (self.scope.variable(name, span) for name in captured.values)
        free = (number for value in values_around for number in numbers_of(value))
        return ir.DeviceCall(key, (*around, *args, *free), span)

    def _read_arguments(self, call: cst.Call, values: Sequence[Argument]) -> list[tuple[ArgumentKind, list[ir.Expr]]]:
        """The kind and the C++ arguments of each parameter, read in the order of the text, as Python computes them."""
        texts = [arg.value for arg in call.args]
        places = [next((at for at, text in enumerate(texts) if text is value), -1) for value in values]
        in_text = sorted(range(len(values)), key=places.__getitem__)
        read = {at: self._read_argument(values[at]) for at in in_text}
        for first, then in combinations(in_text, 2):
            one, other = (self.scope.footprint((), *read[at][1]) for at in (first, then))
            if first > then and not commute(one, other):
                what = "Python computes these arguments in the order of the text, and one may change another"
                self.scope.error("P409", what, call, "pass them in the order of the parameters")
                break
        return [read[at] for at in range(len(values))]

    def _read_argument(self, argument: Argument) -> tuple[ArgumentKind, list[ir.Expr]]:
        """The kind of an argument, and the arguments that it is in C++: an array and numbers, or each number of a
        tuple.
        """
        if not isinstance(argument, cst.BaseExpression):
            return None, [argument]
        if (part := read_part(argument, self.scope, self.read)) is not None:
            array = self.scope.arrays[part.array]
            name = ir.ArrayName(part.array, self.scope.span_of(argument), array)
            return ArrayArgument.of(part, array), [name, *part.numbers]
        value = open_tuple(self.read(argument), argument, self.scope)
        return self.scope.form(value), [*numbers_of(value)]

    def _capture(self, function: DeviceFunction, call: cst.Call) -> ClosureCapture | None:
        """The free variables that `call` passes to a nested function; None, and a diagnostic, where it cannot.

        A closure reads a variable when it runs, so every call passes the variable's value at the call.
        """
        names: list[str] = []
        reached = reached_functions(function.node, function.environment)
        for node, home in reached:
            if home is self.scope.environment and self.scope.span_of(node) > self.scope.span_of(call):  # rule: late-def
                what = f"`{node.name.value}` may be called here before it is defined"
                self.scope.error("P204", what, call, "define it first")
                return None
        for name, binder in free_variables(reached):
            if self.scope.environment.binders[name] is not binder:  # rule: closure-binder
                called = function.node.name.value
                what = f"`{called}` reads `{name}` of its enclosing function, and here `{name}` is another variable"
                self.scope.error("P105", what, call, "rename one of the two")
                return None
            if self.scope.views.is_view(name):
                what = f"`{name}` is part of an array, which a nested function cannot read from around it"
                params = [each.name.value for each in all_parameters(function.node)] + [name]
                hint = f"pass it as an argument: `def {function.node.name.value}({', '.join(params)})`"
                self.scope.error("P105", what, call, hint)
                return None
            if name in self.scope.ranges:
                what = f"`{name}` is a range, which a nested function cannot read from around it"
                self.scope.error("P105", what, call, "pass its bounds as arguments")
                return None
            if self.scope.is_row_view(name):
                what = f"`{name}` is a view in rows; device functions cannot take it"
                hint = f"let the function read `{self.scope.base_array(name)}`, or an element that was loaded"
                self.scope.error("P410", what, call, hint)
                return None
            names.append(name)
        return self.scope.captured(names)
