"""Describes one kernel for a template: a frozen record of texts and flags, so that templates loop and test, but decide
nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import product
from typing import Final

from py2cu import ir
from py2cu.dtypes import DType
from py2cu.ir.operators import OPERATORS
from py2cu.passes.lowering.widen_halves import ROUND_TO
from py2cu.targets.cxx.dialect import Dialect
from py2cu.targets.cxx.functions import FunctionView
from py2cu.targets.cxx.includes import MATH, headers_of_types
from py2cu.targets.cxx.launcher.values import ValueText
from py2cu.targets.cxx.lines import Line
from py2cu.targets.cxx.parameters import (
    Argument,
    headers_of_arguments,
    launch_arguments,
    template_head,
    typenames,
    wrapped,
)
from py2cu.targets.cxx.statements import Emitter

_ZEROS: Final = {"bool": "false", "int64_t": "0", "double": "0.0"}
"""By type, what a kernel gets for an optional number that is left out; it reads none of them."""


@dataclass(frozen=True, slots=True)
class IndexLoop:
    """The loop over one element index on the CPU."""

    name: str
    extent: str
    end: str  # the local that holds where the loop ends
    axis: str
    is_product: bool

    @property
    def operand(self) -> str:
        """The extent behind a `<`."""
        return self.extent if self.is_product else f"({self.extent})"


@dataclass(frozen=True, slots=True)
class Instance:
    """One instantiation of a template: what stands for its parameters."""

    values: tuple[str, ...]
    launch_arguments: tuple[Argument, ...]


@dataclass(frozen=True, slots=True)
class KernelView:
    """One kernel for the templates of a target; `threads` are the extents of the launch in x, y, z."""

    name: str
    doc: tuple[str, ...]
    is_index: bool
    is_template: bool
    helpers: tuple[str, ...]
    functions: tuple[FunctionView, ...]
    tables: tuple[str, ...]  # declarations of constants that the body and the functions look things up in
    kernel_arguments: tuple[Argument, ...]
    launch_arguments: tuple[Argument, ...]
    computed: tuple[ValueText, ...]  # what the launcher computes for the kernel
    indices: tuple[IndexLoop, ...]  # CPU index kernels, slowest first
    launch: tuple[str, ...]  # CPU block kernels: the launch objects that the body reads
    threads: tuple[str, ...]
    block: tuple[str, ...]
    fits: str  # the condition for 32-bit indices; empty where there is nothing to choose
    body: tuple[Line, ...]
    launch_bounds: tuple[int, ...] = ()
    has_open_block: bool = False  # the block's extents depend on arguments of a call
    shared_bytes: str = ""  # of a block's dynamic shared memory; empty where it has none
    runs_whole_blocks: bool = False  # on the CPU: it is called once a block, and goes through the threads by itself
    syncs_grid: bool = False  # its blocks wait for each other
    waits_anywhere: bool = False  # on the CPU: a thread may wait for any other one
    asserts: bool = False  # on the CPU: an `assert` may throw
    fails_with_values: bool = False  # on the CPU: the message of an `assert` has values
    sizes: tuple[str, ...] = ()  # on the CPU: the greatest decides whether a launch is large
    shared_limit_condition: str = ""  # the condition for `allow_shared`; empty if it is always called
    constexprs: tuple[Argument, ...] = ()  # template arguments of the user's: first, since no call can deduce them
    types: tuple[str, ...] = ()  # type parameters of a generic kernel: "T"
    optional: tuple[tuple[str, str], ...] = ()  # arrays that may be null, and the template arguments that say whether
    instances: tuple[Instance, ...] = ()
    grid: tuple[str, ...] = ()  # on CUDA: how many blocks cover `threads`
    empty_tests: tuple[str, ...] = ()  # on CUDA: the conditions under which there are no threads
    checks_grid: bool = False  # `covering_blocks` checks the number of blocks
    overflows: tuple[str, ...] = ()  # the conditions under which 64 bits may not hold `threads`
    headers: frozenset[str] = frozenset()  # that the bodies of the kernel and its functions need
    bound_headers: frozenset[str] = frozenset()  # that the conditions in the launcher need
    takes_strides: bool = False  # its launcher takes strides of arrays
    launch_headers: frozenset[str] = frozenset()  # that the types of the launcher's arguments need

    @property
    def declaration_headers(self) -> frozenset[str]:
        """The headers that the launcher's declaration needs, with those of the defaults in it."""
        has_nonfinite = any(argument.is_nonfinite for argument in self.launch_arguments)
        return self.launch_headers | ({MATH} if has_nonfinite else frozenset())

    @property
    def template(self) -> tuple[Argument, ...]:
        """The launcher's template parameters; none for a plain function."""
        return (*self.constexprs, *typenames(self.types))

    @property
    def kernel_template(self) -> str:
        """`template <int tile, typename T, bool has_bias, typename index_t>`; empty for a plain function."""
        index = typenames(("index_t",)) if self.is_template else ()
        return template_head((*self._template_of_choice, *index))

    @property
    def choice_template(self) -> str:
        """The head of a launcher that is told which arrays are given, as the kernel is."""
        return template_head(self._template_of_choice)

    @property
    def _template_of_choice(self) -> tuple[Argument, ...]:
        return (*self.template, *(Argument(flag, "bool") for _, flag in self.optional))

    @property
    def launch_function(self) -> str:
        """The function that launches on a grid: the launcher itself, or what it calls once it knows the choice."""
        return f"{self.name}_launch{'_given' if self.optional else ''}"

    @property
    def launch_template(self) -> str:
        return template_head(self.template)

    @property
    def admitted(self) -> tuple[str, ...]:
        """A sentence for each template parameter, with its values in the instances, and one about null pointers."""
        columns = zip(*(instance.values for instance in self.instances), strict=True)
        sentences = tuple(
            f"{parameter.name} is {listed(dict.fromkeys(values))}."
            for parameter, values in zip(self.template, columns, strict=False)
        )
        return (*sentences, self.about_null) if self.optional else sentences

    @property
    def about_null(self) -> str:
        """`a and b may be null: the kernel has 4 instances.`, of all widths, types and values together."""
        names = " and ".join(filter(None, (", ".join(name for name, _ in self.optional[:-1]), self.optional[-1][0])))
        widths = 2 if self.is_template and self.fits else 1
        count = 2 ** len(self.optional) * max(1, len(self.instances)) * widths
        return f"{names} may be null: the kernel has {count} instances."

    def template_arguments(self, *index: str) -> str:
        """`<tile, T, int>`."""
        names = (*(parameter.name for parameter in self._template_of_choice), *index)
        return f"<{', '.join(names)}>" if names else ""

    @property
    def launcher(self) -> str:
        """The launcher as called by the overload without a grid: C++ deduces types, but not values."""
        return launcher_name(self.name, (argument.name for argument in self.constexprs))

    @property
    def shared_requests(self) -> tuple[tuple[tuple[str, ...], str], ...]:
        """For each kernel that may run, its index type and the test in front of `allow_shared`."""
        types = (("int",), ("int64_t",)) if self.fits else (("int",),)
        test = f"{self.shared_limit_condition} && " if self.shared_limit_condition else ""
        return tuple((index if self.is_template else (), test) for index in types)

    @property
    def stream_parameters(self) -> tuple[str, ...]:
        """The last parameters of CUDA's launchers."""
        return ("cudaStream_t stream", *(("int64_t* max_blocks",) if self.syncs_grid else ()))

    @property
    def bounds(self) -> str:
        """`__launch_bounds__(256, 2) `, before the kernel's name; empty where there are none."""
        return f"__launch_bounds__({', '.join(map(str, self.launch_bounds))}) " if self.launch_bounds else ""

    @property
    def index_parameters(self) -> tuple[str, ...]:
        return tuple(f"int64_t {loop.name}" for loop in self.indices)

    @property
    def launch_parameters(self) -> tuple[str, ...]:
        memory = ("unsigned char* shared_memory",) if self.runs_whole_blocks and self.shared_bytes else ()
        barrier = ("GridBarrier& grid_barrier",) if self.syncs_grid else ()
        return (*memory, *barrier, *(f"Dim3 {name}" for name in self.launch))

    @property
    def launch_values(self) -> str:
        """The arguments for `launch_parameters` in the CPU's launcher, whose parameters are `grid` and `block`."""
        launcher_names = {"blockDim": "block", "gridDim": "grid"}
        memory = ", shared_memory.data()" if self.runs_whole_blocks and self.shared_bytes else ""
        barrier = ", grid_barrier" if self.syncs_grid else ""
        return memory + barrier + "".join(f", {launcher_names.get(name, name)}" for name in self.launch)

    @property
    def kernel_call(self) -> str:
        return ", ".join(self.passed)

    @property
    def passed(self) -> tuple[str, ...]:
        """The arguments in a call of the kernel, in the launcher."""
        launched = (*self.launch_arguments, *(value.argument for value in self.computed))
        by_name = {argument.name: argument for argument in launched}
        return tuple(self._passed(argument, by_name.get(argument.name, argument)) for argument in self.kernel_arguments)

    @property
    def value_lines(self) -> tuple[str, ...]:
        """The lines of the launcher that compute numbers for the kernel."""
        return tuple(line for value in self.computed for line in value.lines)

    @property
    def entry_arguments(self) -> tuple[str, ...]:
        """On the CPU: the launcher's arguments, read through `arguments`; whether a number is given precedes it."""
        texts, place = [], 0
        for argument in self.launch_arguments:
            type_ = f"{argument.base}" if argument.is_optional else argument.type
            if argument.is_optional:
                given, value = (
                    f"*static_cast<{each}*>(arguments[{place + at}])" for at, each in enumerate(("bool", type_))
                )
                texts.append(f"{given} ? {argument.type}({value}) : std::nullopt")
            else:
                texts.append(f"*static_cast<{type_}*>(arguments[{place}])")
            place += 1 + argument.is_optional
        return tuple(texts)

    @property
    def may_throw(self) -> bool:
        """On the CPU: for a failed `assert`, too many threads, or for lack of memory or OS threads."""
        return bool(self.asserts or self.overflows or self.shared_bytes or self.syncs_grid or self.waits_anywhere)

    @property
    def launch_call(self) -> str:
        return ", ".join(argument.name for argument in self.launch_arguments)

    def _passed(self, argument: Argument, launched: Argument) -> str:
        """An argument in the call of the kernel: C++ narrows a double by itself, but not to a half."""
        if argument.presence_of:
            return f"{argument.presence_of}.has_value()"  # rule: optional-passed
        if launched.is_complex and launched.base != argument.base:
            return f"{argument.base}({argument.name})"
        value = f"{argument.name}.value_or({_ZEROS[launched.base]})" if launched.is_optional else argument.name
        is_double = launched.base == "double" and not launched.is_pointer
        if is_double and argument.base in self.types and ROUND_TO in self.helpers:
            return f"{ROUND_TO}<{argument.base}>({value})"
        return value

    def kernel_signature(self, head: str, *extra: str) -> str:
        return wrapped(head, (*(a.declaration for a in self.kernel_arguments), *extra))

    def launch_signature(self, head: str, *extra: str) -> str:
        return wrapped(head, (*(a.declaration for a in self.launch_arguments), *extra))

    @property
    def declared(self) -> KernelView:
        """The kernel as its header declares it."""
        return replace(self, launch_arguments=tuple(argument.documented for argument in self.launch_arguments))

    def instantiations(self, returns: str, *extra: str) -> tuple[str, ...]:
        """`template cudaError_t silu_launch<float>(const float* x, …)`, one an instance."""
        return tuple(
            wrapped(
                f"template {returns} {self.name}_launch<{', '.join(instance.values)}>",
                (*(a.declaration for a in instance.launch_arguments), *extra),
            )
            for instance in self.instances
        )


def _read(type_: str, place: int) -> str:
    return f"*static_cast<{type_}*>(arguments[{place}])"


def listed(words: Iterable[str]) -> str:
    """`a, b or c`."""
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last


def launcher_name(name: str, values: Iterable[str]) -> str:
    """`tiled_launch<16>`."""
    listed_values = ", ".join(values)
    return f"{name}_launch" + (f"<{listed_values}>" if listed_values else "")


def group(family: ir.Instances, view: Callable[[ir.Kernel], KernelView], dialect: Dialect) -> tuple[KernelView, ...]:
    """The views of one kernel: a single one, unless its instances differ in more than the type that `T` stands for.

    Instances with equal texts share a template; each further text is a template, named after its first dtype.
    """
    if not family[0].variables and not family[0].constexprs:
        return (view(family[0]),)
    plain = replace(dialect, names_variables=False)
    texts: dict[KernelView, list[ir.Kernel]] = {}
    for kernel in family:
        texts.setdefault(view(kernel), []).append(kernel)
    done = []
    for place, (text, members) in enumerate(texts.items()):
        name = text.name if place == 0 else f"{text.name}_{'_'.join(_dtype_names(members[0]))}"
        symbols = tuple(variable.symbol for variable in family[0].variables)
        instances = tuple(instance for kernel in members for instance in instances_of(kernel, plain))
        heads = constexpr_heads(members[0], dialect)
        types = (argument for instance in instances for argument in instance.launch_arguments)
        view_ = replace(text, name=name, constexprs=heads, types=symbols, instances=instances)
        done.append(replace(view_, launch_headers=text.launch_headers | headers_of_arguments(types)))
    return tuple(done)


def constexpr_heads(kernel: ir.Kernel, dialect: Dialect) -> tuple[Argument, ...]:
    """The template parameters for constexprs: `int tile`, `bool is_causal`."""
    return tuple(
        Argument(kernel.c_name(p.name), "bool" if p.type == ir.PY_BOOL else dialect.widths[ir.Width.INT])
        for p in kernel.parameters
        if p.constexpr is not None
    )


def dtypes_of(kernel: ir.Kernel) -> tuple[DType, ...]:
    """The dtypes of an instance, one for each type variable."""
    dtype_by_variable = {
        p.type.dtype.variable: p.type.dtype.plain for p in kernel.arrays if isinstance(p.type, ir.ArrayType)
    }
    return tuple(dtype_by_variable[variable] for variable in kernel.variables)


def _dtype_names(kernel: ir.Kernel) -> tuple[str, ...]:
    return tuple(dtype.name for dtype in dtypes_of(kernel))


def types_of(kernel: ir.Kernel, dialect: Dialect) -> tuple[str, ...]:
    """The C++ types that an instance has for its type variables."""
    return tuple(map(replace(dialect, names_variables=False).spell, dtypes_of(kernel)))


def view_of(kernel: ir.Kernel, views: tuple[KernelView, ...], dialect: Dialect) -> KernelView:
    """The text that an instance shares with others; the only one of a kernel that is not generic."""
    instances = {*instances_of(kernel, replace(dialect, names_variables=False))}
    return next((view for view in views if instances & {*view.instances}), views[0])


def instances_of(kernel: ir.Kernel, dialect: Dialect) -> tuple[Instance, ...]:
    """The instances for the dtypes of `kernel`: one for every choice of its template arguments."""
    types = tuple(dialect.spell(dtype) for dtype in dtypes_of(kernel))
    arguments = launch_arguments(kernel, dialect)
    return tuple(Instance((*map(constant_text, values), *types), arguments) for values in choices_of(kernel))


def choices_of(kernel: ir.Kernel) -> tuple[tuple[int, ...], ...]:
    """Every choice of values for the template arguments; the empty one where there are none."""
    return tuple(product(*(constexpr.values for constexpr in kernel.constexprs.values())))


def constant_text(value: int) -> str:
    """`16`, `true`."""
    return str(value).lower()


def tables_of(kernel: ir.Kernel, dialect: Dialect) -> tuple[tuple[str, ...], frozenset[str]]:
    """The declarations of the tables that a kernel and its device functions read, and the headers that they need."""
    spellers = [Emitter(each, dialect, {}) for each in (kernel, *kernel.functions)]
    tables = tuple(
        speller.declaration(decl.name)
        for speller in spellers
        for decl in speller.kernel.array_decls
        if decl.space is ir.Space.CONSTANT
    )
    return tables, frozenset().union(*(headers_of_types(speller.types) | speller.headers for speller in spellers))


def helpers_of(kernel: ir.Kernel) -> tuple[str, ...]:
    """The helpers that a kernel and its device functions need."""
    return tuple(dict.fromkeys(name for each in (kernel, *kernel.functions) for name in each.helpers))


def extent_text(expr: ir.Expr, kernel: ir.Kernel, outer: int = 0) -> str:
    """An extent in the host's C++; dimensions are not negative, so `//` and `%` are C's.

    `outer` is the precedence of the operator around it.
    """
    match expr:
        case ir.Constant(value=value):
            return str(value)
        case ir.Name(id=name):
            return kernel.c_name(name)
        case ir.LaunchIndex(object=launched, axis=axis):
            return f"{'block' if launched == 'blockDim' else 'grid'}.{axis}"
        case ir.Unary(op="-", operand=operand):
            return f"-{extent_text(operand, kernel, 3)}"
        case ir.Binary(op=op, left=left, right=right):
            rank = 1 if op in "+-" else 2
            text = f"{extent_text(left, kernel, rank)} {OPERATORS[op].c} {extent_text(right, kernel, rank + 1)}"
            return f"({text})" if rank < outer else text
        case _:
            raise AssertionError(expr)
