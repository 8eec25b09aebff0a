"""One op of the emitted binding: what its C++ calls arguments, extents and dtypes.

In: the instances of a kernel and its `Signature`. Out: C++ expressions in terms of the op's arguments, and of `at`, the
struct of the extents that the arguments agree on.
"""

from __future__ import annotations

from py2cu import ir
from py2cu.dtypes import TypeVariable
from py2cu.ir.abi.parameters import Parameter, Role
from py2cu.ir.abi.signature import Signature
from py2cu.ir.rewrite import rebuild
from py2cu.targets.cxx.dialect import Dialect
from py2cu.targets.cxx.extents import extent_text


class Op:
    """A kernel as the op for its instances; a device guard and a stream only on CUDA."""

    def __init__(self, family: ir.Instances, signature: Signature, dialect: Dialect, *, is_cuda: bool) -> None:
        self.family, self.signature, self.dialect, self.is_cuda = family, signature, dialect, is_cuda
        self.kernel = family[0]
        self.name = self.kernel.symbol
        self.dims = {dim.name: dim for dim in signature.dims}
        self.passed = tuple(p for p in signature.arrays if p.role is not Role.OUTPUT)
        arrays = (*self.passed, *signature.outputs)
        self.first = next(p for p in arrays if not p.may_be_none)  # whose device is the call's
        self.pairs_apart = tuple(signature.apart({p.name for p in arrays}))  # the first is written
        self.dtype_sources = {variable: self._dtype_source(variable) for variable in self.kernel.variables}

    def _dtype_source(self, variable: TypeVariable) -> str:
        """The input whose dtype is the value of a type variable of a generic kernel."""
        required = (p for p in self.passed if not p.may_be_none)
        return next(p.name for p in required if array_type(p).dtype.variable == variable)

    def scalar(self, name: str) -> str:
        """A scalar by the op's name for it: a member of the extents struct where the scalar is an extent."""
        return f"at.{self.kernel.c_name(name)}" if name in self.dims else self.kernel.c_name(name)

    def extent(self, extent: ir.Expr) -> str:
        """An extent in terms of the op's names."""

        def known(expr: ir.Expr) -> ir.Expr:
            return ir.Name(self.scalar(expr.id)) if isinstance(expr, ir.Name) else expr

        return extent_text(rebuild(extent, known), self.kernel)

    def given(self, array: Parameter) -> str:
        """The test whether a call passes `array`; empty for one that it always passes."""
        return self.kernel.c_name(array.name) if array.may_be_none else ""

    def tensor(self, array: Parameter) -> str:
        """The tensor, where the call passes it."""
        return f"{'*' if array.may_be_none else ''}{self.kernel.c_name(array.name)}"

    def member(self, array: Parameter, name: str) -> str:
        """A member of the tensor: `x.dim()`, `bias->numel()`."""
        return f"{self.kernel.c_name(array.name)}{'->' if array.may_be_none else '.'}{name}"

    def axis(self, array: Parameter, axis: int) -> str:
        """The axis of the tensor that is `axis` of the annotation: behind leading dimensions it counts from the end."""
        type_ = array_type(array)
        return f"{self.member(array, 'dim()')} - {len(type_.dims) - axis}" if type_.leading else str(axis)

    def size(self, array: Parameter, axis: int) -> str:
        """The extent of an axis of the annotation; of its leading dimensions, the product."""
        if array_type(array).leading and axis == 0:
            return f"leading_size({self.tensor(array)}, {array_type(array).trailing})"
        return self.member(array, f"size({self.axis(array, axis)})")

    def dtype(self, array: Parameter) -> str:
        """The dtype of an array; the first array of a type variable decides it."""
        dtype = array_type(array).dtype
        if dtype.variable is None:
            return f"ScalarType::{dtype.torch}"
        return f"{self.kernel.c_name(self.dtype_sources[dtype.variable])}.scalar_type()"

    def leading_source(self, array: Parameter) -> Parameter | None:
        """The array whose leading dimensions `array` has; None if it has none, or if a call may leave that out."""
        name = self.signature.leading_source(array_type(array))
        source = None if name is None else self.kernel.parameter(name)
        return None if source is None or source.may_be_none else source


def array_type(array: Parameter) -> ir.ArrayType:
    assert isinstance(array.type, ir.ArrayType)
    return array.type
