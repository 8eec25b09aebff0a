"""The names under which the source knows constants, and the expressions that define them.

    WIDE = TILE + 2 * RADIUS          NamedConstant("WIDE", 20, TILE + 2 * RADIUS)
    Config.FULL                       NamedConstant("Config_FULL", 4294967295, 0xFFFFFFFF)
    Config.ROWS, from TILE // 4       NamedConstant("Config_ROWS", 8, Config_TILE / 4)

In: an expression around a kernel, and its value. Out: the constant. Its definition has the digits of the source, or
arithmetic that C computes alike; else Python's `repr` of the value. A live value may differ from what the source says:
then the value counts.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import libcst as cst

from py2cu import ir
from py2cu.analysis.promotion import rounded
from py2cu.builtins import CONSTANTS
from py2cu.frontend.names.constants import Real, compute
from py2cu.frontend.names.environment import Environment
from py2cu.frontend.names.operators import SYMBOLS
from py2cu.frontend.names.syntax import dotted, flatten
from py2cu.ir.operators import OPERATORS, Family
from py2cu.source import Span

_DEPTH = 8  # of definitions in a definition; a deeper one is written as its value
_EXACT = 2**53  # all smaller integers are doubles

SpanOf = Callable[[cst.CSTNode], Span]
Members = Mapping[str, cst.Attribute]
"""What the names in the body of a class stand for: `TILE` for `Config.TILE`."""


def named_constant(
    node: cst.BaseExpression, value: Real, around: Environment, span_of: SpanOf, depth: int = _DEPTH
) -> ir.NamedConstant | None:
    """The constant that `node`, a name or a dotted name, reads; None for any other expression, and for `math.pi`.

    A parameter that a call fixes has another value in another call, so it is none.
    """
    name = dotted(node)
    is_written = name and not name.startswith(".") and name not in (*around.passed, "True", "False")
    if not is_written or around.qualify(node) in CONSTANTS:
        return None
    outside = replace(around, binders={})  # no local hides a name in a definition around the kernel
    source, members = _source(node, outside)
    computed = None if source is None else _definition(source, outside, span_of, depth, members)
    is_current = computed is not None and repr(computed[1]) == repr(value)
    definition = computed[0] if computed is not None and is_current else _digits(value, "")
    return ir.NamedConstant(name.replace(".", "_"), value, definition, _line(source, span_of))


def written_extent(
    node: cst.BaseExpression, value: int, around: Environment, span_of: SpanOf
) -> ir.NamedConstant | None:
    """A constant, or arithmetic with constants, as the extent `value` of an array; None for plain numbers."""
    definition = _definition(node, around, span_of, _DEPTH, {})
    match definition:
        case ir.Constant(named=ir.NamedConstant() as named), _:
            return named
        case ir.Binary() as computed, result if result == value and _has_name(computed):
            return ir.NamedConstant("", value, computed, 0)
        case _:
            return None


def _has_name(expr: ir.DimExpr) -> bool:
    if isinstance(expr, ir.Binary):
        return _has_name(expr.left) or _has_name(expr.right)
    return isinstance(expr, ir.Constant) and expr.named is not None


def _line(source: cst.BaseExpression | None, span_of: SpanOf) -> int:
    try:
        return 0 if source is None else span_of(source).line
    except KeyError:  # the source has no such expression: `RED` of `RED, GREEN = range(2)`
        return 0


def _source(node: cst.BaseExpression, around: Environment) -> tuple[cst.BaseExpression | None, Members]:
    """The expression that the source assigns to a name or an attribute of a class, None for anything else; and what
    the names that the class has bound before stand for.
    """
    members: dict[str, cst.Attribute] = {}
    match node:
        case cst.Name(value=name):
            return around.definition(name), members
        case cst.Attribute(value=owner, attr=cst.Name(value=attribute)) if (
            class_ := _class(owner, around)
        ) is not None:
            for statement in flatten(class_.body.body):
                match statement:
                    case (
                        cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))], value=value)
                        | cst.AnnAssign(target=cst.Name(value=name), value=value)
                    ):
                        if name == attribute:
                            return value, members
                        members[name] = cst.Attribute(owner, cst.Name(name))
            inherited = (_source(cst.Attribute(base.value, node.attr), around) for base in class_.bases)
            return next((found for found in inherited if found[0] is not None), (None, members))
    return None, members


def _class(node: cst.BaseExpression, around: Environment) -> cst.ClassDef | None:
    """The class of the file that `node` names; None for anything else."""
    match node:
        case cst.Name(value=name):
            return around.classes.get(name)
        case cst.Attribute(value=value, attr=cst.Name(value=name)) if (outer := _class(value, around)) is not None:
            inner = (each for each in outer.body.body if isinstance(each, cst.ClassDef) and each.name.value == name)
            return next(inner, None)
    return None


def _definition(
    node: cst.BaseExpression, around: Environment, span_of: SpanOf, depth: int, members: Members
) -> tuple[ir.DimExpr, Real] | None:
    """`node` as C computes it, and its value; None where C would compute otherwise."""
    match node:
        case cst.Name(value=name) if name in members:
            return _definition(members[name], around, span_of, depth, {})
        case cst.Integer(value=text):
            return _digits(int(text, 0), text), int(text, 0)
        case cst.Float(value=text):
            return _digits(float(text), text), float(text)
        case cst.UnaryOperation(operator=cst.Minus(), expression=cst.Integer() | cst.Float() as inner):
            digits = inner.evaluated_value
            return _digits(-digits, f"-{inner.value}"), -digits
        case cst.UnaryOperation(operator=cst.Minus(), expression=cst.Name() | cst.Attribute() as inner):
            match _definition(inner, around, span_of, depth, members):
                case ir.Constant(named=named), int() | float() as operand if not isinstance(operand, bool):
                    return replace(_digits(-operand, ""), named=named), -operand
            return None
        case cst.Name() | cst.Attribute() if depth:
            value = around.constant(node)
            if not isinstance(value, bool | int | float):
                return None
            named = named_constant(node, value, around, span_of, depth - 1)
            return replace(_digits(value, ""), named=named), value
        case cst.Call(args=[cst.Arg(value=argument)]) if (element := around.element(node)) is not None:
            dtype, real = element
            text = argument.value if isinstance(argument, cst.Integer | cst.Float) else ""
            type_ = ir.ElementType(dtype)
            return replace(_digits(real, text), type=type_), rounded(type_, real)
        case cst.BinaryOperation(left=left, operator=sign, right=right) if type(sign) in SYMBOLS:
            a, b = (_definition(side, around, span_of, depth, members) for side in (left, right))
            return None if a is None or b is None else _computed(SYMBOLS[type(sign)], *a, *b)
        case _:
            return None


def _computed(op: str, left: ir.DimExpr, a: Real, right: ir.DimExpr, b: Real) -> tuple[ir.DimExpr, Real] | None:
    """`left op right`; None where C's operator gives another result than Python's."""
    row, value = OPERATORS[op], compute(OPERATORS[op].compute, a, b)
    if isinstance(value, float) and op in ("+", "-", "*", "/") and not isinstance(a, bool) and not isinstance(b, bool):
        x, y = _as_float(left), _as_float(right)
        return None if x is None or y is None else (ir.Binary(row.c, x, y, type=ir.PY_FLOAT), value)
    is_signed = op in ("//", "%", "<<", ">>") and min(a, b) < 0
    if type(a) is not int or type(b) is not int or not isinstance(value, int) or not row.c or is_signed:
        return None
    if not -(2**63) <= min(a, b, value) <= max(a, b, value) < 2**63:
        return None
    width = max((ir.constant_width(each) for each in (a, b, value)), key=lambda type_: type_.width.rank)
    if row.family is Family.SHIFT and b >= (32 if width is ir.INT else 64):  # rule: constant-shift
        return None
    return ir.Binary(row.c, left, right, type=width), value


def _as_float(expr: ir.DimExpr) -> ir.DimExpr | None:
    """A float, or an integer that is converted to a double; None for arithmetic of integers."""
    match expr:
        case ir.Constant(value=int(value)):
            is_exact = abs(value) <= _EXACT
            return replace(expr, value=float(value), type=ir.PY_FLOAT) if is_exact else None
        case _:
            return expr if expr.type == ir.PY_FLOAT else None


def _digits(value: Real, text: str) -> ir.Constant:
    """A number with the digits of the source, if known."""
    match value:
        case bool():
            return ir.Constant(value, type=ir.PY_BOOL)
        case int():
            return ir.Constant(value, type=ir.constant_width(value), text=text)
        case _:
            return ir.Constant(value, type=ir.PY_FLOAT, text=text)
