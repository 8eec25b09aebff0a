"""Signatures built by hand, and a kernel whose compiled side is any Python function."""

from collections.abc import Callable
from dataclasses import dataclass

from py2cu.dtypes import BY_NAME, Kind
from py2cu.ir.abi.parameters import IndexParameter, Parameter, Role
from py2cu.ir.abi.signature import Dim, Guard, Signature
from py2cu.ir.types import ArrayType, Binary, Constant, ElementType, Name, PythonType, constant_extent


def extent(text: str):
    """`n`, `3`, or `3*n`."""
    left, star, right = text.partition("*")
    if star:
        return Binary("*", extent(left), extent(right))
    return Constant(int(text)) if text.isdigit() else Name(text)


def array(name: str, dtype: str, dims: str, role: Role = Role.INPUT) -> Parameter:
    return Parameter(name, ArrayType(BY_NAME[dtype], tuple(map(extent, dims.split()))), role)


def scalar(name: str, kind: Kind) -> Parameter:
    return Parameter(name, PythonType(kind))


def element(name: str, dtype: str) -> Parameter:
    return Parameter(name, ElementType(BY_NAME[dtype]))


def signature(
    parameters, *, indices="", launch=(), size=None, block=(256,), guards=(), inits=(), strided=()
) -> Signature:
    """A signature; `indices` such as "r=h c=w", the last one on x; `guards` such as ("i", "n", "x")."""
    pairs = [index.split("=") for index in indices.split()]
    axes = "xyz"[: len(pairs)][::-1]
    given = [p for p in parameters if p.role is not Role.OUTPUT and isinstance(p.type, ArrayType)]
    dims = {}
    for parameter in given:
        for axis, dim in enumerate(parameter.type.dims):
            if isinstance(dim, Name):
                dims.setdefault(dim.id, Dim(dim.id, parameter.name, axis))
    return Signature(
        op="k",
        name="kernel",
        doc=None,
        parameters=tuple(parameters),
        dims=tuple(dims.values()),
        indices=tuple(IndexParameter(name, extent(n), axis) for (name, n), axis in zip(pairs, axes, strict=True)),
        launch=tuple(launch),
        size=None if size is None else tuple(map(extent, size)),
        block=tuple(map(constant_extent, block)),
        guards=tuple(Guard(index, extent(n), axis) for index, n, axis in guards),
        inits=tuple(inits),
        strided=tuple(strided),
    )


@dataclass
class FakeKernel:
    """`compiled` stands in for the C++: it takes the arguments by name and works in place."""

    python: Callable[..., object]
    signature: Signature
    compiled: Callable[..., object]

    def run(self, target_device, arguments):
        self.compiled(**arguments)
