"""Lists the parameters of emitted functions, names and types in order, and lays out function heads.

The kernel, the launcher, its declaration and its call use the same `Argument`s, so they cannot disagree.
"""

from __future__ import annotations

import cmath
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from py2cu import ir
from py2cu.analysis.effects import synchronises
from py2cu.analysis.launches import launcher_arguments, tested_numbers, used_arrays, used_names
from py2cu.dtypes import C128, Kind
from py2cu.ir.abi.parameters import Default, Parameter, Role
from py2cu.ir.visit import all_expressions, statements, walk
from py2cu.records import record
from py2cu.targets.cxx.c_types import qualified
from py2cu.targets.cxx.dialect import Dialect
from py2cu.targets.cxx.includes import headers_of_types

MAX_WIDTH = 116


@record(frozen=True, slots=True)
class Argument:
    """One C++ parameter: `const float* __restrict__ x`, passed on as `x`; `default` is C++ text."""

    name: str
    base: str  # "float", "T", "index_t"
    default: str = ""
    is_const: bool = False
    is_pointer: bool = False
    is_restrict: bool = False
    is_complex: bool = False  # a complex number, no array
    is_nonfinite: bool = False  # its default is INFINITY or NAN
    is_optional: bool = False  # a number that a call may leave out
    presence_of: str = ""  # of a bool: the optional number whose presence it is

    @property
    def type(self) -> str:
        """`const float* __restrict__`, `std::optional<double>`."""
        if self.is_optional:
            return f"std::optional<{self.base}>"
        const, restrict = "const " if self.is_const else "", " __restrict__" if self.is_restrict else ""
        return f"{const}{self.base}{'*' if self.is_pointer else ''}{restrict}"

    @property
    def declaration(self) -> str:
        return f"{self.type} {self.name}"

    @property
    def documented(self) -> Argument:
        """The parameter as a header declares it: `double eps /* = 1e-5 */`."""
        name, base = f"{self.name} /* = {self.default} */" if self.default else self.name, qualified(self.base)
        return self if (name, base) == (self.name, self.base) else replace(self, name=name, base=base)


def headers_of_arguments(arguments: Iterable[Argument]) -> frozenset[str]:
    """The headers that declare the types of `arguments`."""
    arguments = tuple(arguments)
    optional = frozenset({"optional"} if any(argument.is_optional for argument in arguments) else ())
    return headers_of_types(argument.base for argument in arguments) | optional


def typenames(names: tuple[str, ...]) -> tuple[Argument, ...]:
    return tuple(Argument(name, "typename") for name in names)


def template_head(parameters: tuple[Argument, ...]) -> str:
    return f"template <{', '.join(parameter.declaration for parameter in parameters)}>" if parameters else ""


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


def kernel_arguments(kernel: ir.Kernel, dialect: Dialect) -> tuple[Argument, ...]:
    """The parameters of the kernel itself: the arrays, scalars and extents that its body uses.

    A bool for each optional number whose presence the body tests stands in front of the number.
    """
    used, tested = used_names(kernel) | used_arrays(kernel), tested_numbers(kernel)
    kernel_args = []
    for name, type_, parameter in launcher_arguments(kernel):
        if name in tested:
            kernel_args.append(Argument(kernel.flag(name), "bool", presence_of=kernel.c_name(name)))
        if name in used:
            kernel_args.append(kernel_argument(kernel, dialect, name, type_, parameter))
    return tuple(kernel_args)


def kernel_argument(
    kernel: ir.Kernel, dialect: Dialect, name: str, type_: ir.Type, parameter: Parameter | None
) -> Argument:
    """A parameter of a kernel or a device function.

    A kernel's pointers are `__restrict__`: the binding refuses arguments that overlap a written array. A device
    function's are not, since callers may pass one array twice; nor are an output and the input that it may be, arrays
    through which threads communicate, and inputs beside a written array that the kernel reads.
    """
    argument = launch_argument(kernel, dialect, name, type_, parameter)
    match type_:
        case ir.ArrayType() if not kernel.key and may_be_restrict(kernel, name, type_, parameter):
            return replace(argument, is_restrict=True)
        case ir.PythonType(kind=Kind.FLOAT | Kind.COMPLEX) if (narrowed := dict(kernel.narrowed).get(name)) is not None:
            return replace(argument, base=dialect.spell(narrowed.dtype))
        case ir.PythonType(kind=Kind.INT, width=width):
            return replace(argument, base=dialect.widths[width if parameter is not None else ir.Width.INDEX])
        case _:
            return argument


def may_be_restrict(kernel: ir.Kernel, name: str, type_: ir.ArrayType, parameter: Parameter | None) -> bool:
    """True if `__restrict__` is right for the array, and safe.

    nvcc (13.0) merges `c ? out[i] : x[i]` into one load of a selected address. Where `x` is a `const` pointer with
    `__restrict__`, that is a load through the read-only cache, which does not see this thread's store to `out[i]`.
    """
    if any(name in pair for pair in kernel.in_place):  # rule: in-place-restrict
        return False
    if not is_input(parameter):
        return not is_communicated(kernel, name)
    written = {kernel.base_array(stmt.array) for stmt in statements(kernel.body) if isinstance(stmt, ir.Store)}
    alike = {p.name for p in kernel.parameters if isinstance(p.type, ir.ArrayType) and p.type.dtype == type_.dtype}
    written &= alike
    return not written or not any(
        (name in one and other & written) or (name in other and one & written) for one, other in _alternatives(kernel)
    )


def _alternatives(kernel: ir.Kernel) -> Iterator[tuple[set[str], set[str]]]:
    """The arrays that the two sides of each choice read: of a conditional value, and of an `if`."""

    def read_in(nodes: Sequence[ir.Expr]) -> set[str]:
        loaded = {kernel.base_array(node.array) for node in nodes if isinstance(node, ir.Load)}
        return loaded | {kernel.base_array(node.id) for node in nodes if isinstance(node, ir.ArrayName)}

    for node in all_expressions(kernel.body):
        match node:
            case ir.Select(then=one, orelse=other) | ir.BoolOp(left=one, right=other):
                yield read_in([*walk(one)]), read_in([*walk(other)])
    for stmt in statements(kernel.body):
        if isinstance(stmt, ir.If):
            leaves = bool(stmt.body) and isinstance(stmt.body[-1], ir.Return | ir.Break | ir.Continue)
            rest = kernel.body if leaves else stmt.orelse
            yield read_in([*all_expressions(stmt.body)]), read_in([*all_expressions(rest)])


def is_communicated(kernel: ir.Kernel, array: str) -> bool:
    """True if threads may read elements of the written `array` that others wrote before a barrier or a fence."""
    if not synchronises(kernel):
        return False
    nodes = [*all_expressions(kernel.body)]
    read = {kernel.base_array(node.array) for node in nodes if isinstance(node, ir.Load)}
    passed = {kernel.base_array(node.id) for node in nodes if isinstance(node, ir.ArrayName)}  # to functions
    return array in read | passed  # rule: meeting-reads


def is_input(parameter: Parameter | None) -> bool:
    """True for an array that the kernel only reads."""
    return parameter is not None and parameter.role is Role.INPUT


def launch_arguments(kernel: ir.Kernel, dialect: Dialect) -> tuple[Argument, ...]:
    """Raw pointers, scalars and extents, as any C++ program would pass them."""
    return tuple(
        _as_left_out(launch_argument(kernel, dialect, name, type_, parameter), parameter)
        for name, type_, parameter in launcher_arguments(kernel)
    )


def _as_left_out(argument: Argument, parameter: Parameter | None) -> Argument:
    """`argument` with its default, or as a number that may be None, if calls may leave it out."""
    if parameter is None or parameter.is_array:
        return argument
    if parameter.may_be_none:
        argument = replace(argument, is_optional=True)
    if parameter.default is None:
        return argument
    is_nonfinite = not cmath.isfinite(complex(parameter.default.value))
    return replace(argument, default=_default_text(parameter.default), is_nonfinite=is_nonfinite)


def _default_text(default: Default) -> str:
    """A default in C++, with the digits that its user wrote."""
    match default.value:
        case complex() as value:
            return f"{{{_number_text(value.real)}, {_number_text(value.imag)}}}"
        case float() as value if not math.isfinite(value):
            return _number_text(value)
        case value:
            return default.text.replace("_", "") or _number_text(value)


def _number_text(value: bool | int | float) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if math.isfinite(value):
        return repr(value)
    return "NAN" if math.isnan(value) else "INFINITY" if value > 0 else "-INFINITY"


def launch_argument(
    kernel: ir.Kernel, dialect: Dialect, name: str, type_: ir.Type, parameter: Parameter | None
) -> Argument:
    """A parameter of the launcher, without its default."""
    spelled = kernel.c_name(name)
    match type_:
        case ir.ArrayType(dtype=dtype):
            return Argument(spelled, dialect.spell(dtype), is_const=is_input(parameter), is_pointer=True)
        case ir.ElementType(dtype=dtype):
            return Argument(spelled, dialect.spell(dtype), is_complex=ir.is_complex(type_))
        case ir.PythonType(kind=kind):
            base = {
                Kind.BOOL: "bool", Kind.INT: "int64_t", Kind.FLOAT: "double", Kind.COMPLEX: dialect.spell(C128),
            }[kind]  # fmt: skip
            return Argument(spelled, base, is_complex=ir.is_complex(type_))
        case _:
            raise AssertionError(type_)
