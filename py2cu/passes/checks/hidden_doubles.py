"""Notes doubles in kernels whose arrays hold narrower floats: arithmetic of Python floats, and arrays of `float`.

    out[i] = x[i] * (a * a)       `a * a` of Python floats is computed in double
    acc = local(4, float)         its elements are doubles

A local that a noted expression is assigned to, and one that it reads, is the cause of later doubles: they have no note.
Compilers compute constants: `math.sqrt(2) * x[i]` has none either.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from py2cu import ir
from py2cu.analysis.integer_quotients import integer_quotient
from py2cu.analysis.ranges import Ranges
from py2cu.diagnostics import Reporter
from py2cu.dtypes import F64, DType, Kind
from py2cu.ir.visit import assigned_names, children, expressions, names_in, statements, walk

_SPEED: Final = "at 1/2 to 1/64 of the speed of float32"


def narrow_precision(kernel: ir.Kernel) -> DType | None:
    """The widest float dtype of the kernel's array parameters; None if it is float64, or no array holds floats."""
    dtypes = [p.type.dtype.part.plain for p in kernel.arrays if isinstance(p.type, ir.ArrayType)]
    floats = [dtype for dtype in dtypes if dtype.kind is Kind.FLOAT]
    widest = max(floats, key=lambda dtype: dtype.bits, default=F64)
    return None if widest is F64 else widest  # rule: slow-precision


def note_doubles(function: ir.Kernel, precision: DType, ranges: Ranges, reporter: Reporter) -> None:
    """Report doubles in a kernel whose arrays hold floats of `precision`, or in one of its device functions."""
    noter = _DoubleNoter(function, precision, ranges, reporter, _constant_names(function))
    for stmt in statements(function.body):
        if isinstance(stmt, ir.Alloc):
            noter.look_at_array(stmt)
        is_caused = [noter.look_at(expr) for expr in expressions(stmt)]
        if isinstance(stmt, ir.Assign) and stmt.value.type == ir.PY_FLOAT and any(is_caused):
            noter.causes.add(stmt.name)


def _constant_names(function: ir.Kernel) -> frozenset[str]:
    """The template arguments, and the locals that are assigned once, from constants."""
    assigned = list(assigned_names(function.body))
    constants = set(function.constexprs)
    for stmt in statements(function.body):
        if isinstance(stmt, ir.Assign) and assigned.count(stmt.name) == 1 and _is_constant(stmt.value, constants):
            constants.add(stmt.name)
    return frozenset(constants)


def _is_constant(expr: ir.Expr, constants: set[str] | frozenset[str]) -> bool:
    """True if compilers know the value of `expr`."""
    match expr:
        case ir.Constant():
            return True
        case ir.Name(id=name):
            return name in constants
        case ir.Binary() | ir.Unary() | ir.Call() | ir.Convert():
            return all(_is_constant(operand, constants) for operand in children(expr))
        case _:
            return False


@dataclass(frozen=True, slots=True)
class _DoubleNoter:
    function: ir.Kernel
    precision: DType
    ranges: Ranges
    reporter: Reporter
    constants: frozenset[str]
    causes: set[str] = field(default_factory=set)  # locals whose doubles have a note

    def look_at_array(self, stmt: ir.Alloc) -> None:
        array = self.function.array_decl(stmt.array)
        if array is not None and array.is_python_dtype and array.type.dtype is F64:  # rule: slow-array
            message = f"the elements of `{array.name}` are doubles, though the arrays hold {self.precision}"
            cost = f"they take 8 bytes each, and are computed {_SPEED}"
            hint = "`float` is float64, as in NumPy: write `np.float32`, or `x.dtype` of an array"
            self.reporter.note("P701", f"{message}: {cost}", stmt.span, hint)

    def look_at(self, expr: ir.Expr) -> bool:
        """Report the outermost operations on Python floats; True if there is one."""
        quotient = integer_quotient(expr, self.ranges)
        if quotient is not None:  # rule: slow-quotient
            return self.look_at(quotient)
        if not isinstance(expr, ir.Binary | ir.Call) or expr.type != ir.PY_FLOAT:
            are_doubles = [self.look_at(operand) for operand in children(expr)]
            return any(are_doubles)
        if _is_constant(expr, self.constants):  # rule: slow-constant
            return False
        names = set(names_in(expr))
        if names.isdisjoint(self.causes):  # rule: slow-cause
            message = f"this is computed in double, {_SPEED}, though the arrays hold {self.precision}"
            self.reporter.note("P701", message, expr.span, self.hint(expr))
        doubles = {name for name, type_ in self.function.locals if type_ == ir.PY_FLOAT}
        self.causes.update((names & doubles) - self.constants)
        return True

    def hint(self, expr: ir.Expr) -> str:
        """What to cast so that `expr` is computed in float32."""
        quote, locals_ = self.reporter.file.quote, {name for name, _ in self.function.locals}
        leaves = [leaf for leaf in map(self.leaf, walk(expr)) if leaf is not None]
        for leaf in leaves:
            if isinstance(leaf, ir.Name) and leaf.id in locals_ and leaf.type == ir.PY_FLOAT:
                if quote(leaf.span) != leaf.id:
                    return "cast what is added up: `np.float32(…)`"  # in `sum(…)`, whose total has no name
                return f"make `{leaf.id}` a float32 where it is assigned: `{leaf.id} = np.float32(…)`"
        number = quote(leaves[0].span) if leaves else "…"
        types = {p.name: p.type for p in self.function.parameters if isinstance(p.type, ir.ArrayType)}
        generic = next((name for name, type_ in types.items() if type_.dtype.variable is not None), None)
        cast = f"compute in float32: `np.float32({number})`"
        if generic is not None:
            cast = f"compute in the dtype of `{generic}`: `{generic}.dtype({number})`"
        is_of_parameters = not self.function.key and all(self.function.parameter(name) for name in names_in(expr))
        has_loads = any(isinstance(leaf, ir.Load) for leaf in leaves)
        return f"{cast}; or pass the result as a parameter" if is_of_parameters and not has_loads else cast

    def leaf(self, node: ir.Expr) -> ir.Expr | None:
        """The number that `node` brings into an expression; None for an operation and a constant."""
        match node:
            case ir.Convert(value=ir.Load() as value) | (ir.Load() as value):
                return value
            case ir.Name(id=name) if name not in self.constants:
                return node
            case _:
                return None
