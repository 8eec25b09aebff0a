"""Moves float arithmetic of the call's numbers, which has the same result for all threads, to the launcher.

    c = 1 - beta1**step                         launcher: c = 1 - beta1**step
    m[i] / c                              →     m[i] / c
    x[i] / math.sqrt(d)                   →     launcher: d_term = math.sqrt(d); x[i] / d_term

Numbers of the call, constants and extents take part, in doubles: Python's floats. Integers are only added, subtracted
and multiplied, since a division by zero ends a process. Moving is exact: nothing here has an effect, and what Python
raises for is computed as C does, as in a kernel.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from py2cu import ir
from py2cu.analysis.account import elided_in
from py2cu.diagnostics import Reporter
from py2cu.ir.abi.launch_values import GIVEN, OF_MATH, TO_DOUBLE, HostExpr, LaunchValue, Operation, parts
from py2cu.ir.names import free_name, names_in_scope
from py2cu.ir.rewrite import map_blocks, map_children, map_expressions, rebuild_statements, with_fields
from py2cu.ir.visit import all_expressions, assigned_names

_FUNCTIONS: Final = {f"math.{name}": name for name in OF_MATH} | {"builtins.abs": "fabs"}
_TERM: Final = re.compile(r"_term\d*$")
_EXACT: Final = ("+", "-", "*", "/", "sqrt", "fabs", TO_DOUBLE)  # all compilers fold these to the same constant


def compute_in_launcher(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """The kernel with such values as `launch_values`. Locals that hold one are no locals any more."""
    moving = _Moving(kernel)
    body = moving.block(kernel.body)
    if not moving.values:
        return kernel
    read, known = {*_names_read(kernel.body)}, None
    while body != known:  # a constant that is dropped may be all that reads another one
        known, body = body, rebuild_statements(body, moving.without(read - {*_names_read(body)}))
    locals_ = tuple((name, type_) for name, type_ in kernel.locals if name not in moving.moved)
    elided = kernel.elided + elided_in(tuple(moving.elided), ir.Elision.LAUNCHER)
    values = _needed(moving.values, body)
    return with_fields(kernel, body=body, locals=locals_, launch_values=values, elided=elided)


def _needed(values: Mapping[str, LaunchValue], body: ir.Block) -> tuple[LaunchValue, ...]:
    """The values that the body reads, and those from which these are computed."""
    needed = {*_names_read(body)}
    for value in reversed([*values.values()]):
        if value.name in needed:
            needed.update(value.names)
    return tuple(value for value in values.values() if value.name in needed)


def _names_read(body: ir.Block) -> Iterator[str]:
    return (node.id for node in all_expressions(body) if isinstance(node, ir.Name))


@dataclass(slots=True)
class _Moving:
    kernel: ir.Kernel
    values: dict[str, LaunchValue] = field(default_factory=dict)  # by name
    moved: set[str] = field(default_factory=set)  # locals that are launch values now
    elided: list[ir.Stmt] = field(default_factory=list)  # assignments to them
    floats: set[str] = field(default_factory=set)  # numbers of the call, by their kind
    integers: set[str] = field(default_factory=set)
    aliases: dict[str, HostExpr] = field(default_factory=dict)  # locals that are a number or a constant
    single: set[str] = field(default_factory=set)  # Python floats that one statement assigns
    taken: set[str] = field(default_factory=set)  # names of the kernel and of the constants that it reads
    _names: dict[str, str] = field(default_factory=dict)  # of the values, by the repr of what they compute

    def __post_init__(self) -> None:
        assigned = Counter(assigned_names(self.kernel.body))
        self.single.update(n for n, type_ in self.kernel.locals if type_ == ir.PY_FLOAT and assigned[n] == 1)
        for parameter in self.kernel.parameters:
            if parameter.name not in assigned:
                if parameter.type == ir.PY_FLOAT:
                    self.floats.add(parameter.name)
                elif parameter.type == ir.PY_INT:
                    self.integers.add(parameter.name)
        self.integers.update(name for name in self.kernel.dims if name not in assigned)
        numbers = (expr for expr in all_expressions(self.kernel.body) if isinstance(expr, ir.Constant))
        self.taken.update(names_in_scope(self.kernel), (each.named.name for each in numbers if each.named))

    # --- the body ---

    def block(self, block: ir.Block) -> ir.Block:
        return tuple(self._statements(block))

    def _statements(self, block: ir.Block) -> Iterator[ir.Stmt]:
        for place, stmt in enumerate(block):
            if isinstance(stmt, ir.Assign) and stmt.name in self.single:
                value = self.hosted(stmt.value)
                is_last = place == len(block) - 1 and block is not self.kernel.body  # C needs a statement there
                if value is not None and not _computes(value):
                    self.aliases[stmt.name] = value
                # rule: launcher-local
                elif value is not None and self.is_of_call(value) and not is_last:
                    self.values[stmt.name] = LaunchValue(stmt.name, value)
                    self.moved.add(stmt.name)
                    self.elided.append(stmt)
                    if stmt.trivia != ir.Trivia():
                        yield ir.Comment(stmt.span, stmt.trivia)
                    continue
            yield map_blocks(map_expressions(stmt, self.rewritten), self.block)

    def rewritten(self, expr: ir.Expr) -> ir.Expr:
        """`expr` with its greatest parts that the launcher can compute replaced by the names of values."""
        if expr.type == ir.PY_FLOAT:
            value = self.hosted(expr)
            if value is not None and _computes(value) and self.is_of_call(value):  # rule: launcher-value
                return ir.Name(self.named(value), expr.span, ir.PY_FLOAT)
        return map_children(expr, self.rewritten)

    def without(self, unread: set[str]) -> Callable[[ir.Stmt], ir.Block]:
        """A change of statements that drops those which assign a constant that only the launcher reads now."""

        def change(stmt: ir.Stmt) -> ir.Block:
            if not (isinstance(stmt, ir.Assign) and stmt.name in unread & self.aliases.keys()):
                return (stmt,)
            self.moved.add(stmt.name)
            self.elided.append(stmt)
            return (ir.Comment(stmt.span, stmt.trivia),)

        return change

    # --- values ---

    def named(self, value: HostExpr) -> str:
        """The name of a value: `<number>_term`, or with all its numbers where that is the name of another value."""
        key = repr(value)
        if key not in self._names:
            numbers = dict.fromkeys(_TERM.sub("", part.id) for part in parts(value) if isinstance(part, ir.Name))
            taken, name = self.taken | self.values.keys(), f"{next(iter(numbers))}_term"
            name = free_name(f"{'_'.join(numbers)}_term" if name in taken else name, taken)
            self.values[name] = LaunchValue(name, value)
            self._names[key] = name
        return self._names[key]

    def is_of_call(self, value: HostExpr) -> bool:
        """Whether the value depends on what a launcher learns from a call; compilers know template arguments."""
        return any(isinstance(part, ir.Name) and part.id not in self.kernel.constexprs for part in parts(value))

    def hosted(self, expr: ir.Expr) -> HostExpr | None:
        """A Python float as the launcher computes it; None if it does not."""
        if expr.type != ir.PY_FLOAT:
            return None
        match expr:
            case ir.Constant(value=value, text=text):
                number = ir.Constant(float(value), type=ir.PY_FLOAT, text=text, named=_named(expr))
                return number if math.isfinite(value) else None
            case ir.Name(id=name):
                return self.aliases.get(name) or (ir.Name(name) if name in self.floats or name in self.moved else None)
            case ir.Convert(value=value) if value.type == ir.PY_FLOAT:
                return self.hosted(value)
            case ir.Convert(value=value):
                integer = self.hosted_integer(value)
                return None if integer is None else Operation(TO_DOUBLE, (integer,))
            case ir.Unary(op="-" | "+" as op, operand=operand):
                inner = self.hosted(operand)
                return inner if inner is None or op == "+" else Operation("-", (inner,))
            case ir.Binary(op="**", left=left, right=right):
                return self.power(left, right)
            case ir.Binary(op="+" | "-" | "*" | "/" as op, left=left, right=right):
                return self.operation(op, left, right)
            case ir.Call(function=function, args=args) if function in _FUNCTIONS:
                return self.operation(_FUNCTIONS[function], *args)
            case ir.Select(test=ir.IsGiven(parameter=name), then=then, orelse=orelse):
                return self.given(name, then, orelse)
            case ir.Select(test=ir.Unary(op="not", operand=ir.IsGiven(parameter=name)), then=then, orelse=orelse):
                return self.given(name, orelse, then)
            case _:
                return None

    def hosted_integer(self, expr: ir.Expr) -> HostExpr | None:
        if expr.type != ir.PY_INT:
            return None
        match expr:
            case ir.Constant(value=value):
                return ir.Constant(int(value), type=ir.PY_INT, named=_named(expr))
            case ir.Name(id=name) if name in self.integers:
                return ir.Name(name)
            case ir.Binary(op="+" | "-" | "*" as op, left=left, right=right):  # rule: launcher-integers
                a, b = self.hosted_integer(left), self.hosted_integer(right)
                return None if a is None or b is None else Operation(f"integer {op}", (a, b))
            case _:
                return None

    def operation(self, function: str, *operands: ir.Expr) -> HostExpr | None:
        hosted = tuple(value for value in map(self.hosted, operands) if value is not None)
        if len(hosted) < len(operands):
            return None
        is_constant = all(isinstance(value, ir.Constant) for value in hosted)
        return None if is_constant and function not in _EXACT else Operation(function, hosted)

    def power(self, base: ir.Expr, exponent: ir.Expr) -> HostExpr | None:
        """A power that compilers do not replace by something that rounds otherwise than `pow`."""
        match exponent:
            case ir.Constant(value=2):  # rule: launcher-square
                factor = self.hosted(base)
                if factor is None or not any(isinstance(part, ir.Name) for part in parts(factor)):
                    return None
                factor = ir.Name(self.named(factor)) if _computes(factor) else factor
                return Operation("*", (factor, factor))
            case ir.Constant(value=-1):
                return self.operation("/", ir.Constant(1.0, type=ir.PY_FLOAT, text="1"), base)
            case _:
                return self.operation("pow", base, exponent)

    def given(self, name: str, then: ir.Expr, orelse: ir.Expr) -> HostExpr | None:
        a, b = self.hosted(then), self.hosted(orelse)
        is_number = name in self.floats or name in self.integers
        return Operation(GIVEN, (ir.Name(name), a, b)) if is_number and a is not None and b is not None else None


def _named(number: ir.Constant) -> ir.NamedConstant | None:
    """The constant of the module that a number is read from; None of one that C holds without a sign, or as a bool."""
    named = number.named
    is_signed = named is not None and not isinstance(named.value, bool) and named.value < 2**63
    return named if is_signed else None


def _computes(value: HostExpr) -> bool:
    """True for more than a number, a constant or the conversion of an integer: those cost a kernel nothing."""
    return isinstance(value, Operation) and value.function != TO_DOUBLE
