"""Expressions of host functions: LibCST nodes → `Value`s, C++ text with a kind."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

import libcst as cst

from py2cu.dtypes import find_dtype
from py2cu.frontend.names.syntax import source_text
from py2cu.hosts import arithmetic, operators, parts, table
from py2cu.hosts.calls import bound_call
from py2cu.hosts.reader import Reader
from py2cu.hosts.signatures import Callee
from py2cu.hosts.values import (
    AND,
    ATOM,
    EQUAL,
    OR,
    Kind,
    Value,
    display,
    identifier,
    number,
)
from py2cu.suggestions import did_you_mean


@dataclass(slots=True)
class ExpressionReader(Reader):
    """Reads the expressions of one host function."""

    def read(self, node: cst.BaseExpression) -> Value:
        match node:
            case cst.Integer() | cst.Float():
                return self.literal(node)
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
                return arithmetic.binary(self, node, left, arithmetic.SIGNS.get(type(operator), ""), right)
            case cst.BooleanOperation(left=left, operator=operator, right=right):
                sign, rank = ("&&", AND) if isinstance(operator, cst.And) else ("||", OR)
                one, other = self.of_kind(left, Kind.BOOL), self.of_kind(right, Kind.BOOL)
                inner = EQUAL if sign == "||" else rank  # compilers warn of `a && b || c`
                return Value(Kind.BOOL, f"{one.at(rank if one.rank == rank else inner)} {sign} {other.at(inner)}", rank)
            case cst.Comparison():
                return arithmetic.comparison(self, node)
            case cst.IfExp(test=test, body=body, orelse=orelse):
                return arithmetic.choice(self, node, self.truth(test), self.value(body), self.value(orelse))
            case cst.Tuple(elements=elements) | cst.List(elements=elements):
                return self.display(node, [element.value for element in elements])
            case cst.Subscript():
                return parts.subscript(self, node)
            case cst.Call():
                return self.call(node)
            case _:
                what = "host functions have no such expression"
                raise self.refused(
                    "P801", what, node, "write it with calls of the table, arithmetic of shapes, and plain statements"
                )

    def literal(self, node: cst.Integer | cst.Float) -> Value:
        value = node.evaluated_value
        if isinstance(value, int) and value >= 2**63:
            raise self.refused("P305", f"{node.value} does not fit 64 bits", node, "host functions compute in int64_t")
        if isinstance(value, float) and not math.isfinite(value):
            raise self.refused("P305", f"{node.value} is beyond the range of a double", node, "write a smaller number")
        return number(value)

    def name(self, node: cst.Name) -> Value:
        name = node.value
        if name in self.locals or name in self.unassigned:
            if name in self.unassigned:
                hint = f"assign `{name}` on every path, before the `if` or the loop"
                raise self.refused("P204", f"`{name}` may be unassigned here", node, hint)
            self.read_names.add(name)
            return self.locals[name].value
        if (constant := self.constant(node)) is not None:
            self.constants[identifier(name)] = constant
            return replace(constant, text=identifier(name), rank=ATOM)
        if (dtype := self.dtype(node)) is not None:
            return dtype
        raise self.refused(
            "P201", f"unknown name `{name}`", node, did_you_mean(name, [*self.locals], "define it before this line")
        )

    def constant(self, node: cst.Name | cst.Attribute) -> Value | None:
        """A number of a module."""
        constant = self.environment.constant(node)
        if not isinstance(constant, bool | int | float):
            return None
        is_fit = math.isfinite(constant) if isinstance(constant, float) else -(2**63) < constant < 2**63
        if not is_fit:
            what = f"`{source_text(node)}` is {constant}, which no literal of C++ is"
            raise self.refused("P305", what, node, "use a finite number of 64 bits")
        return number(constant)

    def dtype(self, node: cst.BaseExpression) -> Value | None:
        """`torch.float32`."""
        library, _, name = (self.environment.qualify(node) or "").rpartition(".")
        dtype = find_dtype(name) if library == "torch" else None
        return None if dtype is None else Value(Kind.DTYPE, f"at::k{dtype.torch}")

    def attribute(self, node: cst.Attribute) -> Value:
        if (dtype := self.dtype(node)) is not None:
            return dtype
        if (constant := self.constant(node)) is not None:
            return constant
        owner, name = self.value(node.value), node.attr.value
        if owner.kind is Kind.TENSOR and name in _ATTRIBUTES:
            kind, text = _ATTRIBUTES[name]
            is_int = kind is Kind.INT
            return Value(kind, f"{owner.at(ATOM)}.{text}", low=0 if is_int else None, is_size=is_int)
        known = _ATTRIBUTES if owner.kind is Kind.TENSOR else ()
        hint = did_you_mean(name, known, table.HINT)
        raise self.refused("P802", f"host functions do not read `{name}` of {owner.kind.value}", node, hint)

    def display(self, node: cst.BaseExpression, nodes: Sequence[cst.BaseExpression]) -> Value:
        """A tuple or list of tensors, or of integers: a shape."""
        values = [self.value(each) for each in nodes]
        kinds = {value.kind for value in values}
        if kinds == {Kind.TENSOR}:
            return display(values, Kind.TENSORS)
        if kinds == {Kind.INT}:
            return display(values, Kind.SIZES)
        hint = "write the values one by one"
        raise self.refused(
            "P802", "a tuple or list in a host function holds tensors, or the integers of a shape", node, hint
        )

    def call(self, node: cst.Call) -> Value:
        if isinstance(node.func, cst.Subscript):
            if (callee := self.callee(node.func.value)) is not None:
                return self.launch(node, node.func, callee)
        elif (callee := self.callee(node.func)) is not None:
            return bound_call(self, node, callee)
        qualified = self.environment.qualify(node.func) or ""
        if isinstance(node.func, cst.Name) and (node.func.value in self.locals or not qualified):
            raise self.refused(
                "P201",
                f"`{node.func.value}` is no function that a host function can call",
                node.func,
                operators.known(self, node),
            )
        if qualified.startswith("torch.") and not qualified.startswith("torch.Tensor."):
            return operators.torch_call(self, node, qualified.removeprefix("torch."))
        if qualified in ("builtins.min", "builtins.max"):
            return arithmetic.extremum(self, node, qualified.removeprefix("builtins."))
        if qualified in ("builtins.len", "builtins.int", "builtins.float"):
            return self.builtin(node, qualified.removeprefix("builtins."))
        if isinstance(node.func, cst.Attribute) and not qualified:
            return operators.method(self, node, node.func)
        raise self.refused(
            "P802", f"host functions do not call `{source_text(node.func)}`", node.func, operators.known(self, node)
        )

    def builtin(self, node: cst.Call, name: str) -> Value:
        """`len(shape)`, `len(tensors)`, `int(n)`, `float(n)`."""
        if len(node.args) != 1 or node.args[0].keyword or node.args[0].star:
            raise self.refused("P802", f"`{name}` takes one argument", node, f"write `{name}(x)`")
        value = self.value(node.args[0].value)
        match name, value.kind:
            case "len", Kind.SIZES | Kind.TENSORS if value.items is not None:
                return number(len(value.items))
            case "len", Kind.SIZES | Kind.TENSORS:
                return Value(Kind.INT, f"static_cast<int64_t>({value.at(ATOM)}.size())", low=0, is_size=True)
            case "int", Kind.INT | Kind.BOOL:
                return (
                    value if value.kind is Kind.INT else Value(Kind.INT, f"static_cast<int64_t>({value.text})", low=0)
                )
            case "float", Kind.INT | Kind.FLOAT:
                return Value(Kind.FLOAT, f"static_cast<double>({value.text})")
        raise self.refused("P802", f"`{name}` of {value.kind.value} is not for host functions", node, table.HINT)

    def launch(self, node: cst.Call, function: cst.Subscript, callee: Callee) -> Value:
        """`k[grid, block](x, out)`."""
        parts = [element.slice for element in function.slice]
        if len(parts) != 2 or not all(isinstance(part, cst.Index) for part in parts):
            raise self.refused(
                "P802", "a launch has a grid and a block", function, f"write `{callee.name}[grid, block](…)`"
            )
        shapes = []
        for part in parts:
            assert isinstance(part, cst.Index)
            value = self.of_kind(part.value, Kind.INT, Kind.SIZES)
            if value.items is not None and not 1 <= len(value.items) <= 3:
                raise self.refused(
                    "P802", "a grid or a block has one to three extents", part, "write one to three integers"
                )
            shapes.append(value if value.kind is Kind.SIZES else display([value], Kind.SIZES))
        return bound_call(self, node, callee, (shapes[0], shapes[1]))


_ATTRIBUTES: Final = {
    "shape": (Kind.SIZES, "sizes()"), "ndim": (Kind.INT, "dim()"), "dtype": (Kind.DTYPE, "scalar_type()"),
    "device": (Kind.DEVICE, "device()"),
}  # fmt: skip
