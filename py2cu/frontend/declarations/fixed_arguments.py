"""Arguments that are decided at translation: functions, dtypes, and the numbers in the shapes of a function's arrays.

    def fold(x, op, dtype):                    void fold(const int32_t* x)
        tile = shared(32, dtype)        →      {
        op(tile, 0, x[0])                          __shared__ int32_t tile[32];
    fold(x, atomic.add, np.int32)                  atomicAdd(&tile[0], x[0]);

In: a function, and what a call passes. Out: the function without these parameters, whose body knows each as it knows
the names of its file. Every choice is an instance, as it is of C++ templates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final, TypeVar

import libcst as cst

from py2cu import ir
from py2cu.dtypes import find_dtype
from py2cu.frontend.declarations.arguments import Argument
from py2cu.frontend.declarations.array_declarations import MAKERS
from py2cu.frontend.names.environment import Environment
from py2cu.frontend.names.known_names import is_function
from py2cu.frontend.names.syntax import all_parameters, assigned_names, nodes_in, source_text
from py2cu.frontend.source.imports import DeviceFunction

T = TypeVar("T")
_MAX_DEPTH: Final = 16  # of functions that pass a shape on
Shapes = dict[cst.CSTNode, set[str]]  # the names in the shapes of arrays, by function
Fixed = DeviceFunction | str | cst.BaseExpression  # a function of Python, a library's name, or a constant


def fixed_arguments(
    function: DeviceFunction,
    values: Sequence[Argument],
    around: Environment,
    functions: Mapping[cst.BaseExpression, DeviceFunction],
    known: Shapes,
) -> dict[str, Fixed]:
    """What a call fixes, by parameter.

    `around` are the names at the call, `functions` the values that are functions. `known` keeps the names in shapes.
    """
    node = function.node
    assigned = {*assigned_names(node.body.body), *function.environment.named_in(node)}
    shapes = _in_shapes(node, function.environment, known)
    fixed: dict[str, Fixed] = {}
    for parameter, value in zip(all_parameters(node), values, strict=True):
        name = parameter.name.value
        if name in assigned:
            continue
        called = functions.get(value) if isinstance(value, cst.BaseExpression) else None
        meaning: Fixed | None = called or _library_name(value, around)
        if meaning is None and name in shapes:
            meaning = _constant(value, around)
        if meaning is not None:
            fixed[name] = meaning
    return fixed


def with_fixed(function: DeviceFunction, fixed: Mapping[str, Fixed]) -> DeviceFunction:
    """`function` without the parameters that a call fixes."""
    node, params = function.node, function.node.params
    kept = {
        kind: [each for each in getattr(params, kind) if each.name.value not in fixed]
        for kind in ("posonly_params", "params", "kwonly_params")
    }
    star = params.star_arg if kept["kwonly_params"] else cst.MaybeSentinel.DEFAULT
    smaller = node.with_changes(
        params=params.with_changes(**kept, star_arg=star, posonly_ind=cst.MaybeSentinel.DEFAULT)
    )
    function.module.positions.add(smaller, node)
    environment = _around(function.environment, fixed)
    environment.named = {**environment.named, smaller: environment.named.get(node, ())}
    return replace(
        function, node=smaller, environment=environment, around=function.around or function.environment,
        fixed=", ".join(f"{name}={_spelled(value)}" for name, value in fixed.items()),
        suffix="_".join(filter(None, [function.suffix, *map(_suffix, fixed.values())])),
    )  # fmt: skip


def _around(environment: Environment, fixed: Mapping[str, Fixed]) -> Environment:
    """The names around a function, with those of its parameters that a call fixes."""
    scope = environment.copy()
    for name, meaning in fixed.items():
        scope.forget(name)
        match meaning:
            case str(qualified):
                scope.imports[name] = qualified
            case cst.BaseExpression() as constant:
                scope.definitions[name] = constant
    return replace(
        scope, passed={**environment.passed, **fixed}, binders=_without(environment.binders, fixed),
        homes=_without(environment.homes, fixed), live=_without(environment.live, fixed),
    )  # fmt: skip


def _without(table: Mapping[str, T], names: Mapping[str, object]) -> dict[str, T]:
    return {name: each for name, each in table.items() if name not in names}


def _library_name(value: Argument, around: Environment) -> str | None:
    """The qualified name of a dtype, or of a builtin that is no constant."""
    if not isinstance(value, cst.Name | cst.Attribute) or around.is_local(value):
        return None
    qualified = around.qualify(value)
    return qualified if qualified is not None and is_function(qualified) else None


def _constant(value: Argument, around: Environment) -> cst.BaseExpression | None:
    """The text of the number, or of the tuple of numbers, that `value` is."""
    if isinstance(value, cst.BaseExpression):
        number: object = around.constants(value) or around.constant(value)
    else:
        number = value.value if isinstance(value, ir.Constant) else None
    return cst.parse_expression(repr(number)) if isinstance(number, int | tuple) else None


def _in_shapes(function: cst.FunctionDef, environment: Environment, known: Shapes, depth: int = 0) -> set[str]:
    """The names in the calls by which `function`, or a function of the file that it calls, makes arrays."""
    if function in known:
        return known[function]
    if depth == _MAX_DEPTH:
        return set()
    known[function] = names = set[str]()
    for node in nodes_in(function.body):
        if not isinstance(node, cst.Call):
            continue
        passed = [arg.value for arg in node.args]
        if MAKERS.get(environment.qualify(node.func) or "") is None:
            callee = environment.functions.get(node.func.value) if isinstance(node.func, cst.Name) else None
            shapes = _in_shapes(callee, environment, known, depth + 1) if callee is not None else set[str]()
            if callee is None or not shapes:
                continue
            places = iter(parameter.name.value for parameter in all_parameters(callee))
            takes = [arg.keyword.value if arg.keyword else next(places, "") for arg in node.args]
            passed = [arg.value for arg, name in zip(node.args, takes, strict=True) if name in shapes]
        names.update(each.value for value in passed for each in nodes_in(value) if isinstance(each, cst.Name))
    return names


def _spelled(value: Fixed) -> str:
    """The part of a key that tells instances apart."""
    match value:
        case DeviceFunction(node=node, module=module, number=number):
            return f"{module.file.name}:{module.span(node.name).line}:{node.name.value}{number or ''}({value.fixed})"
        case str():
            return value
        case _:
            return source_text(value)


def _suffix(value: Fixed) -> str:
    """What the name of the function in C++ ends with: `add` of `fold(x, atomic.add, np.int32)`."""
    match value:
        case DeviceFunction(node=node, suffix=suffix):
            return f"{node.name.value}_{suffix}" if suffix else node.name.value
        case str(qualified):
            name = qualified.rpartition(".")[2]
            return "" if find_dtype(name) else name.rstrip("_")
        case cst.Integer(value=digits):
            return digits
        case _:
            return ""
