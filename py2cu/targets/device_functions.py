"""The device functions of a kernel as templates take them: what each returns, takes, says and is a template over."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, replace

from py2cu.ir.calls import in_rings, launched_in
from py2cu.ir.kernel import Kernel
from py2cu.ir.types import TupleType
from py2cu.targets.arguments import Argument, kernel_type, template_head, typenames, wrapped
from py2cu.targets.spell_expressions import Callee, Dialect
from py2cu.targets.spell_statements import Line, Speller, doc_lines


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
    is_ringed: bool  # others that it calls call it: all are declared first

    @property
    def template_head(self) -> str:
        return template_head(typenames(self.template))

    def signature(self, prefix: str) -> str:
        return wrapped(f"{prefix} {self.head}", (argument.declaration for argument in self.arguments))


def in_order(launched: Collection[str]) -> tuple[str, ...]:
    """Launch objects in the order in which functions take them."""
    return tuple(name for name in ("blockIdx", "threadIdx", "blockDim", "gridDim") if name in launched)


def spell_functions(kernel: Kernel, dialect: Dialect) -> tuple[tuple[FunctionView, ...], dict[str, Callee]]:
    """The device functions of `kernel`, and what their callers need to know of them."""
    launched = launched_in(kernel) if dialect.launch_struct else {}
    callees = {
        function.key: Callee(function, "", in_order(launched.get(function.key, ()))) for function in kernel.functions
    }
    ringed = in_rings(kernel.functions, itself=False)
    while True:  # what a function is a template over, it is for what it calls as well
        before, views = dict(callees), []
        for function in kernel.functions:
            view = _spell_function(function, dialect, callees, is_ringed=function.key in ringed)
            arguments = f"<{', '.join(view.template)}>" if view.template else ""
            struct = view.struct.type if view.struct else ""
            callees[function.key] = replace(callees[function.key], template_arguments=arguments, struct=struct)
            views.append(view)
        if callees == before:
            return tuple(views), callees


def _spell_function(function: Kernel, dialect: Dialect, callees: dict[str, Callee], *, is_ringed: bool) -> FunctionView:
    speller = Speller(function, dialect, callees)
    struct = _struct_view(function, speller)
    result = struct.type if struct else "void" if function.result is None else speller.type_text(function.result)
    arguments = tuple(
        Argument(function.c_name(p.name), kernel_type(function, dialect, p.name, p.type, p))
        for p in function.parameters
    )
    arguments += tuple(Argument(name, dialect.launch_struct) for name in callees[function.key].launch)
    body = tuple(speller.block(function.body))
    if function.elsewhere is not None:
        body = tuple(replace(line, origin=0) for line in body)  # lines of the kernel's own file are what is kept
    texts = " ".join([result, *(a.type for a in arguments), *(line.text for line in body)])
    names = _template_names(texts, dialect, function)
    head = f"{result} {function.symbol}"
    return FunctionView(doc_lines(function.doc), names, head, arguments, body, struct, is_ringed)


def _struct_view(function: Kernel, speller: Speller) -> StructView | None:
    if function.struct is None or not isinstance(function.result, TupleType):
        return None
    types = tuple(map(speller.type_text, function.result.items))
    fields = tuple(f"{type_} {name}" for type_, name in zip(types, function.struct.fields, strict=True))
    return StructView(function.struct.name, _template_names(" ".join(types), speller.dialect, function), fields)


def _template_names(texts: str, dialect: Dialect, function: Kernel) -> tuple[str, ...]:
    """The type parameters that `texts` of a function mention."""
    names = ("T", "U", "V", "W", "index_t")
    return tuple(name for name in names if _is_template_name(name, texts, dialect, function))


def _is_template_name(name: str, texts: str, dialect: Dialect, function: Kernel) -> bool:
    if name != "index_t" and not (dialect.names_variables and name in function.symbols):
        return False
    return re.search(rf"\b{name}\b", texts) is not None
