"""The parameters of a kernel function, sorted by kind: launch objects, element indices, arguments, shared memory.

In: the function's node, its environment, and the requested values of template arguments. Out: `Parameters`; diagnostics
for annotations, defaults and orders that a kernel cannot have. A refused parameter is listed in `broken`, so that
its uses in the body are not reported, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import libcst as cst

from py2cu import ir
from py2cu.diagnostics import Reporter
from py2cu.frontend.bodies.scope import launch_object
from py2cu.frontend.bodies.tuples.parameters import number_names
from py2cu.frontend.declarations.annotations import AnnotationReader
from py2cu.frontend.declarations.parameter_types import (
    ConstexprAnnotation,
    IndexAnnotation,
    OptionalAnnotation,
    ParameterType,
    TupleAnnotation,
    may_be_none,
)
from py2cu.frontend.hints.annotations import rewrite_parameter
from py2cu.frontend.names.ambiguity import report_ambiguous_name
from py2cu.frontend.names.defaults import DefaultReader
from py2cu.frontend.names.syntax import all_parameters, is_named, nodes_in
from py2cu.frontend.source.imports import ImportedSources
from py2cu.frontend.source.reader import KernelSource, Module
from py2cu.ir.abi.parameters import (
    CONSTEXPR_MAX,
    BlockParameter,
    Constexpr,
    Default,
    IndexParameter,
    Parameter,
    is_constexpr_value,
)
from py2cu.ir.printer import print_expr
from py2cu.ir.visit import names_in
from py2cu.options import Values


@dataclass(slots=True)
class Parameters:
    """The parameters of a kernel function, sorted by what they are."""

    launch: dict[str, str] = field(default_factory=dict)  # by parameter, the launch object
    indices: list[IndexParameter] = field(default_factory=list)
    arguments: list[Parameter] = field(default_factory=list)
    block: list[BlockParameter] = field(default_factory=list)  # shared memory, and a barrier
    tuples: dict[str, tuple[str, ...]] = field(default_factory=dict)  # by tuple, the names of its scalar parameters
    broken: set[str] = field(default_factory=set)  # their annotations were refused already


@dataclass(frozen=True, slots=True)
class ParameterReader:
    """Reads the parameters of one kernel function.

    `values` are those of template arguments; `defaults` are those of the live function, None if only the source
    is known. `types` are those of a signature.
    """

    module: Module
    source: KernelSource
    reporter: Reporter
    values: Values
    defaults: Mapping[str, object] | None
    imported: ImportedSources
    types: Mapping[str, ParameterType]

    def read(self, annotations: AnnotationReader) -> Parameters:
        """The parameters, checked for their order and their defaults."""
        parameters = Parameters()
        params = self.source.function.params
        for stars, star in (("*", params.star_arg), ("**", params.star_kwarg)):
            if isinstance(star, cst.Param):
                message = f"a kernel has no `{stars}{star.name.value}` parameter"
                self._error("P106", message, star, "name every parameter")
        for param in all_parameters(self.source.function):
            self._read_parameter(param, parameters, annotations)
        by_keyword = {param.name.value for param in params.kwonly_params}
        parameters.arguments[:] = [replace(p, by_keyword=p.name in by_keyword) for p in parameters.arguments]
        self._name_numbers(parameters)
        self._place_on_axes(parameters)
        return parameters

    def _read_parameter(self, param: cst.Param, parameters: Parameters, annotations: AnnotationReader) -> None:
        name, span = param.name.value, self.module.span(param.name)
        launched = launch_object(name)
        if self._is_barrier(param):
            self._add_block_parameter(param, BlockParameter(name), parameters)
            return
        if name in self.types:
            type_: ParameterType | None = self.types[name]
        else:
            type_ = None if param.annotation is None else annotations.read(param.annotation.annotation, name)
        if may_be_none(type_) and _is_none(param.default):
            type_ = OptionalAnnotation(type_)
        is_number = isinstance(type_, ir.PythonType | ir.ElementType | ConstexprAnnotation | TupleAnnotation)
        if param.default is not None and not is_number and (type_ is not None or launched is not None):
            self._check_default(param, type_)
        is_typed = param.annotation is not None or name in self.types
        if launched is not None and not is_typed:
            if parameters.arguments or parameters.indices:
                message = f"`{name}` must come before the kernel's own parameters"
                self._error("P106", message, param.name, f"make `{name}` the first one")
            parameters.launch[name] = launched
            return
        if not is_typed:
            if self.source.is_numba:
                parameters.broken.add(name)
                return
            hint = rewrite_parameter(name, self.source.function.body, self.rank(name))
            self._error("P301", f"parameter `{name}` needs an annotation", param.name, hint)
            parameters.broken.add(name)
            return
        if isinstance(type_, IndexAnnotation):
            if parameters.arguments:
                message = f"the element index `{name}` must come before the other parameters"
                self._error("P106", message, param.name, f"make `{name}` the first one")
            parameters.indices.append(IndexParameter(name, type_.extent, "", span))
        elif isinstance(type_, ConstexprAnnotation):
            parameters.arguments.append(self._template_argument(param, type_.type))
        elif name == "shared" and isinstance(type_, ir.ArrayType) and parameters.launch and not parameters.arguments:
            self._add_block_parameter(param, BlockParameter(name, type_), parameters)
        elif isinstance(type_, ir.ArrayType):
            parameters.arguments.append(Parameter(name, type_, span=span))
        elif isinstance(type_, OptionalAnnotation):
            parameters.arguments.append(Parameter(name, type_.type, span=span, may_be_none=True))
        elif isinstance(type_, TupleAnnotation):
            self._add_tuple(param, type_.items, parameters)
        elif type_ is not None:
            default = None if param.default is None else self._default_reader().read_for_kernel(param, type_)
            parameters.arguments.append(Parameter(name, type_, span=span, default=default))
        else:
            parameters.broken.add(name)

    def _add_tuple(
        self, param: cst.Param, types: tuple[ir.ElementType | ir.PythonType, ...], parameters: Parameters
    ) -> None:
        """Add a scalar parameter for each number of a tuple; `_name_numbers` names them later."""
        name, span = param.name.value, self.module.span(param.name)
        reader = self._default_reader()
        defaults = (None,) * len(types) if param.default is None else reader.read_for_tuple(param, types)
        parameters.tuples[name] = ()
        parameters.arguments += [
            Parameter(name, type_, span=span, default=default)
            for type_, default in zip(types, defaults, strict=True)
        ]  # fmt: skip

    def _name_numbers(self, parameters: Parameters) -> None:
        """Name the scalar parameters of tuples; the names are unique in the kernel."""
        if not parameters.tuples:
            return
        function = self.source.function
        types = [*(p.type for p in parameters.arguments), *(p.type for p in parameters.block)]
        extents = [dim for type_ in types if isinstance(type_, ir.ArrayType) for dim in type_.dims]
        # rule: tuple-dims
        taken = {name for dim in (*extents, *(i.extent for i in parameters.indices)) for name in names_in(dim)}
        taken |= {param.name.value for param in all_parameters(function)}  # rule: tuple-parameters
        taken |= {node.value for node in nodes_in(function.body) if isinstance(node, cst.Name)}  # rule: tuple-names
        count = Counter(p.name for p in parameters.arguments)
        parameters.tuples = {name: number_names(name, count[name], taken) for name in parameters.tuples}
        left = {name: iter(numbers) for name, numbers in parameters.tuples.items()}
        parameters.arguments[:] = [
            replace(p, name=next(left[p.name])) if p.name in left else p for p in parameters.arguments
        ]

    def _default_reader(self) -> DefaultReader:
        return DefaultReader(
            self.reporter, self.source.environment, self.module.span, self.defaults, self._constant_elsewhere
        )

    def _check_default(self, param: cst.Param, type_: ParameterType | None) -> None:
        """Refuse the default of a parameter that is no number, unless it is the None of an optional one."""
        name = param.name.value
        if not isinstance(type_, OptionalAnnotation):
            what = f"`{name}` is not a number, and only numbers have defaults"
            self._error("P106", what, param, "leave the default out")
        elif not _is_none(param.default):
            kind = "array" if isinstance(type_.type, ir.ArrayType) else "number"
            what = f"the default of an optional {kind} such as `{name}` must be None"
            self._error("P106", what, param, "write `= None`")

    def _constant_elsewhere(self, node: cst.BaseExpression) -> object:
        return self.imported.constant(node, self.source.environment, self.module, self.reporter)

    def _is_barrier(self, param: cst.Param) -> bool:
        """True for `syncb: threading.Barrier`."""
        annotation = param.annotation
        return annotation is not None and self.source.environment.qualify(annotation.annotation) == "threading.Barrier"

    def _add_block_parameter(self, param: cst.Param, block_parameter: BlockParameter, parameters: Parameters) -> None:
        """Add `shared` or `syncb`, which stand behind the launch objects and before the arguments of a call."""
        if parameters.arguments or parameters.indices:
            message = f"`{block_parameter.name}` must come before the kernel's own parameters"
            self._error("P106", message, param.name, "put it behind the launch objects")
        type_ = block_parameter.type
        if type_ is not None and len(type_.dims) != 1:
            message = f"the shared memory `{block_parameter.name}` has one dimension, not {len(type_.dims)}"
            product = "*".join(f"({each})" if " " in each else each for each in map(print_expr, type_.dims))
            self._error("P408", message, param.name, f'write one extent, `"{product}"`')
            block_parameter = replace(block_parameter, type=replace(type_, dims=(ir.constant_extent(1),)))
        parameters.block.append(block_parameter)

    def _template_argument(self, param: cst.Param, type_: ir.PythonType) -> Parameter:
        """A template argument with the values of its instances; a bool has both values."""
        name, span = param.name.value, self.module.span(param.name)
        value = None if param.default is None else self._constexpr_default(param.default, type_)
        values = self.values.get(name, () if value is None else (value,))
        if not values and param.default is None and type_ != ir.PY_BOOL:
            self.reporter.note(
                "P311", f"no value of `{name}` is known here: the template has no instances", span,
                f"give it a default, or ask for some: `--constexpr {name}=16,32`",
            )  # fmt: skip
        constexpr = Constexpr((False, True) if type_ == ir.PY_BOOL else tuple(dict.fromkeys(values)))
        default = None if value is None else Default(value)
        return Parameter(name, type_, span=span, constexpr=constexpr, default=default)

    def _constexpr_default(self, node: cst.BaseExpression, type_: ir.PythonType) -> int | None:
        value = self.source.environment.constant(node)
        fits = isinstance(value, bool) if type_ == ir.PY_BOOL else is_constexpr_value(value)
        if fits and isinstance(value, int):
            return value
        if report_ambiguous_name(node, self.source.environment, self.reporter, self.module.span):
            return None
        what = "True or False" if type_ == ir.PY_BOOL else f"a whole number from 0 to {CONSTEXPR_MAX}"
        message = f"the default of a `Constexpr[{type_.kind.name.lower()}]` is {what}"
        hint = "write it out, or the name of a constant of this module: the file is read, not run"
        self._error("P310", message, node, hint)
        return None

    def rank(self, array: str) -> int:
        """The number of indices at the first access to `array` in the body; 1 if there is none."""
        subscripts = (node for node in nodes_in(self.source.function.body) if isinstance(node, cst.Subscript))
        match next((node for node in subscripts if is_named(node.value, array)), None):
            case cst.Subscript(slice=[cst.SubscriptElement(slice=cst.Index(value=cst.Tuple(elements=indices)))]):
                return len(indices)
            case cst.Subscript(slice=indices):
                return len(indices)
            case _:
                return 1

    def _place_on_axes(self, parameters: Parameters) -> None:
        """Place each index on an axis, the last one on x; all on x, over one flat index, if there are too few axes."""
        indices = parameters.indices
        axes = "xyz"[: len(indices)][::-1] if len(indices) <= ir.MAX_AXES else "x" * len(indices)
        indices[:] = [IndexParameter(i.name, i.extent, axis, i.span) for i, axis in zip(indices, axes, strict=True)]

    def _error(self, code: str, message: str, node: cst.CSTNode, hint: str) -> None:
        self.reporter.error(code, message, self.module.span(node), hint)


def _is_none(node: cst.BaseExpression | None) -> bool:
    return node is not None and is_named(node, "None")
