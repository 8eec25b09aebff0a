"""Arrays that a function declares: `acc = local((4, 4), np.float32)`, `tile = shared((16, 16), x.dtype)`, and views.

In: a function's body, the meaning of its names, and its array parameters. Out: an `ArrayDecl` for each array. An
array is declared once, on a line of its own, where an engineer would declare it in C. Only an array of one thread may
be declared in a branch or a loop, for use in that block.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

import libcst as cst

from py2cu import ir
from py2cu.builtins.memory import DYNAMIC_BYTES, LOCAL, NUMBA_CONSTANT, NUMBA_SHARED, SHARED
from py2cu.dtypes import BOOL, F32, F64, I64, SHORT, DType, Kind, find_dtype
from py2cu.frontend.declarations.array_extents import ExtentReader, assignments_to_names
from py2cu.frontend.declarations.array_views import ViewReader
from py2cu.frontend.names.ambiguity import report_ambiguous_name
from py2cu.frontend.names.constants import numbers, shape_of
from py2cu.frontend.names.environment import Environment
from py2cu.frontend.names.numpy_arrays import numpy_array
from py2cu.frontend.names.syntax import Statement, assigned_names, nodes_in, suites
from py2cu.ir.visit import names_in

MAKERS: Final = {**dict.fromkeys(LOCAL, ir.Space.LOCAL), **dict.fromkeys(SHARED, ir.Space.SHARED)}
MAX_BYTES: Final = {ir.Space.LOCAL: 512 * 1024, ir.Space.SHARED: 227 * 1024}  # of a thread, and of a block
MAX_CONSTANT_BYTES: Final = 64 * 1024
STATIC_BYTES: Final = 48 * 1024  # the default limit of shared memory for a block
_EXAMPLES: Final = {
    ir.Space.LOCAL: "acc = {}((4, 4), np.float32)",
    ir.Space.SHARED: "tile = {}((16, 16), np.float32)",
}
_IN_BLOCKS: Final = (*LOCAL, NUMBA_SHARED, NUMBA_CONSTANT)  # these may be declared where only one block uses them
_PYTHON: Final = {"builtins.bool": BOOL, "builtins.int": I64, "builtins.float": F64}  # as NumPy reads them


@dataclass(frozen=True, slots=True)
class ArrayDeclarationReader:
    """Finds the arrays that one function declares; `declared` may start with the parameter `shared`."""

    extents: ExtentReader
    parameters: frozenset[str]  # no array may have their names
    declared: dict[str, ir.ArrayDecl] = field(default_factory=dict)
    starts: dict[str, ir.Expr] = field(default_factory=dict)  # of each view of shared memory, in its base

    def read(self, body: Iterable[Statement]) -> dict[str, ir.ArrayDecl]:
        """The arrays that the statements of `body` declare, by name."""
        views, qualify = ViewReader(self.extents), self.extents.environment.qualify
        body = tuple(body)
        for target, value in self.extents.enter(body):
            name = target.value
            match value:
                case _ if name in self.declared:
                    pass
                case cst.Call(func=function) if (space := MAKERS.get(qualify(function) or "")) is not None:
                    if name in self.parameters:
                        message = f"the parameter `{name}` cannot be assigned to"
                        self.extents.error("P203", message, target, "use another name")
                    self.declared[name] = self._read_call(value, target, space)
                case cst.Call(func=function, args=[cst.Arg(value=array, keyword=None, star="")]) if (
                    qualify(function) == NUMBA_CONSTANT
                ):
                    self.declared[name] = self._read_table(array, target)
                case cst.Subscript(
                    value=cst.Name(value=base), slice=[cst.SubscriptElement(slice=cst.Slice(step=None) as bounds)]
                ) if base in self.declared and self.declared[base].space is ir.Space.SHARED:
                    self.declared[name], self.starts[name] = views.read_slice(self.declared[base], bounds, target)
                case cst.Subscript(
                    value=cst.Call() as call, slice=[cst.SubscriptElement(slice=cst.Slice(step=None) as bounds)]
                ) if is_dynamic(call, self.extents.environment) and (first := self._dynamic()) is not None:
                    whole = self._read_call(call, target, ir.Space.SHARED)
                    part, self.starts[name] = views.read_slice(whole, bounds, target)
                    self.declared[name] = replace(part, base=first.name)
                case cst.Call(func=cst.Attribute(value=cst.Name(value=base), attr=cst.Name(value="view"))) if (
                    base in self.extents.arrays or base in self.declared
                ):
                    self.declared[name] = views.read_rows(base, value, target)
        for target, value, block in _in_blocks(body) if self._may_declare_local() else ():
            maker = qualify(value.func) if isinstance(value, cst.Call) else None
            if maker not in _IN_BLOCKS or target.value in self.parameters | self.declared.keys():
                continue
            assert isinstance(value, cst.Call)
            if _is_of(block, target.value, body):
                self.declared[target.value] = self._read_in_block(value, target, maker)
        return self.declared

    def _read_in_block(self, call: cst.Call, target: cst.Name, maker: str) -> ir.ArrayDecl:
        """The array that a branch or a loop declares for itself."""
        if maker == NUMBA_CONSTANT:
            return self._read_table(call.args[0].value if call.args else call, target)
        array = self._read_call(call, target, MAKERS[maker])
        if array.space is ir.Space.SHARED and (array.is_dynamic or array.base):  # rule: shared-in-block
            what = "shared memory whose size the launch decides is declared at the top of the kernel"
            self._error(what, call, "move this line there")
        return array

    def _may_declare_local(self) -> bool:
        """Whether the file may know `local`: by an import of it or of its module, or as a live object."""
        environment = self.extents.environment
        imported = any(maker.startswith(name) for maker in LOCAL for name in environment.imports.values())
        return imported or bool(environment.stars or environment.live)

    def _read_call(self, call: cst.Call, target: cst.Name, space: ir.Space) -> ir.ArrayDecl:
        """The array of `local(shape, dtype)`; a harmless one, after a diagnostic, if the call is wrong."""
        places = [arg.value for arg in call.args if arg.keyword is None and not arg.star]
        named = {arg.keyword.value: arg.value for arg in call.args if arg.keyword is not None}
        arguments = dict(zip(("shape", "dtype"), places, strict=False)) | named
        dtype, like, is_python = F32, "", False
        shape: tuple[ir.Expr, ...] = (ir.Constant(1, self.extents.span_of(call), ir.PY_INT),)
        if arguments.keys() != {"shape", "dtype"} or len(places) + len(named) != 2:
            maker = self.extents.environment.qualify(call.func) or ""
            self._error(f"`{space.value}` takes a shape and a dtype", call, f"`{example(maker)}`")
        else:
            dtype, like = self._read_dtype(arguments["dtype"])
            is_python = self.extents.environment.qualify(arguments["dtype"]) in _PYTHON
            if space is ir.Space.SHARED and is_dynamic(call, self.extents.environment):
                return self._read_dynamic(target, dtype, call)
            shape = self._read_shape(arguments["shape"], dtype, space)
        type_, span = ir.ArrayType(dtype, tuple(map(ir.as_extent, shape))), self.extents.span_of(target)
        array = ir.ArrayDecl(target.value, type_, space, like=like, span=span, is_python_dtype=is_python)
        return self.placed(array, call)

    def _read_dynamic(self, target: cst.Name, dtype: DType, call: cst.Call) -> ir.ArrayDecl:
        """Numba's `cuda.shared.array(0, dtype)`: the memory that the launch gives, which all such arrays are."""
        span = self.extents.span_of(target)
        first = self._dynamic()
        if self.extents.is_device:
            what = "a device function declares no dynamic shared memory"
            self._error(what, call, "declare it in the kernel, and pass it to functions")
        if first is not None and first.type.dtype.bits < dtype.bits:
            what = f"the dynamic shared memory begins with {first.type.dtype}, for which it is aligned"
            self._error(what, call, f"declare the array of {dtype} first")
        size = ir.Constant(dtype.bits // 8, span, ir.PY_INT)
        extent: ir.DimExpr = ir.Binary("//", ir.Name(DYNAMIC_BYTES, span, ir.PY_INT), size, span, ir.PY_INT)
        array = ir.ArrayDecl(target.value, ir.ArrayType(dtype, (extent,)), ir.Space.SHARED, span=span, is_dynamic=True)
        if first is not None:
            self.starts[target.value] = ir.Constant(0, span)
            array = replace(array, base=first.name, is_dynamic=False)
        return array

    def _dynamic(self) -> ir.ArrayDecl | None:
        """The first of Numba's arrays in dynamic shared memory, of which the others are views."""
        dynamic = (b for b in self.declared.values() if b.is_dynamic and DYNAMIC_BYTES in names_in(b.type.dims[0]))
        return next(dynamic, None)

    def _read_table(self, node: cst.BaseExpression, target: cst.Name) -> ir.ArrayDecl:
        """Numba's `cuda.const.array_like(TABLE)`: the array of the module in constant memory."""
        span, extents = self.extents.span_of(target), self.extents
        dtype, rows = numpy_array(node, extents.environment) or (F32, ())
        is_large = sum(1 for _ in numbers(rows)) * dtype.bits // 8 > MAX_CONSTANT_BYTES
        if (shape := shape_of(rows)) is None or not rows or is_large or dtype.kind is Kind.COMPLEX:
            if is_large:
                self._error("constant memory has 64 KB", node, "pass the array as an argument")
            elif not self._reports_ambiguous(node):
                hint = "an array of the module: `TAPS = np.array([0.25, 0.5], dtype=np.float32)`"
                self._error("the numbers of this array are not known, are more than 16,384, or are complex", node, hint)
            rows, shape = (0,), (1,)
        dims = tuple(ir.Constant(extent, span, ir.PY_INT) for extent in shape)
        values = tuple(numbers(rows))
        return ir.ArrayDecl(target.value, ir.ArrayType(dtype, dims), ir.Space.CONSTANT, values, span=span)

    def placed(self, array: ir.ArrayDecl, node: cst.CSTNode) -> ir.ArrayDecl:
        """Decide whether a shared array is static: its size must be constant, and the block's total within 48 KB."""
        if array.space is not ir.Space.SHARED:
            return array
        size = self._bytes(array)
        static = [b for b in self.declared.values() if b.space is ir.Space.SHARED and not b.is_dynamic and not b.base]
        is_dynamic = size is None or size + sum(self._bytes(b) or 0 for b in static) > STATIC_BYTES  # rule: shared-size
        if is_dynamic and self.extents.is_device:
            message = "shared arrays of a device function need constant extents, and 48 KB at most"
            self._error(message, node, "declare it in the kernel, and pass it to the function")
        return replace(array, is_dynamic=is_dynamic and not self.extents.is_device)

    def _bytes(self, array: ir.ArrayDecl) -> int | None:
        """The largest size of an array in any instance; None if only a launch knows its extents."""
        shapes = self.extents.instances(array.type.dims)
        if shapes is None:
            return None
        # rule: shared-most
        return max((math.prod(shape) for _, shape in shapes), default=0) * _most_bytes(array.type.dtype)

    def check_size(self, shape: tuple[ir.Expr, ...], dtype: DType, space: ir.Space, node: cst.CSTNode) -> None:
        """Refuse an array that is empty, or exceeds the memory, in some instance."""
        numbers = tuple(int(extent.value) for extent in shape if isinstance(extent, ir.Constant))
        for choice, extents in self.extents.instances(shape) or [("", numbers)]:
            if min(extents, default=1) < 1:  # rule: shared-empty
                hint = "an extent is a whole number above zero, for every value of the template arguments in it"
                self._error(f"this array has no elements{choice}", node, hint)
                return
            if math.prod(extents) * dtype.bits // 8 > MAX_BYTES[space]:  # rule: shared-too-large
                owner = "thread" if space is ir.Space.LOCAL else "block"
                kilobytes = MAX_BYTES[space] // 1024
                excess = f", and this one takes more{choice}" if choice else ""
                self._error(f"a {owner} has {kilobytes} KB for its arrays{excess}", node, "make it smaller")
                return

    def _read_dtype(self, node: cst.BaseExpression) -> tuple[DType, str]:
        """The dtype that `node` names, and the array in `x.dtype`, or ""."""
        match node:
            case cst.Attribute(value=cst.Name(value=name), attr=cst.Name(value="dtype")) if name in self.extents.arrays:
                return self.extents.arrays[name].dtype, name
            case cst.Call(func=function, args=[cst.Arg(value=value, keyword=None, star="")]) if (
                self.extents.environment.qualify(function) == "numpy.dtype"
            ):
                return self._read_dtype(value)
        qualified = self.extents.environment.qualify(node) or ""
        library, _, name = qualified.rpartition(".")
        constant = self.extents.environment.constant(node)
        if library in {"numpy", "torch", "numba"}:
            dtype = find_dtype(name) or (SHORT.get(name) if library == "numba" else None)
        elif isinstance(constant, str):
            dtype = find_dtype(constant) or SHORT.get(constant)
        else:
            dtype = _PYTHON.get(qualified)
        if dtype is None and not self._reports_ambiguous(node):
            hint = "`np.float32`, `torch.int32`, `'float32'`, or `x.dtype` of an array"
            self._error("this is not an element type", node, hint)
        return dtype or F32, ""

    def _read_shape(self, node: cst.BaseExpression, dtype: DType, space: ir.Space) -> tuple[ir.Expr, ...]:
        items = [element.value for element in node.elements] if isinstance(node, cst.Tuple | cst.List) else [node]
        extents = self._read_constants(node) or [self.extents.read(item, space) for item in items]
        shape = tuple(extent for extent in extents if extent is not None)
        constants = [int(extent.value) for extent in shape if isinstance(extent, ir.Constant)]
        if not shape or len(shape) < len(extents) or any(extent < 1 for extent in constants):
            self._refuse_shape(node, space)
            return (ir.Constant(1, self.extents.span_of(node), ir.PY_INT),)
        self.check_size(shape, dtype, space, node)
        return shape

    def _read_constants(self, node: cst.BaseExpression) -> list[ir.Expr | None]:
        """The extents that the name of a tuple of constants stands for; none for any other shape."""
        table = self.extents.environment.constants(node) if isinstance(node, cst.Name | cst.Attribute) else None
        span = self.extents.span_of(node)
        return [ir.Constant(n, span, ir.PY_INT) if type(n) is int else None for n in table or ()]

    def _refuse_shape(self, node: cst.BaseExpression, space: ir.Space) -> None:
        if self._reports_ambiguous(node):
            return
        if space is ir.Space.SHARED and not self.extents.is_device:
            hint = "use integers above zero, extents, integer parameters, and sums and products of them"
            self._error("the shape of this shared array is not known at the launch", node, hint)
            return
        hint = f"use integers above zero, names of such constants, or template arguments: `{space.value}((4, TILE), …)`"
        self._error(f"the shape of a {space.value} array must be constant", node, hint)

    def _reports_ambiguous(self, node: cst.BaseExpression) -> bool:
        extents = self.extents
        return report_ambiguous_name(node, extents.environment, extents.reporter, extents.span_of)

    def _error(self, message: str, node: cst.CSTNode, hint: str) -> None:
        self.extents.error("P408", message, node, hint)


def example(maker: str) -> str:
    """A declaration by the function of this qualified name."""
    return _EXAMPLES[MAKERS[maker]].format(maker.removeprefix("py2cu.").removeprefix("numba."))


def is_dynamic(call: cst.Call, environment: Environment) -> bool:
    """Whether the call is `cuda.shared.array(0, …)` of Numba, with `shape=0` or `shape=(0,)`, too."""
    shapes = [arg.value for arg in call.args[:1] if arg.keyword is None]
    shapes += [arg.value for arg in call.args if arg.keyword is not None and arg.keyword.value == "shape"]
    if not shapes or environment.qualify(call.func) != NUMBA_SHARED:
        return False
    return 0 in (environment.constant(shapes[0]), *(environment.constants(shapes[0]) or ())[:1])


def _most_bytes(dtype: DType) -> int:
    """The size of an element, of the widest type that a type variable stands for."""
    return max(*(each.bits for each in dtype.admitted), 8) // 8  # rule: shared-of-types


def _in_blocks(body: Iterable[Statement]) -> Iterator[tuple[cst.Name, cst.BaseExpression, Sequence[Statement]]]:
    """The assignments to names in the blocks of the statements: the name, the value and the block."""
    for statement in body:
        for block in suites(statement):
            for line in block:
                pairs = assignments_to_names(line.body) if isinstance(line, cst.SimpleStatementLine) else ()
                yield from ((target, value, block) for target, value in pairs)
            yield from _in_blocks(block)


def _is_of(block: Sequence[Statement], name: str, body: Iterable[Statement]) -> bool:
    """Whether only statements of `block` mention the name, and one of them assigns to it."""

    def mentions(statements: Iterable[Statement]) -> int:
        nodes = (node for statement in statements for node in nodes_in(statement))
        return sum(isinstance(node, cst.Name) and node.value == name for node in nodes)

    return mentions(block) == mentions(body) and list(assigned_names(block)).count(name) == 1
