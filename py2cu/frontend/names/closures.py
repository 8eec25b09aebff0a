"""Free variables of nested functions: variables of enclosing functions in Python, extra arguments in C++.

    def at(j):                              float at(const float* x, int j, float a)
        return a * x[j]          →              return a * x[j];
    out[i] = at(i)                          out[i] = at(x, i, a)

In: function nodes, and the environments that enclose them. Out: the environment of a function's body, the nested
functions that a call may reach, and the free variables of these, each with the function that binds it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from itertools import chain

import libcst as cst

from py2cu.frontend.names.environment import Environment
from py2cu.frontend.names.syntax import all_parameters, assigned_names, flatten

PlacedFunction = tuple[cst.FunctionDef, Environment]  # a function, and the environment that encloses it


def environment_in(function: cst.FunctionDef, around: Environment) -> Environment:
    """The environment of the body of `function`: names that it binds hide those of `around`."""
    nested = {node.name.value: node for node in function.body.body if isinstance(node, cst.FunctionDef)}
    bound = _bound_names(function, around)
    inside = replace(
        around,
        functions={**around.functions, **nested} if nested else around.functions,  # there may be thousands
        binders={**around.binders, **dict.fromkeys(bound, function)},
    )
    outer = {name: home for name, home in around.homes.items() if name not in bound}  # rule: closure-bound
    inside.homes = {**outer, **dict.fromkeys(nested, inside)}
    return inside


def reached_functions(function: cst.FunctionDef, around: Environment) -> tuple[PlacedFunction, ...]:
    """`function`, and the nested functions that it names, directly or through others."""
    reached, seen = [(function, around)], {function}
    for node, home in reached:  # grows while it is read
        for name in _cached_free_names(node, home):
            if name in home.homes and (called := home.functions[name]) not in seen:
                seen.add(called)
                reached.append((called, home.homes[name]))
    return tuple(reached)


def free_variables(functions: Iterable[PlacedFunction]) -> Iterator[tuple[str, cst.FunctionDef]]:
    """The variables of enclosing functions that `functions` read, each with the function that binds it."""
    pairs = ((name, home) for node, home in functions for name in _cached_free_names(node, home))
    free = ((name, home) for name, home in pairs if name not in home.homes and name in home.binders)
    yield from dict.fromkeys((name, home.binders[name]) for name, home in free)


def _cached_free_names(function: cst.FunctionDef, home: Environment) -> tuple[str, ...]:
    """`_free_names` as far as scopes around bind them, computed once for each function: every call needs them."""
    if not home.homes and not home.binders:
        return ()
    if function not in home.free_names:
        home.free_names[function] = tuple(_free_names(function, home))
    return home.free_names[function]


def _free_names(function: cst.FunctionDef, home: Environment) -> Iterator[str]:
    """The names that `function` reads and does not bind, in order."""
    bound = _bound_names(function, home)
    yield from dict.fromkeys(name for name in _names_read(function.body, home) if name not in bound)


def _bound_names(function: cst.FunctionDef, around: Environment) -> frozenset[str]:
    """The names that `function` binds: parameters, locals, and nested functions."""
    nested = {node.name.value for node in function.body.body if isinstance(node, cst.FunctionDef)}
    parameters = {param.name.value for param in all_parameters(function)}
    deletions = (statement.target for statement in flatten(function.body.body) if isinstance(statement, cst.Del))
    deleted = chain.from_iterable(_names_read(target, around) for target in deletions)
    assigned = (*assigned_names(function.body.body), *around.named_in(function))
    return frozenset((*nested, *parameters, *assigned, *deleted))  # rule: closure-deleted


def _names_read(node: cst.CSTNode, home: Environment) -> Iterator[str]:
    match node:
        case cst.Name(value=name):
            yield name
        case cst.FunctionDef():
            yield from _free_names(node, home)
        case cst.Attribute(value=value) | cst.Arg(value=value):
            yield from _names_read(value, home)
        case cst.Annotation():
            pass
        case _:
            for child in node.children:
                yield from _names_read(child, home)
