"""The arguments of a call, one for each parameter of the device function, bound as Python binds them.

    def scaled(v, k=2): …

    scaled(a), scaled(a, b), scaled(a, k=b), scaled(k=b, v=a)    →    (a, 2), (a, b), (a, b), (a, b)

In: a call, and the function that it names. Out: an expression for each parameter; None, after a diagnostic, if the call
does not fit. A default is evaluated where the function is defined, not where it is called: see `names/defaults.py`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import libcst as cst

from py2cu import ir
from py2cu.diagnostics import Reporter
from py2cu.frontend.names.syntax import all_parameters
from py2cu.frontend.source.reader import Module
from py2cu.suggestions import did_you_mean

Argument = cst.BaseExpression | ir.Expr  # the node in the call, or a default


@dataclass(frozen=True, slots=True)
class _Misfit:
    """Why a call does not fit, what to write instead, and the node to point at."""

    message: str
    hint: str
    node: cst.CSTNode


def bind_arguments(
    call: cst.Call,
    function: cst.FunctionDef,
    module: Module,
    reporter: Reporter,
    read_default: Callable[[cst.Param], ir.Expr | None],
) -> tuple[Argument, ...] | None:
    """The argument of each parameter of `function` in a call in `module`; None, after a diagnostic, if they do not fit.

    `read_default` reads the default of a parameter; None, after a diagnostic, if it cannot.
    """
    arguments = _explicit_arguments(call, function)
    if not isinstance(arguments, _Misfit):
        arguments = _with_defaults(arguments, call, function, read_default)
    if isinstance(arguments, _Misfit):
        reporter.error("P105", arguments.message, module.span(arguments.node), arguments.hint)
        return None
    names = [param.name.value for param in all_parameters(function)]
    return tuple(arguments[name] for name in names) if arguments.keys() >= {*names} else None


def _explicit_arguments(call: cst.Call, function: cst.FunctionDef) -> dict[str, Argument] | _Misfit:
    """The arguments that the call passes, by parameter."""
    name, params = function.name.value, function.params
    if any(arg.star for arg in call.args):
        return _Misfit("calls of device functions cannot unpack arguments with `*`", "write every argument out", call)
    if isinstance(params.star_arg, cst.Param) or params.star_kwarg is not None:
        return _Misfit(f"`{name}` takes any number of arguments", "name every parameter in its `def`", call)
    by_place = [param.name.value for param in (*params.posonly_params, *params.params)]
    by_name = [param.name.value for param in (*params.params, *params.kwonly_params)]
    positional = [arg.value for arg in call.args if arg.keyword is None]
    if len(positional) > len(by_place):
        count = len(by_place)
        what = f"`{name}` takes {count} argument{'s' * (count != 1)}, not {len(positional)}"
        return _Misfit(what, _listed(by_place), call)
    arguments: dict[str, Argument] = dict(zip(by_place, positional, strict=False))
    for arg in call.args:
        keyword = arg.keyword.value if arg.keyword is not None else ""
        if keyword in arguments:
            return _Misfit(f"the call passes `{keyword}` of `{name}` twice", "pass it once", arg)
        if keyword and keyword not in by_name:
            hint = did_you_mean(keyword, by_name, _listed(by_name))
            return _Misfit(f"`{name}` has no parameter `{keyword}` that can be passed by name", hint, arg)
        if keyword:
            arguments[keyword] = arg.value
    return arguments


def _with_defaults(
    arguments: dict[str, Argument],
    call: cst.Call,
    function: cst.FunctionDef,
    read_default: Callable[[cst.Param], ir.Expr | None],
) -> dict[str, Argument] | _Misfit:
    """The passed arguments, and the defaults of the other parameters as far as they can be read."""
    complete = dict(arguments)
    for param in all_parameters(function):
        name = param.name.value
        if name in arguments:
            continue
        if param.default is None:
            what = f"the call does not pass `{name}` of `{function.name.value}`"
            return _Misfit(what, "pass every parameter that has no default", call)
        if (value := read_default(param)) is not None:
            complete[name] = value
    return complete


def _listed(names: Sequence[str]) -> str:
    return f"it has {', '.join(f'`{name}`' for name in names)}" if names else "it has no parameters"
