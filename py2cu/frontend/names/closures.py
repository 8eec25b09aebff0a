"""What functions within functions read of those around them: variables in Python, further arguments in C++.

    def at(j):                              float at(const float* x, int j, float a)
        return a * x[j]          →              return a * x[j];
    out[i] = at(i)                          out[i] = at(x, i, a)

A closure reads a variable when it runs, so every call hands over what the name means there. In: the text of functions
and what names mean around them. Out: the environment in a function, and what a call has to hand over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain

import libcst as cst

from py2cu.frontend.names.bindings import flatten
from py2cu.frontend.names.environment import Environment, all_parameters
from py2cu.frontend.names.imports import DeviceFunction
from py2cu.frontend.scope import ClosureCapture, Scope, assigned_names

Placed = tuple[cst.FunctionDef, Environment]  # a function, and what names mean around it


def environment_in(function: cst.FunctionDef, around: Environment) -> Environment:
    """What names mean in the body of `function`: what it binds hides what is around it."""
    own = {node.name.value: node for node in function.body.body if isinstance(node, cst.FunctionDef)}
    bound = _bound_names(function)
    inside = replace(
        around,
        functions={**around.functions, **own} if own else around.functions,  # of thousands, none is copied for nothing
        binders={**around.binders, **dict.fromkeys(bound, function)},
    )
    outer = {name: home for name, home in around.homes.items() if name not in bound}
    inside.homes = {**outer, **dict.fromkeys(own, inside)}
    return inside


def capture(function: DeviceFunction, call: cst.Call, scope: Scope) -> ClosureCapture | None:
    """What `call` hands over to a function within others; None, and a diagnostic, where it cannot."""
    names: list[str] = []
    reached = _reached(function)
    for node, home in reached:
        if home is scope.environment and scope.span_of(node) > scope.span_of(call):
            what = f"`{node.name.value}` may be called here before it is defined"
            scope.error("P204", what, call, "define it first")
            return None
    for name, binder in _variables(reached):
        if scope.environment.binders[name] is not binder:
            called = function.node.name.value
            what = f"`{called}` reads the `{name}` of the function around it, and `{name}` is another variable here"
            scope.error("P105", what, call, "give one of the two another name")
            return None
        if scope.has_rows(name):
            what = f"`{name}` is a view in rows, which device functions do not take"
            scope.error("P410", what, call, f"let the function read `{scope.shown(name)}`, or what was loaded")
            return None
        names.append(name)
    return scope.captured(names)


def _reached(function: DeviceFunction) -> tuple[Placed, ...]:
    """`function`, and the functions within others that it names, or those do."""
    found, seen = [(function.node, function.environment)], {function.node}
    for node, home in found:  # which grows
        for name in _kept_free_names(node, home):
            if name in home.homes and (called := home.functions[name]) not in seen:
                seen.add(called)
                found.append((called, home.homes[name]))
    return tuple(found)


def _variables(reached: Iterable[Placed]) -> Iterator[tuple[str, cst.FunctionDef]]:
    """What these functions read of those around them: each variable with the function that binds it."""
    pairs = ((name, home) for node, home in reached for name in _kept_free_names(node, home) if name not in home.homes)
    yield from dict.fromkeys((name, home.binders[name]) for name, home in pairs if name in home.binders)


def _kept_free_names(function: cst.FunctionDef, home: Environment) -> tuple[str, ...]:
    """The same as `_free_names`, found once: every call asks for them."""
    if function not in home.free_names:
        home.free_names[function] = tuple(_free_names(function))
    return home.free_names[function]


def _free_names(function: cst.FunctionDef) -> Iterator[str]:
    """The names that `function` reads and does not bind, in order."""
    bound = _bound_names(function)
    yield from dict.fromkeys(name for name in _names_read(function.body) if name not in bound)


def _bound_names(function: cst.FunctionDef) -> frozenset[str]:
    """The names that are `function`'s own: parameters, locals, and functions in it."""
    own = {node.name.value for node in function.body.body if isinstance(node, cst.FunctionDef)}
    given = {param.name.value for param in all_parameters(function)}
    deletions = (statement.target for statement in flatten(function.body.body) if isinstance(statement, cst.Del))
    deleted = chain.from_iterable(map(_names_read, deletions))
    return frozenset((*own, *given, *assigned_names(function.body.body), *deleted))


def _names_read(node: cst.CSTNode) -> Iterator[str]:
    match node:
        case cst.Name(value=name):
            yield name
        case cst.FunctionDef():
            yield from _free_names(node)
        case cst.Attribute(value=value) | cst.Arg(value=value):
            yield from _names_read(value)
        case cst.Annotation():
            pass
        case _:
            for child in node.children:
                yield from _names_read(child)
