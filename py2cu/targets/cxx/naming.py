"""Renames Python names that C++ cannot have: keywords, macros, CUDA's names, names with non-ASCII letters.

def double(i: Index["n"], int_: …, α: float)    →    int_, alpha
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Final

from py2cu import ir
from py2cu.analysis.call_graph import callees
from py2cu.builtins import ROWS, Rule
from py2cu.builtins.launch import LANE_HELPER
from py2cu.diagnostics import Reporter
from py2cu.ir.header_names import is_declared
from py2cu.ir.names import free_name
from py2cu.ir.rewrite import with_fields
from py2cu.ir.visit import all_expressions
from py2cu.passes.lowering.identifiers import (
    LAUNCHER_NAMES,
    RESERVED,
    RUNTIME_NAMES,
    ascii_identifier,
    spell_identifier,
)

# Types that CUDA's headers declare: variables may have these names, functions may not.
_TYPES: Final = "half half2 nv_bfloat16 nv_bfloat162 uchar ushort uint ulong"
# Math functions that the headers of C and CUDA declare: no function may have these names, or those of the variants for
# float (`rsqrt`, `rsqrtf`).
_FUNCTIONS: Final = """
    acos acosh all any asin asinh atan atan2 atanh ballot calloc cbrt ceil clock clock64 copysign cos cosh cospi
    cyl_bessel_i0 cyl_bessel_i1 difftime div drem erf erfc erfcinv erfcx erfinv exit exp exp10 exp2 expm1 fabs fadd fdim
    fdiv fdivide ffma ffs ffsl ffsll finite float2 float4 floor fma fmax fmaximum fmaximum_mag fmaximum_num fmaxmag fmin
    fminimum fminimum_mag fminimum_num fminmag fmod fmul fsqrt fsub gamma hypot ilogb isalnum isalpha isblank iscntrl
    isdigit isgraph islower isprint ispunct isspace isupper isxdigit j0 j1 jn labs ldexp ldiv lgamma llabs lldiv llmax
    llmin llogb llrint llround log log10 log1p log2 logb lrint lround malloc nan nearbyint nextafter nextdown nextup
    norm3d norm4d normcdf normcdfinv pow putchar rand random rcbrt remainder rhypot rint rnorm3d rnorm4d round roundeven
    rsqrt scalb scalbln scalbn significand sin sinh sinpi sqrt srand srandom tan tanh tgamma tolower toupper trunc
    ullmax ullmin umax umin y0 y1 yn
"""
# Helpers for collectives: functions of the user that have these names are renamed.
_TOGETHER: Final = {"WarpLanes", LANE_HELPER, *(row.name for row in ROWS.values() if row.effects.together)}
# C++ reserves `main` for the program's entry.
_TAKEN_BY_FUNCTIONS: Final = frozenset(f"{_TYPES} {_FUNCTIONS} main".split()).union(  # rule: taken-functions
    _TOGETHER, *(row.spelling.values() for row in ROWS.values())
)


def rename(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """The kernel and its device functions, each with its `symbol`, and with `renamed` mapping every name that needs
    another spelling, and only those.

    The kernel's own name never stands alone (`double` makes `double_kernel`), so it may be a word of C++.
    """
    variables = {variable.symbol for variable in kernel.variables}
    symbols = {each.key: _symbol(each, variables) for each in (kernel, *kernel.functions)}
    functions = tuple(_rename(each, symbols, variables & _types_in(each)) for each in kernel.functions)
    return with_fields(_rename(kernel, symbols, variables), functions=functions)


def _types_in(function: ir.Kernel) -> set[str]:
    """The type variables that the text of a function may name."""
    types = [*(p.type for p in function.parameters), *(node.type for node in all_expressions(function.body))]
    dtypes = (type_.dtype for type_ in types if isinstance(type_, ir.ElementType | ir.ArrayType))
    return {dtype.variable.symbol for dtype in dtypes if dtype.variable is not None}


def _rename(kernel: ir.Kernel, symbols: Mapping[str, str], variables: Set[str]) -> ir.Kernel:
    """Rename in one function; `symbols` are those of all functions, by key, `variables` its type variables.

    A symbol may get underscores later, so a local that would hide it with or without them gets a number.
    """
    names = [p.name for p in kernel.parameters] + [i.name for i in kernel.indices]
    names += [decl.name for decl in kernel.array_decls]
    names += [*kernel.dims, *(name for name, _ in kernel.locals), *(value.name for value in kernel.launch_values)]
    taken = set(names)
    called = _called_functions(kernel) | variables  # rule: hidden-type
    functions = {_stem(symbols[key]) for key in callees(kernel.body)}  # rule: hidden-function
    called |= {f"{decl.name}_bytes" for decl in kernel.array_decls if decl.space is ir.Space.SHARED}
    renamed: dict[str, str] = {}
    for name in dict.fromkeys(names):
        spelled = f"{name}_" if name in called else spell_identifier(name)
        while spelled != name and spelled in taken:
            spelled += "_"
        if _stem(spelled) in functions:
            spelled = free_name(_stem(spelled), taken | called | functions | RESERVED)
        if spelled != name:
            taken.add(spelled)
            renamed[name] = spelled
    taken |= called | functions | RESERVED
    flags: dict[str, str] = {}
    for parameter in kernel.optional_parameters:
        name = f"has_{renamed.get(parameter.name, parameter.name)}"
        flags[parameter.name] = free_name(name, taken | {*flags.values()})
    return with_fields(kernel, renamed=tuple(renamed.items()), flags=tuple(flags.items()), symbol=symbols[kernel.key])


def _symbol(kernel: ir.Kernel, variables: Set[str]) -> str:
    name = kernel.symbol or kernel.name
    if not kernel.key:
        return ascii_identifier(name)
    if name in RUNTIME_NAMES.split():
        return f"{name}_"
    if name in LAUNCHER_NAMES.split():
        return name
    is_taken = (
        name in _TAKEN_BY_FUNCTIONS
        or name in variables
        or is_declared(name)  # rule: header-kernel
        or name.removesuffix("f") in _TAKEN_BY_FUNCTIONS  # rule: taken-float-name
    )
    return f"{name}_" if is_taken else spell_identifier(name)


def _stem(name: str) -> str:
    """`name` less the underscores at its end."""
    return name.rstrip("_") or "_"  # rule: hidden-stem


def _called_functions(kernel: ir.Kernel) -> set[str]:
    """The C functions that the body calls: a local of that name would hide one."""
    calls = {node.function for node in all_expressions(kernel.body) if isinstance(node, ir.Call)}
    rows = [ROWS[key] for key in calls if key in ROWS]
    helpers = {row.name for row in rows if row.rule is Rule.ELEMENTS}  # rule: hidden-intrinsic
    return {c for row in rows for c in row.spelling.values()} | calls | helpers
