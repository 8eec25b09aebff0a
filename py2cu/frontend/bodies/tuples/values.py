"""Tuples as operands: opened into their numbers, displayed, chosen and indexed.

In: expressions in a scope that are tuples. Out: `ir.Tuple`s of numbers and of such tuples. What Python computes once
and the IR would repeat goes into a local before the statement.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import libcst as cst

from py2cu import ir
from py2cu.builtins.casts import INDEX
from py2cu.frontend.bodies.hoisting import Operand
from py2cu.frontend.bodies.scope import Scope
from py2cu.frontend.bodies.tables import Read
from py2cu.frontend.bodies.tuples.forms import describe_form, numbers_of, shape
from py2cu.ir.operators import OPERATORS
from py2cu.ir.visit import is_duplicable, walk
from py2cu.source import Span


def open_tuple(value: ir.Expr, node: cst.BaseExpression, scope: Scope) -> ir.Expr:
    """The numbers of a tuple; a call and a row of a view go into a local. Numbers stay as they are."""
    form = scope.form(value)
    if form is None or isinstance(value, ir.Tuple):
        return value
    if not isinstance(value, ir.Name):
        value = scope.save(value, "result")
    return replace(scope.variable(value.id, value.span), span=value.span)


def read_display(node: cst.CSTNode, elements: Sequence[cst.BaseElement], scope: Scope, read: Read) -> ir.Tuple:
    """`(a, f(b), *c)`; a starred item is a tuple itself."""
    hoisted, at, items = scope.hoisted, len(scope.hoisted.operands), list[ir.Expr]()
    operands = [
        hoisted.hold(open_tuple(read(element.value), element.value, scope), at + place)
        for place, element in enumerate(elements)
    ]
    for element, operand in zip(elements, operands, strict=True):
        if not isinstance(element, cst.StarredElement):
            items.append(operand.value)
        elif isinstance(operand.value, ir.Tuple):
            items += operand.value.items
        else:
            scope.error("P103", "`*` takes a tuple of known length here", element, "write its items one by one")
    value = ir.Tuple(tuple(items), scope.span_of(node))
    hoisted.operands[at:] = [Operand(value)]
    return value


def settle(value: ir.Expr, scope: Scope) -> ir.Expr:
    """`value`, which was read last, as a tuple whose items may be dropped and repeated.

    Locals hold the numbers whose computation acts, and those that Python computes before and these may change.
    """
    if not isinstance(value, ir.Tuple):
        return value
    numbers, block = [*numbers_of(value)], list[ir.Stmt]()
    for place in scope.to_save(numbers, lambda number: scope.footprint((), number).acts):
        block.append(scope.assign(name := scope.fresh("value"), numbers[place], numbers[place].span))
        numbers[place] = ir.Name(name, numbers[place].span)
    if not block:
        return value
    scope.hoisted.operands.pop()
    scope.hoist(tuple(block), value.span)
    value = replace(shape(scope.form(value), numbers.__getitem__), span=value.span)
    scope.hoisted.operands.append(Operand(value))
    return value


def choose(test: ir.Expr, then: ir.Expr, orelse: ir.Expr, node: cst.IfExp, scope: Scope) -> ir.Expr:
    """`then if test else orelse`, of tuples number by number."""
    span = scope.span_of(node)
    forms = scope.form(then), scope.form(orelse)
    if forms == (None, None):
        return ir.Select(test, then, orelse, span)
    if forms[0] != forms[1]:
        what = f"this is {describe_form(forms[0])} or {describe_form(forms[1])}"
        scope.error("P312", what, node, "as many values in both")
        return then
    if any(isinstance(part, ir.DeviceCall | ir.Atomic) for value in (then, orelse) for part in walk(value)):
        return _choose_by_branch(test, then, orelse, node, scope)
    if not is_duplicable(test) and not scope.hoisted.barrier:
        test = scope.save(test, "chosen")
    pairs = zip(numbers_of(open_tuple(then, node, scope)), numbers_of(open_tuple(orelse, node, scope)), strict=True)
    numbers = [ir.Select(test, one, other, span) for one, other in pairs]
    return replace(shape(forms[0], numbers.__getitem__), span=span)


def _choose_by_branch(test: ir.Expr, then: ir.Expr, orelse: ir.Expr, node: cst.IfExp, scope: Scope) -> ir.Expr:
    """Of tuples that calls compute: a local, which an `if` before the statement assigns."""
    name, span = scope.fresh("chosen"), scope.span_of(node)
    body, other = ((scope.assign(name, value, span),) for value in (then, orelse))
    scope.hoist((ir.If(test, body, other, span),), span)
    return ir.Name(name, span)


def read_item(node: cst.Subscript, base: ir.Expr, scope: Scope, read: Read) -> ir.Expr:
    """`t[0]`, `t[1:]`, and `t[k]` of the counter of a loop that stays in the tuple."""
    form, span = scope.form(base), scope.span_of(node)
    assert form is not None
    match [element.slice for element in node.slice]:
        case [cst.Index(value=value, star=None)]:
            constant = None if scope.is_local(value) else scope.environment.constant(value)
            at = ir.Constant(constant, span) if isinstance(constant, int) else read(value)
            if isinstance(at, ir.Constant) and isinstance(at.value, int):
                return _item(base, int(at.value), node, scope)
            return _item_at(base, at, node, scope)
        case [cst.Slice() as part] if (bounds := scope.constant_bounds(part)) is not None:
            opened = open_tuple(base, node.value, scope)
            assert isinstance(opened, ir.Tuple)
            return ir.Tuple(opened.items[bounds], span)
    scope.error("P401", "a tuple takes one index, or a slice with constant bounds", node, "`t[0]`, `t[1:]`")
    return ir.Constant(0, span)


def _item(base: ir.Expr, at: int, node: cst.Subscript, scope: Scope) -> ir.Expr:
    form, span = scope.form(base), scope.span_of(node)
    assert form is not None
    if all(item is None for item in form) and not isinstance(base, ir.Tuple):
        return ir.TupleItem(base, at, span)  # type inference checks that there is such an item
    if not -len(form) <= at < len(form):
        what = f"{describe_form(form)} has no item {at}"
        scope.error("P312", what, node, f"its items are 0 to {len(form) - 1}" if form else "it is empty")
        return ir.Constant(0, span)
    opened = open_tuple(base, node.value, scope)
    assert isinstance(opened, ir.Tuple)
    return replace(opened.items[at], span=span)


def _item_at(base: ir.Expr, at: ir.Expr, node: cst.Subscript, scope: Scope) -> ir.Expr:
    """The item at the counter of a loop; each round selects one."""
    form, span = scope.form(base), scope.span_of(node)
    assert form is not None
    bounds = _bounds(at, scope)
    if bounds is None or not 0 <= bounds[0] <= bounds[1] < len(form):
        what = f"the index of {describe_form(form)} may be outside of it: loops with constant bounds count within"
        hint = f"`for k in range({len(form)})`, or loop over the tuple"
        scope.error("P401", what, node, hint)
        return ir.Constant(0, span)
    if len(set(form)) > 1:
        scope.error("P312", "the items of this tuple have different forms", node, "index it by constants")
        return ir.Constant(0, span)
    opened = open_tuple(base, node.value, scope)
    assert isinstance(opened, ir.Tuple)
    return select(opened.items, at, scope)


def _bounds(index: ir.Expr, scope: Scope) -> tuple[int, int] | None:
    """The least and the greatest value of an index that is computed from counters; None where one is unknown."""
    match index:
        case ir.Constant(value=int(value)):
            return value, value
        case ir.Call(function=function, args=(value,)) if function == INDEX:
            return _bounds(value, scope)
        case ir.Name(id=name) if rounds := scope.counters.get(name):
            first, last = rounds[0], rounds[-1]
            return min(first, last), max(first, last)  # rule: counter-bounds
        case ir.Binary(op="%", left=left, right=ir.Constant(value=int(divisor))) if divisor > 0:
            is_whole = isinstance(left, ir.LaunchIndex) or (isinstance(left, ir.Name) and left.id in scope.indices)
            return (0, divisor - 1) if is_whole or _bounds(left, scope) is not None else None
        case ir.Binary(op="+" | "-" | "*" as op, left=left, right=right):
            a, b = _bounds(left, scope), _bounds(right, scope)
            if a is None or b is None:
                return None
            results = [OPERATORS[op].compute(one, other) for one in a for other in b]
            return int(min(results)), int(max(results))
        case _:
            return None


def select(items: Sequence[ir.Expr], at: ir.Expr, scope: Scope) -> ir.Expr:
    """The item that `at` selects of values of one form; of tuples, number by number."""
    columns: Iterator[tuple[ir.Expr, ...]] = zip(*map(numbers_of, items), strict=True)
    chosen = [select_number(column, at, at.span) for column in columns]
    return replace(shape(scope.form(items[0]), chosen.__getitem__), span=at.span)


def select_number(numbers: tuple[ir.Expr, ...], at: ir.Expr, span: Span) -> ir.Expr:
    """`a if at == 0 else b if at == 1 else c`."""
    *firsts, value = numbers
    for place in reversed(range(len(firsts))):
        is_here = ir.Compare("==", at, ir.Constant(place, span, ir.PY_INT), span)
        value = ir.Select(is_here, firsts[place], value, span)
    return value
