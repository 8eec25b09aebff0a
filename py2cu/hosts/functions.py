"""Host functions: their parameters, their results and their C++, from the functions of a file."""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import libcst as cst

from py2cu import ir
from py2cu.diagnostics import Reporter
from py2cu.dtypes import Kind as NumberKind
from py2cu.frontend.declarations.annotations import TENSORS, AnnotationReader
from py2cu.frontend.names.defaults import DefaultReader
from py2cu.frontend.names.syntax import all_parameters, assigned_names, flatten, nodes_in
from py2cu.frontend.source.reader import KernelSource, Module
from py2cu.hosts.checks import check_lines
from py2cu.hosts.expressions import ExpressionReader
from py2cu.hosts.layout import laid_out
from py2cu.hosts.signatures import CPP_PARAMETERS, Callee, HostParameter, HostSignature
from py2cu.hosts.statements import StatementReader, last_items, names_in
from py2cu.hosts.values import Kind, Local, Value, identifier, number
from py2cu.targets.cxx.lines import Line

DECORATOR: Final = "py2cu.host"
_NUMBERS: Final = {NumberKind.INT: Kind.INT, NumberKind.FLOAT: Kind.FLOAT, NumberKind.BOOL: Kind.BOOL}


@dataclass(frozen=True, slots=True)
class HostFunction:
    """A host function in C++."""

    signature: HostSignature
    lines: tuple[Line, ...]
    helpers: tuple[str, ...]
    headers: tuple[str, ...]
    constants: Mapping[str, Value]
    called: Mapping[tuple[str, str], Callee]


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
        found = self.read(source)
        return None if found is None else Callee(name, host=found.signature)


@dataclass(slots=True)
class _FunctionReader:
    reader: HostReader
    source: KernelSource
    reporter: Reporter

    def read(self) -> HostFunction | None:
        function = self.source.function
        parameters = self.parameters()
        if function.asynchronous is not None or self.reporter.failed:
            return None
        doc = function.get_docstring()
        result, count = self.declared_result()
        name = function.name.value
        has_backward = name in self.reader.with_backward
        span = self.reader.module.span(function.name)
        signature = HostSignature(
            name, identifier(name), parameters, result, count, doc=doc, end=span, has_backward=has_backward
        )
        while True:  # once more where it calls itself and writes to its parameters
            self.reader.open[name] = signature
            found = self.body(signature)
            if found is None or found.signature.written == signature.written or name not in found.called_names:
                return None if found is None else found.function
            signature = replace(signature, written=found.signature.written)
            self.reporter.diagnostics.clear()

    def declared_result(self) -> tuple[Kind, int | None]:
        """The kind of the result, as the `return`s look: what a call of the function itself gives."""
        for statement in flatten(self.source.function.body.body):
            if isinstance(statement, cst.Return) and statement.value is not None:
                match statement.value:
                    case cst.Tuple(elements=elements) | cst.List(elements=elements):
                        return Kind.TENSORS, len(elements)
                    case cst.Name(value="None"):
                        return Kind.NONE, None
                    case _:
                        continue
        has_value = any(
            isinstance(n, cst.Return) and n.value is not None for n in flatten(self.source.function.body.body)
        )
        return (Kind.TENSOR if has_value else Kind.NONE), None

    def parameters(self) -> tuple[HostParameter, ...]:
        function, module, environment = self.source.function, self.reader.module, self.source.environment
        params = function.params
        annotations = AnnotationReader(self.reporter, environment, module.span)
        defaults = DefaultReader(self.reporter, environment, module.span, self.reader.defaults)
        for star in (params.star_arg, params.star_kwarg):
            if isinstance(star, cst.Param):
                self.reporter.error("P106", "a host function names its parameters", module.span(star), "name every one")
        by_keyword = {param.name.value for param in params.kwonly_params}
        found = []
        for param in all_parameters(function):
            name, span = param.name.value, module.span(param.name)
            text = identifier(name)
            if param.annotation is None:
                hint = f'write `{name}: Tensor`, `Float32[Tensor, "n"]`, `int`, `float` or `bool`'
                self.reporter.error("P301", f"parameter `{name}` needs an annotation", span, hint)
                continue
            node = param.annotation.annotation
            keyword = name in by_keyword
            if environment.qualify(node) in TENSORS:
                parameter = HostParameter(name, text, Kind.TENSOR, by_keyword=keyword, span=span)
            elif self._is_list_of_tensors(node):
                parameter = HostParameter(name, text, Kind.TENSORS, by_keyword=keyword, span=span)
            else:
                match annotations.read(node, name):
                    case ir.ArrayType() as array:
                        parameter = HostParameter(name, text, Kind.TENSOR, None, keyword, array, span)
                    case ir.PythonType(kind=kind) as type_ if kind in _NUMBERS:
                        value = None if param.default is None else defaults.read_for_kernel(param, type_)
                        known = None if value is None or isinstance(value.value, complex) else number(value.value)
                        parameter = HostParameter(name, text, _NUMBERS[kind], known, keyword, span=span)
                    case None:
                        continue
                    case _:
                        hint = "a host function takes tensors, lists of tensors, `int`, `float` and `bool`"
                        self.reporter.error(
                            "P301", "this annotation is not for host functions", module.span(node), hint
                        )
                        continue
            if (
                param.default is not None
                and parameter.default is None
                and parameter.kind in (Kind.TENSOR, Kind.TENSORS)
            ):
                self.reporter.error(
                    "P106", "only numbers have defaults here", module.span(param.default), "leave it out"
                )
            found.append(parameter)
        return tuple(found)

    def _is_list_of_tensors(self, node: cst.BaseExpression) -> bool:
        environment = self.source.environment
        match node:
            case cst.Subscript(value=base, slice=[cst.SubscriptElement(slice=cst.Index(value=item))]):
                is_list = environment.qualify(base) in ("builtins.list", "typing.List", "collections.abc.Sequence")
                return is_list and environment.qualify(item) in TENSORS
            case _:
                return False

    def body(self, signature: HostSignature) -> _Body | None:
        function, module, environment = self.source.function, self.reader.module, self.source.environment
        suite = function.body
        inside = environment.inner(function)
        every = [*assigned_names(suite.body)]
        in_loops = {n for loop in nodes_in(suite) if isinstance(loop, cst.For) for n in assigned_names(loop.body.body)}
        of_parameters = {p.name for p in signature.parameters}
        once = frozenset(n for n in every if every.count(n) == 1 and n not in in_loops | of_parameters)
        called_names: set[str] = set()

        def callee(node: cst.BaseExpression) -> Callee | None:
            if isinstance(node, cst.Name) and node.value in expressions.locals:
                return None
            found = self.reader.callee(node, signature.name, self.reporter)
            if found is not None:
                called_names.add(found.name)
            return found

        expressions = ExpressionReader(inside, self.reporter, module.span, callee)
        for parameter in signature.parameters:
            base = frozenset([parameter.name]) if parameter.kind in (Kind.TENSOR, Kind.TENSORS) else frozenset[str]()
            expressions.locals[parameter.name] = Local(parameter.kind, parameter.text, bases=base)
        expressions.unassigned |= {*every} - of_parameters
        mentioned = {identifier(n) for n in names_in(suite) if n not in every}
        taken = {p.text for p in signature.parameters} | mentioned
        taken |= {f"{n}_{suffix}" for n in mentioned for suffix in ("out", "launch")}  # wrappers of kernels
        names = {p.name: p.text for p in signature.parameters}
        ranks = {
            p.text: len(p.array.dims)
            for p in signature.parameters
            if p.array is not None and not p.array.leading and p.name not in every
        }
        statements = StatementReader(expressions, once, names, taken, ranks, last_items(suite))
        block, is_reached = statements.suite(suite)
        result, count, is_list = self.result(statements, is_reached)
        if self.reporter.failed:
            return None
        reassigned = of_parameters & {*every}
        whole = replace(signature, result=result, count=count, is_list=is_list, written=frozenset(expressions.written))
        if len(statements.returned) == 1 and not is_reached:
            [end] = statements.returned
            whole = replace(whole, outputs=end.outputs, end=end.span)
        elif statements.returned:
            whole = replace(whole, end=statements.returned[-1].span)
        checks, helpers = check_lines(whole)
        head = [
            f"{_by_value(p) if p.name in reassigned else CPP_PARAMETERS[p.kind]} {p.text}" for p in whole.parameters
        ]
        returns = {Kind.TENSOR: "at::Tensor", Kind.TENSORS: "std::vector<at::Tensor>"}.get(result, "void")
        lines = laid_out(f"{returns} {whole.cpp_name}", head, whole, checks, block, module.span(function.name).line)
        every_helper = (*helpers, *expressions.helpers)
        found = HostFunction(
            whole, tuple(lines), every_helper, tuple(expressions.headers), expressions.constants, expressions.called
        )
        return _Body(found, called_names)

    def result(self, statements: StatementReader, is_reached: bool) -> tuple[Kind, int | None, bool]:
        """What the function returns; refused where its `return`s differ."""
        span = self.reader.module.span(self.source.function.name)
        found = [*dict.fromkeys((each.kind, each.count, each.is_list) for each in statements.returned)]
        if is_reached and any(kind is not Kind.NONE for kind, _, _ in found):
            hint = "end the function with a `return`, or with `raise`"
            self.reporter.error("P106", "not every path returns tensors", span, hint)
        if not found:
            return Kind.NONE, None, False
        if len({(kind, is_list) for kind, _, is_list in found}) > 1:
            self.reporter.error(
                "P106", "the `return`s of this function differ", span, "return the same number of tensors"
            )
        kind, count, is_list = found[0]
        if any(each != count for _, each, _ in found):
            count = None
        return kind, count, is_list


@dataclass(frozen=True, slots=True)
class _Body:
    function: HostFunction
    called_names: set[str]

    @property
    def signature(self) -> HostSignature:
        return self.function.signature


def _by_value(parameter: HostParameter) -> str:
    return {Kind.TENSORS: "std::vector<at::Tensor>", Kind.TENSOR: "at::Tensor"}.get(
        parameter.kind, CPP_PARAMETERS[parameter.kind]
    )


def host_sources(module: Module, only: str | None = None) -> tuple[KernelSource, ...]:
    """The functions of a file under `@py2cu.host`, or the one called `only`."""
    return tuple(
        source
        for source in module.functions
        if only in (None, source.function.name.value) and source.environment.made(source.function) == DECORATOR
    )
