"""Expressions of host functions: LibCST nodes → `Value`s, C++ text with a kind."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import libcst as cst

from py2cu.dtypes import find_dtype
from py2cu.frontend.names.syntax import source_text
from py2cu.hosts.model import table
from py2cu.hosts.model.ranks import ATOM
from py2cu.hosts.model.values import Kind, Value, display, identifier, number, size
from py2cu.hosts.reading import arithmetic, operators
from py2cu.hosts.reading.calls import bound_call
from py2cu.hosts.reading.parts import subscript
from py2cu.hosts.reading.reader import Reader, Refused
from py2cu.suggestions import did_you_mean


@dataclass(slots=True)
class ExpressionReader(Reader):
    """Reads the expressions of one host function."""

    def read(self, node: cst.BaseExpression) -> Value:
        match node:
            case cst.Integer() | cst.Float():
                return self.number(node.evaluated_value, node)
            case cst.Name(value="True" | "False" as name):
                return number(name == "True")
            case cst.Name(value="None"):
                return Value(Kind.NONE, "{}")
            case cst.Name():
                return self.name(node)
            case cst.Attribute():
                return self.attribute(node)
            case cst.UnaryOperation():
                return arithmetic.unary(self, node)
            case cst.BinaryOperation(left=left, operator=operator, right=right):
                return arithmetic.binary(self, node, left, arithmetic.SIGNS[type(operator)], right)
            case cst.BooleanOperation():
                return arithmetic.both(self, node)
            case cst.Comparison():
                return arithmetic.comparison(self, node)
            case cst.IfExp():
                return arithmetic.choice(self, node)
            case cst.Tuple(elements=elements) | cst.List(elements=elements):
                return self.display(node, [element.value for element in elements])
            case cst.Subscript():
                return subscript(self, node)
            case cst.Call():
                return self.call(node)
            case _:
                hint = "write it with calls of the table, arithmetic of shapes, and plain statements"
                raise self.unsupported("host functions have no such expression", node, hint)

    def name(self, node: cst.Name) -> Value:
        name = node.value
        if name in self.unassigned:
            hint = f"assign `{name}` on every path, before the `if` or the loop"
            raise self.refused("P204", f"`{name}` may be unassigned here", node, hint)
        if name in self.locals:
            if self.locals[name].kind is Kind.NONE:
                raise Refused  # its assignment was
            self.read_names.add(name)
            return self.locals[name]
        if (constant := self.constant(node)) is not None:
            if self.names_of_constants.setdefault(identifier(name), name) != name:
                other = self.names_of_constants[identifier(name)]
                raise self.unsupported(f"`{name}` and `{other}` are one name in C++", node, "rename one")
            self.constants[identifier(name)] = constant
            return replace(constant, text=identifier(name), rank=ATOM)
        if (dtype := self.dtype(node)) is not None:
            return dtype
        if name in self.environment.names:
            what = f"`{name}` is no number, and host functions know only the numbers of a module"
            raise self.refused("P201", what, node, "make it a parameter, or write it out")
        hint = did_you_mean(name, self.locals, "define it before this line")
        raise self.refused("P201", f"unknown name `{name}`", node, hint)

    def constant(self, node: cst.Name | cst.Attribute) -> Value | None:
        """A number of a module."""
        constant = self.environment.constant(node)
        return self.number(constant, node) if isinstance(constant, bool | int | float) else None

    def dtype(self, node: cst.BaseExpression) -> Value | None:
        """`torch.float32`."""
        library, _, name = (self.environment.qualify(node) or "").rpartition(".")
        dtype = find_dtype(name) if library == "torch" else None
        return None if dtype is None else Value(Kind.DTYPE, f"at::k{dtype.torch}")

    def attribute(self, node: cst.Attribute) -> Value:
        if (value := self.dtype(node) or self.constant(node)) is not None:
            return value
        owner, name = self.value(node.value), node.attr.value
        known = _ATTRIBUTES if owner.kind is Kind.TENSOR else {}
        if name not in known:
            what = f"host functions do not read `{name}` of {owner.kind.value}"
            raise self.unusable(what, node, did_you_mean(name, known, table.HINT))
        kind, text = known[name]
        text = f"{owner.at(ATOM)}.{text}"
        return size(text) if kind is Kind.INT else Value(kind, text)

    def display(self, node: cst.BaseExpression, nodes: Sequence[cst.BaseExpression]) -> Value:
        """A tuple or list of tensors, or of integers: a shape."""
        values = [self.value(each) for each in nodes]
        match [*{value.kind for value in values}]:
            case [Kind.TENSOR]:
                return replace(display(values, Kind.TENSORS), is_list=isinstance(node, cst.List))
            case [Kind.INT]:
                return replace(display(values, Kind.SIZES), is_list=isinstance(node, cst.List))
        what = "a tuple or list in a host function holds tensors, or the integers of a shape"
        raise self.unusable(what, node, "write the values one by one")

    def call(self, node: cst.Call) -> Value:
        function = node.func
        if any(arg.star for arg in node.args):
            raise self.unsupported("host functions pass arguments one by one", node, "write them out")
        if isinstance(function, cst.Subscript):
            if (callee := self.callee(function.value)) is not None:
                return bound_call(self, node, callee, self.grid_and_block(function, callee.name))
        elif (callee := self.callee(function)) is not None:
            return bound_call(self, node, callee)
        is_local = isinstance(function, cst.Name) and function.value in self.locals
        qualified = "" if is_local else self.environment.qualify(function) or ""
        match qualified.split(".", 1):
            case ["torch", name] if not name.startswith("Tensor."):
                return operators.torch_call(self, node, name)
            case ["builtins", "min" | "max" as name]:
                return arithmetic.extremum(self, node, name)
            case ["builtins", "len" | "int" | "float" as name]:
                return self.builtin(node, name)
            case [""] if isinstance(function, cst.Attribute):
                return operators.method(self, node, function)
            case [""] if isinstance(function, cst.Name):
                what = f"`{function.value}` is no function that a host function can call"
                raise self.refused("P201", what, function, operators.known(node))
        raise self.unusable(f"host functions do not call `{source_text(function)}`", function, operators.known(node))

    def builtin(self, node: cst.Call, name: str) -> Value:
        """`len(shape)`, `len(tensors)`, `int(n)`, `float(n)`."""
        if len(node.args) != 1 or node.args[0].keyword:
            raise self.unusable(f"`{name}` takes one argument", node, f"write `{name}(x)`")
        value = self.value(node.args[0].value)
        match name, value.kind:
            case "len", Kind.SIZES | Kind.TENSORS if value.items is not None and value.text.startswith("{"):
                return number(len(value.items))
            case "len", Kind.SIZES | Kind.TENSORS:
                return size(f"static_cast<int64_t>({value.text}.size())")
            case "int", Kind.INT:
                return value
            case "int", Kind.BOOL:
                return Value(Kind.INT, f"static_cast<int64_t>({value.text})", low=0)
            case "float", Kind.INT | Kind.FLOAT:
                return Value(Kind.FLOAT, f"static_cast<double>({value.text})")
        raise self.unusable(f"`{name}` of {value.kind.value} is not for host functions", node, table.HINT)

    def grid_and_block(self, function: cst.Subscript, name: str) -> list[Value]:
        """The extents of `k[grid, block]`."""
        match [element.slice for element in function.slice]:
            case [cst.Index(value=grid), cst.Index(value=block)]:
                return [self.extents(grid), self.extents(block)]
        raise self.unusable("a launch has a grid and a block", function, f"write `{name}[grid, block](…)`")

    def extents(self, node: cst.BaseExpression) -> Value:
        value = self.of_kind(node, Kind.INT, Kind.SIZES)
        if value.length is not None and not 1 <= value.length <= 3:
            raise self.unusable("a grid or a block has one to three extents", node, "write one to three integers")
        return display([value], Kind.SIZES) if value.kind is Kind.INT else value


_ATTRIBUTES: Final = {
    "shape": (Kind.SIZES, "sizes()"), "ndim": (Kind.INT, "dim()"), "dtype": (Kind.DTYPE, "scalar_type()"),
    "device": (Kind.DEVICE, "device()"),
}  # fmt: skip
