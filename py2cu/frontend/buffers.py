"""The arrays of a kernel's own: `acc = local((4, 4), np.float32)`.

In: a function's body, what its names mean, and the arrays that it is given. Out: `Buffer`s. A buffer is reserved once,
on a line of its own outside loops and branches, as a careful engineer would declare it in C.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

import libcst as cst

from py2cu.diagnostics import Reporter
from py2cu.dtypes import BOOL, F32, F64, I64, DType, find_dtype
from py2cu.frontend.environment import Environment
from py2cu.ir.extents import Binary, Constant, Name
from py2cu.ir.nodes import Expr
from py2cu.ir.statements import Buffer, Space
from py2cu.ir.types import PY_INT, ArrayType
from py2cu.source import Span

LOCAL: Final = frozenset(["py2cu.local", "py2cu.vocabulary.local", "numba.cuda.local.array"])
MAX_BYTES: Final = 512 * 1024  # what CUDA gives a thread
_OPERATORS: Final[dict[type[cst.BaseBinaryOp], str]] = {cst.Add: "+", cst.Subtract: "-", cst.Multiply: "*"}
_PYTHON: Final = {"builtins.bool": BOOL, "builtins.int": I64, "builtins.float": F64}  # as NumPy reads them


@dataclass(frozen=True, slots=True)
class BufferReader:
    """Finds what one function reserves; `arrays` and `constexprs` are those that it is given."""

    reporter: Reporter
    environment: Environment
    span_of: Callable[[cst.CSTNode], Span]
    arrays: Mapping[str, ArrayType]
    constexprs: frozenset[str] = frozenset()

    def read(self, body: Iterable[cst.CSTNode]) -> dict[str, Buffer]:
        """The arrays that the statements of `body` reserve, by name."""
        found: dict[str, Buffer] = {}
        for line in body:
            for statement in line.body if isinstance(line, cst.SimpleStatementLine) else ():
                match statement:
                    case cst.Assign(
                        targets=[cst.AssignTarget(target=cst.Name() as target)], value=cst.Call() as call
                    ) if self.environment.qualify(call.func) in LOCAL and target.value not in found:
                        found[target.value] = self._read_call(call, target)
        return found

    def _read_call(self, call: cst.Call, target: cst.Name) -> Buffer:
        """What `local(shape, dtype)` makes; something harmless, and a diagnostic, where that is not to be told."""
        places = [arg.value for arg in call.args if arg.keyword is None and not arg.star]
        named = {arg.keyword.value: arg.value for arg in call.args if arg.keyword is not None}
        given = dict(zip(("shape", "dtype"), places, strict=False)) | named
        dtype, like = F32, ""
        shape: tuple[Expr, ...] = (Constant(1, self.span_of(call), PY_INT),)
        if given.keys() != {"shape", "dtype"} or len(places) + len(named) != 2:
            self._error("`local` takes a shape and a dtype", call, "`acc = local((4, 4), np.float32)`")
        else:
            dtype, like = self._read_dtype(given["dtype"])
            shape = self._read_shape(given["shape"], dtype)
        return Buffer(target.value, ArrayType(dtype, shape), Space.LOCAL, like=like, span=self.span_of(target))

    def _read_dtype(self, node: cst.BaseExpression) -> tuple[DType, str]:
        """The dtype that `node` says, and the array whose own it is, if any's."""
        match node:
            case cst.Attribute(value=cst.Name(value=name), attr=cst.Name(value="dtype")) if name in self.arrays:
                return self.arrays[name].dtype, name
        qualified = self.environment.qualify(node) or ""
        library, _, name = qualified.rpartition(".")
        said = self.environment.constant(node)
        if library in {"numpy", "torch", "numba", "numba.types"}:
            found = find_dtype(name)
        elif isinstance(said, str):
            found = find_dtype(said)
        else:
            found = _PYTHON.get(qualified)
        if found is None:
            hint = "`np.float32`, `torch.int32`, `'float32'`, or `x.dtype` of an array"
            self._error("this is no element type", node, hint)
        return found or F32, ""

    def _read_shape(self, node: cst.BaseExpression, dtype: DType) -> tuple[Expr, ...]:
        items = [element.value for element in node.elements] if isinstance(node, cst.Tuple | cst.List) else [node]
        found = [self._extent(item) for item in items]
        shape = tuple(extent for extent in found if extent is not None)
        known = [int(extent.value) for extent in shape if isinstance(extent, Constant)]
        if not shape or len(shape) < len(items) or any(extent < 1 for extent in known):
            hint = "whole numbers above zero, names of such constants, or template arguments: `local((4, TILE), …)`"
            self._error("the shape of a local array is constant", node, hint)
            return (Constant(1, self.span_of(node), PY_INT),)
        if math.prod(known) * dtype.bits // 8 > MAX_BYTES:
            self._error("a thread has 512 KB for its arrays", node, "make it smaller")
        return shape

    def _extent(self, node: cst.BaseExpression) -> Expr | None:
        """A constant, a template argument, or what is computed from such; None for anything else."""
        constant = self.environment.constant(node)
        match node:
            case _ if isinstance(constant, int) and not isinstance(constant, bool):
                return Constant(constant, self.span_of(node), PY_INT)
            case cst.Name(value=name) if name in self.constexprs:
                return Name(name, self.span_of(node), PY_INT)
            case cst.BinaryOperation(left=left, operator=sign, right=right) if type(sign) in _OPERATORS:
                a, b = self._extent(left), self._extent(right)
                return Binary(_OPERATORS[type(sign)], a, b, self.span_of(node), PY_INT) if a and b else None
            case _:
                return None

    def _error(self, message: str, node: cst.CSTNode, hint: str) -> None:
        self.reporter.error("P408", message, self.span_of(node), hint)
