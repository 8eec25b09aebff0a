"""Infers the type of every local: the join over all its assignments, iterated to a fixpoint.

    o = 0.                         o: float32   (joined with float32 elements, a Python float is one)
    o += 0.5 * x[i]

A join that would change a value is an error.
"""

from __future__ import annotations

import itertools
from collections import ChainMap
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from py2cu import ir
from py2cu.analysis.promotion import join, represents
from py2cu.diagnostics import Related, Reporter
from py2cu.dtypes import F32, F64, I64, Kind
from py2cu.ir.complex_numbers import is_literal
from py2cu.ir.names import list_elements
from py2cu.ir.visit import names_in, statements
from py2cu.passes.typing.expressions import ExpressionTyper
from py2cu.passes.typing.join import Called
from py2cu.passes.typing.path_sensitive_types import Number, holds, is_rounded, known_types, reaching_types
from py2cu.source import Span

RETURN = "return"  # the result of a device function, as if it were a local: it is joined over all returns
Refusal = tuple[str, str, Span, str, Sequence[Related]]
"""Code, message, place, hint, and related places."""


def declared_types(kernel: ir.Kernel) -> dict[str, ir.ValueType]:
    """The types of scalars bound before the body runs: parameters, dimensions and element indices."""
    types: dict[str, ir.ValueType] = dict.fromkeys(kernel.dims, ir.PY_INT)
    types |= {index.name: ir.PY_INT for index in kernel.indices}
    types |= {p.name: p.type for p in kernel.parameters if isinstance(p.type, ir.ElementType | ir.PythonType)}
    return types


def find_places(kernel: ir.Kernel) -> dict[str, Span]:
    """Where each name of the kernel is first bound."""
    assigned = {s.name: s.span for s in reversed(tuple(statements(kernel.body))) if isinstance(s, ir.Assign)}
    assigned |= {decl.name: decl.span for decl in kernel.array_decls}
    return assigned | {p.name: p.span for p in kernel.parameters} | {i.name: i.span for i in kernel.indices}


@dataclass(slots=True)
class _Local:
    """The state of a local in one round: its joined type and the Python constants assigned to it."""

    type: ir.ScalarType
    span: Span
    constants: list[ir.Constant] = field(default_factory=list)
    reaching: ir.ReachingTypes = frozenset()
    computed: bool = False  # a Python number that is not constant was assigned
    clash: ir.ScalarType | None = None  # a type that has no common type with the others
    origins: list[Related] = field(default_factory=list)  # each assignment's type

    @property
    def mixes_integers(self) -> bool:
        """True where computed Python integers and elements meet that a Python integer of 64 bits holds."""
        is_element = isinstance(self.type, ir.ElementType)
        return is_element and self.computed and self.clash is None and all(map(_is_whole, known_types(self.reaching)))


def infer_locals(
    kernel: ir.Kernel, declared: Mapping[str, ir.ValueType], trial: Called, reporter: Reporter
) -> tuple[dict[str, ir.ValueType], dict[str, ir.ReachingTypes]]:
    """The type of each local, and its reaching types where they differ.

    The joins are iterated to a fixpoint, since the first line of a loop may read what its last line assigns. Then a
    local in which computed Python integers and elements meet becomes a Python integer, and the iteration goes on.
    """
    fixed = set(declared) - {p.name for p in kernel.parameters}  # dimensions and indices
    of_parameters: dict[str, ir.ReachingTypes] = {}
    for parameter in kernel.parameters if kernel.key else ():
        if isinstance(parameter.type, ir.ElementType | ir.PythonType):
            of_parameters[parameter.name] = frozenset([ir.ParameterPath(parameter.name, parameter.type)])
    integers: set[str] = set()
    inferred = _Locals(of_parameters, {}, integers)
    places = find_places(kernel)
    has_forgotten = forgets = False
    for round_ in itertools.count():
        before, reaching = inferred.types, {} if forgets else inferred.reaching
        has_forgotten, forgets = has_forgotten or forgets, False
        # Start anew each round: a Python number of an earlier round may be an element by now.
        # Names that no earlier round typed get the first type of this round.
        known: dict[str, ir.ValueType] = {**declared, **before}
        is_late = round_ >= 8 + len(before)  # more rounds than a chain of assignments needs: types oscillate
        inferred = inferred.with_earlier_types(known) if is_late else _Locals(of_parameters | reaching, known, integers)
        typer = ExpressionTyper(kernel, known, trial, Reporter(reporter.file), places, inferred.before)
        for stmt in statements(kernel.body):
            match stmt:
                case ir.Assign(name=name, value=value) if name not in fixed:
                    if name in declared:
                        inferred.add(name, ir.Name(name, stmt.span, declared[name]), stmt.span, is_parameter=True)
                    inferred.add(name, typer.type_value(value), stmt.span)
                case ir.Store(array=array, value=value) if kernel.is_list(array):
                    inferred.add(list_elements(array), typer.expr(value), stmt.span)
                case ir.For(var=var) if var not in fixed:
                    inferred.add(var, ir.Name(var, stmt.span, ir.PY_INT), stmt.span)
                case ir.Return(value=value) if value is not None:
                    inferred.add(RETURN, typer.type_value(value), stmt.span)
        if before == inferred.types and reaching == inferred.reaching:
            mixed = inferred.mixed_integers() - declared.keys()
            if mixed <= integers and (has_forgotten or not inferred.has_python_floats):  # rule: two-types-mixed
                break
            # A local that depends on itself keeps the paths of an earlier round, in which it was a Python float.
            forgets = mixed <= integers
            integers |= mixed
    inferred.check_lengths(reporter)
    refused: set[str] = set()
    for name, local in inferred.numbers.items():
        if name == RETURN and refused:
            break  # the error may follow from one already reported
        if name in inferred.integers or (name in declared and not kernel.key):
            continue  # `_with_joined_parameters` reports a kernel's parameters
        error = _refusal(name, local)
        if error is not None:
            refused.add(name.partition("[")[0])
            reporter.error(*error)
    dependent = _dependent_names(kernel.body, refused)
    reaching = {name: types for name, types in inferred.reaching.items() if name.partition("[")[0] not in dependent}
    return inferred.types, of_parameters | reaching


def _dependent_names(body: ir.Block, refused: set[str]) -> set[str]:
    """The locals in `refused`, and those that are computed from them; errors about these may follow from theirs."""
    names, before = set(refused), -1
    while len(names) > before:
        before = len(names)
        for stmt in statements(body):
            if isinstance(stmt, ir.Assign) and not names.isdisjoint(names_in(stmt.value)):
                names.add(stmt.name)
    return names


@dataclass(slots=True)
class _Locals:
    """The joins of one round: `numbers` by name, items of tuples as `t[0]`, and the `lengths` of locals."""

    before: dict[str, ir.ReachingTypes]
    known: dict[str, ir.ValueType]
    integers: set[str]  # the names of locals that are Python integers, although elements are assigned to them
    numbers: dict[str, _Local] = field(default_factory=dict)
    so_far: dict[str, ir.ReachingTypes] = field(default_factory=dict)  # of this round, for names not in `before`
    lengths: dict[str, dict[int | None, Span]] = field(default_factory=dict)  # with the first place; None of a number

    def add(self, name: str, value: ir.Expr, span: Span, is_parameter: bool = False) -> None:
        """Join one assignment into the type of `name`; a value whose type is unknown yet is skipped."""
        match value.type:
            case ir.ElementType() | ir.PythonType():
                self.known.setdefault(name, value.type)
                self.lengths.setdefault(name, {}).setdefault(None, span)
                self.join(name, value, value.type, span, is_parameter)
            case ir.TupleType(items=types):
                self.known.setdefault(name, value.type)
                self.lengths.setdefault(name, {}).setdefault(len(types), span)
                items = (
                    value.items
                    if isinstance(value, ir.Tuple)
                    else [ir.TupleItem(value, at, value.span) for at in range(len(types))]
                )
                for at, (item, type_) in enumerate(zip(items, types, strict=True)):
                    self.join(_item(name, at), item, type_, span)

    @property
    def types(self) -> dict[str, ir.ValueType]:
        """The type by name; a local with several lengths gets the first."""
        return {name: self._type(name, next(iter(lengths))) for name, lengths in self.lengths.items()}

    def _type(self, name: str, length: int | None) -> ir.ValueType:
        if length is None:
            return self._declared(name)
        return ir.TupleType(tuple(self._declared(_item(name, at)) for at in range(length)))

    def _declared(self, name: str) -> ir.ScalarType:
        return ir.PY_INT if name in self.integers else self.numbers[name].type

    def mixed_integers(self) -> set[str]:
        """The locals, and the result that is one number, in which computed Python integers and elements meet."""
        names = (name for name in self.numbers if name == RETURN or not _is_result(name))  # rule: two-types-of-items
        return {name for name in names if self.numbers[name].mixes_integers}

    @property
    def reaching(self) -> dict[str, ir.ReachingTypes]:
        """The reaching types by name, where they differ from the type."""
        return {name: each.reaching for name, each in self.numbers.items() if each.reaching != {self._declared(name)}}

    @property
    def has_python_floats(self) -> bool:
        """True if a local that is an element is a computed Python float on some path."""
        return any(ir.PY_FLOAT in known_types(types) for types in self.reaching.values())

    def join(self, name: str, value: ir.Expr, type_: ir.ScalarType, span: Span, is_parameter: bool = False) -> None:
        local = self.numbers.setdefault(name, _Local(type_, span))
        local.reaching |= reaching_types(value, ChainMap(self.before, self.so_far))
        self.so_far[name] = local.reaching
        _join_into(local, name, value, type_, span, is_parameter)

    def with_earlier_types(self, known: dict[str, ir.ValueType]) -> _Locals:
        """Start a round in which locals keep the types of earlier rounds; else the types of locals that a loop swaps
        could oscillate.
        """
        numbers = {n: _Local(self._declared(n), each.span, reaching=each.reaching) for n, each in self.numbers.items()}
        return _Locals(self.reaching, known, self.integers, numbers, lengths=self.lengths)

    def check_lengths(self, reporter: Reporter) -> None:
        for name, lengths in self.lengths.items():
            if len(lengths) > 1:
                (first, _), (other, span), *_ = lengths.items()
                what = "this function returns" if name == RETURN else f"`{name}` is"
                related = [Related(f"{_counted(length)} here", place) for length, place in lengths.items()]
                message = f"{what} {_counted(first)} on one path and {_counted(other)} on another"
                reporter.error("P312", message, span, "as many values on every path", related)


def _is_whole(reached: ir.ScalarType | Number) -> bool:
    """True for whole numbers that Python's integers of 64 bits hold, and that are no bools."""
    match reached:
        case ir.ElementType(dtype=dtype):
            return dtype.kind is Kind.INT and dtype.variable is None and holds(I64, dtype)  # rule: join-whole
        case ir.PythonType(kind=kind):
            return kind is Kind.INT
        case _:
            return isinstance(reached, int) and not isinstance(reached, bool)


def _is_result(name: str) -> bool:
    """True for the name of a function's result, or of one of its items."""
    return name.partition("[")[0] == RETURN


def _item(name: str, at: int) -> str:
    return f"{name}[{at}]"


def _counted(length: int | None) -> str:
    return "one number" if length is None else f"a tuple of {length}"


def _join_into(local: _Local, name: str, value: ir.Expr, type_: ir.ScalarType, span: Span, is_parameter: bool) -> None:
    local.origins.append(Related(f"`{name}` is {type_} here", span))
    if isinstance(type_, ir.PythonType):
        if isinstance(value, ir.Constant):
            if value not in local.constants:
                local.constants.append(value)
        elif is_literal(value):
            local.constants += [part for part in value.args if isinstance(part, ir.Constant)]
        elif is_parameter or not (isinstance(value, ir.Name) and value.id == name):
            local.computed = True
    joined = join(local.type, type_)  # rule: join-types
    if joined is None:
        local.clash = type_
    else:
        local.type = joined


def _refusal(name: str, local: _Local) -> Refusal | None:
    """The error for a join that changes a value, such as a Python number rounded too early; None without one."""
    is_result = _is_result(name)
    what = "this function returns" if is_result else f"`{name}` is"
    if local.clash is not None:  # rule: join-clash
        message = f"{what} {local.type} on one path and {local.clash} on another, which have no common type"
        return "P309", message, local.span, f"cast one of them: `np.{local.type}(…)`", ()
    if not isinstance(local.type, ir.ElementType):
        return None
    dtype = local.type.dtype
    types = [each for each in known_types(local.reaching) if each != local.type]
    elements = [each for each in types if isinstance(each, ir.ElementType)]
    rounded = [each for each in elements if not holds(dtype, each.dtype)]
    inexact = [c for c in local.constants if not represents(dtype, c.value)]  # rule: join-inexact
    if inexact and (is_result or not all(is_rounded(c.value, dtype) for c in inexact)):
        rounds = dtype.kind >= Kind.FLOAT
        message = f"`{name}` starts as the Python number {inexact[0].value} and becomes {dtype}, "
        message += f"which {'rounds' if rounds else 'cannot hold'} it"
        cast = f"round it explicitly: `np.{dtype}({inexact[0].value})`"
        other = f"use another local for the {dtype} values"
        return "P306", message, inexact[0].span, cast if rounds else other, _others(local, inexact[0].span)
    others = _others(local, local.span)
    if rounded:  # rule: join-rounded
        message = f"{what} {rounded[0]} on one path and {dtype} on another, which rounds it"
        return "P306", message, local.span, f"round it explicitly: `np.{dtype}(…)`", others
    if name == RETURN:
        return None  # its callers know the paths
    if is_result and elements:
        message = f"{what} {elements[0]} on one path and {dtype} on another"
        return "P306", message, local.span, f"cast on each: `np.{dtype}(…)`", others
    rounds_at_use = dtype in (F32, F64) and not is_result  # as Python does, or the use is refused  # rule: round-at-use
    # rule: join-computed
    if (local.computed and not rounds_at_use) or (is_result and any(isinstance(each, ir.PythonType) for each in types)):
        message = f"{what} a Python number on one path and {dtype} on another"
        return "P306", message, local.span, f"cast where it is a Python number: `np.{dtype}(…)`", others
    return None


def _others(local: _Local, shown: Span) -> list[Related]:
    """For each type, the first assignment of that type to the local, except on the line of `shown`."""
    first = {place.message: place for place in reversed(local.origins)}
    return [place for place in reversed(first.values()) if place.span.line != shown.line]
