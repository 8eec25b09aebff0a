"""One kernel function → an untyped `Kernel`: parameters, options and body.

In: the function in its module, and the options and values of a live kernel. Out: the IR; what is wrong is reported. An
index kernel has parameters annotated `Index[…]`, a block kernel uses launch objects.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import libcst as cst

from py2cu import ir
from py2cu.analysis.template_instances import instances
from py2cu.builtins.launch import LANE
from py2cu.builtins.memory import DYNAMIC_BYTES
from py2cu.diagnostics import Reporter
from py2cu.dtypes import Kind
from py2cu.frontend.bodies.expressions import ExpressionReader
from py2cu.frontend.bodies.function_scope import ParameterNames, function_scope
from py2cu.frontend.bodies.scope import Scope
from py2cu.frontend.bodies.statements import StatementReader
from py2cu.frontend.bodies.tuples.parameters import bind_tuples
from py2cu.frontend.declarations.annotations import AnnotationReader
from py2cu.frontend.declarations.array_declarations import ArrayDeclarationReader, is_dynamic
from py2cu.frontend.declarations.array_extents import ExtentReader
from py2cu.frontend.declarations.named_constants import named_constant, written_extent
from py2cu.frontend.decorator import OptionReader, find_problems, strided_arrays
from py2cu.frontend.device_functions import FunctionReader
from py2cu.frontend.names.closures import environment_in
from py2cu.frontend.names.syntax import all_parameters, nodes_in
from py2cu.frontend.numba.arithmetic import note_arithmetic
from py2cu.frontend.numba.jit import UNTYPED, check_types, parameter_types, strided_parameters
from py2cu.frontend.parameters import ParameterReader, Parameters
from py2cu.frontend.source.imports import ImportedSources
from py2cu.frontend.source.reader import KernelSource, Module
from py2cu.ir.abi.parameters import Parameter
from py2cu.ir.substitution import substitute
from py2cu.ir.visit import all_expressions, names_in
from py2cu.options import DEFAULT_BLOCKS, MAX_THREADS, KernelOptions, Values, is_launchable
from py2cu.source import Span
from py2cu.suggestions import did_you_mean


def read_kernel(
    module: Module,
    source: KernelSource,
    reporter: Reporter,
    options: KernelOptions | None,
    values: Values,
    defaults: Mapping[str, object] | None = None,
) -> ir.Kernel:
    """The kernel as untyped IR; diagnostics go to `reporter`.

    `options` are the decorator's arguments, and `defaults` the default values of the decorated function; None reads
    them from the source. `values` maps `Constexpr[int]` parameters to the values of their instances; a missing one
    takes its default, if there is one.
    """
    kernel = _KernelReader(module, source, reporter, values, defaults, ImportedSources(module.file)).read(options)
    if source.is_numba and not reporter.failed:
        note_arithmetic(kernel, reporter)
    elif source.is_numba:
        reporter.keep_only(UNTYPED)  # without types, the other errors would mislead
    return kernel


@dataclass(frozen=True, slots=True)
class _KernelReader:
    module: Module
    source: KernelSource
    reporter: Reporter
    values: Values
    defaults: Mapping[str, object] | None
    imported: ImportedSources

    def read(self, options: KernelOptions | None) -> ir.Kernel:
        function = self.source.function
        options = self._written(options)
        types = parameter_types(options.signature, self.source, self.module, self.reporter)
        parameter_reader = ParameterReader(
            self.module, self.source, self.reporter, self.values, self.defaults, self.imported, types
        )
        annotations = AnnotationReader(self.reporter, self.source.environment, self.module.span, parameter_reader.rank)
        parameters = parameter_reader.read(annotations)
        self._read_as_numba(parameters, has_types=options.signature is not None)
        options = self._checked_options(options, parameters)
        around = self.source.environment
        functions = FunctionReader(self.reporter, environment_in(function, around), around, self.module, self.imported)
        scope = self._scope(parameters, functions)
        reader = StatementReader(scope, ExpressionReader(scope))
        shared_allocs = tuple(ir.Alloc(b.name, b.span) for b in scope.array_decls.values() if b.is_parameter)
        tuples = {name: ir.Tuple(tuple(map(ir.Name, numbers))) for name, numbers in parameters.tuples.items()}
        block = shared_allocs + bind_tuples(function, tuples, scope) + reader.read_suite(function.body)
        size = self._size(options, parameters, annotations)
        bodies = (block, *(device_function.body for device_function in functions.functions))
        uses_thread_index = any(_differs_between_threads(node) for body in bodies for node in all_expressions(body))
        if function.asynchronous is not None:
            self._error("P103", "a kernel is a plain function, not `async`", function.name, "leave `async` out")
        is_numba = self.source.is_numba or options.signature is not None  # these may be launched as one thread
        has_index = parameters.indices or parameters.launch or uses_thread_index or is_numba
        if not has_index and not parameters.broken:
            self._error(
                "P402", f"`{function.name.value}` uses no thread index: all threads would do the same", function.name,
                'make the first parameter an element index, `i: Index["n"]`, or import `blockIdx`, `blockDim`, '
                "`threadIdx` from py2cu",
            )  # fmt: skip
        return ir.Kernel(
            name=options.name or function.name.value,
            doc=self._docstring(),
            indices=tuple(parameters.indices),
            launch=tuple(parameters.launch.values()),
            parameters=tuple(parameters.arguments),
            size=size,
            block=self._block(options, len(size or ()) or 1, parameters, annotations),
            has_default_block=options.block is None,
            coarsen=options.coarsen,
            launch_bounds=options.bounds,
            inits=tuple(_inits(options, parameters)),
            strided=self._strided(options, parameters),
            body=block,
            annotated=tuple(reader.annotated),
            span=self.module.span(function.name),
            array_decls=tuple(scope.array_decls.values()),
            # Those of functions, too: nothing may read the result of a call, which is dropped then.
            negative_indices=(
                *dict.fromkeys(scope.negative_indices),
                *(at for f in functions.functions for at in f.negative_indices),
            ),
            elided=tuple(scope.elided),
            variables=tuple(annotations.variables.values()),
            functions=tuple(functions.functions),
            block_parameters=tuple(parameters.block),
            tuples=tuple(parameters.tuples.items()),
            row_lengths=tuple(scope.declarations.extents.row_lengths.items()),
        )

    def _read_as_numba(self, parameters: Parameters, *, has_types: bool) -> None:
        """Add the parameter for dynamic shared memory, and report a kernel under `@cuda.jit` without types."""
        function = self.source.function
        around = self.source.environment
        nodes = nodes_in(function.body) if around.imports_numba else ()
        calls = (node for node in nodes if isinstance(node, cst.Call))
        if any(is_dynamic(call, around) for call in calls):
            parameters.arguments.append(Parameter(DYNAMIC_BYTES, ir.PY_INT, span=self.module.span(function.name)))
        if self.source.is_numba and not has_types:
            check_types(self.source, self.module, self.reporter)

    def _error(self, code: str, message: str, node: cst.CSTNode, hint: str) -> None:
        self.reporter.error(code, message, self.module.span(node), hint)

    # --- options ---

    def _written(self, options: KernelOptions | None) -> KernelOptions:
        """The options, those in the text where none are given; a live kernel of Numba has only a signature."""
        if options is not None and not self.source.is_numba:
            return options
        source = self.source if options is None else replace(self.source, signature=options.signature)
        written = OptionReader(self.reporter, source, self.module).read()
        if options is None:
            return written
        return replace(options, signature=written.signature, launch_bounds=written.launch_bounds)

    def _checked_options(self, options: KernelOptions, parameters: Parameters) -> KernelOptions:
        """The options of the decorator; the defaults, after a diagnostic, if one of them is wrong."""
        arrays = {p.name: p.type.dtype for p in parameters.arguments if isinstance(p.type, ir.ArrayType)}
        problems = [*find_problems(options, arrays, is_index_kernel=bool(parameters.indices))]
        for problem in problems:
            self.reporter.error("P403", problem, self._decorator_span(), "`py2cu explain P403` shows what is right")
        return KernelOptions() if problems else options

    def _strided(self, options: KernelOptions, parameters: Parameters) -> tuple[str, ...]:
        """The arrays with strides of their own, in the order of the parameters."""
        arrays = [p.name for p in parameters.arguments if isinstance(p.type, ir.ArrayType)]
        names = strided_arrays(options, arrays) + strided_parameters(options.signature, self.source.function)
        for name in dict.fromkeys(names):
            if name not in (*arrays, *parameters.broken):  # rule: strides-refused
                what = f"`strided` names `{name}`, which is no array of the kernel"
                hint = did_you_mean(name, arrays, f"its arrays are {', '.join(arrays)}" if arrays else "it has none")
                self.reporter.error("P403", what, self._decorator_span(), hint)
        return tuple(array for array in arrays if array in names)

    def _size(
        self, options: KernelOptions, parameters: Parameters, annotations: AnnotationReader
    ) -> tuple[ir.DimExpr, ...] | None:
        """The number of threads in x, y and z; None if the kernel does not determine it."""
        if parameters.indices:
            axes = tuple(index.extent for index in reversed(parameters.indices))
            return axes if len(axes) <= ir.MAX_AXES else (functools.reduce(_product, reversed(axes)),)
        if options.size is None:
            return None
        items = options.size if isinstance(options.size, tuple) else (options.size,)
        extents = self._launch_extents("size", items, parameters, annotations)
        return tuple(extent for extent in extents if extent is not None) or None

    def _block(
        self, options: KernelOptions, rank: int, parameters: Parameters, annotations: AnnotationReader
    ) -> tuple[ir.DimExpr, ...]:
        """The threads of a block in x, y and z."""
        block = options.block
        items = block if isinstance(block, tuple) else (DEFAULT_BLOCKS[rank] if block is None else (block,))
        read = self._launch_extents("block", items, parameters, annotations)
        extents = tuple(ir.constant_extent(1) if extent is None else extent for extent in read)
        self._check_block(extents, parameters, options.bounds[0] if options.bounds else MAX_THREADS)
        return extents + (ir.constant_extent(1),) * (rank - len(extents))

    def _option_nodes(self, option: str, count: int) -> list[cst.BaseExpression | None]:
        """The `count` expressions of an option in the decorator's text; None for those that the text does not show."""
        decorator = self.source.decorator
        call = None if decorator is None else self.source.environment.decorator(decorator.decorator)
        args = call.args if isinstance(call, cst.Call) else ()
        node = next((arg.value for arg in args if arg.keyword is not None and arg.keyword.value == option), None)
        nodes: list[cst.BaseExpression | None]
        nodes = [each.value for each in node.elements] if isinstance(node, cst.Tuple) else [node]
        return nodes if len(nodes) == count else [None] * count

    def _launch_extents(
        self, option: str, items: Sequence[int | str], parameters: Parameters, annotations: AnnotationReader
    ) -> list[ir.DimExpr | None]:
        """The extents of `size` or `block`, with the names of constants; None for each that is refused."""
        extents = [self._launch_extent(item, parameters, annotations) for item in items]
        return [*map(self._with_name, extents, self._option_nodes(option, len(extents)))]

    def _with_name(self, extent: ir.DimExpr | None, node: cst.BaseExpression | None) -> ir.DimExpr | None:
        """An extent with the name that `node` reads, if the name stands for its number."""
        around = self.source.environment
        if node is None or not isinstance(extent, ir.Constant) or around.constant(node) != extent.value:
            return extent
        return replace(extent, named=written_extent(node, int(extent.value), around, self.module.span))

    def _launch_extent(
        self, item: int | str, parameters: Parameters, annotations: AnnotationReader
    ) -> ir.DimExpr | None:
        """An extent of `size` or `block`: a name that is no dimension and no parameter is a constant of the module."""
        extent = annotations.read_extent(str(item), self._decorator_span())
        if extent is None:
            return None
        types = [parameter.type for parameter in parameters.arguments]
        dims = {name for type_ in types if isinstance(type_, ir.ArrayType) for d in type_.dims for name in names_in(d)}
        others = set(names_in(extent)) - dims - {parameter.name for parameter in parameters.arguments}
        around, span = self.source.environment, self.module.span
        nodes = {name: cst.Name(name) for name in others}
        values = {
            name: ir.Constant(value, extent.span, ir.PY_INT, named=named_constant(node, value, around, span))
            for name, node in nodes.items()
            if isinstance(value := around.constant(node), int) and not isinstance(value, bool)
        }
        return ir.as_extent(substitute(extent, values)) if values else extent

    def _check_block(self, block: tuple[ir.DimExpr, ...], parameters: Parameters, most: int) -> None:
        """Refuse blocks that a GPU cannot launch, or that exceed `most` threads, for some value of template arguments.

        A block that depends on other arguments is checked at the call.
        """
        known = {p.name: p.constexpr for p in parameters.arguments if p.constexpr is not None and p.type == ir.PY_INT}
        if not known.keys() >= {name for extent in block for name in names_in(extent)}:
            return
        for choice, shape in instances(block, known):
            if choice and not is_launchable(shape):
                self.reporter.error(
                    "P403", f"no block can be launched{choice}", self._decorator_span(),
                    f"a block has at least one thread, at most {MAX_THREADS}, and 64 in z",
                )  # fmt: skip
            elif math.prod(shape) > most:  # rule: bounds-of-block
                message = f"a block has {math.prod(shape)} threads{choice}, and `launch_bounds` allows {most}"
                hint = "give a smaller `block`, or let `launch_bounds` allow for it"
                self.reporter.error("P403", message, self._decorator_span(), hint)

    def _decorator_span(self) -> Span:
        node = self.source.decorator or self.source.function.name
        return self.module.span(node)

    # --- body ---

    def _docstring(self) -> str | None:
        text = self.source.function.get_docstring(clean=False)
        return inspect.cleandoc(text) if text else None

    def _scope(self, parameters: Parameters, functions: FunctionReader) -> Scope:
        arrays = {p.name: p.type for p in parameters.arguments if isinstance(p.type, ir.ArrayType)}
        scalars = {p.name for p in parameters.arguments if not isinstance(p.type, ir.ArrayType)}
        extents = ExtentReader(
            self.reporter, functions.environment, self.module.span, arrays,
            {p.name: p.constexpr for p in parameters.arguments if p.constexpr is not None},
            {p.name for p in parameters.arguments if p.type == ir.PY_INT}, parameters.launch,
        )  # fmt: skip
        indices = frozenset(index.name for index in parameters.indices)
        declarations = ArrayDeclarationReader(extents, indices.union(scalars, arrays, parameters.launch))
        self._add_shared(parameters, declarations)
        names = ParameterNames(
            scalars=indices | scalars,
            launch=parameters.launch,
            indices=indices,
            barriers=frozenset(parameter.name for parameter in parameters.block if parameter.type is None),
            broken=frozenset(parameters.broken),
            optional_parameters=frozenset(p.name for p in parameters.arguments if p.may_be_none),
        )
        return function_scope(self.source.function, declarations, names, functions)

    def _add_shared(self, parameters: Parameters, declarations: ArrayDeclarationReader) -> None:
        """Declare the parameter `shared`; an open dtype is that of an array with the same annotation."""
        params = {param.name.value: param for param in all_parameters(self.source.function)}
        for name, type_ in ((parameter.name, parameter.type) for parameter in parameters.block):
            if type_ is None:
                continue
            node, dtype = params[name], type_.dtype
            arrays = declarations.extents.arrays
            extents = [index.extent for index in parameters.indices]
            extents += [dim for array in arrays.values() for dim in array.dims]
            known = declarations.extents.launch_values.union(*map(names_in, extents))
            unknown = set(names_in(type_.dims[0])) - known
            if unknown:
                message = f"the dimension `{min(unknown)}` of the shared memory cannot be determined from the arguments"
                hint = "compute its extent from numbers, dimensions of arrays and integer parameters"
                self._error("P304", message, node.name, hint)
            same = [array for array, other in arrays.items() if other.dtype.variable == dtype.variable]
            like = same[0] if same and dtype.variable is not None else ""
            if dtype.variable is not None and not same:
                self._error(
                    "P408",
                    "the dtype of the shared memory cannot be determined from the arguments",
                    node.name,
                    "name it: `Float32[…]`",
                )
            span = self.module.span(node.name)
            shared = ir.ArrayDecl(name, type_, ir.Space.SHARED, like=like, span=span, is_parameter=True)
            declarations.check_size(type_.dims, dtype, ir.Space.SHARED, node.name)  # rule: shared-checked
            declarations.declared[name] = declarations.placed(shared, node)


def _product(left: ir.DimExpr, right: ir.DimExpr) -> ir.DimExpr:
    return ir.Binary("*", left, right, left.span, ir.PY_INT)


def _inits(options: KernelOptions, parameters: Parameters) -> Iterator[tuple[str, int | float]]:
    """The values that outputs are initialised with; a large integer for a float array becomes a float."""
    floats = {
        p.name for p in parameters.arguments if isinstance(p.type, ir.ArrayType) and p.type.dtype.kind >= Kind.FLOAT
    }
    for name, value in options.init.items():
        is_plain = isinstance(value, int) and (name not in floats or abs(value) < 2**53)
        yield name, value if is_plain else float(value)


def _differs_between_threads(node: ir.Expr) -> bool:
    """True for values that differ between threads: launch indices, lanes, and results of atomics."""
    return isinstance(node, ir.LaunchIndex | ir.Atomic) or (isinstance(node, ir.Call) and node.function == LANE)
