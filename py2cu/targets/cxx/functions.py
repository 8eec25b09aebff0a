"""Describes device functions for the templates: result, parameters, body and template parameters."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, replace
from typing import Final

from py2cu import ir
from py2cu.analysis.call_graph import in_recursive_scc, launch_objects_by_function
from py2cu.targets.cxx.dialect import Callee, Dialect
from py2cu.targets.cxx.includes import headers_of_types
from py2cu.targets.cxx.lines import Line, doc_lines
from py2cu.targets.cxx.parameters import Argument, kernel_argument, template_head, typenames, wrapped
from py2cu.targets.cxx.statements import Emitter

_TYPE_PARAMETERS: Final = ("T", "U", "V", "W", "index_t")


@dataclass(frozen=True, slots=True)
class StructView:
    """The struct in which a device function returns a tuple."""

    name: str
    template: tuple[str, ...]
    fields: tuple[str, ...]  # "float lo"

    @property
    def head(self) -> str:
        return f"{template_head(typenames(self.template))}\nstruct {self.name}".lstrip()

    @property
    def type(self) -> str:
        return f"{self.name}<{', '.join(self.template)}>" if self.template else self.name


@dataclass(frozen=True, slots=True)
class FunctionView:
    """One device function: its head without what the target puts before it, and its body."""

    doc: tuple[str, ...]
    template: tuple[str, ...]
    head: str
    arguments: tuple[Argument, ...]
    body: tuple[Line, ...]
    struct: StructView | None
    is_mutually_recursive: bool  # functions that it calls call it back: all are declared first
    headers: frozenset[str]
    constants: tuple[ir.ConstantDeclaration, ...]

    @property
    def code(self) -> tuple[object, ...]:
        """The function without its comments: functions with equal code are emitted once."""
        lines = tuple((line.code, line.origin) for line in self.body if line.code.strip())
        return self.template, self.head, self.arguments, lines, self.struct

    @property
    def template_head(self) -> str:
        return template_head(typenames(self.template))

    def signature(self, prefix: str) -> str:
        return wrapped(f"{prefix} {self.head}", (argument.declaration for argument in self.arguments))


def in_order(launched: Collection[str]) -> tuple[str, ...]:
    """Launch objects in the order in which functions take them."""
    return tuple(name for name in ("blockIdx", "threadIdx", "blockDim", "gridDim") if name in launched)


def spell_functions(kernel: ir.Kernel, dialect: Dialect) -> tuple[tuple[FunctionView, ...], dict[str, Callee]]:
    """The views of the device functions of `kernel`, and a `Callee` for each, by key."""
    launched = launch_objects_by_function(kernel) if dialect.launch_struct else {}
    callees = {
        function.key: Callee(function, (), in_order(launched.get(function.key, ()))) for function in kernel.functions
    }
    mutually_recursive = in_recursive_scc(kernel.functions, itself=False)
    recurses = bool(in_recursive_scc(kernel.functions))
    while True:  # repeats only for recursive functions, which are called before their template parameters are known
        before, views = dict(callees), []
        for function in kernel.functions:
            view = _spell_function(function, dialect, callees, is_mutually_recursive=function.key in mutually_recursive)
            struct = view.struct.type if view.struct else ""
            callees[function.key] = replace(callees[function.key], template=view.template, struct=struct)
            views.append(view)
        if not recurses or callees == before:
            return tuple(views), callees


def _spell_function(
    function: ir.Kernel, dialect: Dialect, callees: dict[str, Callee], *, is_mutually_recursive: bool
) -> FunctionView:
    """The view of a function: a template over the type parameters that its signature, body and callees name."""
    speller = Emitter(function, dialect, callees)
    struct = _struct_view(function, speller)
    result = struct.type if struct else "void" if function.result is None else speller.type_text(function.result)
    arguments = tuple(kernel_argument(function, dialect, p.name, p.type, p) for p in function.parameters)
    arguments += tuple(Argument(name, dialect.launch_struct) for name in callees[function.key].launch)
    body = tuple(speller.block(function.body))
    if function.origin is not None:
        body = tuple(replace(line, origin=0) for line in body)  # the line map has lines of the kernel's file only
    types = speller.types.union(argument.base for argument in arguments)
    head = f"{result} {function.symbol}"
    headers = headers_of_types(types) | speller.headers
    return FunctionView(
        doc_lines(function.doc), _type_parameters(types), head, arguments, body, struct, is_mutually_recursive, headers,
        tuple(speller.declarations),
    )  # fmt: skip


def _struct_view(function: ir.Kernel, speller: Emitter) -> StructView | None:
    if function.struct is None or not isinstance(function.result, ir.TupleType):
        return None
    types = tuple(map(speller.type_text, function.result.items))
    fields = tuple(f"{type_} {name}" for type_, name in zip(types, function.struct.fields, strict=True))
    return StructView(function.struct.name, _type_parameters(types), fields)


def _type_parameters(types: Collection[str]) -> tuple[str, ...]:
    """The type parameters among `types`."""
    return tuple(name for name in _TYPE_PARAMETERS if name in types)
