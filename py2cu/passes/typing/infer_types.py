"""Gives every expression its type, and makes every promotion visible as a `Convert`.

    o = 0.                         o: float32 = 0.0          (joined with float32 elements, a Python float is one)
    o += 0.5 * x[i]       →        o += 0.5f * x[i]
    out[j] = o                     out[j] = Convert(o, uint8)

The rules are those of docs/language.md, "Promotion": `expressions.py` and `statements.py` apply them,
`infer_locals.py` joins the types of locals. This file makes an instance of a device function for every
combination of argument types.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from py2cu import ir
from py2cu.analysis.constant_values import check_constants
from py2cu.diagnostics import Reporter
from py2cu.dtypes import BOOL, C128, F64, I64, Kind
from py2cu.ir.abi.parameters import Parameter
from py2cu.ir.names import list_elements
from py2cu.ir.rewrite import with_fields
from py2cu.ir.visit import falls_through
from py2cu.passes.typing.decide_dtypes import decide_dtypes
from py2cu.passes.typing.infer_locals import RETURN, declared_types, find_places, infer_locals
from py2cu.passes.typing.join import Called, Result
from py2cu.passes.typing.statements import StatementTyper

_STORED: Final = {Kind.BOOL: BOOL, Kind.INT: I64, Kind.FLOAT: F64, Kind.COMPLEX: C128}
_ROUNDS = 16  # more than any result needs: each change raises it in the order of types


def infer_types(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """The kernel with every expression typed; `locals` lists its local variables with their types.

    `functions` become its device functions' instances, one for every set of argument types.
    """
    instances = Instances(kernel.functions, reporter)
    typed, _ = _infer(kernel, instances.result, instances.call, reporter)
    return with_fields(typed, functions=tuple(instances.typed_functions.values()))


def _infer(kernel: ir.Kernel, trial: Called, called: Called, reporter: Reporter) -> tuple[ir.Kernel, Result | None]:
    """Type a kernel or an instance of a device function; `trial` returns callees' results while locals are inferred."""
    kernel = with_fields(kernel, array_decls=tuple(_with_dtype(decl, kernel) for decl in kernel.array_decls))
    kernel = decide_dtypes(kernel, reporter)
    types = declared_types(kernel)
    locals_, reaching = infer_locals(kernel, types, trial, reporter)
    _check_annotations(kernel, {**types, **locals_}, reporter)
    kernel = _with_joined_parameters(kernel, locals_, reporter)
    kernel = with_fields(kernel, array_decls=tuple(_with_elements(decl, locals_) for decl in kernel.array_decls))
    types = {**(declared_types(kernel) if kernel.key else types), **locals_}
    typer = StatementTyper(kernel, types, called, reporter, find_places(kernel), reaching)
    body = typer.block(kernel.body)
    check_constants(body, reporter)
    result = locals_.pop(RETURN, None)
    lists = {list_elements(decl.name) for decl in kernel.array_decls}
    locals_ = {name: type_ for name, type_ in locals_.items() if name not in lists}
    typed = with_fields(kernel, body=body, locals=tuple(locals_.items()), result=result)
    names = tuple(parameter.name for parameter in kernel.parameters)
    return typed, None if result is None else Result(result, reaching.get(RETURN, frozenset()), names)


def _with_dtype(decl: ir.ArrayDecl, kernel: ir.Kernel) -> ir.ArrayDecl:
    """An array made `like` another one gets the dtype of that array in this instance."""
    if not decl.like:
        return decl
    return replace(decl, type=replace(decl.type, dtype=kernel.array_type(decl.like).dtype))


def _with_elements(decl: ir.ArrayDecl, types: Mapping[str, ir.ValueType]) -> ir.ArrayDecl:
    """A list with the type of its elements; Python numbers are stored as their widest dtype."""
    match types.get(list_elements(decl.name)):
        case ir.ElementType(dtype=dtype):
            return replace(decl, type=replace(decl.type, dtype=dtype, weak=False))
        case ir.PythonType(kind=kind):
            return replace(decl, type=replace(decl.type, dtype=_STORED[kind], weak=True))
        case _:
            return decl


def _check_annotations(kernel: ir.Kernel, types: Mapping[str, ir.ValueType], reporter: Reporter) -> None:
    """Refuse an annotation that contradicts the inferred type: Python's annotations convert nothing."""
    for annotation in kernel.annotated:
        inferred, declared = types.get(annotation.name, annotation.type), annotation.type
        if not _allows(declared, inferred):
            cast = f"np.{declared}" if isinstance(declared, ir.ElementType) else declared.kind.name.lower()
            message = f"`{annotation.name}` is annotated as {declared}, but its assigned values make it {inferred}"
            reporter.error("P306", message, annotation.span, f"annotations convert nothing, casts do: `{cast}(…)`")


def _allows(declared: ir.ScalarType, inferred: ir.ValueType) -> bool:
    """True where a local of the type `inferred` may be annotated as `declared`.

    `float` states the kind of number, of elements and of Python, and includes integers, as in Python's typing.
    """
    if isinstance(declared, ir.PythonType) and not isinstance(inferred, ir.TupleType):
        return ir.kind_of(inferred) <= declared.kind
    return inferred == declared


def _with_joined_parameters(kernel: ir.Kernel, locals_: dict[str, ir.ValueType], reporter: Reporter) -> ir.Kernel:
    """The kernel with the joined types of parameters that it assigns; `locals_` loses them.

    A device function takes the joined type. The signature of a kernel is fixed, so another type is an error there.
    """
    parameters = []
    for parameter in kernel.parameters:
        joined = locals_.pop(parameter.name, parameter.type)
        if isinstance(joined, ir.TupleType):
            joined = parameter.type  # `infer_locals` refused it
        if joined != parameter.type and not kernel.key:
            message = f"the parameter `{parameter.name}` is {parameter.type} and becomes {joined}"
            reporter.error("P306", message, parameter.span, "assign the result to another name")
        parameters.append(parameter if joined == parameter.type else replace(parameter, type=joined))
    return with_fields(kernel, parameters=tuple(parameters))


class Instances:
    """The instances of a kernel's device functions, made on demand for each call.

    Results are inferred first, in trials that report nothing: `result` serves the trials of callers. Then `call` makes
    each typed function once. Both take the key of a function and its arguments' types.
    """

    def __init__(self, functions: Sequence[ir.Kernel], reporter: Reporter) -> None:
        self.templates = {function.key: function for function in functions}
        self.reporter = reporter
        self.typed_functions: dict[str, ir.Kernel] = {}
        self._started: set[str] = set()
        self._results: dict[str, Result | None] = {}
        self._visited: set[str] | None = None  # instances inferred in the current round; None between trials

    def result(self, key: str, types: Sequence[ir.Type]) -> tuple[str, Result | None]:
        """The instance's key and its result; None for a recursive call whose result is not inferred yet."""
        name = _instance(key, types)
        if self._visited is not None:
            self._infer_result(name, key, types)
        elif name not in self._results:
            self._iterate_results(name, key, types)
        return name, self._results.get(name)  # rule: recursion-result

    def _iterate_results(self, name: str, key: str, types: Sequence[ir.Type]) -> None:
        """Infer the result of the function and its callees until none changes: they may be recursive."""
        known = set(self._results)
        for _ in range(_ROUNDS):
            before, self._visited = dict(self._results), set(known)
            self._infer_result(name, key, types)
            if self._results == before:
                break
        self._visited = None

    def _infer_result(self, name: str, key: str, types: Sequence[ir.Type]) -> None:
        assert self._visited is not None
        if name in self._visited:
            return
        self._visited.add(name)
        function = _instantiate(self.templates[key], types, name)
        _, self._results[name] = _infer(function, self.result, self.result, Reporter(self.reporter.file))

    def call(self, key: str, types: Sequence[ir.Type]) -> tuple[str, Result | None]:
        """The instance's key and its result; `typed_functions` lists the instance after its callees."""
        name, result = self.result(key, types)
        if name not in self._started:
            self._started.add(name)
            reporter = self.reporter.within(self.templates[key].origin)
            typed, _ = _infer(_instantiate(self.templates[key], types, name), self.result, self.call, reporter)
            if typed.result is not None and falls_through(typed.body):
                message = f"`{typed.name}` may end without a value"
                reporter.error("P106", message, typed.span, "return one on every path")
            self.typed_functions[name] = typed
        return name, result


def _instance(key: str, types: Sequence[ir.Type]) -> str:
    return f"{key}: {', '.join(str(type_) for type_ in types)}"  # rule: instance-by-types


def _instantiate(template: ir.Kernel, types: Sequence[ir.Type], key: str) -> ir.Kernel:
    return with_fields(template, parameters=tuple(map(_as_parameter, template.parameters, types)), key=key)


def _as_parameter(parameter: Parameter, type_: ir.Type) -> Parameter:
    """A device function's parameter for an argument of `type_`; arrays keep the function's own extents."""
    if isinstance(parameter.type, ir.ArrayType) and isinstance(type_, ir.ArrayType):
        return replace(parameter, type=replace(parameter.type, dtype=type_.dtype))
    assert isinstance(type_, ir.ElementType | ir.PythonType), type_
    return replace(parameter, type=type_)
