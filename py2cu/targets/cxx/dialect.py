"""Describes what the common C++ emitters must know of a target, and of a device function that they call."""

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
    types: Mapping[str, str] = field(default_factory=dict)  # where a C type has another name
    overloads: str = ""  # before the functions of `math` that take floats and doubles
    launch_struct: str = ""  # in which functions are given the launch objects that they see; CUDA's need not be
    fence: str = ""  # what all fences are; CUDA's are functions of their names
    grid_barrier: str = "cooperative_groups::this_grid().sync()"
    unroll: str = "#pragma unroll"  # above a loop that is to be unrolled, by the number behind it
    unrolls_wholly: bool = True  # where no number is
    atomics_are_helpers: bool = False  # all atomic operations are helpers
    throws: bool = False  # a failed `assert` throws what the launcher catches; it is not C's
    headers: Mapping[str, str] = field(default_factory=dict)  # for functions beside `math`'s, and for what else calls
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
    launch: tuple[str, ...] = ()  # the launch objects that it is given
    struct: str = ""  # the type of a tuple that it returns

    @property
    def template_arguments(self) -> str:
        """`<T, index_t>`; empty for a plain function."""
        return f"<{', '.join(self.template)}>" if self.template else ""
