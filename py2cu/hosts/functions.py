"""Host functions: their parameters, their results and their C++, from the functions of a file."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import libcst as cst

from py2cu import ir
from py2cu.diagnostics import Reporter
from py2cu.frontend.declarations.annotations import TENSORS, AnnotationReader
from py2cu.frontend.names.defaults import DefaultReader
from py2cu.frontend.names.syntax import all_parameters, assigned_names, flatten, nodes_in
from py2cu.frontend.source.reader import KernelSource, Module
from py2cu.hosts.model.signatures import CPP_PARAMETERS, Callee, HostParameter, HostSignature
from py2cu.hosts.model.values import Kind, Value, function_identifier, identifier, number
from py2cu.hosts.reading.reader import Refused
from py2cu.hosts.reading.statements import StatementReader, last_items, names_in
from py2cu.hosts.text.checks import check_lines
from py2cu.hosts.text.layout import laid_out
from py2cu.hosts.text.render import HostFunction

DECORATOR: Final = "py2cu.host"


@dataclass(slots=True)
class HostReader:
    """Reads the host functions of one file; each function that another one calls is read before it.

    `sources` are the host functions of the file by name, `kernel` finds the kernel or the host function that another
    name means. `with_backward` are those functions of the file that have a backward.
    """

    module: Module
    reporter: Reporter
    kernel: Callable[[cst.BaseExpression, Module], Callee | None]
    defaults: Mapping[str, object] | None = None
    done: dict[str, HostFunction] = field(default_factory=dict)
    sources: Mapping[str, KernelSource] = field(default_factory=dict)
    with_backward: Container[str] = ()
    open: dict[str, HostSignature] = field(default_factory=dict)

    def read(self, source: KernelSource) -> HostFunction | None:
        """The function; None, after diagnostics, where it is outside of the language."""
        name = source.function.name.value
        if name in self.done:
            return self.done[name]
        own = Reporter(self.reporter.file)
        found = _FunctionReader(self, source, own).read()
        self.open.pop(name, None)
        self.reporter.diagnostics |= own.diagnostics
        if own.failed or found is None:
            return None
        self.done[name] = found
        return found

    def callee(self, node: cst.BaseExpression, asking: str, reporter: Reporter) -> Callee | None:
        """What a call of `node` means, if it is a kernel or a host function."""
        name = node.value if isinstance(node, cst.Name) else ""
        if name in self.open:
            if name != asking:
                what = f"`{name}` and `{asking}` call each other"
                reporter.error("P801", what, self.module.span(node), "a host function may call itself alone")
            return Callee(name, host=replace(self.open[name], has_backward=False))
        if (source := self.sources.get(name)) is None:
            return self.kernel(node, self.module)
        if (found := self.read(source)) is None:
            raise Refused  # it was reported
        return Callee(name, host=found.signature)


@dataclass(frozen=True, slots=True)
class _FunctionReader:
    reader: HostReader
    source: KernelSource
    reporter: Reporter

    def read(self) -> HostFunction | None:
        function, module, parameters = self.source.function, self.reader.module, self.parameters()
        if function.asynchronous is not None or self.reporter.failed:
            return None
        name, (kind, count) = function.name.value, self.expected_result()
        signature = HostSignature(
            name, function_identifier(name), parameters, kind, count, doc=function.get_docstring(),
            end=module.span(function.name), has_backward=name in self.reader.with_backward,
        )  # fmt: skip
        while True:  # once more where it calls itself and writes to its parameters
            self.reader.open[name] = signature
            found = self.body(signature)
            if found is None or found.signature.written == signature.written or name not in names_in(function.body):
                return found
            signature = replace(signature, written=found.signature.written)
            self.reporter.diagnostics.clear()

    def expected_result(self) -> tuple[Kind, int | None]:
        """The kind of the result, as the `return`s look: what a call of the function itself gives."""
        values = [each.value for each in flatten(self.source.function.body.body) if isinstance(each, cst.Return)]
        for value in values:
            match value:
                case cst.Tuple(elements=elements) | cst.List(elements=elements):
                    return Kind.TENSORS, len(elements)
                case cst.Name(value="None"):
                    return Kind.NONE, None
        return (Kind.TENSOR if any(value is not None for value in values) else Kind.NONE), None

    # --- parameters ---

    def parameters(self) -> tuple[HostParameter, ...]:
        function, module = self.source.function, self.reader.module
        for star in (function.params.star_arg, function.params.star_kwarg):
            if isinstance(star, cst.Param):
                self.reporter.error("P106", "a host function names its parameters", module.span(star), "name every one")
        annotations = AnnotationReader(self.reporter, self.source.environment, module.span)
        found = tuple(filter(None, (self.parameter(each, annotations) for each in all_parameters(function))))
        texts = [parameter.text for parameter in found]
        for parameter in found:
            if texts.count(parameter.text) > 1:
                what = f"`{parameter.name}` has the name of another parameter in C++"
                self.reporter.error("P106", what, parameter.span, "rename it")
        return found

    def parameter(self, param: cst.Param, annotations: AnnotationReader) -> HostParameter | None:
        """A parameter; None, after a diagnostic, where its annotation is not for host functions."""
        module, name = self.reader.module, param.name.value
        span, by_keyword = module.span(param.name), param in self.source.function.params.kwonly_params
        if param.annotation is None:
            hint = f'write `{name}: Tensor`, `Float32[Tensor, "n"]`, `int`, `float` or `bool`'
            self.reporter.error("P301", f"parameter `{name}` needs an annotation", span, hint)
            return None
        node, default = param.annotation.annotation, None
        array: ir.ArrayType | None = None
        if self.source.environment.qualify(node) in TENSORS:
            kind = Kind.TENSOR
        elif self.is_list_of_tensors(node):
            kind = Kind.TENSORS
        else:
            match annotations.read(node, name):
                case ir.ArrayType() as array:
                    kind = Kind.TENSOR
                case ir.PythonType() as type_ if type_.kind.name in Kind.__members__:
                    kind, default = Kind[type_.kind.name], self.default(param, type_)
                case None:
                    return None
                case _:
                    hint = "a host function takes tensors, lists of tensors, `int`, `float` and `bool`"
                    self.reporter.error("P301", "this annotation is not for host functions", module.span(node), hint)
                    return None
        if param.default is not None and not kind.is_number:
            self.reporter.error("P106", "only numbers have defaults here", module.span(param.default), "leave it out")
        return HostParameter(name, identifier(name), kind, default, by_keyword, array, span)

    def default(self, param: cst.Param, type_: ir.PythonType) -> Value | None:
        if param.default is None:
            return None
        reader = DefaultReader(self.reporter, self.source.environment, self.reader.module.span, self.reader.defaults)
        found = reader.read_for_kernel(param, type_)
        if found is not None and type_.kind.name == "FLOAT" and isinstance(found.value, int):
            span, hint = self.reader.module.span(param.default), f"write `{float(found.value)}`"
            self.reporter.error("P106", "the default of a `float` is an integer in Python", span, hint)
        return None if found is None or isinstance(found.value, complex) else number(found.value)

    def is_list_of_tensors(self, node: cst.BaseExpression) -> bool:
        qualify = self.source.environment.qualify
        match node:
            case cst.Subscript(value=base, slice=[cst.SubscriptElement(slice=cst.Index(value=item))]):
                is_list = qualify(base) in ("builtins.list", "typing.List", "collections.abc.Sequence")
                return is_list and qualify(item) in TENSORS
        return False

    # --- body ---

    def body(self, signature: HostSignature) -> HostFunction | None:
        function, module = self.source.function, self.reader.module
        every, parameters = [*assigned_names(function.body.body)], {p.name: p for p in signature.parameters}
        statements = self.statements(every, parameters)
        block, is_reached = statements.suite(function.body)
        whole = self.with_result(signature, statements, is_reached)
        if self.reporter.failed:
            return None
        checks, helpers = check_lines(whole)
        types = [p.kind.cpp if name in every else CPP_PARAMETERS[p.kind] for name, p in parameters.items()]
        used = names_in(function.body)
        unused = ["" if n in used or p.array is not None else "[[maybe_unused]] " for n, p in parameters.items()]
        head = [f"{a}{type_} {p.text}" for a, type_, p in zip(unused, types, whole.parameters, strict=True)]
        origin = module.span(function.name).line
        lines = laid_out(f"{whole.result.cpp} {whole.cpp_name}", head, whole, checks, block, origin)
        return HostFunction(
            whole, tuple(lines), (*helpers, *statements.helpers), tuple(statements.headers), statements.constants,
            statements.called,
        )  # fmt: skip

    def statements(self, every: Sequence[str], parameters: Mapping[str, HostParameter]) -> StatementReader:
        """A reader of the body, which assigns the names `every`, one for each place."""
        suite, module = self.source.function.body, self.reader.module
        in_loops = {n for loop in nodes_in(suite) if isinstance(loop, cst.For) for n in assigned_names(loop.body.body)}
        mentioned = {identifier(n) for n in names_in(suite) if n not in every}
        wrappers = {f"{n}_{suffix}" for n in mentioned for suffix in ("out", "launch", "operator")}

        def callee(node: cst.BaseExpression) -> Callee | None:
            is_local = isinstance(node, cst.Name) and node.value in reader.locals
            return None if is_local else self.reader.callee(node, self.source.function.name.value, self.reporter)

        reader = StatementReader(
            environment=self.source.environment.inner(self.source.function),
            reporter=self.reporter,
            span_of=module.span,
            callee=callee,
            once=frozenset(n for n in every if every.count(n) == 1 and n not in in_loops | parameters.keys()),
            names={p.name: p.text for p in parameters.values()},
            taken={p.text for p in parameters.values()} | mentioned | wrappers,
            lists=frozenset(p.text for p in parameters.values() if p.kind is Kind.TENSORS and p.name not in every),
            ranks={
                p.text: len(p.array.dims)
                for p in parameters.values()
                if p.array is not None and not p.array.leading and p.name not in every
            },
            last_items=last_items(suite),
            unassigned={*every} - parameters.keys(),
        )
        for name, parameter in parameters.items():
            bases = frozenset[str]() if parameter.kind.is_number else frozenset([name])
            reader.locals[name] = Value(parameter.kind, parameter.text, bases=bases)
        return reader

    def with_result(self, signature: HostSignature, statements: StatementReader, is_reached: bool) -> HostSignature:
        """The signature with what the function returns and writes to; refused where its `return`s differ."""
        span, returned = self.reader.module.span(self.source.function.name), statements.returned
        if is_reached and any(each.kind is not Kind.NONE for each in returned):
            hint = "end the function with a `return`, or with `raise`"
            self.reporter.error("P106", "not every path returns tensors", span, hint)
        if len({(each.kind, each.is_list) for each in returned}) > 1:
            hint = "return the same number of tensors"
            self.reporter.error("P106", "the `return`s of this function differ", span, hint)
        whole = replace(signature, result=Kind.NONE, count=None, written=frozenset(statements.written))
        if not returned:
            return whole
        *others, end = returned
        count = end.count if all(each.count == end.count for each in others) else None
        outputs = () if others or is_reached else end.outputs
        return replace(whole, result=end.kind, count=count, is_list=end.is_list, outputs=outputs, end=end.span)


def host_sources(module: Module, only: str | None = None) -> tuple[KernelSource, ...]:
    """The functions of a file under `@py2cu.host`, or the one called `only`."""
    return tuple(
        source
        for source in module.functions
        if only in (None, source.function.name.value) and source.environment.made(source.function) == DECORATOR
    )
