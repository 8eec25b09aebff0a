"""Names for device functions: C++ tells functions of one name apart by the types of their parameters, and no further.

    T inner(T v, int w), U inner(U v, int w)                →  inner, inner_     templates alike, of other bodies
    T apart(T a, T b), T apart(T a, int b)                  →  apart, apart_     alike where `T` is `int`
    int64_t sq(int64_t v) of an element, of a Python int    →  sq, sq_
    void put(float* x), float put(const float* x)           →  put, put_         of two files

In: the kernels of a text. Out: the same, where functions that C++ would take for one, but are not, have names of their
own. Functions that come out as one text stay one.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from py2cu.ir.kernel import Family, Kernel
from py2cu.ir.visit import changed
from py2cu.targets.device_functions import FunctionView, spell_functions
from py2cu.targets.spell_expressions import Dialect

Types = tuple[str, ...]
Taken = dict[str, dict[Types, FunctionView]]  # by symbol
_SYNONYMS = {"int32_t": "int", "uint32_t": "unsigned"}


def with_own_overloads(families: tuple[Family, ...], dialect: Dialect) -> tuple[Family, ...]:
    """`families` with such names, again where a new name makes two callers differ."""
    while True:
        taken: Taken = {}
        before = families
        families = tuple(tuple(_renamed(kernel, dialect, taken) for kernel in family) for family in families)
        if families == before:
            return families


def _renamed(kernel: Kernel, dialect: Dialect, taken: Taken) -> Kernel:
    views, _ = spell_functions(kernel, dialect)
    functions = tuple(
        changed(function, symbol=_symbol(function.symbol, view, taken))
        for function, view in zip(kernel.functions, views, strict=True)
    )
    return changed(kernel, functions=functions)


def _symbol(symbol: str, view: FunctionView, taken: Taken) -> str:
    several = {_parameter_types(view, index) for index in ({}, {"index_t": "int"}, {"index_t": "int64_t"})}
    while any(
        other != view and any(_may_be_one(types, own) for own in several)
        for types, other in taken.setdefault(symbol, {}).items()
    ):
        symbol += "_"
    taken[symbol] |= dict.fromkeys(several, view)
    return symbol


def _may_be_one(one: Types, other: Types) -> bool:
    """Whether some call could mean both: templates are alike where their type parameters are what the other has."""
    if one == other:
        return True
    are_templates = "#" in "".join(one) and "#" in "".join(other)
    return are_templates and len(one) == len(other) and all(map(_may_be_one_type, one, other))


def _may_be_one_type(one: str, other: str) -> bool:
    return one == other or ("#" in one + other and one.count("*") == other.count("*"))


def _parameter_types(view: FunctionView, index: Mapping[str, str]) -> Types:
    """What C++ tells overloads by: type parameters by their place, and not by `const`, which no call chooses.

    `index` says what `index_t` is: to the template a parameter, to its instances a type.
    """
    places = {name: f"#{place}" for place, name in enumerate(view.template)}
    words = {**_SYNONYMS, **places, **index}
    return tuple(
        re.sub(r"\w+", lambda word: words.get(word[0], word[0]), argument.type.removeprefix("const "))
        for argument in view.arguments
    )
