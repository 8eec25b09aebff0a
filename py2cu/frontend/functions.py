"""Device functions: plain functions that a kernel calls, read once for every way in which they are given arrays.

In: the call's function name and which of its arguments are arrays. Out: untyped IR; `infer_types` makes an instance of
it for every set of argument types. What a parameter is follows from the call, as in Python; annotations only tell the
reader.
"""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

import libcst as cst

from py2cu.diagnostics import Reporter
from py2cu.frontend.annotations import unnamed_dims
from py2cu.frontend.buffers import BufferReader
from py2cu.frontend.environment import Environment, all_parameters
from py2cu.frontend.expressions import ExpressionReader
from py2cu.frontend.scope import Scope, assigned_names
from py2cu.frontend.statements import StatementReader
from py2cu.ir.extents import Parameter
from py2cu.ir.statements import Kernel
from py2cu.ir.types import PY_INT, ArrayType, PythonType
from py2cu.source import Span

MAX_CALLS = 32


@dataclass(slots=True)
class FunctionReader:
    """Reads the device functions of one kernel; `found` holds them, each behind those that it calls."""

    reporter: Reporter
    environment: Environment
    span_of: Callable[[cst.CSTNode], Span]
    found: list[Kernel] = field(default_factory=list)
    _keys: set[str] = field(default_factory=set)
    _depth: int = 0  # of functions that are being read

    def named(self, node: cst.BaseExpression) -> cst.FunctionDef | None:
        """The device function that `node` names."""
        return self.environment.functions.get(node.value) if isinstance(node, cst.Name) else None

    def key(self, call: cst.Call, function: cst.FunctionDef, arrays: Sequence[ArrayType | None]) -> str | None:
        """The key of `function` for these arrays among its arguments; None, and a diagnostic, where they are wrong."""
        if any(arg.keyword or arg.star for arg in call.args):
            self.reporter.error(
                "P105", "device functions take plain arguments", self.span_of(call), "pass every argument by position"
            )
            return None
        if any(self.environment.qualify(_bare(decorator)) == "py2cu.kernel" for decorator in function.decorators):
            self.reporter.error(
                "P105", f"`{function.name.value}` is a kernel, which only a call from outside launches",
                self.span_of(call), "move what both need into a plain function, and call that",
            )  # fmt: skip
            return None
        parameters = all_parameters(function)
        name, wanted, got = function.name.value, len(parameters), len(arrays)
        if wanted != got:
            self.reporter.error(
                "P105", f"`{name}` takes {wanted} argument{'s' * (wanted != 1)}, not {got}", self.span_of(call),
                "pass every argument, by position",
            )  # fmt: skip
            return None
        ranks = ["" if array is None else str(len(array.dims)) for array in arrays]
        key = f"{name}({','.join(ranks)})"
        if key not in self._keys:
            if self._depth == MAX_CALLS:
                self.reporter.error(
                    "P102", f"device functions call each other more than {MAX_CALLS} deep here", self.span_of(call),
                    "write some of them out where they are called",
                )  # fmt: skip
                return None
            self._keys.add(key)
            self._depth += 1
            self.found.append(self._read(function, [p.name for p in parameters], arrays, key))
            self._depth -= 1
        return key

    def _read(
        self, function: cst.FunctionDef, names: list[cst.Name], arrays: Sequence[ArrayType | None], key: str
    ) -> Kernel:
        assigned = Counter(assigned_names(function.body.body))
        given = {name.value for name in names}
        parameters = tuple(
            Parameter(name.value, self._own(array, name, given | set(assigned)), span=self.span_of(name))
            for name, array in zip(names, arrays, strict=True)
        )
        taken = {p.name: p.type for p in parameters if isinstance(p.type, ArrayType)}
        buffers = BufferReader(self.reporter, self.environment, self.span_of, taken).read(function.body.body)
        taken |= {name: buffer.type for name, buffer in buffers.items()}
        scope = Scope(
            self.reporter,
            self.environment,
            self.span_of,
            {},
            taken,
            buffers,
            frozenset((given | set(assigned)) - set(taken)),
            frozenset(),
            frozenset(),
            frozenset(name for name, count in assigned.items() if count == 1) - given,
            self,
            returns=True,
            broken=frozenset(),
        )
        reader = StatementReader(scope, ExpressionReader(scope))
        text = function.get_docstring(clean=False)
        return Kernel(
            name=function.name.value,
            doc=inspect.cleandoc(text) if text else None,
            indices=(),
            launch=(),
            parameters=parameters,
            size=None,
            block=(),
            inits=(),
            strided=False,
            body=reader.read_suite(function.body),
            annotated=tuple(reader.annotated),
            buffers=tuple(scope.buffers.values()),
            from_end=tuple(scope.from_end),
            span=self.span_of(function.name),
            key=key,
        )

    def _own(self, array: ArrayType | None, name: cst.Name, used: set[str]) -> ArrayType | PythonType:
        """An array's extents go by names that the function has not used; what a number is, only types can tell."""
        if array is None:
            return PY_INT
        return ArrayType(array.dtype, unnamed_dims(name.value, len(array.dims), self.span_of(name), used))


def _bare(decorator: cst.Decorator) -> cst.BaseExpression:
    node = decorator.decorator
    return node.func if isinstance(node, cst.Call) else node
