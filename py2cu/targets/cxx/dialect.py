"""Describes a target, and a device function that is called, for the common C++ emitters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from py2cu import ir
from py2cu.dtypes import DType


@dataclass(frozen=True, slots=True)
class Dialect:
    """What differs between the C++ of two targets."""

    widths: Mapping[ir.Width, str]
    launch_type: str  # of blockIdx.x and its like
    functions: Mapping[str, str] = field(default_factory=dict)
    types: Mapping[str, str] = field(default_factory=dict)  # the target's names of C types, where they differ
    overloads: str = ""  # the prefix of overloaded math functions
    launch_struct: str = ""  # the type of launch objects as parameters; "" if they are builtin variables
    fence: str = ""  # the text of every fence; "" for CUDA's functions
    grid_barrier: str = "cooperative_groups::this_grid().sync()"
    unroll: str = "#pragma unroll"  # above an unrolled loop, with the factor behind it
    unrolls_wholly: bool = True  # the pragma without a factor unrolls fully
    atomics_are_helpers: bool = False  # all atomic operations are helpers
    has_intrinsics: bool = False  # CUDA's `__ldg`, `__stcs` and `__fdividef`
    throws: bool = False  # a failed `assert` throws an exception that the launcher catches
    headers: Mapping[str, str] = field(default_factory=dict)  # of functions outside <cmath>, fences, the grid barrier
    names_variables: bool = True  # an instance of a generic kernel is spelled with `T`, not with its dtype

    def spell(self, dtype: DType) -> str:
        """The C++ type of elements of `dtype`."""
        if dtype.variable is not None and self.names_variables:
            return dtype.variable.symbol
        return self.types.get(dtype.c, dtype.c)


@dataclass(frozen=True, slots=True)
class Callee:
    """A device function as its callers see it."""

    function: ir.Kernel
    template: tuple[str, ...] = ()  # its type parameters, which every call names: "T", "index_t"
    launch: tuple[str, ...] = ()  # the launch objects that it takes
    struct: str = ""  # the type of a tuple that it returns

    @property
    def template_arguments(self) -> str:
        """`<T, index_t>`; empty for a plain function."""
        return f"<{', '.join(self.template)}>" if self.template else ""
