"""Renames device functions of one name that C++ overload resolution cannot tell apart by their parameter types.

    T inner(T v, int w), U inner(U v, int w)                →  inner, inner_     templates alike, of other bodies
    T apart(T a, T b), T apart(T a, int b)                  →  apart, apart_     alike where `T` is `int`
    int64_t sq(int64_t v) of an element, of a Python int    →  sq, sq_
    void put(float* x), float put(const float* x)           →  put, put_         of two files

In: the kernels of one translation unit. Out: the same kernels; different functions that C++ would take for one have
different names. Functions with the same emitted text are emitted once.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from py2cu import ir
from py2cu.ir.rewrite import with_fields
from py2cu.targets.cxx.dialect import Dialect
from py2cu.targets.cxx.functions import FunctionView, spell_functions

Types = tuple[tuple[str, bool], ...]  # of each parameter its type, less `const`, and whether it is a pointer to that
Taken = dict[str, dict[Types, FunctionView]]  # by symbol
_SYNONYMS: Final = {"int32_t": "int", "uint32_t": "unsigned"}
_PLACES: Final = ("first", "second", "third", "fourth", "fifth")  # names of type parameters for the comparison


def separate_overloads(families: tuple[ir.Instances, ...], dialect: Dialect) -> tuple[ir.Instances, ...]:
    """`families` with distinct names; repeated, since a new name changes the text of its callers."""
    if sum(len(kernel.functions) for family in families for kernel in family) < 2:
        return families
    while True:
        taken: Taken = {}
        before = families
        families = tuple(tuple(_renamed(kernel, dialect, taken) for kernel in family) for family in families)
        if families == before:
            return families


def _renamed(kernel: ir.Kernel, dialect: Dialect, taken: Taken) -> ir.Kernel:
    views, _ = spell_functions(kernel, dialect)
    functions = tuple(
        with_fields(function, symbol=_symbol(function.symbol, view, taken))
        for function, view in zip(kernel.functions, views, strict=True)
    )
    return with_fields(kernel, functions=functions)


def _symbol(symbol: str, view: FunctionView, taken: Taken) -> str:
    several = {_parameter_types(view, index) for index in ({}, {"index_t": "int"}, {"index_t": "int64_t"})}
    while any(
        other.code != view.code and any(_are_ambiguous(types, types_of_other) for types_of_other in several)
        for types, other in taken.setdefault(symbol, {}).items()
    ):
        symbol += "_"
    taken[symbol] |= dict.fromkeys(several, view)
    return symbol


def _are_ambiguous(one: Types, other: Types) -> bool:
    """True if a call could match both parameter lists: a type parameter matches every type."""
    if one == other:
        return True  # rule: overload-same
    are_templates = any(map(_is_generic, one)) and any(map(_is_generic, other))
    return are_templates and len(one) == len(other) and all(map(_are_ambiguous_types, one, other))  # rule: overloads


def _are_ambiguous_types(one: tuple[str, bool], other: tuple[str, bool]) -> bool:
    return one == other or ((_is_generic(one) or _is_generic(other)) and one[1] == other[1])


def _is_generic(parameter: tuple[str, bool]) -> bool:
    """True for a type parameter, or for a pointer to one."""
    return parameter[0] in _PLACES


def _parameter_types(view: FunctionView, index: Mapping[str, str]) -> Types:
    """The parameter types by which C++ selects an overload: without `const`, type parameters by position.

    `index` maps `index_t` to its type in an instance; it is empty for the template.
    """
    words = {**_SYNONYMS, **dict(zip(view.template, _PLACES, strict=False)), **index}
    return tuple((words.get(argument.base, argument.base), argument.is_pointer) for argument in view.arguments)
