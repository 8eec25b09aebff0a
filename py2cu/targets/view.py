"""What a template is given: one frozen view a kernel, all text and flags; it may loop and test, not decide.

The same `Arguments` fill the kernel, the launcher, its declaration and its call, so they cannot drift apart.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from itertools import product

from py2cu.dtypes import C128, DType, Kind
from py2cu.ir.extents import Binary, Constant, Name, Parameter, Role
from py2cu.ir.nodes import ArrayName, Expr, Load, Unary
from py2cu.ir.statements import Family, Kernel, Space, Store
from py2cu.ir.types import PY_BOOL, ArrayType, ElementType, PythonType, TupleType, Type, Width
from py2cu.ir.visit import all_expressions, in_rings, statements
from py2cu.targets.c_types import qualified
from py2cu.targets.spell_expressions import Callee, Dialect
from py2cu.targets.spell_statements import Line, Speller, comment_text

MAX_WIDTH = 116


@dataclass(frozen=True, slots=True)
class Argument:
    """One C++ parameter: `const float* x`, passed on as `x`."""

    name: str
    type: str

    @property
    def declaration(self) -> str:
        return f"{self.type} {self.name}"


@dataclass(frozen=True, slots=True)
class IndexLoop:
    """The loop over one element index on the CPU."""

    name: str
    extent: str
    end: str  # the local that holds where the loop ends
    axis: str


@dataclass(frozen=True, slots=True)
class Instance:
    """One instantiation of a template: what stands for its parameters."""

    values: tuple[str, ...]
    launch_arguments: tuple[Argument, ...]


@dataclass(frozen=True, slots=True)
class StructView:
    """The struct in which a device function returns a tuple."""

    name: str
    template: tuple[str, ...]
    fields: tuple[str, ...]  # "float lo"

    @property
    def head(self) -> str:
        return f"{_template_head(_typenames(self.template))}\nstruct {self.name}".lstrip()

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
        return _template_head(_typenames(self.template))

    def signature(self, prefix: str) -> str:
        return wrapped(f"{prefix} {self.head}", (argument.declaration for argument in self.arguments))


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
    indices: tuple[IndexLoop, ...]  # CPU index kernels, slowest first
    launch: tuple[str, ...]  # CPU block kernels: the launch objects that the body reads
    threads: tuple[str, ...]
    block: tuple[str, ...]
    fits: str  # the condition for 32-bit indices; empty where there is nothing to choose
    body: tuple[Line, ...]
    constexprs: tuple[Argument, ...] = ()  # template arguments of the user's: first, since no call can deduce them
    types: tuple[str, ...] = ()  # type parameters of a generic kernel: "T"
    instances: tuple[Instance, ...] = ()

    @property
    def template(self) -> tuple[Argument, ...]:
        """The launcher's template parameters; none for a plain function."""
        return (*self.constexprs, *_typenames(self.types))

    @property
    def kernel_template(self) -> str:
        """`template <int tile, typename T, typename index_t>`; empty for a plain function."""
        index = _typenames(("index_t",)) if self.is_template else ()
        return _template_head((*self.template, *index))

    @property
    def launch_template(self) -> str:
        return _template_head(self.template)

    @property
    def admitted(self) -> tuple[str, ...]:
        """A sentence about every template parameter that there are instances for."""
        columns = zip(*(instance.values for instance in self.instances), strict=True)
        return tuple(
            f"{parameter.name} is {listed(dict.fromkeys(values))}."
            for parameter, values in zip(self.template, columns, strict=False)
        )

    def template_arguments(self, *index: str) -> str:
        """`<tile, T, int>`."""
        names = (*(parameter.name for parameter in self.template), *index)
        return f"<{', '.join(names)}>" if names else ""

    @property
    def launcher(self) -> str:
        """The launcher, as the other one of its name calls it: types are deduced, values are not."""
        return launcher_name(self.name, (argument.name for argument in self.constexprs))

    @property
    def index_parameters(self) -> tuple[str, ...]:
        return tuple(f"int64_t {loop.name}" for loop in self.indices)

    @property
    def launch_parameters(self) -> tuple[str, ...]:
        return tuple(f"Dim3 {name}" for name in self.launch)

    @property
    def launch_values(self) -> str:
        """What the CPU's launcher passes for them; it calls its own parameters `grid` and `block`."""
        own = {"blockDim": "block", "gridDim": "grid"}
        return "".join(f", {own.get(name, name)}" for name in self.launch)

    @property
    def kernel_call(self) -> str:
        given = {argument.name: argument.type for argument in self.launch_arguments}
        return ", ".join(
            _passed(argument, given.get(argument.name, argument.type)) for argument in self.kernel_arguments
        )

    @property
    def launch_call(self) -> str:
        return ", ".join(argument.name for argument in self.launch_arguments)

    def kernel_signature(self, head: str, *extra: str) -> str:
        return wrapped(head, (*(a.declaration for a in self.kernel_arguments), *extra))

    def launch_signature(self, head: str, *extra: str) -> str:
        return wrapped(head, (*(a.declaration for a in self.launch_arguments), *extra))

    @property
    def declared(self) -> KernelView:
        """The kernel as its header declares it."""
        arguments = (replace(argument, type=qualified(argument.type)) for argument in self.launch_arguments)
        return replace(self, launch_arguments=tuple(arguments))

    def instantiations(self, returns: str, *extra: str) -> tuple[str, ...]:
        """`template cudaError_t silu_launch<float>(const float* x, …)`, one an instance."""
        return tuple(
            wrapped(
                f"template {returns} {self.name}_launch<{', '.join(instance.values)}>",
                (*(a.declaration for a in instance.launch_arguments), *extra),
            )
            for instance in self.instances
        )


def _passed(argument: Argument, given: str) -> str:
    """An argument of the launcher as its kernel takes it: C++ narrows a double by itself, and no complex number."""
    is_narrowed = given != argument.type and "complex<" in given and "*" not in given
    return f"{argument.type}({argument.name})" if is_narrowed else argument.name


def listed(words: Iterable[str]) -> str:
    """`a, b or c`."""
    *most, last = words
    return f"{', '.join(most)} or {last}" if most else last


def _typenames(names: tuple[str, ...]) -> tuple[Argument, ...]:
    return tuple(Argument(name, "typename") for name in names)


def _template_head(parameters: tuple[Argument, ...]) -> str:
    return f"template <{', '.join(parameter.declaration for parameter in parameters)}>" if parameters else ""


def launcher_name(name: str, values: Iterable[str]) -> str:
    """`tiled_launch<16>`."""
    listed_values = ", ".join(values)
    return f"{name}_launch" + (f"<{listed_values}>" if listed_values else "")


def group(family: Family, view: Callable[[Kernel], KernelView], dialect: Dialect) -> tuple[KernelView, ...]:
    """The views of one kernel: a single one, unless its instances differ in more than the type that `T` stands for.

    Instances of one text are one template; each further text is a template of its own, called after its first dtype.
    """
    if not family[0].variables and not family[0].constexprs:
        return (view(family[0]),)
    plain = replace(dialect, names_variables=False)
    texts: dict[KernelView, list[Kernel]] = {}
    for kernel in family:
        texts.setdefault(view(kernel), []).append(kernel)
    done = []
    for place, (text, members) in enumerate(texts.items()):
        name = text.name if place == 0 else f"{text.name}_{'_'.join(_dtype_names(members[0]))}"
        symbols = tuple(variable.symbol for variable in family[0].variables)
        instances = tuple(instance for kernel in members for instance in instances_of(kernel, plain))
        heads = constexpr_heads(members[0], dialect)
        done.append(replace(text, name=name, constexprs=heads, types=symbols, instances=instances))
    return tuple(done)


def constexpr_heads(kernel: Kernel, dialect: Dialect) -> tuple[Argument, ...]:
    """`int tile`: Python's whole numbers are of the type that carries small ones."""
    return tuple(
        Argument(kernel.c_name(p.name), "bool" if p.type == PY_BOOL else dialect.widths[Width.INT])
        for p in kernel.parameters
        if p.constexpr is not None
    )


def dtypes_of(kernel: Kernel) -> tuple[DType, ...]:
    """What stands for the type variables of an instance."""
    found = {p.type.dtype.variable: p.type.dtype.plain for p in kernel.arrays if isinstance(p.type, ArrayType)}
    return tuple(found[variable] for variable in kernel.variables)


def _dtype_names(kernel: Kernel) -> tuple[str, ...]:
    return tuple(dtype.name for dtype in dtypes_of(kernel))


def instances_of(kernel: Kernel, dialect: Dialect) -> tuple[Instance, ...]:
    """The instances for the dtypes of `kernel`: one for every choice of its template arguments."""
    types = tuple(dialect.spell(dtype) for dtype in dtypes_of(kernel))
    arguments = launch_arguments(kernel, dialect)
    return tuple(Instance((*map(constant_text, values), *types), arguments) for values in choices_of(kernel))


def choices_of(kernel: Kernel) -> tuple[tuple[int, ...], ...]:
    """Every choice of values for the template arguments; the empty one where there are none."""
    return tuple(product(*(constexpr.values for constexpr in kernel.constexprs.values())))


def constant_text(value: int) -> str:
    """`16`, `true`."""
    return str(value).lower()


def wrapped(head: str, items: Iterable[str], tail: str = ")") -> str:
    """`head(a, b)`, its items on lines of their own where one line would be too long."""
    items = tuple(items)
    one = f"{head}({', '.join(items)}{tail}"
    if len(one) <= MAX_WIDTH:
        return one
    pad = " " * (len(head) - len(head.lstrip()) + 4)
    return f"{head}(\n{pad}" + f"\n{pad}".join(_fill(items, MAX_WIDTH - len(pad))) + tail


def _fill(items: tuple[str, ...], width: int) -> list[str]:
    """Items joined by commas into lines of at most `width`."""
    lines = [""]
    for place, item in enumerate(items):
        piece = item + ("," if place < len(items) - 1 else "")
        if lines[-1] and len(lines[-1]) + 1 + len(piece) > width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {piece}".lstrip()
    return lines


def spell_functions(kernel: Kernel, dialect: Dialect) -> tuple[tuple[FunctionView, ...], dict[str, Callee]]:
    """The device functions of `kernel`, and what their callers need to know of them."""
    callees = {function.key: Callee(function, "") for function in kernel.functions}
    ringed = in_rings(kernel.functions, itself=False)
    while True:  # what a function is a template over, it is for what it calls as well
        before, views = dict(callees), []
        for function in kernel.functions:
            view = _spell_function(function, dialect, callees, is_ringed=function.key in ringed)
            callees[function.key] = Callee(function, f"<{', '.join(view.template)}>" if view.template else "")
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


def tables_of(kernel: Kernel, dialect: Dialect) -> tuple[str, ...]:
    """The declarations of the tables that a kernel and its device functions read."""
    spellers = [Speller(each, dialect, {}) for each in (kernel, *kernel.functions)]
    return tuple(
        speller.buffer(buffer.name)
        for speller in spellers
        for buffer in speller.kernel.buffers
        if buffer.space is Space.CONSTANT
    )


def helpers_of(kernel: Kernel) -> tuple[str, ...]:
    """The helpers that a kernel and its device functions need."""
    return tuple(dict.fromkeys(name for each in (kernel, *kernel.functions) for name in each.helpers))


def used_names(kernel: Kernel) -> set[str]:
    """The names that the body reads, extents of the guards included."""
    return {node.id for node in all_expressions(kernel.body) if isinstance(node, Name | ArrayName)}


def used_arrays(kernel: Kernel) -> set[str]:
    """The arrays that the body reads or writes."""
    loaded = {node.array for node in all_expressions(kernel.body) if isinstance(node, Load)}
    return loaded | {stmt.array for stmt in statements(kernel.body) if isinstance(stmt, Store)}


def arguments(kernel: Kernel) -> tuple[tuple[str, Type, Parameter | None], ...]:
    """Name and type of everything a launcher takes: the user's parameters in order, then the dimensions among none of
    them. Template arguments are none of these.
    """
    given = tuple((p.name, p.type, p) for p in kernel.parameters if p.constexpr is None)
    rest = tuple((name, PythonType(Kind.INT), None) for name in kernel.dims if kernel.parameter(name) is None)
    return (*given, *rest)


def kernel_arguments(kernel: Kernel, dialect: Dialect) -> tuple[Argument, ...]:
    """What the device function takes: those arrays, scalars and extents that its body uses."""
    used = used_names(kernel) | used_arrays(kernel)
    return tuple(
        Argument(kernel.c_name(name), kernel_type(kernel, dialect, name, type_, parameter))
        for name, type_, parameter in arguments(kernel)
        if name in used
    )


def kernel_type(kernel: Kernel, dialect: Dialect, name: str, type_: Type, parameter: Parameter | None) -> str:
    """A kernel's pointers are `__restrict__`: the binding refuses arguments that overlap what is written.

    A device function's are not, for its callers may pass it one array twice.
    """
    match type_:
        case ArrayType() if not kernel.key:
            return f"{launch_type(type_, parameter, dialect)} __restrict__"
        case PythonType(kind=Kind.FLOAT | Kind.COMPLEX) if (narrowed := dict(kernel.narrowed).get(name)) is not None:
            return dialect.spell(narrowed.dtype)
        case PythonType(kind=Kind.INT, width=width):
            return dialect.widths[width if parameter is not None else Width.INDEX]
        case _:
            return launch_type(type_, parameter, dialect)


def launch_arguments(kernel: Kernel, dialect: Dialect) -> tuple[Argument, ...]:
    """Raw pointers, scalars and extents, as any C++ program would pass them."""
    return tuple(Argument(kernel.c_name(name), launch_type(type_, p, dialect)) for name, type_, p in arguments(kernel))


def launch_type(type_: Type, parameter: Parameter | None, dialect: Dialect) -> str:
    match type_:
        case ArrayType(dtype=dtype):
            return f"{'const ' if parameter and parameter.role is Role.INPUT else ''}{dialect.spell(dtype)}*"
        case ElementType(dtype=dtype):
            return dialect.spell(dtype)
        case PythonType(kind=kind):
            return {
                Kind.BOOL: "bool", Kind.INT: "int64_t", Kind.FLOAT: "double", Kind.COMPLEX: dialect.spell(C128),
            }[kind]  # fmt: skip
        case _:
            raise AssertionError(type_)


def extent_text(expr: Expr, kernel: Kernel) -> str:
    """An extent in the host's C++; dimensions are not negative, so `//` and `%` are C's."""

    def show(expr: Expr, outer: int) -> str:
        match expr:
            case Constant(value=value):
                return str(value)
            case Name(id=name):
                return kernel.c_name(name)
            case Unary(op="-", operand=operand):
                return f"-{show(operand, 3)}"
            case Binary(op=op, left=left, right=right):
                rank = 1 if op in "+-" else 2
                text = f"{show(left, rank)} {'/' if op == '//' else op} {show(right, rank + 1)}"
                return f"({text})" if rank < outer else text
            case _:
                raise AssertionError(expr)

    return show(expr, 0)


def doc_lines(doc: str | None) -> tuple[str, ...]:
    return tuple(comment_text(line) for line in (doc or "").splitlines())
