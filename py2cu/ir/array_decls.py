"""The arrays of a kernel that are no arguments: its own, tables, and views."""

from __future__ import annotations

import enum
from dataclasses import dataclass
from typing import Final

from py2cu.dtypes import Kind
from py2cu.ir.header_names import is_declared
from py2cu.ir.types import ArrayType, Constant, span_field
from py2cu.source import Span

__all__ = ["ROW_BYTES", "ArrayDecl", "Space"]

ROW_BYTES: Final = 16  # that a thread loads or stores at once, at most


class Space(enum.Enum):
    """Where an array of a kernel lives, and who sees it."""

    LOCAL = "local"  # a thread's own
    SHARED = "shared"  # one for all threads of a block
    CONSTANT = "constant"  # a table that all threads read
    GLOBAL = "global"  # a caller's: `x4 = x.view(-1, 4)` shows an array parameter in rows


@dataclass(frozen=True, slots=True)
class ArrayDecl:
    """An array that is no argument: `acc = local((4, 4), np.float32)`, or a tuple of constants around the kernel.

    Its extents are constants and its accesses keep all their indices, unless it `is_flat`: a shared array that the
    launch sizes, or a view of another one. In a view in rows, an access with one index is of a whole row.
    `values` are a table's, the last index fastest.
    """

    name: str
    type: ArrayType
    space: Space
    values: tuple[bool | int | float, ...] = ()
    like: str = ""  # the array whose dtype it takes: `local(4, x.dtype)`
    span: Span = span_field()
    base: str = ""  # of a view, `ms = buf[:n]`: its array; of a dynamic array: the previous one
    is_dynamic: bool = False  # it lies in the memory that a launch asks for
    is_parameter: bool = False  # it is the parameter `shared`
    is_python_dtype: bool = False  # written as a type of Python: `shared(256, float)`
    is_list: bool = False  # in the Python: `infer_types` sets its dtype, and negative indices count from the end
    is_row: bool = False  # set by load_rows: a thread's copy of a row, loaded or stored at once

    @property
    def has_alloc(self) -> bool:
        """True if a line of the kernel allocates it: it is no table, no parameter, and no view."""
        is_view = bool(self.base) and not self.is_dynamic
        return self.space is not Space.CONSTANT and not is_view and not self.is_parameter

    @property
    def has_rows(self) -> bool:
        """True for a view in rows."""
        return self.space is Space.GLOBAL

    @property
    def vector_width(self) -> int:
        """How many elements one access of a row loads or stores; 0 of an array that has no rows."""
        if not self.has_rows:
            return 0
        extent = self.type.dims[-1]
        assert isinstance(extent, Constant), extent
        return int(extent.value)

    @property
    def row_bytes(self) -> int:
        """The bytes of a row, to which the array must be aligned."""
        return self.vector_width * self.type.dtype.itemsize

    @property
    def is_extern(self) -> bool:
        """True for a dynamic array that C declares `extern __shared__` under the user's name.

        A header may not declare that name, and instances of a template would declare it with different types.
        """
        is_one_type = self.type.dtype.variable is None and not self.is_constructed
        return self.is_dynamic and not self.base and is_one_type and not is_declared(self.name)  # rule: header-array

    @property
    def is_constructed(self) -> bool:
        """True for a shared array whose elements have a constructor: CUDA refuses that, so it is declared as bytes."""
        return self.space is Space.SHARED and any(row.kind is Kind.COMPLEX for row in self.type.dtype.admitted)

    @property
    def is_flat(self) -> bool:
        """True if the array is a pointer in C, and each access has one index."""
        return self.is_dynamic or bool(self.base)
