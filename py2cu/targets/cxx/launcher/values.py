"""Emits launch values in C++: `const float m_scale = static_cast<float>(1 - std::pow(beta1, step));` in a launcher."""

from __future__ import annotations

from typing import Final

from py2cu import ir
from py2cu.analysis.launches import passed_values
from py2cu.ir.abi.launch_values import INTEGER, OF_MATH, HostExpr, LaunchValue, Operation, parts
from py2cu.ir.operators import OPERATORS
from py2cu.passes.lowering.widen_halves import ROUND_TO, may_be_half
from py2cu.records import record
from py2cu.targets.cxx.c_types import common_type
from py2cu.targets.cxx.cxx_text import PRECEDENCE, PRIMARY, TERNARY, UNARY, CxxText, functional_cast
from py2cu.targets.cxx.dialect import Dialect
from py2cu.targets.cxx.includes import MATH
from py2cu.targets.cxx.literals import float_literal, is_integer_literal
from py2cu.targets.cxx.parameters import Argument
from py2cu.targets.cxx.wrap_lines import wrap_line

_DOUBLE: Final = "double"
_INTEGER: Final = "int64_t"
_INT_END: Final = 2**31


@record(frozen=True, slots=True)
class ValueText:
    """A value in a launcher: the constant that holds it, and what it is."""

    argument: Argument
    text: str

    @property
    def lines(self) -> list[str]:
        return wrap_line(f"    const {self.argument.declaration} = {self.text};")


def value_texts(kernel: ir.Kernel, dialect: Dialect) -> tuple[ValueText, ...]:
    """The values that the launcher of `kernel` computes, in order."""
    spelling = _Spelling(kernel)
    texts = []
    for value in kernel.launch_values:
        text = spelling.loose(value.value).text
        base = (
            _DOUBLE
            if any(value.name in other.names for other in kernel.launch_values)
            else _base(kernel, value, dialect)
        )
        if base != _DOUBLE:
            text = f"{ROUND_TO if _is_generic_half(kernel, value) else 'static_cast'}<{base}>({text})"
        texts.append(ValueText(Argument(kernel.c_name(value.name), base), text))
    return tuple(texts)


def value_arguments(kernel: ir.Kernel, dialect: Dialect) -> tuple[Argument, ...]:
    """The parameters of the kernel for its launch values, behind all others."""
    return tuple(Argument(kernel.c_name(value.name), _base(kernel, value, dialect)) for value in passed_values(kernel))


def headers_of_values(kernel: ir.Kernel) -> frozenset[str]:
    """The headers that the texts need."""
    nodes = (part for value in kernel.launch_values for part in parts(value.value))
    needs_math = any(isinstance(node, Operation) and node.function in OF_MATH for node in nodes)
    return frozenset({MATH} if needs_math else ())


def _base(kernel: ir.Kernel, value: LaunchValue, dialect: Dialect) -> str:
    narrowed = dict(kernel.narrowed).get(value.name)
    return _DOUBLE if narrowed is None else dialect.spell(narrowed.dtype)


def _is_generic_half(kernel: ir.Kernel, value: LaunchValue) -> bool:
    return may_be_half(dict(kernel.narrowed)[value.name])


class _Spelling:
    """Spells values of one kernel; C++ converts an integer beside a double, and in a call of a function, by itself."""

    def __init__(self, kernel: ir.Kernel) -> None:
        self.kernel = kernel

    def loose(self, value: HostExpr) -> CxxText:
        """A value as a double, or as an integer that has yet to be converted."""
        match value:
            case ir.Constant():
                return self._number(value)
            case ir.Name(id=name):
                return self._name(name)
            case Operation(function="double", operands=(integer,)):
                return self.loose(integer)
            case Operation(function="given", operands=(ir.Name(id=name), then, otherwise)):
                return self._given(name, then, otherwise)
            case Operation(function="-", operands=(operand,)):
                inner = self._exact(operand)
                text = f"({inner.text})" if inner.begins_with_sign else inner.within(UNARY)
                return CxxText(f"-{text}", UNARY, _DOUBLE, begins_with_sign=True)
            case Operation(function=function, operands=(left, right)) if function in INTEGER:
                a, b = self.loose(left), self.loose(right)
                # rule: launcher-wide
                if _INTEGER not in (a.c_type, b.c_type) and not -_INT_END <= _whole(value) < _INT_END:
                    a = CxxText(functional_cast(a.text, _INTEGER), PRIMARY, _INTEGER)
                return _binary(INTEGER[function], a, b)
            case Operation(function=op, operands=(left, right)) if op not in OF_MATH:
                return _binary(op, *self._doubles(left, right))
            case Operation(function=function, operands=operands):
                arguments = ", ".join(self.loose(operand).text for operand in operands)
                return CxxText(f"std::{function}({arguments})", PRIMARY, _DOUBLE)

    def _number(self, number: ir.Constant) -> CxxText:
        if (declared := self._declared(number)) is not None:
            precedence, sign = (UNARY, "-") if number.is_negated else (PRIMARY, "")
            return CxxText(f"{sign}{declared.symbol}", precedence, declared.c_type, begins_with_sign=bool(sign))
        if number.type == ir.PY_FLOAT and not is_integer_literal(number):
            return float_literal(number, _DOUBLE)
        value = int(number.value)
        c_type = "int" if -_INT_END < value < _INT_END else _INTEGER
        return CxxText(str(value), PRIMARY if value >= 0 else UNARY, c_type, begins_with_sign=value < 0)

    def _declared(self, number: ir.Constant) -> ir.ConstantDeclaration | None:
        return next((each for each in self.kernel.constants if each.constant == number.written), None)

    def _name(self, name: str) -> CxxText:
        parameter, spelled = self.kernel.parameter(name), self.kernel.c_name(name)
        is_float = parameter.type == ir.PY_FLOAT if parameter is not None else name not in self.kernel.dims
        if parameter is not None and parameter.may_be_none:
            spelled += ".value_or(0.0)" if is_float else ".value_or(0)"
        return CxxText(spelled, PRIMARY, _DOUBLE if is_float else _INTEGER)

    def _given(self, name: str, then: HostExpr, otherwise: HostExpr) -> CxxText:
        number = self.kernel.c_name(name)
        if then == ir.Name(name):
            return CxxText(f"{number}.value_or({self.loose(otherwise).text})", PRIMARY, _DOUBLE)
        a, b = self._doubles(then, otherwise)
        text = f"{number}.has_value() ? {a.within(TERNARY + 1)} : {b.within(TERNARY + 1)}"
        return CxxText(text, TERNARY, _DOUBLE)

    def _doubles(self, left: HostExpr, right: HostExpr) -> tuple[CxxText, CxxText]:
        """Two operands, of which one at least is a double."""
        a, b = self.loose(left), self.loose(right)
        if _DOUBLE in (a.c_type, b.c_type):
            return a, b
        return (a, self._exact(right)) if isinstance(right, ir.Constant) else (self._exact(left), b)

    def _exact(self, value: HostExpr) -> CxxText:
        """A value as a double."""
        text = self.loose(value)
        if text.c_type == _DOUBLE:
            return text
        if isinstance(value, ir.Constant) and self._declared(value) is None:
            return float_literal(value, _DOUBLE)
        return CxxText(f"static_cast<double>({text.text})", PRIMARY, _DOUBLE)


def _binary(op: str, a: CxxText, b: CxxText) -> CxxText:
    rank = PRECEDENCE[op]
    return CxxText(f"{a.within(rank)} {op} {b.within(rank + 1)}", rank, common_type(a.c_type, b.c_type))


def _whole(value: HostExpr) -> int:
    """The integer that a value of constants is."""
    match value:
        case Operation(function=function, operands=(left, right)):
            return int(OPERATORS[INTEGER[function]].compute(_whole(left), _whole(right)))
        case ir.Constant(value=number):
            return int(number)
        case _:
            raise AssertionError(value)
