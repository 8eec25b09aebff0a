"""Device functions: plain functions that a kernel calls, read once for each combination of array arguments.

In: a call, and which of its arguments are arrays. Out: untyped IR; `infer_types` creates an instance for every
combination of argument types. The call decides the type of a parameter, as in Python; annotations are comments.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from types import FunctionType

import libcst as cst

from py2cu import ir
from py2cu.diagnostics import Origin, Related, Reporter
from py2cu.frontend.bodies.expressions import ExpressionReader
from py2cu.frontend.bodies.function_scope import ParameterNames, function_scope
from py2cu.frontend.bodies.functions.interface import ArgumentKind, ClosureCapture
from py2cu.frontend.bodies.statements import StatementReader
from py2cu.frontend.bodies.tuples.forms import Form, count_numbers, shape, spell_form
from py2cu.frontend.bodies.tuples.parameters import bind_tuples, number_names
from py2cu.frontend.bodies.views import ArrayArgument
from py2cu.frontend.declarations.annotations import unnamed_dims
from py2cu.frontend.declarations.arguments import Argument, bind_arguments
from py2cu.frontend.declarations.array_declarations import ArrayDeclarationReader
from py2cu.frontend.declarations.array_extents import ExtentReader
from py2cu.frontend.declarations.fixed_arguments import Shapes, fixed_arguments, with_fixed
from py2cu.frontend.names.ambiguity import remove_decorators
from py2cu.frontend.names.closures import environment_in, free_variables, reached_functions
from py2cu.frontend.names.constants import Constants, Real
from py2cu.frontend.names.defaults import DefaultReader
from py2cu.frontend.names.environment import Environment
from py2cu.frontend.names.redefinitions import redefined
from py2cu.frontend.names.syntax import all_parameters, assigned_names, dotted
from py2cu.frontend.source.imports import DeviceFunction, ImportedSources
from py2cu.frontend.source.reader import Module
from py2cu.ir.abi.parameters import Parameter
from py2cu.ir.visit import names_in
from py2cu.live import defaults_of, visible_objects
from py2cu.source import Span

MAX_CALLS = 32
_MADE = {
    "py2cu.kernel": "a kernel: the host launches kernels, and they cannot call each other",
    "py2cu.host": "a host function, which kernels cannot call",
}
_COMMON_CODE = "move the common code into a plain function, and call that"


@dataclass(frozen=True, slots=True)
class FunctionReader:
    """Reads the device functions of one kernel; `functions` holds them, callees first."""

    reporter: Reporter
    environment: Environment  # of the body that is being read
    around: Environment  # of the kernel or of the other file, without functions nested in the body
    module: Module
    imported: ImportedSources
    origin: Origin | None = None
    functions: list[ir.Kernel] = field(default_factory=list)
    keys: set[str] = field(default_factory=set)
    returned: dict[str, list[Form]] = field(default_factory=dict)  # by key: the forms of the results that are read
    fixed: dict[tuple[cst.FunctionDef, str], DeviceFunction] = field(default_factory=dict)  # without what calls fix
    shapes: Shapes = field(default_factory=dict)
    depth: int = 0  # of functions that are being read

    def named(self, node: cst.BaseExpression) -> DeviceFunction | None:
        """The device function that `node` names."""
        if (
            isinstance(node, cst.Name)
            and node.value in self.environment.passed.keys() - self.environment.binders.keys()
        ):
            passed = self.environment.passed[node.value]
            return passed if isinstance(passed, DeviceFunction) else None
        if isinstance(node, cst.Name) and node.value in self.environment.functions:
            function = self.environment.functions[node.value]
            home = self.environment.homes.get(node.value)  # rule: closure-home
            return self._local_function(function, home or self._around_live(node.value))
        if isinstance(node, cst.Name) and node.value not in self.environment.binders:
            name = self.around.function_name(node.value)
            if name is not None:
                return self._local_function(self.around.functions[name], self._around_live(name))
        imported = self.imported.find(node, self.environment, self.module, self.reporter)
        return imported if isinstance(imported, DeviceFunction) else None

    def _local_function(self, node: cst.FunctionDef, around: Environment) -> DeviceFunction:
        """A function of this file; a live one knows its defaults."""
        live = self.around.live.get(node.name.value)
        if not isinstance(live, FunctionType) or not self.module.is_here(node, live):
            return DeviceFunction(node, self.module, around)
        return DeviceFunction(node, self.module, around, defaults_of(live))

    def _around_live(self, function: str) -> Environment:
        """The environment around a function of the file, with the live values that the function itself sees."""
        live = self.environment.live.get(function)  # rule: name-around
        if not isinstance(live, FunctionType):
            return self.around
        visible = visible_objects(live)
        around = replace(self.around, live={**self.around.live, **visible}, _values={})
        if others := redefined(around, visible, self.module.is_here):  # rule: redefined-around
            around = around.copy()
            around.ask_live(others)
        return around

    def missing(self, node: cst.BaseExpression) -> str | None:
        """A hint if `node` names a function of another file that does not have it; None otherwise."""
        hint = self.imported.find(node, self.environment, self.module, self.reporter)
        return hint if isinstance(hint, str) else None

    def constant(self, node: cst.BaseExpression) -> Constants | Real | None:
        """The number, or the tuple of numbers, that `node` names in another file; None for anything else."""
        return self.imported.constant(node, self.environment, self.module, self.reporter)

    def span_of(self, node: cst.CSTNode) -> Span:
        return self.module.span(node)

    def _inside(self, function: DeviceFunction, call: cst.Call) -> FunctionReader:
        """A reader for the body of `function`, which adds to the same `functions`."""
        inside = environment_in(function.node, function.environment)
        if function.module is self.module:
            return replace(self, environment=inside, depth=self.depth + 1)
        there, around = self._there(function, call), function.around or function.environment
        return replace(
            self, reporter=self.reporter.within(there), environment=inside, around=around,
            module=function.module, origin=None if there.file == self.imported.main else there, depth=self.depth + 1,
        )  # fmt: skip

    def _there(self, function: DeviceFunction, call: cst.Call) -> Origin:
        """The file of `function`, for diagnostics in it."""
        used = Related(f"`{function.node.name.value}` is called here", self.span_of(call), self.module.file)
        return Origin(function.module.file, used)

    def arguments(self, call: cst.Call, function: DeviceFunction) -> tuple[Argument, ...] | None:
        """The argument of each parameter of `function`; None, after a diagnostic, if the call does not fit."""
        node, environment = function.node, function.environment
        if (made := environment.made(node)) is not None:
            self.reporter.error("P105", f"`{node.name.value}` is {_MADE[made]}", self.span_of(call), _COMMON_CODE)
            return None
        if environment.binders and not environment.is_plain(node):  # rule: name-plain
            what = f"`{node.name.value}` may be replaced by its decorator, and py2cu does not run the file"
            self.reporter.error("P105", what, self.span_of(call), remove_decorators(node))
            return None
        is_here = function.module is self.module
        reporter = self.reporter if is_here else self.reporter.within(self._there(function, call))
        defaults = DefaultReader(reporter, environment, function.module.span, function.defaults)
        return bind_arguments(
            call, node, self.module, self.reporter, lambda param: defaults.read_for_call(param, self.span_of(call))
        )

    def with_fixed(
        self, function: DeviceFunction, values: tuple[Argument, ...]
    ) -> tuple[DeviceFunction, tuple[Argument, ...]] | None:
        """`function` without the parameters that the call fixes, and the other arguments; None after a diagnostic."""
        around = self.environment
        names = [each for each in values if isinstance(each, cst.Name | cst.Attribute)]
        names = [each for each in names if not around.is_local(each) or dotted(each) in around.homes]
        called = {name: self.named(name) for name in names}
        for name, passed in called.items():
            if passed is not None and (free := [*free_variables(reached_functions(passed.node, passed.environment))]):
                what = f"`{dotted(name)}` reads `{free[0][0]}` of its enclosing function, and is passed on here"
                self.reporter.error("P105", what, self.span_of(name), "let it take what it reads as an argument")
                return None
        functions: dict[cst.BaseExpression, DeviceFunction]
        functions = {name: each for name, each in called.items() if each is not None}
        fixed = fixed_arguments(function, values, around, functions, self.shapes)
        if not fixed:
            return function, values
        instance = with_fixed(function, fixed)
        instance = self.fixed.setdefault((function.node, instance.fixed), instance)
        pairs = zip(all_parameters(function.node), values, strict=True)
        return instance, tuple(value for parameter, value in pairs if parameter.name.value not in fixed)

    def form(self, key: str) -> Form:
        """The form of the result of the function `key`, as far as it is read."""
        return next(iter(self.returned[key]), None)

    def finished(self) -> dict[str, ir.Kernel]:
        """The functions that are read to their end, by their keys."""
        return {function.key: function for function in self.functions}

    def key(
        self, call: cst.Call, function: DeviceFunction, kinds: Sequence[ArgumentKind], captured: ClosureCapture
    ) -> str | None:
        """The key of `function` for these kinds of arguments; None, after a diagnostic, if calls nest too deep."""
        name = function.node.name.value
        around = map(ArrayArgument, captured.arrays.values())
        all_kinds = (*around, *kinds, *captured.values.values())
        ranks = [kind.key if isinstance(kind, ArrayArgument) else spell_form(kind) for kind in all_kinds]
        file = function.module.file.name
        place = f"{'' if file == self.imported.main.name else f'{file}:'}{function.number or ''}"
        span = function.module.span(function.node)
        if span.column > 0:  # a nested function: others may have its name
            place += f"{span.line}:"
        key = f"{place}{name}({','.join(ranks)}){function.fixed}"
        if key not in self.keys:
            if self.depth == MAX_CALLS:
                self.reporter.error(
                    "P102", f"device functions call each other more than {MAX_CALLS} deep here", self.span_of(call),
                    "inline some of them into their callers",
                )  # fmt: skip
                return None
            self.keys.add(key)
            inside = self._inside(function, call)
            symbol = f"{name}_{function.suffix}" if function.suffix else ""
            self.functions.append(replace(inside._read(function.node, kinds, captured, key), symbol=symbol))
        return key

    def _read(
        self, function: cst.FunctionDef, kinds: Sequence[ArgumentKind], captured: ClosureCapture, key: str
    ) -> ir.Kernel:
        if function.asynchronous is not None:  # rule: refused-async
            what = f"`{function.name.value}` is `async`: its call returns a coroutine, not a value"
            self.reporter.error("P103", what, self.span_of(function.name), "leave `async` out")
        tuples = self._tuples(function, kinds, captured)
        parameters = self._parameters(function, kinds, captured, tuples)
        array_types = {p.name: p.type for p in parameters if isinstance(p.type, ir.ArrayType)}
        extents = ExtentReader(self.reporter, self.environment, self.span_of, array_types, is_device=True)
        declarations = ArrayDeclarationReader(extents, frozenset(p.name for p in parameters))
        names = ParameterNames(
            scalars=frozenset(p.name for p in parameters if not isinstance(p.type, ir.ArrayType)),
            launch=captured.launch,
            barriers=captured.barriers,
            grids=captured.grids,
            broken=captured.broken,
        )
        scope = function_scope(function, declarations, names, self)
        for name, kind in zip(all_parameters(function), kinds, strict=True):
            if isinstance(kind, ArrayArgument) and (numbers := kind.names(name.name.value)):
                scope.views.views[name.name.value] = kind.view(name.name.value, numbers)
        self.returned[key] = scope.returned
        start = bind_tuples(function, tuples, scope)
        reader = StatementReader(scope, ExpressionReader(scope))
        text = function.get_docstring(clean=False)
        return ir.Kernel(
            name=function.name.value,
            doc=inspect.cleandoc(text) if text else None,
            indices=(),
            launch=(),
            parameters=parameters,
            size=None,
            block=(),
            inits=(),
            strided=(),
            body=(*start, *reader.read_suite(function.body)),
            annotated=tuple(reader.annotated),
            array_decls=tuple(scope.array_decls.values()),
            negative_indices=tuple(dict.fromkeys(scope.negative_indices)),
            elided=tuple(scope.elided),
            span=self.span_of(function.name),
            key=key,
            origin=self.origin,
        )

    def _tuples(
        self, function: cst.FunctionDef, kinds: Sequence[ArgumentKind], captured: ClosureCapture
    ) -> dict[str, ir.Expr]:
        """The parameters and captured names that are tuples, each as a tuple of the parameters of its numbers."""
        names = [param.name.value for param in all_parameters(function)]
        taken = {*names, *captured.values, *captured.arrays, *assigned_names(function.body.body)}
        tuples: dict[str, ir.Expr] = {}
        for name, kind in (*zip(names, kinds, strict=True), *captured.values.items()):
            if kind is None or isinstance(kind, ArrayArgument):
                continue
            numbers = number_names(name, count_numbers(kind), taken)
            tuples[name] = shape(kind, lambda at, numbers=numbers: ir.Name(numbers[at]))  # type: ignore[misc]
        return tuples

    def _parameters(
        self,
        function: cst.FunctionDef,
        kinds: Sequence[ArgumentKind],
        captured: ClosureCapture,
        tuples: dict[str, ir.Expr],
    ) -> tuple[Parameter, ...]:
        """Captured arrays, the function's parameters, captured numbers: the order in which calls pass them."""
        names = [param.name for param in all_parameters(function)]
        used = {*(name.value for name in names), *captured.values, *captured.arrays}
        used |= {*assigned_names(function.body.body), *self.environment.named_in(function)}
        used |= {name for value in tuples.values() for name in names_in(value)}
        around = self._around(captured, self.span_of(function.name), used)
        used |= {name for p in around if isinstance(p.type, ir.ArrayType) for d in p.type.dims for name in names_in(d)}
        parameters: list[Parameter] = []
        for name, kind in zip(names, kinds, strict=True):
            span = self.span_of(name)
            numbers = [name.value]
            if isinstance(kind, ArrayArgument):
                extents = unnamed_dims(name.value, len(kind.type.dims), span, used)
                parameters.append(Parameter(name.value, kind.with_extents(extents), span=span))
                numbers = [*kind.names(name.value)]
            elif name.value in tuples:
                numbers = [*names_in(tuples[name.value])]
            parameters += (_number(number, span) for number in numbers)
        free = (number for name in captured.values for number in names_in(tuples.get(name, ir.Name(name))))
        return (*around, *parameters, *(_number(number, self.span_of(function.name)) for number in free))

    def _around(self, captured: ClosureCapture, span: Span, used: set[str]) -> tuple[Parameter, ...]:
        """The captured arrays; extents keep the names that this function does not use itself."""
        keepable = {dim.id for array in captured.arrays.values() for dim in array.dims if isinstance(dim, ir.Name)}
        keepable -= used  # rule: closure-unused
        parameters = []
        for name, array in captured.arrays.items():
            others = unnamed_dims(name, len(array.dims), span, used | keepable)  # rule: closure-extents
            pairs = zip(array.dims, others, strict=True)
            dims = tuple(dim if isinstance(dim, ir.Name) and dim.id in keepable else other for dim, other in pairs)
            parameters.append(Parameter(name, ir.ArrayType(array.dtype, dims), span=span))
        return tuple(parameters)


def _number(name: str, span: Span) -> Parameter:
    """A parameter that is a number, of a placeholder type, which type inference replaces."""
    return Parameter(name, ir.PY_INT, span=span)
