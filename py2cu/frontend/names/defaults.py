"""Default values of parameters: constants, with the value that they have where the `def` stands.

    SCALE = 2.5

    def scaled(v, k=SCALE, turn=math.pi, most=1 << 10, step=np.float32(0.1)): …

Python evaluates a default once, when the `def` runs; the source shows only later values of a name. A default that names
a variable with several bindings is therefore refused, and so is one of a device function whose name another file or
another notebook cell binds. The defaults of a live function are known.

A kernel's scalar parameters may also take defaults from constants of other files. Under the decorator, the defaults of
the live function count.

In: parameters and the environment of their function. Out: expressions for calls of device functions, `Default`s for
kernels; None, after a diagnostic, if the source does not determine the value.
"""

from __future__ import annotations

import numbers
import operator
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import libcst as cst

from py2cu import ir
from py2cu.diagnostics import Reporter
from py2cu.dtypes import DType, Kind
from py2cu.frontend.names.ambiguity import report_ambiguous_name
from py2cu.frontend.names.classes import why_no_number
from py2cu.frontend.names.constants import check_64_bits, plain
from py2cu.frontend.names.environment import Environment
from py2cu.frontend.names.syntax import source_text
from py2cu.ir.abi.parameters import Default
from py2cu.ir.complex_numbers import literal
from py2cu.live import live_name
from py2cu.source import Span

_WANTED = {
    Kind.BOOL: "True or False", Kind.INT: "a whole number", Kind.FLOAT: "a number", Kind.COMPLEX: "a complex number"
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class DefaultReader:
    """Reads the default values of one function's parameters.

    `live` maps parameters to the defaults of the live function; None if only the source is known. `constant_elsewhere`
    returns the value of a constant that another file binds, or None.
    """

    reporter: Reporter
    environment: Environment
    span_of: Callable[[cst.CSTNode], Span]
    live: Mapping[str, object] | None
    constant_elsewhere: Callable[[cst.BaseExpression], object] = lambda _: None

    def read_for_call(self, param: cst.Param, span: Span) -> ir.Expr | None:
        """The value of `param` in a call at `span` that omits it; None, after a diagnostic, if unknown."""
        node, name = param.default, param.name.value
        assert node is not None
        early = self.environment.as_defined()
        live = (self.live or {}).get(name)
        if (
            isinstance(live, bool | int | float) and type(live).__module__ != "numpy" and live != early.constant(node)
        ):  # the source shows another number, or none
            return ir.Constant(check_64_bits(plain(live), self.reporter, self.span_of(node)), span)
        hint = f"pass `{name}` in the call, or bind the name once, with a plain `=` or `import` that always runs"
        if report_ambiguous_name(node, early, self.reporter, self.span_of, hint):
            return None
        if (element := early.element(node)) is not None:
            dtype, number = element
            return ir.Call(f"numpy.{dtype.name}", (ir.Constant(number, span),), span)
        value = early.constant(node)
        if isinstance(value, complex):
            return literal(value, span)
        if isinstance(value, bool | int | float):
            value = check_64_bits(value, self.reporter, self.span_of(node))
            return ir.Constant(value, span, text=source_text(node) if _is_literal(node) else "")
        what = f"the source does not determine the default of `{name}`"
        self.reporter.error("P105", what, self.span_of(node), f"pass `{name}` in the call")
        return None

    def read_for_kernel(self, param: cst.Param, type_: ir.PythonType | ir.ElementType) -> Default | None:
        """The default, converted to `type_`; None, after a diagnostic, if it is not constant or has another type."""
        assert param.default is not None
        name = param.name.value
        return self._read_number(param.default, name, type_, (self.live or {}).get(name))

    def read_for_tuple(
        self, param: cst.Param, types: Sequence[ir.PythonType | ir.ElementType]
    ) -> tuple[Default | None, ...]:
        """The defaults of the numbers of a tuple; None, after a diagnostic, where `read_for_kernel` gives None."""
        node, name = param.default, param.name.value
        assert node is not None
        early = self.environment.as_defined()
        nodes = [element.value for element in node.elements] if isinstance(node, cst.Tuple) else [node] * len(types)
        values: object
        if self.live is not None:
            values = self.live.get(name)
        elif isinstance(node, cst.Tuple):
            values = (None,) * len(nodes)
        elif report_ambiguous_name(node, early, self.reporter, self.span_of, f"write the default of `{name}` out"):
            return (None,) * len(types)
        else:
            values = early.constants(node)
            values = self.constant_elsewhere(node) if values is None else values
        if not isinstance(values, tuple) or not len(values) == len(nodes) == len(types):
            what = f"the default of `{name}` must be a tuple of {len(types)} number{'s' * (len(types) != 1)}"
            self.reporter.error("P106", f"{what} that the source shows", self.span_of(node), "write the tuple out")
            return (None,) * len(types)
        return tuple(
            self._read_number(each, f"{name}[{place}]", type_, value)  # rule: tuple-default
            for place, (each, type_, value) in enumerate(zip(nodes, types, values, strict=True))
        )

    def _read_number(
        self, node: cst.BaseExpression, name: str, type_: ir.PythonType | ir.ElementType, known: object
    ) -> Default | None:
        """The default `node`, whose value is `known` unless that is None, converted to `type_`."""
        early = self.environment.as_defined()  # rule: default-early
        if self.live is not None or known is not None:
            value = known
        elif report_ambiguous_name(node, early, self.reporter, self.span_of, f"write the default of `{name}` out"):
            return None
        else:
            element = early.element(node)
            value = early.constant(node) if element is None else _rounded(*element)
            value = self.constant_elsewhere(node) if value is None else value
        reason = why_no_number(node, self.environment)
        if value is None or isinstance(value, str | tuple):
            what, hint = f"the default of `{name}` must be a number that the source shows", "write the number out"
            what, hint = reason or (what, hint)
            self.reporter.error("P106", what, self.span_of(node), hint)
            return None
        number = _as_type(value, type_)
        if number is None:
            what = f"`{name}` takes {_WANTED[_kind(type_)]}{_range(type_)}, and its default is {plain(value)!r}"
            what, hint = reason or (what, "write a default of that type")
            self.reporter.error("P106", what, self.span_of(node), hint)
            return None
        text = source_text(node) if _is_literal(node) and not isinstance(number, bool) else ""
        return Default(number, text, self.span_of(node))


def _is_literal(node: cst.BaseExpression) -> bool:
    match node:
        case cst.UnaryOperation(operator=cst.Minus(), expression=inner):
            return isinstance(inner, cst.BaseNumber)
        case _:
            return isinstance(node, cst.BaseNumber)


def _rounded(dtype: DType, number: float) -> bool | int | float:
    """The Python number that equals the NumPy scalar `dtype(number)`."""
    if dtype.kind is Kind.BOOL:
        return bool(number)
    if dtype.kind is Kind.INT:
        return int(number)
    layout = {16: "e", 32: "f", 64: "d"}[dtype.bits]  # NumPy has no bfloat16
    return float(struct.unpack(layout, struct.pack(layout, number))[0])


def _kind(type_: ir.PythonType | ir.ElementType) -> Kind:
    return type_.kind if isinstance(type_, ir.PythonType) else type_.dtype.kind


def _range(type_: ir.PythonType | ir.ElementType) -> str:
    """The range of `type_`, for a message."""
    if isinstance(type_, ir.ElementType):
        return f" that fits {type_.dtype}"
    return " of 64 bits" if type_.kind is Kind.INT else ""


def _as_type(value: object, type_: ir.PythonType | ir.ElementType) -> bool | int | float | complex | None:
    """`value` converted to `type_`; None if it has another kind or is out of range."""
    kind = _kind(type_)
    try:
        match kind:
            case Kind.BOOL:
                is_bool = isinstance(value, bool) or live_name(type(value)) in ("numpy.bool", "numpy.bool_")
                return bool(value) if is_bool else None
            case Kind.INT:
                number = operator.index(value)  # type: ignore[arg-type]
                fits = -(2**63) <= number < 2**63  # as torch's ops take them
                fits &= not isinstance(type_, ir.ElementType) or type_.dtype.holds(number)  # rule: default-fits
                return int(number) if fits else None
            case Kind.FLOAT if isinstance(value, numbers.Real):
                fits = not isinstance(type_, ir.ElementType) or type_.dtype.holds(float(value))
                return float(value) if fits else None
            case Kind.COMPLEX if isinstance(value, numbers.Complex):
                return complex(value)
    except (TypeError, OverflowError):
        pass
    return None
