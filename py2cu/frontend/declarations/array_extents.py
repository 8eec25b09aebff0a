"""Extents of arrays and bounds of views in a function's body: `local((4, TILE), …)`, `shared(2 * blockDim.x, …)`.

In: expressions in the text of one function. Out: IR of constants, template arguments and, for shared memory, of values
that a launch knows; None for any other expression, which the caller reports.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import chain

import libcst as cst

from py2cu import ir
from py2cu.analysis.template_instances import instances
from py2cu.builtins.public import CUDA
from py2cu.diagnostics import Reporter
from py2cu.frontend.declarations.named_constants import written_extent
from py2cu.frontend.names.environment import Environment
from py2cu.frontend.names.operators import SYMBOLS, is_in_extents
from py2cu.frontend.names.syntax import Statement, assigned_names, is_named
from py2cu.ir.abi.parameters import Constexpr
from py2cu.ir.visit import walk
from py2cu.source import Span

Target = tuple[cst.Name, cst.BaseExpression]  # a name, and the value that is assigned to it


@dataclass(frozen=True, slots=True)
class ExtentReader:
    """Reads the extents in one function.

    `arrays` and `constexprs` are parameters of the function, and row lengths count as `constexprs`. `launch_values` are
    the names in the body whose values a launch knows: integer parameters, and `h` of `h, w = x.shape` where the
    annotation names it so. `launch` maps parameters to launch objects. A device function has neither.
    """

    reporter: Reporter
    environment: Environment
    span_of: Callable[[cst.CSTNode], Span]
    arrays: Mapping[str, ir.ArrayType]
    constexprs: dict[str, Constexpr] = field(default_factory=dict)  # with the row lengths
    launch_values: set[str] = field(default_factory=set)
    launch: Mapping[str, str] = field(default_factory=dict)
    is_device: bool = False
    row_lengths: dict[str, str] = field(default_factory=dict)  # locals `16 // x.itemsize`, with the array
    _definitions: dict[str, cst.BaseExpression] = field(default_factory=dict)  # of locals that are assigned once

    def error(self, code: str, message: str, node: cst.CSTNode, hint: str) -> None:
        self.reporter.error(code, message, self.span_of(node), hint)

    def enter(self, body: Iterable[Statement]) -> list[Target]:
        """Note the locals that `body` assigns; return its assignments to names."""
        body = tuple(body)
        count = Counter(assigned_names(body))
        self.launch_values.difference_update(count)
        self.launch_values.update(self._restated(body))
        lines = (line.body for line in body if isinstance(line, cst.SimpleStatementLine))
        targets = [*assignments_to_names(chain.from_iterable(lines))]
        self._definitions.update({target.value: value for target, value in targets if count[target.value] == 1})
        for name, value in self._definitions.items():
            if (array := self._array_of_row_length(value)) is not None:
                lengths = {ir.ROW_BYTES // each.itemsize for each in self.arrays[array].dtype.admitted}
                self.row_lengths[name] = array
                self.constexprs[name] = Constexpr(tuple(sorted(lengths)))
        return targets

    def _array_of_row_length(self, value: cst.BaseExpression) -> str | None:
        """`x` for `16 // x.itemsize`, how many elements of the parameter 16 bytes hold; None for anything else."""
        match value:
            case cst.BinaryOperation(
                left=number,
                operator=cst.FloorDivide(),
                right=cst.Attribute(value=cst.Name(value=array), attr=cst.Name(value="itemsize")),
            ) if array in self.arrays and not self.is_device and self.environment.constant(number) == ir.ROW_BYTES:
                return array
            case _:
                return None

    def read(self, node: cst.BaseExpression, space: ir.Space, is_bound: bool = False) -> ir.Expr | None:
        """The extent that `node` computes from constants and template arguments; None for anything else.

        An extent of a shared array may also depend on values that a launch knows. A bound of a view keeps the names of
        locals.
        """
        constant = self.environment.constant(node)
        span = self.span_of(node)
        match node:
            case _ if isinstance(constant, int) and not isinstance(constant, bool):
                named = written_extent(node, constant, self.environment, self.span_of)
                return ir.Constant(constant, span, ir.PY_INT, named=named)
            case cst.Name(value=name) if name in self.constexprs:
                return ir.Name(name, span, ir.PY_INT)
            case cst.BinaryOperation(left=left, operator=sign, right=right) if is_in_extents(sign):
                a, b = self.read(left, space, is_bound), self.read(right, space, is_bound)
                return ir.Binary(SYMBOLS[type(sign)], a, b, span, ir.PY_INT) if a and b else None
            case _ if space is not ir.Space.SHARED or self.is_device:
                return None
            case cst.Name(value=name) if name in self._definitions:
                value = self.read(self._definitions[name], space)
                return ir.Name(name, span) if value is not None and is_bound else value
            case cst.Name(value=name) if name in self.launch_values:
                return ir.Name(name, span, ir.PY_INT)
            case cst.Attribute(value=owner, attr=cst.Name(value="x" | "y" | "z" as axis)) if (
                launched := self._launch_object(owner)
            ) in ("blockDim", "gridDim"):
                return ir.LaunchIndex(launched, axis, span)
            case _:
                return self._shape_of(node)

    def _launch_object(self, node: cst.BaseExpression) -> str:
        if isinstance(node, cst.Name) and node.value in self.launch:
            return self.launch[node.value]
        library, _, name = (self.environment.qualify(node) or "").rpartition(".")
        return name if library in CUDA else ""

    def _shape_of(self, node: cst.BaseExpression) -> ir.Expr | None:
        """The extent of an array that `node`, `len(x)` or `x.shape[1]`, names."""
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

    def instances(self, shape: tuple[ir.Expr, ...]) -> list[tuple[str, tuple[int, ...]]] | None:
        """The extents of `shape` in each instance; None if they depend on values that only a launch knows."""
        nodes = [node for extent in shape for node in walk(extent)]
        is_static = self.constexprs.keys() >= {node.id for node in nodes if isinstance(node, ir.Name)}
        if not is_static or any(isinstance(node, ir.LaunchIndex) for node in nodes):
            return None
        return list(instances(shape, self.constexprs))

    def _restated(self, body: Iterable[cst.CSTNode]) -> set[str]:
        """The locals of `h, w = x.shape` that have the names of these extents in the annotation of `x`."""
        names_of_extents: set[str] = set()
        for line in body:
            for statement in line.body if isinstance(line, cst.SimpleStatementLine) else ():
                match statement:
                    case cst.Assign(
                        targets=[cst.AssignTarget(target=cst.Tuple(elements=names))],
                        value=cst.Attribute(value=cst.Name(value=array), attr=cst.Name(value="shape")),
                    ) if array in self.arrays:
                        pairs = zip(names, self.arrays[array].dims, strict=False)
                        names_of_extents |= {
                            d.id for n, d in pairs if isinstance(d, ir.Name) and is_named(n.value, d.id)
                        }
        return names_of_extents


def assignments_to_names(statements: Iterable[cst.CSTNode]) -> Iterator[Target]:
    """Each name that small statements assign to, with its value; `a, b = c, d` are two."""
    for statement in statements:
        match statement:
            case cst.Assign(targets=[cst.AssignTarget(target=cst.Name() as target)], value=value):
                yield target, value
            case cst.Assign(
                targets=[cst.AssignTarget(target=cst.Tuple(elements=names))], value=cst.Tuple(elements=values)
            ) if len(names) == len(values):
                for name, item in zip(names, values, strict=True):
                    if isinstance(name.value, cst.Name):
                        yield name.value, item.value
