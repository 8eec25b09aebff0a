"""Walks over LibCST trees: the statements of one scope, and the names that nodes assign to or read.

In: LibCST nodes, as the parser made them. Out: nodes and names in the order of the text. Names are not
resolved.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import libcst as cst

Statement = cst.BaseStatement | cst.BaseSmallStatement
_OF_BLOCKS = frozenset([cst.If, cst.For, cst.While, cst.Try, cst.TryStar, cst.With, cst.Else, cst.Finally, cst.Match])
WITHOUT_NAMES = frozenset([cst.Integer, cst.Float, cst.SimpleString, cst.SimpleWhitespace, cst.Comma])


def flatten(body: Iterable[Statement]) -> Iterator[Statement]:
    """The statements of one scope, nested ones too, but not those in functions and classes."""
    for statement in body:
        if isinstance(statement, cst.SimpleStatementLine):
            yield from statement.body
        else:
            yield statement
            for suite in suites(statement):
                yield from flatten(suite)


def suites(statement: cst.CSTNode) -> Iterator[Sequence[Statement]]:
    """The blocks of a statement in its own scope: not those of functions and classes."""
    if statement.__class__ not in _OF_BLOCKS:  # runs for every statement: LibCST's classes are slow to tell apart
        return
    match statement:
        case cst.If() | cst.For() | cst.While() | cst.Try() | cst.TryStar() | cst.With() | cst.Else() | cst.Finally():
            yield statement.body.body
        case cst.Match(cases=cases):
            yield from (case.body.body for case in cases)
    match statement:
        case cst.Try() | cst.TryStar():
            yield from (handler.body.body for handler in statement.handlers)
            if statement.finalbody is not None:
                yield from suites(statement.finalbody)
    match statement:
        case cst.If() | cst.For() | cst.While() | cst.Try() | cst.TryStar():
            if statement.orelse is not None:
                yield from suites(statement.orelse)


def inner_suites(statement: cst.CSTNode) -> Iterator[cst.BaseSuite]:
    """The blocks inside a statement, those of its handlers and cases included; none of functions and classes."""
    if not isinstance(statement, cst.FunctionDef | cst.ClassDef):
        for child in statement.children:
            if isinstance(child, cst.BaseSuite):
                yield child
            else:
                yield from inner_suites(child)


def bound_by_blocks(statement: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The parts of a statement that bind names for its blocks: `as f`, and patterns."""
    for node in nodes_in(statement):
        match node:
            case cst.AsName(name=name):
                yield name
            case cst.MatchCase(pattern=pattern):
                yield pattern


def dotted(node: cst.BaseExpression) -> str:
    """`a.b.c` as text."""
    match node:
        case cst.Attribute(value=value, attr=cst.Name(value=attr)):
            return f"{dotted(value)}.{attr}"
        case cst.Name(value=name):
            return name
        case _:
            return ""


def source_text(node: cst.CSTNode) -> str:
    """The source text of `node`."""
    return cst.Module([]).code_for_node(node)


def is_named(node: cst.CSTNode, name: str) -> bool:
    return isinstance(node, cst.Name) and node.value == name


def nodes_in(node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """`node` and all below it, in the order of the text."""
    yield node
    for child in node.children:
        yield from nodes_in(child)


def named_in(node: cst.CSTNode) -> tuple[cst.NamedExpr, ...]:
    """The `:=` in `node`."""
    return tuple(each for each in nodes_in(node) if isinstance(each, cst.NamedExpr))


def conjuncts(node: cst.BaseExpression) -> tuple[cst.BaseExpression, ...]:
    """The operands of `a and b and c`; `node` itself where it is something else."""
    match node:
        case cst.BooleanOperation(left=left, operator=cst.And(), right=right):
            return (*conjuncts(left), *conjuncts(right))
        case _:
            return (node,)


def name_nodes(node: cst.CSTNode) -> Iterator[cst.Name]:
    """The names that an expression reads."""
    if isinstance(node, cst.Name):
        yield node
        return
    if node.__class__ in WITHOUT_NAMES:  # runs for every node, like `suites` for every statement
        return
    match node:
        case cst.Attribute(value=value) | cst.Arg(value=value):
            yield from name_nodes(value)
        case cst.Tuple(elements=elements) | cst.List(elements=elements):
            for element in elements:
                yield from name_nodes(element.value)
        case _:
            for child in node.children:
                yield from name_nodes(child)


def assigned_names(body: Iterable[Statement]) -> Iterator[str]:
    """Every name that the statements of `body` assign to, loop variables included."""
    for statement in flatten(body):
        match statement:
            case cst.Assign(targets=targets):
                for target in targets:
                    yield from _target_names(target.target)
            case cst.AugAssign(target=target) | cst.AnnAssign(target=target) | cst.For(target=target):
                yield from _target_names(target)


def _target_names(target: cst.BaseExpression) -> Iterator[str]:
    match target:
        case cst.Name(value=name):
            yield name
        case cst.Tuple(elements=elements) | cst.List(elements=elements):
            for element in elements:
                yield from _target_names(element.value)


def all_parameters(function: cst.FunctionDef) -> tuple[cst.Param, ...]:
    """Every plain parameter of `function`, in order."""
    params = function.params
    return (*params.posonly_params, *params.params, *params.kwonly_params)


def display_elements(node: cst.CSTNode) -> Sequence[cst.BaseElement]:
    """What stands between the brackets of a tuple, a list or a set; nothing for other nodes."""
    return node.elements if isinstance(node, cst.Tuple | cst.List | cst.Set) else ()


def is_starred(element: cst.BaseElement) -> bool:
    return isinstance(element, cst.StarredElement)


def has_tuple(node: cst.BaseExpression) -> bool:
    """True for a tuple, and for a conditional expression that may be one."""
    match node:
        case cst.IfExp(body=body, orelse=orelse):
            return has_tuple(body) or has_tuple(orelse)
        case _:
            return isinstance(node, cst.Tuple)
