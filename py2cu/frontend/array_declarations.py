"""The arrays of a kernel's own: `acc = local((4, 4), np.float32)`, `tile = shared((16, 16), x.dtype)`, `a = buf[:n]`,
`x4 = x.view(-1, 4)`.

In: a function's body, what its names mean, and the arrays that it is given. Out: `Buffer`s. A buffer is reserved once,
on a line of its own outside loops and branches, as a careful engineer would declare it in C.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import libcst as cst

from py2cu.analysis.template_instances import instances
from py2cu.diagnostics import Reporter
from py2cu.dtypes import BOOL, F32, F64, I64, DType, find_dtype
from py2cu.frontend.names.ambiguity import report_ambiguous_name
from py2cu.frontend.names.environment import Environment
from py2cu.frontend.names.syntax import Statement, assigned_names, is_named
from py2cu.ir.abi.parameters import Constexpr
from py2cu.ir.expressions import Expr, LaunchIndex, as_extent
from py2cu.ir.kernels import ArrayDecl, Space
from py2cu.ir.types import PY_INT, ArrayType, Binary, Constant, Name
from py2cu.ir.visit import walk
from py2cu.source import Span

MAKERS: Final = {
    "py2cu.local": Space.LOCAL, "py2cu.vocabulary.local": Space.LOCAL, "numba.cuda.local.array": Space.LOCAL,
    "py2cu.shared": Space.SHARED, "py2cu.vocabulary.shared": Space.SHARED, "numba.cuda.shared.array": Space.SHARED,
}  # fmt: skip
MAX_BYTES: Final = {Space.LOCAL: 512 * 1024, Space.SHARED: 227 * 1024}  # what CUDA gives a thread, and a block
ROWS: Final = (2, 4, 8, 16)  # how many elements a row of a view may have
_LISTED_ROWS: Final = "2, 4, 8 or 16"
STATIC_BYTES: Final = 48 * 1024  # what a block has of shared memory unless its launch asks for more
EXAMPLES: Final = {Space.LOCAL: "acc = local((4, 4), np.float32)", Space.SHARED: "tile = shared((16, 16), np.float32)"}
_OPERATORS: Final[dict[type[cst.BaseBinaryOp], str]] = {
    cst.Add: "+", cst.Subtract: "-", cst.Multiply: "*", cst.FloorDivide: "//", cst.Modulo: "%",
}  # fmt: skip
_PYTHON: Final = {"builtins.bool": BOOL, "builtins.int": I64, "builtins.float": F64}  # as NumPy reads them
Target = tuple[cst.Name, cst.BaseExpression]  # a name, and what it is assigned


@dataclass(frozen=True, slots=True)
class BufferReader:
    """Finds what one function reserves; `arrays` and `constexprs` are those that it is given.

    `extents` are the names that a launch tells, and `launch` the parameters that are launch objects; a device function
    has neither. `found` may hold the buffer that is a parameter.
    """

    reporter: Reporter
    environment: Environment
    span_of: Callable[[cst.CSTNode], Span]
    arrays: Mapping[str, ArrayType]
    constexprs: Mapping[str, Constexpr] = field(default_factory=dict)
    extents: frozenset[str] = frozenset()
    launch: Mapping[str, str] = field(default_factory=dict)
    is_device: bool = False
    found: dict[str, ArrayDecl] = field(default_factory=dict)
    starts: dict[str, Expr] = field(default_factory=dict)  # where each view begins in what it shows
    _hidden: set[str] = field(default_factory=set)  # names of extents that are locals here
    _definitions: dict[str, cst.BaseExpression] = field(default_factory=dict)  # of locals that are assigned once

    def read(self, body: Iterable[Statement]) -> dict[str, ArrayDecl]:
        """The arrays that the statements of `body` reserve, by name."""
        body = tuple(body)
        count = Counter(assigned_names(body))
        self._hidden.update(count.keys() - self._restated(body))
        targets = [pair for line in body if isinstance(line, cst.SimpleStatementLine) for pair in _targets(line)]
        self._definitions.update({target.value: value for target, value in targets if count[target.value] == 1})
        for target, value in targets:
            match value:
                case _ if target.value in self.found:
                    pass
                case cst.Call() if (space := MAKERS.get(self.environment.qualify(value.func) or "")) is not None:
                    self.found[target.value] = self._read_call(value, target, space)
                case cst.Subscript(
                    value=cst.Name(value=base), slice=[cst.SubscriptElement(slice=cst.Slice(step=None) as bounds)]
                ) if base in self.found and self.found[base].space is Space.SHARED:
                    self._read_view(self.found[base], bounds, target)
                case cst.Call(func=cst.Attribute(value=cst.Name(value=base), attr=cst.Name(value="view"))) if (
                    base in self.arrays or base in self.found
                ):
                    self._read_rows(base, value, target)
        return self.found

    def _restated(self, body: Iterable[cst.CSTNode]) -> set[str]:
        """The names that `h, w = x.shape` gives the extents which the annotation of `x` calls so."""
        found: set[str] = set()
        for line in body:
            for statement in line.body if isinstance(line, cst.SimpleStatementLine) else ():
                match statement:
                    case cst.Assign(
                        targets=[cst.AssignTarget(target=cst.Tuple(elements=names))],
                        value=cst.Attribute(value=cst.Name(value=array), attr=cst.Name(value="shape")),
                    ) if array in self.arrays:
                        pairs = zip(names, self.arrays[array].dims, strict=False)
                        found |= {d.id for n, d in pairs if isinstance(d, Name) and is_named(n.value, d.id)}
        return found

    def _read_call(self, call: cst.Call, target: cst.Name, space: Space) -> ArrayDecl:
        """What `local(shape, dtype)` makes; something harmless, and a diagnostic, where that is not to be told."""
        places = [arg.value for arg in call.args if arg.keyword is None and not arg.star]
        named = {arg.keyword.value: arg.value for arg in call.args if arg.keyword is not None}
        given = dict(zip(("shape", "dtype"), places, strict=False)) | named
        dtype, like = F32, ""
        shape: tuple[Expr, ...] = (Constant(1, self.span_of(call), PY_INT),)
        if given.keys() != {"shape", "dtype"} or len(places) + len(named) != 2:
            self._error(f"`{space.value}` takes a shape and a dtype", call, f"`{EXAMPLES[space]}`")
        else:
            dtype, like = self._read_dtype(given["dtype"])
            shape = self._read_shape(given["shape"], dtype, space)
        buffer = ArrayDecl(
            target.value, ArrayType(dtype, tuple(map(as_extent, shape))), space, like=like, span=self.span_of(target)
        )
        return self.placed(buffer, call)

    def placed(self, buffer: ArrayDecl, node: cst.CSTNode) -> ArrayDecl:
        """`buffer` with the memory that it lies in: shared memory that only a launch can size is dynamic, and so is
        what would exceed the 48 KB of a block otherwise.
        """
        if buffer.space is not Space.SHARED:
            return buffer
        own = self._bytes(buffer)
        static = [b for b in self.found.values() if b.space is Space.SHARED and not b.is_dynamic and not b.base]
        is_dynamic = own is None or own + sum(self._bytes(b) or 0 for b in static) > STATIC_BYTES
        if is_dynamic and self.is_device:
            message = "a device function has shared arrays of constant extents, 48 KB at most"
            self._error(message, node, "make it in the kernel, and hand it over")
        return ArrayDecl(
            buffer.name,
            buffer.type,
            buffer.space,
            like=buffer.like,
            span=buffer.span,
            is_parameter=buffer.is_parameter,
            is_dynamic=is_dynamic and not self.is_device,
        )

    def _bytes(self, buffer: ArrayDecl) -> int | None:
        """The size that an array has at most, in any instance; None where only a launch tells it."""
        shapes = self._instances(buffer.type.dims)
        if shapes is None:
            return None
        return max((math.prod(shape) for _, shape in shapes), default=0) * _most_bytes(buffer.type.dtype)

    def _instances(self, shape: tuple[Expr, ...]) -> list[tuple[str, tuple[int, ...]]] | None:
        """What `shape` is in each instance; None where only a launch tells it."""
        nodes = [node for extent in shape for node in walk(extent)]
        is_told = self.constexprs.keys() >= {node.id for node in nodes if isinstance(node, Name)}
        if not is_told or any(isinstance(node, LaunchIndex) for node in nodes):
            return None
        return list(instances(shape, self.constexprs))

    def check_size(self, shape: tuple[Expr, ...], dtype: DType, space: Space, node: cst.CSTNode) -> None:
        """Refuse an array that has no elements, or more than there is memory for, in some instance."""
        numbers = tuple(int(extent.value) for extent in shape if isinstance(extent, Constant))
        for choice, extents in self._instances(shape) or [("", numbers)]:
            if min(extents, default=1) < 1:
                hint = "an extent is a whole number above zero, for every value of the template arguments in it"
                self._error(f"this array has no elements{choice}", node, hint)
                return
            if math.prod(extents) * dtype.bits // 8 > MAX_BYTES[space]:
                owner = "thread" if space is Space.LOCAL else "block"
                kilobytes = MAX_BYTES[space] // 1024
                taken = f", and this one takes more{choice}" if choice else ""
                self._error(f"a {owner} has {kilobytes} KB for its arrays{taken}", node, "make it smaller")
                return

    def _read_view(self, base: ArrayDecl, bounds: cst.Slice, target: cst.Name) -> None:
        """`ms = buf[:n]`, which begins where it says and ends there, or where `buf` does."""
        span = self.span_of(target)
        start, stop = self._read_bounds(base, bounds)
        length = stop or base.type.dims[0]
        if start is not None:
            length = Binary("-", length, start, span)
        type_ = ArrayType(base.type.dtype, (as_extent(length),))
        self.found[target.value] = ArrayDecl(
            target.value, type_, Space.SHARED, like=base.like, span=span, base=base.name
        )
        self.starts[target.value] = start or Constant(0, span)

    def _read_rows(self, base: str, call: cst.Call, target: cst.Name) -> None:
        """`x4 = x.view(-1, 4)`: a parameter's elements in rows, of which each is loaded and stored at once."""
        span = self.span_of(target)
        match [self.environment.constant(arg.value) for arg in call.args if arg.keyword is None and not arg.star]:
            case [-1, int(row)] if len(call.args) == 2 and row in ROWS:
                pass
            case _:
                self._refuse_rows(
                    f"`{base}` is viewed in rows of {_LISTED_ROWS} elements", call, f"`{base}.view(-1, 4)`"
                )
                row = ROWS[0]
        array = self.arrays.get(base)
        if array is None or self.is_device:
            what = "a device function makes no views" if self.is_device else f"`{base}` is an array of the kernel's own"
            self._refuse_rows(f"{what}: only parameters of kernels are viewed in rows", call, "index its elements")
        if array is None or len(array.dims) != 1:
            if array is not None:
                what = f"arrays of one dimension are viewed in rows, and `{base}` has {len(array.dims)}"
                self._refuse_rows(what, call, 'annotate it flat: `Float32[Tensor, "n"]`')
            array = ArrayType(F32, (Constant(row, span, PY_INT),))
        type_ = replace(array, dims=(as_extent(self._quotient(array.dims[0], row, call)), Constant(row, span, PY_INT)))
        self.found[target.value] = ArrayDecl(target.value, type_, Space.GLOBAL, like=base, span=span, base=base)

    def _quotient(self, extent: Expr, row: int, call: cst.Call) -> Expr:
        """How many rows there are; a call is refused where elements would be left over."""
        span = self.span_of(call)
        match extent:
            case Constant(value=int(size)):
                if size % row:
                    self._refuse_rows(f"rows of {row} do not divide {size} elements", call, "choose another extent")
                return Constant(size // row, span, PY_INT)
            case Binary(op="*", left=Constant(value=int(factor)), right=rest) if factor == row:
                return rest
            case Binary(op="*", left=rest, right=Constant(value=int(factor))) if factor == row:
                return rest
            case _:
                return Binary("//", extent, Constant(row, span, PY_INT), span, PY_INT)

    def _refuse_rows(self, message: str, call: cst.Call, hint: str) -> None:
        self.reporter.error("P410", message, self.span_of(call), hint)

    def _read_bounds(self, base: ArrayDecl, bounds: cst.Slice) -> tuple[Expr | None, Expr | None]:
        """Where a view begins and ends, None where `base` does; None too, and a diagnostic, for what is no bound."""
        if len(base.type.dims) != 1:
            self._error(f"arrays of one dimension are sliced, and `{base.name}` has more", bounds, "index it")
            return None, None
        start, stop = (
            None if node is None else self._extent(node, Space.SHARED, is_bound=True)
            for node in (bounds.lower, bounds.upper)
        )
        for node, end in ((bounds.lower, start), (bounds.upper, stop)):
            if (node is not None and end is None) or (isinstance(end, Constant) and end.value < 0):
                hint = "numbers, extents, whole parameters, locals that are assigned once, and what is made of them"
                self._error("the bounds of a view count from the start of its array", node or bounds, hint)
                return None, None
        return start, stop

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
        if found is None and not report_ambiguous_name(node, self.environment, self.reporter, self.span_of):
            hint = "`np.float32`, `torch.int32`, `'float32'`, or `x.dtype` of an array"
            self._error("this is no element type", node, hint)
        return found or F32, ""

    def _read_shape(self, node: cst.BaseExpression, dtype: DType, space: Space) -> tuple[Expr, ...]:
        items = [element.value for element in node.elements] if isinstance(node, cst.Tuple | cst.List) else [node]
        found = [self._extent(item, space) for item in items]
        shape = tuple(extent for extent in found if extent is not None)
        known = [int(extent.value) for extent in shape if isinstance(extent, Constant)]
        if not shape or len(shape) < len(items) or any(extent < 1 for extent in known):
            self._refuse_shape(node, space)
            return (Constant(1, self.span_of(node), PY_INT),)
        self.check_size(shape, dtype, space, node)
        return shape

    def _refuse_shape(self, node: cst.BaseExpression, space: Space) -> None:
        if report_ambiguous_name(node, self.environment, self.reporter, self.span_of):
            return
        if space is Space.SHARED and not self.is_device:
            hint = "whole numbers above zero, extents, whole parameters, and sums and products of them"
            self._error("a launch cannot tell the shape of this shared array", node, hint)
            return
        hint = (
            f"whole numbers above zero, names of such constants, or template arguments: `{space.value}((4, TILE), …)`"
        )
        self._error(f"the shape of a {space.value} array is constant", node, hint)

    def _extent(self, node: cst.BaseExpression, space: Space, is_bound: bool = False) -> Expr | None:
        """A constant, a template argument, or what is computed from such; None for anything else.

        Of shared arrays also what a launch tells; of a view's bounds, locals stay what they are.
        """
        constant = self.environment.constant(node)
        span = self.span_of(node)
        match node:
            case _ if isinstance(constant, int) and not isinstance(constant, bool):
                return Constant(constant, span, PY_INT)
            case cst.Name(value=name) if name in self.constexprs:
                return Name(name, span, PY_INT)
            case cst.BinaryOperation(left=left, operator=sign, right=right) if type(sign) in _OPERATORS:
                a, b = self._extent(left, space, is_bound), self._extent(right, space, is_bound)
                return Binary(_OPERATORS[type(sign)], a, b, span, PY_INT) if a and b else None
            case _ if space is not Space.SHARED or self.is_device:
                return None
            case cst.Name(value=name) if name in self._definitions:
                value = self._extent(self._definitions[name], space)
                return Name(name, span) if value is not None and is_bound else value
            case cst.Name(value=name) if name in self.extents - self._hidden:
                return Name(name, span, PY_INT)
            case cst.Attribute(value=owner, attr=cst.Name(value="x" | "y" | "z" as axis)) if (
                launched := self._launched(owner)
            ) in ("blockDim", "gridDim"):
                return LaunchIndex(launched, axis, span)
            case _:
                return self._shape_of(node)

    def _launched(self, node: cst.BaseExpression) -> str:
        if isinstance(node, cst.Name) and node.value in self.launch:
            return self.launch[node.value]
        library, _, name = (self.environment.qualify(node) or "").rpartition(".")
        return name if library == "py2cu" else ""

    def _shape_of(self, node: cst.BaseExpression) -> Expr | None:
        """The extent that `len(x)` or `x.shape[1]` is."""
        match node:
            case cst.Call(func=cst.Name(value="len"), args=[cst.Arg(value=cst.Name(value=name))]) if (
                name in self.arrays
            ):
                return next(iter(self.arrays[name].dims), None)
            case cst.Subscript(
                value=cst.Attribute(value=cst.Name(value=name), attr=cst.Name(value="shape")),
                slice=[cst.SubscriptElement(slice=cst.Index(value=at))],
            ) if name in self.arrays:
                axis, dims = self.environment.constant(at), self.arrays[name].dims
                return dims[axis] if isinstance(axis, int) and -len(dims) <= axis < len(dims) else None
            case _:
                return None

    def _error(self, message: str, node: cst.CSTNode, hint: str) -> None:
        self.reporter.error("P408", message, self.span_of(node), hint)


def _most_bytes(dtype: DType) -> int:
    """The size of an element, of the widest type that a type variable stands for."""
    admitted = (dtype,) if dtype.variable is None else dtype.variable.admits
    return max(*(each.bits for each in admitted), 8) // 8


def _targets(line: cst.SimpleStatementLine) -> Iterator[Target]:
    """Each name that a line assigns to, with its value; `a, b = c, d` are two."""
    for statement in line.body:
        match statement:
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as target)], value=value):
                yield target, value
            case cst.Assign(
                targets=[cst.AssignTarget(target=cst.Tuple(elements=names))], value=cst.Tuple(elements=values)
            ) if len(names) == len(values):
                for name, item in zip(names, values, strict=True):
                    if isinstance(name.value, cst.Name):
                        yield name.value, item.value
