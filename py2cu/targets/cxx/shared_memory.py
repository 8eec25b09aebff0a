"""Emits the launcher's code for dynamic shared memory: the bytes of a block, and the test for more than 48 KB."""

from __future__ import annotations

from typing import Final

from py2cu import ir
from py2cu.analysis.launches import elements_of, has_static_shared
from py2cu.builtins.memory import DYNAMIC_BYTES
from py2cu.ir.visit import names_in
from py2cu.targets.cxx.dialect import Dialect
from py2cu.targets.cxx.extents import extent_text

BYTES: Final = "shared_bytes"  # the launcher's local for the number
_DEFAULT_LIMIT: Final = "48 * 1024"


def bytes_text(kernel: ir.Kernel, dialect: Dialect) -> str:
    """The bytes of a block's dynamic arrays in the launcher's C++; empty where there are none."""
    sizes = [_bytes(kernel, decl, dialect) for decl in kernel.array_decls if decl.is_dynamic]
    return " + ".join(sizes)


def _bytes(kernel: ir.Kernel, decl: ir.ArrayDecl, dialect: Dialect) -> str:
    size = elements_of(decl)
    if DYNAMIC_BYTES in names_in(size):
        return kernel.c_name(DYNAMIC_BYTES)
    text = extent_text(size, kernel)
    count = f"({text})" if isinstance(size, ir.Binary) and size.op in "+-" else text
    return f"{count} * sizeof({dialect.spell(decl.type.dtype)})"


def limit_condition(kernel: ir.Kernel) -> str:
    """The condition under which the launcher calls `allow_shared`; empty if it always does, beside static arrays."""
    return "" if has_static_shared(kernel) else f"{BYTES} > {_DEFAULT_LIMIT}"
