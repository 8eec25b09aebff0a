"""`@cuda.jit` → the options of a kernel and the types of its parameters.

In: the decorator in its file, or the signature that the command line gives. Out: `KernelOptions`, with the signature as
text; the types that this text gives to the parameters.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

import libcst as cst

from py2cu import ir
from py2cu.diagnostics import Reporter
from py2cu.frontend.declarations.annotations import unnamed_dims
from py2cu.frontend.declarations.parameter_types import ParameterType, TupleAnnotation
from py2cu.frontend.names.environment import Environment
from py2cu.frontend.names.syntax import all_parameters, is_named, nodes_in, source_text
from py2cu.frontend.numba.signatures import NumbaArray, NumbaType, read_signature, signature_for
from py2cu.frontend.source.reader import KernelSource, Module
from py2cu.options import KernelOptions

_SIGNATURES: Final = ("func_or_sig", "signature", "argtypes", "signatures")
# How Numba compiles, which changes no result.
_WITHOUT_EFFECT: Final = frozenset((
    "device", "inline", "forceinline", "max_registers", "lineinfo", "debug", "opt", "cache", "bind", "lto",
    "boundscheck",
))  # fmt: skip
_REFUSED: Final = {
    "fastmath": "py2cu keeps the arithmetic of IEEE 754: leave it out",
    "link": "py2cu writes one source: port the linked code to Python, or call it from the emitted CUDA",
    "extensions": "pass plain arrays and numbers",
    "restype": "a kernel returns nothing",
}


def with_signature(source: KernelSource, texts: Sequence[str]) -> KernelSource:
    """The kernel with the last of these valid signatures that names it, or else with the last that names none."""
    if not source.is_numba:
        return source
    return replace(source, signature=signature_for(source.function.name.value, texts))


def read_options(call: cst.Call, source: KernelSource, module: Module, reporter: Reporter) -> KernelOptions:
    """The options of `@cuda.jit(…)`; what py2cu has no counterpart of is reported."""
    scope, signature, bounds = source.environment, source.signature, None
    for place, arg in enumerate(call.args):
        name = arg.keyword.value if arg.keyword is not None else _SIGNATURES[0] if place == 0 else ""
        if name in _SIGNATURES:
            signature = signature or _text(arg.value, scope, module, reporter)
        elif name == "launch_bounds":
            bounds = _bounds(scope.constant(arg.value), scope.constants(arg.value))
        elif name in _REFUSED and not (is_named(arg.value, "False") or is_named(arg.value, "None")):
            reporter.error("P403", f"`cuda.jit` with `{name}` has no counterpart", module.span(arg), _REFUSED[name])
        elif name not in _WITHOUT_EFFECT and name not in _REFUSED:
            what = f"`cuda.jit` has no option `{name}`" if name else "`cuda.jit` takes one argument by position"
            reporter.error("P403", what, module.span(arg), "leave it out")
    return KernelOptions(launch_bounds=bounds, signature=signature)


def _bounds(number: object, numbers: object) -> int | tuple[int, ...] | None:
    """`launch_bounds=256` or `(256, 2)`; `find_problems` checks the numbers."""
    items = numbers if isinstance(numbers, tuple) else (number,)
    whole = tuple(each for each in items if isinstance(each, int))
    return whole if len(whole) == len(items) else None


def _text(node: cst.BaseExpression, scope: Environment, module: Module, reporter: Reporter) -> str | None:
    """The text of a signature: a string, type objects, or a list of one of these."""
    if isinstance(constant := scope.constant(node), str):
        return constant
    match node:
        case cst.Name(value=name) if (definition := scope.definition(name)) is not None:
            return _text(definition, scope, module, reporter)
        case cst.List(elements=[element]):
            return _text(element.value, scope, module, reporter)
        case cst.List():
            what = "a kernel of a file has one signature"
            hint = "write one, `[(float32[:],)]`, or choose one with `--signature`"
            reporter.error("P403", what, module.span(node), hint)
            return _text(node.elements[0].value, scope, module, reporter) if node.elements else None
        case _:
            named = node.visit(_Plain(scope))
            assert isinstance(named, cst.BaseExpression)
            return source_text(named)


UNTYPED: Final = "P301"  # the code of errors about types


class _Plain(cst.CSTTransformer):
    """Replaces names of Numba's types, however they were imported, by Numba's own."""

    def __init__(self, scope: Environment) -> None:
        super().__init__()
        self.scope = scope

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.Name:
        library, _, name = (self.scope.qualify(original_node) or "").rpartition(".")
        return updated_node.with_changes(value=name) if library.startswith(("numba", "numpy")) else updated_node


def parameter_types(
    text: str | None, source: KernelSource, module: Module, reporter: Reporter
) -> Mapping[str, ParameterType]:
    """The types that a signature gives to the parameters; none, after a diagnostic, if it does not fit."""
    if text is None:
        return {}
    params = [param.name.value for param in all_parameters(source.function)]
    node = source.function.name if source.signature else source.decorator or source.function.name
    span = module.span(node)
    try:
        types = read_signature(text).types
    except ValueError as error:
        is_record = "Record(" in text or "[('" in text
        hint = "pass an array for each field of a record" if is_record else "write Numba's types: `void(float32[:], …)`"
        reporter.error("P301", str(error), span, hint)
        return {}
    if len(types) != len(params):
        name = source.function.name.value
        what = f"the signature `{text}` has {len(types)} types, and `{name}` {len(params)} parameters"
        reporter.error("P301", what, span, "write a type for each parameter")
        return {}
    return {name: _as_parameter(type_, name, source, module) for name, type_ in zip(params, types, strict=True)}


def _as_parameter(type_: NumbaType, name: str, source: KernelSource, module: Module) -> ParameterType:
    match type_:
        case NumbaArray(dtype=dtype, rank=rank):
            span = module.span(next(p.name for p in all_parameters(source.function) if p.name.value == name))
            return ir.ArrayType(dtype, unnamed_dims(name, rank, span))
        case tuple():
            return TupleAnnotation(type_)
        case _:
            return type_


def strided_parameters(text: str | None, function: cst.FunctionDef) -> tuple[str, ...]:
    """The arrays that a signature takes with any strides."""
    try:
        types = () if text is None else read_signature(text).types
    except ValueError:  # `parameter_types` reports it
        return ()
    named = zip(all_parameters(function), types, strict=False)
    return tuple(p.name.value for p, type_ in named if isinstance(type_, NumbaArray) and type_.is_strided)


def check_types(source: KernelSource, module: Module, reporter: Reporter) -> None:
    """Report a kernel whose parameters have no types, with a signature to start from."""
    function = source.function
    if all(param.annotation is not None for param in all_parameters(function)):
        return
    ranks = _used_ranks(function)
    types = (
        f"float32[{', '.join(':' * ranks[name])}]" if ranks.get(name) else "int32"
        for name in (param.name.value for param in all_parameters(function))
    )
    name = function.name.value
    what = f"`{name}` has no types: Numba takes them from a call"
    signature = ", ".join(types)
    hint = f'write `@cuda.jit("void({signature})")`, or pass `--signature "{name}({signature})"`'
    reporter.error("P301", what, module.span(function.name), hint)


def _used_ranks(function: cst.FunctionDef) -> dict[str, int]:
    """The number of indices, or of extents, with which the body uses each name as an array."""
    ranks: dict[str, int] = {}
    for node in nodes_in(function.body):
        match node:
            case cst.Subscript(
                value=cst.Name(value=name), slice=[cst.SubscriptElement(slice=cst.Index(cst.Tuple(elements=items)))]
            ):
                ranks[name] = max(ranks.get(name, 0), len(items))
            case cst.Subscript(value=cst.Name(value=name), slice=items):
                ranks[name] = max(ranks.get(name, 0), len(items))
            case cst.Attribute(value=cst.Name(value=name), attr=cst.Name(value="shape" | "size" | "ndim" | "dtype")):
                ranks[name] = max(ranks.get(name, 0), 1)
            case cst.Call(func=cst.Name(value="len"), args=[cst.Arg(value=cst.Name(value=name))]):
                ranks[name] = max(ranks.get(name, 0), 1)
            case cst.Call(
                func=cst.Attribute(value=cst.Attribute(attr=cst.Name(value="atomic"))),
                args=[cst.Arg(value=cst.Name(value=name)), cst.Arg(value=index), *_],
            ):
                ranks[name] = max(ranks.get(name, 0), len(index.elements) if isinstance(index, cst.Tuple) else 1)
    return ranks
