"""Renames symbols that collide within one translation unit.

two Python names with one C++ spelling `f`     →    f, f_
two tables `TABLE` of different values         →    TABLE, TABLE_

In: the kernels of one translation unit, lowered for a target. Out: the same kernels, in which each name stands for one
thing.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import chain, count

from py2cu import ir
from py2cu.dtypes import DType, TypeVariable
from py2cu.ir.header_names import is_declared
from py2cu.ir.names import names_in_scope, underscored_name
from py2cu.ir.rewrite import with_fields


def uniquify_symbols(families: tuple[ir.Instances, ...]) -> tuple[ir.Instances, ...]:
    """`families`, with names that tell kernels, functions, tables and structs apart."""
    kernels = [kernel for family in families for kernel in family]
    helpers = {name for kernel in kernels for each in (kernel, *kernel.functions) for name in each.helpers}
    named = _with_unique_names(families, helpers)
    return _with_unique_structs(_with_unique_tables(named, helpers))


def _with_unique_names(families: tuple[ir.Instances, ...], helpers: set[str]) -> tuple[ir.Instances, ...]:
    """Gives each kernel of a file its own C++ name, and renames functions that share the name of one of `helpers`."""
    functions = {function.symbol for family in families for kernel in family for function in kernel.functions}

    def with_free_symbol(function: ir.Kernel) -> ir.Kernel:
        symbol = function.symbol
        while symbol in helpers or (symbol != function.symbol and symbol in functions):  # rule: helper-symbol
            symbol += "_"
        return with_fields(function, symbol=symbol)

    taken: set[str] = set()
    done = []
    for family in families:
        name = underscored_name(family[0].symbol, taken)
        taken.add(name)
        done.append(
            tuple(
                with_fields(kernel, symbol=name, functions=tuple(map(with_free_symbol, kernel.functions)))
                for kernel in family
            )
        )
    return tuple(done)


def _with_unique_tables(families: tuple[ir.Instances, ...], helpers: set[str]) -> tuple[ir.Instances, ...]:
    """Renames tables and `extern` shared arrays that share a name but differ, and those that share the name of a
    function, a helper or a local.
    """
    functions = {function.symbol for family in families for kernel in family for function in kernel.functions}
    taken: dict[str, ir.ArrayDecl | str] = dict.fromkeys(helpers | functions, "")  # rule: hidden-helper

    def with_free_names(kernel: ir.Kernel) -> ir.Kernel:
        renamed = dict(kernel.renamed)
        for table in kernel.array_decls:
            if table.space is ir.Space.CONSTANT or table.is_extern:
                symbol, content = kernel.c_name(table.name), table.type.dtype.c if table.is_dynamic else table
                others = {kernel.c_name(name) for name in names_in_scope(kernel) - {table.name}}
                # rule: symbol-free
                while symbol in others or is_declared(symbol) or taken.setdefault(symbol, content) != content:
                    symbol += "_"
                renamed[table.name] = symbol
        functions = tuple(map(with_free_names, kernel.functions))
        return with_fields(kernel, renamed=tuple(renamed.items()), functions=functions)

    return tuple(tuple(map(with_free_names, family)) for family in families)


def _with_unique_structs(families: tuple[ir.Instances, ...]) -> tuple[ir.Instances, ...]:
    """Renames result structs that share a name but differ in their fields or types."""
    functions = [function for family in families for kernel in family for function in kernel.functions]
    taken: dict[str, object] = {function.symbol: None for function in functions}

    def with_free_name(function: ir.Kernel) -> ir.Kernel:
        if function.struct is None:
            return function
        assert isinstance(function.result, ir.TupleType), function.result
        name, content = (
            function.struct.name,
            (function.struct.fields, tuple(map(_in_every_instance, function.result.items))),
        )
        numbered = (f"{name}{number}" for number in count(2))
        name = next(each for each in chain([name], numbered) if taken.setdefault(each, content) == content)
        return replace(function, struct=replace(function.struct, name=name))

    return tuple(
        tuple(with_fields(kernel, functions=tuple(map(with_free_name, kernel.functions))) for kernel in family)
        for family in families
    )


def _in_every_instance(type_: ir.ScalarType) -> object:
    """The key of a field's C++ type; it is the same in all instances of a type variable."""
    match type_:
        case ir.ElementType(dtype=DType(variable=TypeVariable(symbol=symbol))):
            return symbol
        case ir.ElementType():
            return type_
        case ir.PythonType(width=width):
            return type_, width
