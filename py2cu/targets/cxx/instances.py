"""Groups the instances of a kernel by their texts: those that differ in types alone share a template.

In: the instances of a kernel. Out: a `KernelView` for each text, with its overloads and the values of its constexprs.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import product

from py2cu import ir
from py2cu.dtypes import DType
from py2cu.targets.cxx.dialect import Dialect
from py2cu.targets.cxx.parameters import Argument, headers_of_arguments, launch_arguments
from py2cu.targets.cxx.views import KernelView, Overload


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
        overloads = tuple(overload_of(kernel, plain) for kernel in members)
        heads = constexpr_heads(members[0], dialect)
        choices = tuple(tuple(map(constant_text, values)) for values in choices_of(members[0]))
        types = (argument for overload in overloads for argument in overload.launch_arguments)
        view_ = replace(text, name=name, constexprs=heads, types=symbols, overloads=overloads, choices=choices)
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
    overload = overload_of(kernel, replace(dialect, names_variables=False))
    return next((view for view in views if overload in view.overloads), views[0])


def overload_of(kernel: ir.Kernel, dialect: Dialect) -> Overload:
    """The launcher for the dtypes of `kernel`."""
    types = tuple(dialect.spell(dtype) for dtype in dtypes_of(kernel))
    return Overload(types, launch_arguments(kernel, dialect))


def choices_of(kernel: ir.Kernel) -> tuple[tuple[int, ...], ...]:
    """Every choice of values for the template arguments; the empty one where there are none."""
    return tuple(product(*(constexpr.values for constexpr in kernel.constexprs.values())))


def constant_text(value: int) -> str:
    """`16`, `true`."""
    return str(value).lower()
