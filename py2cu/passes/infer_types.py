"""Gives every expression its type, and makes every promotion visible as a `Convert`.

    o = 0.                         o: float32 = 0.0          (a Python float that meets float32 elements is one)
    o += 0.5 * x[i]       →        o += 0.5f * x[i]
    out[j] = o                     out[j] = Convert(o, uint8)

The rules are section 5 of the contract. Locals are joined over all their assignments until nothing changes.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import assert_never

from py2cu.builtins import ROWS, Rule
from py2cu.diagnostics import Related, Reporter
from py2cu.dtypes import BOOL, DEFAULT_FLOAT, F32, DType, Kind
from py2cu.ir.extents import Binary, Constant, Name, Parameter
from py2cu.ir.nodes import (
    ArrayName,
    BoolOp,
    Call,
    Compare,
    Convert,
    Expr,
    Extent,
    Invoke,
    LaunchIndex,
    Load,
    Select,
    Unary,
)  # fmt: skip
from py2cu.ir.statements import (
    Assert,
    Assign,
    Block,
    Break,
    Evaluate,
    Field,
    For,
    If,
    Kernel,
    Print,
    Remark,
    Return,
    Stmt,
    Store,
    While,
)  # fmt: skip
from py2cu.ir.types import (
    PY_BOOL,
    PY_FLOAT,
    PY_INT,
    UNKNOWN,
    ArrayType,
    ElementType,
    PythonType,
    ScalarType,
    Type,
    kind_of,
)  # fmt: skip
from py2cu.ir.visit import all_expressions, blocks, statements
from py2cu.passes.promotion import constant_as, constant_type, join, represents, rounded
from py2cu.source import Span

ARITHMETIC = frozenset(["+", "-", "*", "/", "//", "%", "**"])
SHIFTS = frozenset(("<<", ">>"))
_EXACT = {"+": operator.add, "-": operator.sub, "*": operator.mul}


RETURN = "return"  # the result of a device function, as if it were a local: it is joined over all returns
_ROUNDS = 8  # a recursive function whose result is still unknown then has none


def infer_types(kernel: Kernel, reporter: Reporter) -> Kernel:
    """The kernel with every expression typed; `locals` lists its local variables with their types.

    `functions` become its device functions' instances, one for every set of argument types.
    """
    instances = Instances(kernel.functions, reporter)
    typed = _infer(kernel, instances, reporter)
    return replace(typed, functions=tuple(instances.found.values()))


def _infer(kernel: Kernel, instances: Instances, reporter: Reporter) -> Kernel:
    """A kernel or an instance of a device function, typed."""
    types = _given_types(kernel)
    locals_ = _infer_locals(kernel, types, instances, reporter)
    _check_annotations(kernel, {**types, **locals_}, reporter)
    kernel = _with_joined_parameters(kernel, locals_, reporter)
    body = Typer(kernel, {**types, **locals_}, instances, reporter, _places(kernel)).block(kernel.body)
    _check_constants(body, reporter)
    result = locals_.pop(RETURN, None)
    return replace(kernel, body=body, locals=tuple(locals_.items()), result=result)


def _check_constants(body: Block, reporter: Reporter) -> None:
    """Refuse what only a uint64 element would hold and no such element makes one."""
    for node in all_expressions(body):
        if isinstance(node, Constant) and node.type == PY_INT and node.value >= 2**63:
            hint = "Python integers are exact to 64 bits: use a float, or less"
            reporter.error("P305", "this constant does not fit 64 bits", node.span, hint)


def _with_joined_parameters(kernel: Kernel, locals_: dict[str, ScalarType], reporter: Reporter) -> Kernel:
    """Parameters that are assigned to were joined with what they get; they are no locals.

    A device function takes the joined type, a kernel's caller has been told another.
    """
    parameters = []
    for parameter in kernel.parameters:
        joined = locals_.pop(parameter.name, parameter.type)
        if joined != parameter.type and not kernel.key:
            reporter.error(
                "P306", f"the parameter `{parameter.name}` is {parameter.type} and becomes {joined}", parameter.span,
                "give what is computed another name",
            )  # fmt: skip
        parameters.append(parameter if joined == parameter.type else replace(parameter, type=joined))
    return replace(kernel, parameters=tuple(parameters))


class Instances:
    """The instances of a kernel's device functions, made as calls ask for them."""

    def __init__(self, functions: Sequence[Kernel], reporter: Reporter) -> None:
        self.templates = {function.key: function for function in functions}
        self.reporter = reporter
        self.found: dict[str, Kernel] = {}
        self._results: dict[str, ScalarType | None] = {}  # of those under way

    def scratch(self) -> Instances:
        """The same functions, of which nothing is known or reported yet."""
        return Instances(tuple(self.templates.values()), Reporter(self.reporter.file))

    def call(self, key: str, types: Sequence[Type]) -> tuple[str, ScalarType | None]:
        """The instance of a function for arguments of these types: its key, and the type of its result."""
        instance = f"{key}: {', '.join(str(type_) for type_ in types)}"
        if instance in self.found:
            return instance, self.found[instance].result
        if instance in self._results:
            return instance, self._results[instance]  # it calls itself
        template = self.templates[key]
        parameters = map(_as_parameter, template.parameters, types)
        function = replace(template, parameters=tuple(parameters), key=instance)
        self._results[instance] = None
        for _ in range(_ROUNDS):
            trial = self.scratch()
            trial._results = dict(self._results)
            result = _infer(function, trial, trial.reporter).result
            if result == self._results[instance]:
                break
            self._results[instance] = result
        typed = _infer(function, self, self.reporter)
        del self._results[instance]
        if typed.result is not None and falls_through(typed.body):
            self.reporter.error(
                "P106", f"`{function.name}` may end without a value", function.span, "return one on every path"
            )
        self.found[instance] = typed
        return instance, typed.result


def _as_parameter(parameter: Parameter, type_: Type) -> Parameter:
    """A device function's parameter for an argument of `type_`; arrays keep the function's own extents."""
    if isinstance(parameter.type, ArrayType) and isinstance(type_, ArrayType):
        return replace(parameter, type=replace(parameter.type, dtype=type_.dtype))
    assert isinstance(type_, ElementType | PythonType), type_
    return replace(parameter, type=type_)


def falls_through(block: Block) -> bool:
    """True where the end of `block` can be reached, loops taken to end."""
    match block[-1] if block else None:
        case Return():
            return False
        case If(body=body, orelse=orelse):
            return falls_through(body) or falls_through(orelse)
        case While(test=Constant(value=True), body=body):
            return any(isinstance(stmt, Break) for stmt in statements(body))
        case Remark():
            return falls_through(block[:-1])
        case _:
            return True


def _given_types(kernel: Kernel) -> dict[str, ScalarType]:
    """Scalars that a call gives: parameters, dimensions, element indices."""
    types: dict[str, ScalarType] = dict.fromkeys(kernel.dims, PY_INT)
    types |= {index.name: PY_INT for index in kernel.indices}
    types |= {p.name: p.type for p in kernel.parameters if isinstance(p.type, ElementType | PythonType)}
    return types


def _check_annotations(kernel: Kernel, types: dict[str, ScalarType], reporter: Reporter) -> None:
    """Refuse an annotation that says another type than the values do: Python's annotations convert nothing."""
    for annotation in kernel.annotated:
        found, said = types.get(annotation.name, annotation.type), annotation.type
        if found != said:
            cast = f"np.{said}" if isinstance(said, ElementType) else said.kind.name.lower()
            message = f"`{annotation.name}` is annotated as {said}, but what it is given makes it {found}"
            reporter.error("P306", message, annotation.span, f"annotations convert nothing, casts do: `{cast}(…)`")


def _places(kernel: Kernel) -> dict[str, Span]:
    """Where each name of the kernel is first bound."""
    assigned = {s.name: s.span for s in reversed(tuple(statements(kernel.body))) if isinstance(s, Assign)}
    return assigned | {p.name: p.span for p in kernel.parameters} | {i.name: i.span for i in kernel.indices}


@dataclass(slots=True)
class _Local:
    """What is known of a local so far: its joined type and the Python constants that it was given."""

    type: ScalarType
    span: Span
    constants: list[Constant] = field(default_factory=list)
    computed: bool = False  # some Python number that is no constant was assigned
    clash: ScalarType | None = None  # a type that does not meet the others
    origins: list[Related] = field(default_factory=list)  # each assignment's type


def _infer_locals(
    kernel: Kernel, given: dict[str, ScalarType], instances: Instances, reporter: Reporter
) -> dict[str, ScalarType]:
    """Join each local over its assignments; repeated, since a loop's first line may read what its last assigns."""
    fixed = set(given) - {p.name for p in kernel.parameters}  # dimensions and indices
    found: dict[str, _Local] = {}
    places = _places(kernel)
    while True:
        before = {name: local.type for name, local in found.items()}
        # Anew every round: a Python number that an earlier round saw may have become an element since.
        found = {}
        trial = instances.scratch()
        trial._results = dict(instances._results)
        typer = Typer(kernel, {**given, **before}, trial, trial.reporter, places)
        for stmt in statements(kernel.body):
            match stmt:
                case Assign(name=name, value=value) if name not in fixed:
                    if name in given:
                        _join_into(found, name, Name(name, stmt.span, given[name]), stmt.span, is_given=True)
                    _join_into(found, name, typer.expr(value), stmt.span)
                case For(var=var) if var not in fixed:
                    _join_into(found, var, Name(var, stmt.span, PY_INT), stmt.span)
                case Return(value=value) if value is not None:
                    _join_into(found, RETURN, typer.expr(value), stmt.span)
        if before == {name: local.type for name, local in found.items()}:
            break
    for name, local in found.items():
        if kernel.key or name not in given:  # of a kernel's own parameter more is to be said
            _check_join(name, local, reporter)
    return {name: local.type for name, local in found.items()}


def _join_into(found: dict[str, _Local], name: str, value: Expr, span: Span, is_given: bool = False) -> None:
    if not isinstance(value.type, ElementType | PythonType):
        return  # a name that this round does not know yet
    local = found.setdefault(name, _Local(value.type, span))
    local.origins.append(Related(f"`{name}` is {value.type} here", span))
    if isinstance(value.type, PythonType):
        if isinstance(value, Constant):
            if value not in local.constants:
                local.constants.append(value)
        elif is_given or not (isinstance(value, Name) and value.id == name):
            local.computed = True
    met = join(local.type, value.type)
    if met is None:
        local.clash = value.type
    else:
        local.type = met


def _check_join(name: str, local: _Local, reporter: Reporter) -> None:
    """Refuse a join that would change a value: a Python number rounded earlier than Python rounds it."""
    if local.clash is not None:
        reporter.error(
            "P309", f"`{name}` is {local.type} on one path and {local.clash} on another, which do not meet", local.span,
            f"cast one of them: `np.{local.type}(…)`",
        )  # fmt: skip
    match local.type:
        case ElementType(dtype=dtype):
            bad = [c for c in local.constants if not represents(dtype, c.value)]
            if bad:
                reporter.error(
                    "P306", f"`{name}` starts as the Python number {bad[0].value} and becomes {dtype}, "
                    f"which {'rounds' if dtype.kind is Kind.FLOAT else 'cannot hold'} it", bad[0].span,
                    f"say when it is rounded: `np.{dtype}({bad[0].value})`" if dtype.kind is Kind.FLOAT
                    else f"use a local of another name for what is {dtype}", _others(local, bad[0].span),
                )  # fmt: skip
            elif local.computed:
                reporter.error(
                    "P306", f"`{name}` is a Python number on one path and {dtype} on another", local.span,
                    f"cast where it is a Python number: `np.{dtype}(…)`", _others(local, local.span),
                )  # fmt: skip


def _others(local: _Local, shown: Span) -> list[Related]:
    """The first place where the local is given each type, in other lines than the one that is shown."""
    first = {place.message: place for place in reversed(local.origins)}
    return [place for place in reversed(first.values()) if place.span.line != shown.line]


@dataclass(frozen=True, slots=True)
class Typer:
    """Types expressions and statements, given the types of names."""

    kernel: Kernel
    types: dict[str, ScalarType]
    instances: Instances
    reporter: Reporter
    places: dict[str, Span] = field(default_factory=dict)  # where the names that messages explain are bound

    # --- statements ---

    def block(self, block: tuple[Stmt, ...]) -> tuple[Stmt, ...]:
        return tuple(self.statement(stmt) for stmt in block)

    def statement(self, stmt: Stmt) -> Stmt:
        match stmt:
            case Assign(name=name, value=value):
                typed = self.expr(value)
                # A local without a type is only assigned from names that were refused.
                return replace(stmt, value=self.convert(typed, self.types[name])) if name in self.types else stmt
            case Store(array=array, indices=indices, value=value):
                element = ElementType(self.kernel.array_type(array).dtype)
                stored = self.stored(self.expr(value), element)
                return replace(stmt, indices=self.indices(array, indices), value=stored)
            case If(test=test):
                return replace(stmt, test=self.test(test), body=self.block(stmt.body), orelse=self.block(stmt.orelse))
            case For(start=start, stop=stop, step=step, body=body, var=var):
                bounds = [self.integer(self.expr(bound), "a bound of `range`") for bound in (start, stop, step)]
                start, stop, step = bounds
                loop = replace(stmt, start=start, stop=stop, step=step, type=self.types.get(var, PY_INT))
                return replace(loop, body=self.block(body), orelse=self.block(stmt.orelse))
            case While(test=test, body=body):
                return replace(stmt, test=self.test(test), body=self.block(body), orelse=self.block(stmt.orelse))
            case Return(value=value) if value is not None:
                returned = self.expr(value)
                return replace(stmt, value=self.convert(returned, self.types.get(RETURN, PY_INT)))
            case Evaluate(call=call):
                return replace(stmt, call=self.invoke(call))
            case Print(values=values, fields=fields):
                printed = [self.printed(self.expr(value), field) for value, field in zip(values, fields, strict=True)]
                return replace(stmt, values=tuple(v for v, _ in printed), fields=tuple(f for _, f in printed))
            case Assert(test=test):
                return replace(stmt, test=self.test(test))
            case _:
                assert not blocks(stmt)
                return stmt

    def printed(self, value: Expr, field: Field) -> tuple[Expr, Field]:
        """A value as its format prints it, and the format with the letter that the type makes of it."""
        if not known(value):
            return value, field
        type_, letter = scalar(value), field.letter
        if kind_of(type_) is Kind.BOOL and not (letter or field.layout):
            return value, replace(field, letter="s")
        if kind_of(type_) is Kind.FLOAT:
            if letter in ("d", "x", "X", "o"):
                self.error("P307", f"`{letter}` prints whole numbers, not {type_}", field.span, "`int(…)` truncates")
            elif not letter and "." in field.layout:
                self.error("P307", "this format needs a letter", field.span, "`g` is what Python takes")
            return value, replace(field, letter=letter or "g")
        if letter in ("f", "e", "E", "g", "G"):
            return self.convert(value, PY_FLOAT), field
        if "." in field.layout:
            self.error(
                "P307", f"a precision is for floats, not for {type_}", field.span, "leave it out, or print `float(…)`"
            )
        if letter in ("x", "X", "o") and not (isinstance(type_, ElementType) and not type_.dtype.signed):
            hint = "cast it to an unsigned type: `np.uint8(…)`"
            self.error("P307", f"`{letter}` of a number that may be negative is another text in C", field.span, hint)
        return (self.convert(value, PY_INT) if kind_of(type_) is Kind.BOOL else value), replace(
            field, letter=letter or "d"
        )

    def stored(self, value: Expr, element: ElementType) -> Expr:
        if isinstance(value, Constant) and element.dtype.kind is not Kind.FLOAT:
            low, high = element.dtype.low, element.dtype.high
            if not low <= value.value <= high:
                self.error(
                    "P305", f"{value.value} does not fit {element}", value.span, f"{element} holds {low} to {high}"
                )
                return value
        return self.convert(value, element)

    def indices(self, array: str, indices: tuple[Expr, ...]) -> tuple[Expr, ...]:
        typed = tuple(self.integer(self.expr(index), "an index") for index in indices)
        for axis, (index, extent) in enumerate(zip(typed, self.kernel.array_type(array).dims, strict=True)):
            match index, extent:
                case Constant(value=at), Constant(value=size) if not -size <= at < size:
                    plural = "element" if size == 1 else "elements"
                    message = f"index {at} is outside `{array}`, whose dimension {axis} has {size} {plural}"
                    self.error("P404", message, index.span, f"the constants that fit are {-size} to {size - 1}")
        return typed

    def integer(self, value: Expr, what: str) -> Expr:
        """`value` as a Python integer; bounds and indices that are elements become one."""
        if isinstance(value.type, ElementType | PythonType) and kind_of(value.type) is Kind.FLOAT:
            self.error(
                "P307",
                f"{what} is a whole number, not {value.type}",
                value.span,
                "`int(…)` truncates",
                self.origins(value),
            )
            return Constant(0, value.span, PY_INT)
        return self.convert(value, PY_INT)

    # --- expressions ---

    def expr(self, expr: Expr) -> Expr:
        """`expr` typed, operands converted to the type in which they meet."""
        match expr:
            case Constant(value=value):
                return replace(expr, type=constant_type(value))
            case Name(id=name):
                return replace(expr, type=self.types[name]) if name in self.types else expr
            case LaunchIndex() | Extent():
                return expr
            case Load(array=array, indices=indices):
                element = ElementType(self.kernel.array_type(array).dtype)
                return replace(expr, indices=self.indices(array, indices), type=element)
            case Unary():
                return self.unary(expr)
            case Binary():
                return self.binary(expr)
            case Compare(left=left, right=right):
                a, b = self.meet(self.expr(left), self.expr(right))
                return replace(expr, left=a, right=b)
            case BoolOp(left=left, right=right):
                a, b = self.expr(left), self.expr(right)
                if known(a) and known(b) and kind_of(scalar(a)) is kind_of(scalar(b)) is Kind.BOOL:
                    return replace(expr, left=a, right=b, type=self.common([a, b]))
                a, b = self.meet(a, b)
                return replace(expr, left=a, right=b, type=a.type)
            case Select(test=test, then=then, orelse=orelse):
                a, b = self.meet(self.expr(then), self.expr(orelse))
                return replace(expr, test=self.test(test), then=a, orelse=b, type=a.type)
            case Call():
                return self.call(expr)
            case Invoke():
                called = self.invoke(expr)
                if called.type is UNKNOWN and called is not expr:
                    self.error("P105", "this function returns nothing", expr.span, "return a value from it")
                return called
            case ArrayName(id=name):
                return replace(expr, type=self.kernel.array_type(name))
            case Convert():
                return expr
            case _:
                assert_never(expr)

    def invoke(self, expr: Invoke) -> Invoke:
        args = tuple(self.expr(arg) for arg in expr.args)
        if not all(known(arg) or isinstance(arg, ArrayName) for arg in args):
            return expr
        key, result = self.instances.call(expr.function, [arg.type for arg in args])
        return Invoke(key, args, expr.span, UNKNOWN if result is None else result)

    def test(self, expr: Expr) -> Expr:
        """`expr` where only its truth counts: operands of `and` and `or` need not meet."""
        match expr:
            case BoolOp(left=left, right=right):
                return replace(expr, left=self.test(left), right=self.test(right), type=PY_BOOL)
            case _:
                return self.expr(expr)

    def unary(self, expr: Unary) -> Expr:
        operand = self.test(expr.operand) if expr.op == "not" else self.expr(expr.operand)
        if not known(operand):
            return expr
        if expr.op == "not":
            return replace(expr, operand=operand, type=PY_BOOL)
        operand = self.counted(operand)
        if expr.op == "~" and kind_of(scalar(operand)) is Kind.FLOAT:
            message = f"`~` works on whole numbers, not on {operand.type}"
            self.error("P307", message, expr.span, "truncate it first: `int(…)`", self.origins(operand))
        return replace(expr, operand=operand, type=operand.type)

    def counted(self, operand: Expr) -> Expr:
        """Arithmetic counts a Python bool, such as a comparison's result, as a Python integer."""
        return self.convert(operand, PY_INT) if operand.type == PY_BOOL else operand

    def binary(self, expr: Binary) -> Expr:
        left, right = self.expr(expr.left), self.expr(expr.right)
        if not (known(left) and known(right)):
            return expr
        kinds = {kind_of(scalar(left)), kind_of(scalar(right))}
        logical = expr.op in ["&", "|", "^"]
        if not (logical and kinds == {Kind.BOOL}):
            left, right = self.counted(left), self.counted(right)
        if expr.op not in ARITHMETIC and Kind.FLOAT in kinds:
            message = f"`{expr.op}` works on whole numbers, not on {_float_of(left, right)}"
            self.error("P307", message, expr.span, "truncate it first: `int(…)`", self.origins(left, right))
            return replace(expr, left=left, right=right, type=PY_INT)
        if expr.op == "**" and not self.exponent_is_kept(expr, left, right):
            return replace(expr, left=left, right=right, type=PY_INT)
        left, right = self.meet(left, right)
        type_ = scalar(left)
        if type_ == ElementType(BOOL) and not logical:
            message = f"`{expr.op}` of two bool elements is not kept"
            self.error("P307", message, expr.span, "cast one: `int(…)`", self.origins(left, right))
        if expr.op == "/" and kind_of(type_) is not Kind.FLOAT:
            type_ = ElementType(DEFAULT_FLOAT) if isinstance(type_, ElementType) else PY_FLOAT
            left, right = self.convert(left, type_), self.convert(right, type_)
        if (
            expr.op in ("//", "%", "/")
            and isinstance(right, Constant)
            and right.value == 0
            and type_ in (PY_INT, PY_FLOAT)
        ):
            self.error("P308", "division by zero", expr.span, "divide by something else")
        self.check_constants(expr, left, right, type_)
        return replace(expr, left=left, right=right, type=type_)

    def check_constants(self, expr: Binary, left: Expr, right: Expr, type_: ScalarType) -> None:
        """Refuse what the constants alone show to be undefined in C++: a shift too far, a result beyond 64 bits."""
        bits = type_.dtype.bits if isinstance(type_, ElementType) else 64
        if expr.op in SHIFTS and isinstance(right, Constant) and not 0 <= right.value < bits:
            self.error(
                "P307",
                f"{type_} is not shifted by {right.value} bits",
                expr.span,
                f"by 0 to {bits - 1}",
                self.origins(left),
            )
        if type_ == PY_INT and isinstance(left, Constant) and isinstance(right, Constant) and expr.op in _EXACT:
            value = _EXACT[expr.op](int(left.value), int(right.value))
            if not -(2**63) <= value < 2**63:
                self.error(
                    "P305",
                    "this does not fit 64 bits",
                    expr.span,
                    "Python integers are exact to 64 bits: use a float, or less",
                )

    def exponent_is_kept(self, expr: Binary, left: Expr, right: Expr) -> bool:
        """Python's `int ** int` is a float for a negative exponent, so the exponent's sign must be known."""
        if Kind.FLOAT in (kind_of(scalar(left)), kind_of(scalar(right))):
            return True
        if isinstance(right, Constant) and right.value >= 0:
            return True
        self.error(
            "P307", "a whole number to a power that may be negative is a float in Python", expr.span,
            "use a constant exponent that is not negative, or make the base a float", self.origins(left, right),
        )  # fmt: skip
        return False

    def call(self, expr: Call) -> Expr:
        row = ROWS[expr.function]
        args = [self.expr(arg) for arg in expr.args]
        if not all(map(known, args)) or not args:
            return expr
        match row.rule:
            case Rule.FLOAT:
                type_ = self.float_type(args)
                if expr.function == "math.nextafter" and isinstance(type_, ElementType) and type_.dtype.is_half:
                    hint = "widen it first: `np.float32(…)`"
                    self.error("P307", f"`nextafter` steps in float32 or float64, not in {type_}", expr.span, hint)
                return replace(expr, args=tuple(self.convert(arg, type_) for arg in args), type=type_)
            case Rule.INTEGRAL if len(args) == 2:
                return self.rounded(expr, args[0], args[1])
            case Rule.INTEGRAL | Rule.ROUNDED:
                if row.rule is Rule.ROUNDED and kind_of(scalar(args[0])) is not Kind.FLOAT:
                    return args[0]
                if row.rule is Rule.ROUNDED:
                    return replace(expr, args=tuple(args), type=args[0].type)
                if kind_of(scalar(args[0])) is not Kind.FLOAT:
                    return self.convert(args[0], PY_INT)
                return replace(expr, args=tuple(args), type=PY_INT)
            case Rule.WHOLE:
                whole = tuple(self.integer(arg, f"an argument of `{expr.function}`") for arg in args)
                return replace(expr, args=whole, type=PY_INT)
            case Rule.PREDICATE:
                return replace(expr, args=(self.convert(args[0], self.float_type(args)),), type=PY_BOOL)
            case Rule.SAME:
                met = self.meet_all([self.counted(arg) for arg in args])
                return replace(expr, args=tuple(met), type=met[0].type)
            case Rule.CAST:
                return self.cast(args[0], row.result, expr.span)
            case _:
                assert_never(row.rule)

    def rounded(self, expr: Call, value: Expr, digits: Expr) -> Expr:
        """`round(x, 2)`: the digits as the power of ten that `round_decimals` takes."""
        if kind_of(scalar(value)) is not Kind.FLOAT:
            self.error("P307", "`round` of a whole number takes no digits", expr.span, "leave them out")
            return value
        most = 10 if value.type == ElementType(F32) else 22  # what the float holds as a power of ten
        if not isinstance(digits, Constant) or not isinstance(digits.value, int) or not 0 <= digits.value <= most:
            self.error(
                "P307",
                f"`round` takes a constant number of digits, 0 to {most}",
                digits.span,
                "write the number of digits out",
            )
            return value
        power = Constant(10.0**digits.value, digits.span, value.type)
        return replace(expr, args=(value, power), type=value.type)

    def float_type(self, args: Sequence[Expr]) -> ScalarType:
        type_ = self.common(args)
        if kind_of(type_) is Kind.FLOAT:
            return type_
        return ElementType(DEFAULT_FLOAT) if isinstance(type_, ElementType) else PY_FLOAT

    def cast(self, value: Expr, result: DType | str | None, span: Span) -> Expr:
        if isinstance(result, DType):
            target: ScalarType = ElementType(result)
        else:
            target = {"int": PY_INT, "float": PY_FLOAT, "bool": PY_BOOL}[str(result)]
        if isinstance(value, Constant):
            made = self.stored(value, target) if isinstance(target, ElementType) else self.convert(value, target)
            assert isinstance(made, Constant)
            return replace(made, value=rounded(target, made.value), span=span)
        return Convert(value, target, span, explicit=True)

    # --- where types meet ---

    def meet(self, left: Expr, right: Expr) -> tuple[Expr, Expr]:
        if not (known(left) and known(right)):
            return left, right
        left, right = self.meet_all([left, right])
        return left, right

    def meet_all(self, values: list[Expr]) -> list[Expr]:
        """All values in their common type; a Python constant that an integer element type cannot hold is refused."""
        type_ = self.common(values)
        for value in values:
            if isinstance(value, Constant) and isinstance(type_, ElementType) and type_.dtype.kind is not Kind.FLOAT:
                self.check_fits(value, type_.dtype, self.origins(*values))
        return [self.convert(value, type_) for value in values]

    def common(self, values: Sequence[Expr]) -> ScalarType:
        """The type in which all of `values` meet."""
        type_ = scalar(values[0])
        for value in values[1:]:
            met = join(type_, scalar(value))
            if met is None:
                message = f"{type_} and {value.type} do not meet: torch has no type for both"
                self.error("P309", message, value.span, f"cast one of them: `np.{value.type}(…)` or `np.{type_}(…)`")
                return type_
            type_ = met
        return type_

    def check_fits(self, constant: Constant, dtype: DType, origins: Sequence[Related]) -> None:
        if not represents(dtype, constant.value):
            self.error(
                "P305", f"{constant.value} does not fit {dtype}, the type it meets here", constant.span,
                f"{dtype} holds {dtype.low} to {dtype.high}; cast the element first: `int(…)`", origins,
            )  # fmt: skip

    def convert(self, value: Expr, type_: ScalarType) -> Expr:
        """`value` as `type_`; constants change in place."""
        if value.type == type_ or not known(value):
            return value
        if isinstance(value, Constant):
            number = constant_as(value.value, type_)
            is_cast = isinstance(value.type, ElementType) and value.type.dtype.kind is Kind.FLOAT
            is_said = number == value.value and not is_cast  # else the digits in the source say another number
            return Constant(number, value.span, type_, value.text if is_said else "")
        return Convert(value, type_, value.span)

    def origins(self, *values: Expr) -> list[Related]:
        """Where each operand's type came from: a parameter's annotation, or a local's first assignment."""
        found = []
        for value in values:
            match value.value if isinstance(value, Convert) and not value.explicit else value:
                case Name(id=name) if name in self.places:
                    found.append(Related(f"`{name}` is {self.types[name]}", self.places[name]))
                case Load(array=name):
                    found.append(Related(f"`{name}` holds {self.kernel.array_type(name).dtype}", self.places[name]))
                case Constant():
                    pass
                case other:
                    found.append(Related(f"this is {other.type}", other.span))
        return found

    def error(self, code: str, message: str, span: Span, hint: str, related: Sequence[Related] = ()) -> None:
        self.reporter.error(code, message, span, hint, related)


def known(expr: Expr) -> bool:
    return isinstance(expr.type, ElementType | PythonType)


def scalar(expr: Expr) -> ScalarType:
    assert isinstance(expr.type, ElementType | PythonType), expr
    return expr.type


def _float_of(left: Expr, right: Expr) -> ScalarType:
    return scalar(left) if kind_of(scalar(left)) is Kind.FLOAT else scalar(right)
