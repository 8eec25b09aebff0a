"""Fresh names for locals that the user did not write.

In: a kernel, or the names that are taken. Out: a name. `targets/cxx/naming.py` ensures that it hides no C++ function.
"""

from __future__ import annotations

import itertools
from collections.abc import Container, Iterator
from dataclasses import astuple

from py2cu.ir.kernels import Kernel
from py2cu.ir.statements import EachPack
from py2cu.ir.visit import assigned_names


def names_in_scope(kernel: Kernel) -> set[str]:
    """The names in a kernel: parameters, dimensions, indices, locals, kernel-local arrays and tables, packs."""
    names = {p.name for p in kernel.parameters} | {index.name for index in kernel.indices} | {*kernel.dims}
    names |= {value.name for value in kernel.launch_values}
    names |= {decl.name for decl in kernel.array_decls} | {name for name, _ in kernel.locals}  # rule: hidden-array
    for stmt in kernel.body:
        if isinstance(stmt, EachPack):  # rule: pack-names
            names |= {*stmt.packs, *astuple(stmt.names)}
    return names.union(assigned_names(kernel.body))


def list_elements(array: str) -> str:
    """The name under which analyses keep what all elements of a list have in common, as if they were one local."""
    return f"{array}[…]"


def numbered(name: str) -> Iterator[str]:
    """`name`, `name2`, `name3` and so on."""
    yield name
    yield from (f"{name}{number}" for number in itertools.count(2))


def underscored_name(name: str, taken: Container[str]) -> str:
    """`name` with as many underscores behind it as make it none of `taken`."""
    while name in taken:
        name += "_"
    return name


def free_name(name: str, taken: Container[str]) -> str:
    """The first of `name`, `name2`, `name3`, … that is not `taken`."""
    return next(each for each in numbered(name) if each not in taken)
