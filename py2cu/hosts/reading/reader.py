"""The state of a reader of one host function, and what its parts ask of each other."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field

import libcst as cst

from py2cu.diagnostics import Reporter
from py2cu.frontend.names.environment import Environment
from py2cu.frontend.names.syntax import source_text
from py2cu.hosts.model import table
from py2cu.hosts.model.ranks import EQUAL
from py2cu.hosts.model.signatures import Callee
from py2cu.hosts.model.values import Kind, Value, number
from py2cu.source import Span


class Refused(Exception):
    """The expression was refused, and reported."""


@dataclass(slots=True)
class Reader:
    """Reads the expressions of one host function."""

    environment: Environment
    reporter: Reporter
    span_of: Callable[[cst.CSTNode], Span]
    callee: Callable[[cst.BaseExpression], Callee | None]
    locals: dict[str, Value] = field(default_factory=dict)
    unassigned: set[str] = field(default_factory=set)  # locals that no path to here, or not every path, assigns
    constants: dict[str, Value] = field(default_factory=dict)  # numbers of the module that the function reads
    names_of_constants: dict[str, str] = field(default_factory=dict)  # by name in C++
    helpers: dict[str, None] = field(default_factory=dict)
    headers: dict[str, None] = field(default_factory=dict)
    called: dict[tuple[str, str], Callee] = field(default_factory=dict)
    read_names: set[str] = field(default_factory=set)
    written: set[str] = field(default_factory=set)  # parameters that a kernel writes to

    def refused(self, code: str, message: str, node: cst.CSTNode, hint: str) -> Refused:
        """Report an error; the caller raises what this returns."""
        self.reporter.error(code, message, self.span_of(node), hint)
        return Refused()

    def unsupported(self, message: str, node: cst.CSTNode, hint: str) -> Refused:
        """`refused`, for syntax that host functions do not have."""
        return self.refused("P801", message, node, hint)

    def unusable(self, message: str, node: cst.CSTNode, hint: str) -> Refused:
        """`refused`, for calls and values that host functions cannot use."""
        return self.refused("P802", message, node, hint)

    def function(self, name: str) -> str:
        """How the text calls its function `name`: with the namespace where a local hides it, or where C++ would find a
        function of ATen by the arguments, too: beside `sigmoid`, ATen has `sigmoid_out` and `sigmoid_`.
        """
        is_hidden = any(local.text == name for local in self.locals.values())
        is_in_aten = any(name in (each, f"{each}_", f"{each}_out", f"{each}_outf") for each in table.NAMES)
        return f"host::{name}" if is_hidden or is_in_aten else name

    def helper(self, name: str, *arguments: Value) -> str:
        """The call of a helper, which the text then defines."""
        self.helpers[name] = None
        return f"{name}({', '.join(argument.text for argument in arguments)})"

    def arguments(self, node: cst.Call) -> tuple[list[Value], dict[str, Value]]:
        """The positional arguments of a call, and those by keyword."""
        positional = [self.value(arg.value) for arg in node.args if arg.keyword is None]
        return positional, {arg.keyword.value: self.value(arg.value) for arg in node.args if arg.keyword is not None}

    def number(self, value: float, node: cst.CSTNode) -> Value:
        """The literal of a constant that is written, or computed, at `node`."""
        if not (math.isfinite(value) if isinstance(value, float) else -(2**63) < value < 2**63):
            what = f"{value} is not a finite number of 64 bits"
            raise self.refused("P305", what, node, "host functions compute in int64_t and double")
        return number(value)

    def value(self, node: cst.BaseExpression) -> Value:
        """The value of an operand; a call that writes to tensors is refused: it must be a statement of its own."""
        value = self.read(node)
        if value.acts:
            what = "this call writes to tensors, and C++ does not say when it runs among other operands"
            raise self.refused("P409", what, node, f"call it on a line of its own: `result = {source_text(node)}`")
        return value

    def of_kind(self, node: cst.BaseExpression, *kinds: Kind) -> Value:
        value = self.value(node)
        if value.kind not in kinds:
            raise self.mismatch(node, value, kinds[0])
        return value

    def mismatch(self, node: cst.BaseExpression, value: Value, wanted: Kind) -> Refused:
        hint = {
            Kind.INT: "an integer comes from a shape, a parameter or a constant: `x.size(0)`",
            Kind.BOOL: "compare it: `n > 0`",
            Kind.TENSOR: "pass a tensor",
        }.get(wanted, f"pass {wanted.value}")
        return self.unusable(f"expected {wanted.value}, got {value.kind.value}", node, hint)

    def truth(self, node: cst.BaseExpression) -> Value:
        """A condition."""
        value = self.value(node)
        if value.kind is Kind.BOOL:
            return value
        if value.kind.is_number:
            return Value(Kind.BOOL, f"{value.at(EQUAL)} != 0", EQUAL)
        hint = "test a shape or a number: what a tensor holds is known on its device alone"
        raise self.unusable(f"expected a bool, got {value.kind.value}", node, hint)

    def read(self, node: cst.BaseExpression) -> Value:
        """The value of an expression."""
        raise NotImplementedError
