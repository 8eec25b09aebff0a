"""The scope that a function's body starts with: its parameters, the arrays that it declares, and its other locals."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

import libcst as cst

from py2cu.frontend.bodies.functions.interface import DeviceFunctions
from py2cu.frontend.bodies.scope import Scope
from py2cu.frontend.declarations.array_declarations import ArrayDeclarationReader
from py2cu.frontend.names.syntax import assigned_names
from py2cu.frontend.numba.launch import launch_aliases
from py2cu.ir.visit import names_in


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterNames:
    """The parameters of one function by kind, arrays apart; captured variables of enclosing functions count, too.

    `launch` maps names to launch objects. `grids` are names of Numba's group of all threads. Parameters in `broken`
    have an annotation that was refused: errors in their uses are not reported.
    """

    scalars: frozenset[str]
    launch: dict[str, str]
    indices: frozenset[str] = frozenset()
    barriers: frozenset[str] = frozenset()
    grids: frozenset[str] = frozenset()
    broken: frozenset[str] = frozenset()
    optional_parameters: frozenset[str] = frozenset()


def function_scope(
    function: cst.FunctionDef,
    declarations: ArrayDeclarationReader,
    parameters: ParameterNames,
    functions: DeviceFunctions,
) -> Scope:
    """The scope of a function's body: its parameters, the arrays that it declares, and its other locals."""
    extents, body = declarations.extents, function.body.body
    named = extents.environment.named_in(function)
    assigned = Counter((*assigned_names(body), *named))
    array_decls = declarations.read(body)
    arrays = {**extents.arrays, **{name: array.type for name, array in array_decls.items()}}
    dims = () if extents.is_device else (dim for type_ in arrays.values() for dim in type_.dims)
    scope = Scope(
        extents.reporter,
        extents.environment,
        extents.span_of,
        parameters.launch,
        arrays,
        array_decls,
        (parameters.scalars | assigned.keys()) - arrays.keys() - parameters.launch.keys(),
        parameters.indices,
        frozenset(name for dim in dims for name in names_in(dim)) - extents.row_lengths.keys(),
        frozenset(name for name, count in assigned.items() if count == 1) - parameters.scalars,
        frozenset(named),
        functions,
        returns=extents.is_device,
        broken=set(parameters.broken),
        starts=declarations.starts,
        barriers=parameters.barriers,
        grids=set(parameters.grids),
        optional_parameters=parameters.optional_parameters,
        declarations=declarations,
    )
    aliases = launch_aliases(body, scope.once, scope.launch_object)
    return replace(scope, launch={**scope.launch, **aliases}, values=scope.values - aliases.keys(), aliases={*aliases})
