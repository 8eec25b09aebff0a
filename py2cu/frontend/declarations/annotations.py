"""Annotations → parameter types. The only reader of annotations and of dimension strings.

`UInt8[Tensor, "3 n"]` is an array of extents 3 and n, `float32[:, :]` one of unnamed extents, `Index["n"]` or
`Index[int, "n"]` an element index; `int`, `float`, `bool`, `complex` and `np.int32` are scalars, `Constexpr[int]` and
`Constexpr[bool]` template arguments. `X | None`, `Optional[X]` and `Union[X, None]` are an array or a number that a
call may leave out. `Float32[Tensor, "n"] | BFloat16[Tensor, "n"]` is an array of either dtype. `tuple[float, int]` is a
tuple of scalars.
"""

from __future__ import annotations

import ast
import re
import unicodedata
from collections.abc import Callable, Container
from dataclasses import dataclass, field, replace
from typing import Final

import libcst as cst

from py2cu import ir
from py2cu.diagnostics import Reporter
from py2cu.dtypes import BY_JAXTYPING, BY_NAME, GENERIC, DType, Kind, TypeVariable, find_dtype
from py2cu.frontend.declarations.parameter_types import (
    ConstexprAnnotation,
    IndexAnnotation,
    OptionalAnnotation,
    ParameterType,
    TupleAnnotation,
    may_be_none,
    with_dims_of,
)
from py2cu.frontend.hints.annotations import dims_text
from py2cu.frontend.names.ambiguity import report_ambiguous_name
from py2cu.frontend.names.environment import Environment
from py2cu.frontend.names.operators import SYMBOLS, is_in_extents
from py2cu.frontend.names.syntax import is_named, source_text
from py2cu.source import Span, parsed_expression
from py2cu.suggestions import did_you_mean

PYTHON_TYPES: Final = {
    "builtins.int": ir.PY_INT, "builtins.float": ir.PY_FLOAT, "builtins.bool": ir.PY_BOOL,
    "builtins.complex": ir.PY_COMPLEX,
}  # fmt: skip
CONSTEXPR_TYPES: Final[dict[str | None, ir.PythonType]] = {"builtins.int": ir.PY_INT, "builtins.bool": ir.PY_BOOL}
TENSORS: Final = {"torch.Tensor", "numpy.ndarray", "jax.Array", "typing.Any"}
_SYMBOLS: Final = "TUVW"
_TUPLES: Final = {"builtins.tuple", "typing.Tuple"}
_UNIONS: Final = {"typing.Optional", "typing.Union"}
_LEADING: Final = re.compile(r"\s*(\.\.\.|\*[^\W\d]\w*)(?=\s|$)")
_SPACED: Final = re.compile(r"\s+(//|[-+*/%])\s+")


@dataclass(frozen=True, slots=True)
class AnnotationReader:
    """Reads the annotations of one function; unnamed extents are named after the parameter."""

    reporter: Reporter
    environment: Environment
    span_of: Callable[[cst.CSTNode], Span]
    rank_of: Callable[[str], int] = lambda _: 1  # of an array whose annotation has no extents
    variables: dict[str, TypeVariable] = field(default_factory=dict)  # by annotation, in order of appearance

    def read(self, node: cst.BaseExpression, parameter: str, depth: int = 8) -> ParameterType | None:
        """The type that `node` denotes; None, after a diagnostic, if kernels cannot take it."""
        if report_ambiguous_name(node, self.environment, self.reporter, self.span_of):
            return None
        match node:
            case cst.SimpleString() | cst.ConcatenatedString():
                return self._read_string(node, parameter, depth)
            case cst.Name(value=name) if depth and (aliased := self.environment.definition(name)) is not None:
                return self.read(aliased, parameter, depth - 1)
            case cst.BinaryOperation(operator=cst.BitOr(), left=left, right=right):
                return self._read_union(node, [left, right], parameter, depth)
            case cst.Subscript(value=base, slice=elements):
                return self._read_subscript(node, base, [element.slice for element in elements], parameter, depth)
            case cst.Name() | cst.Attribute():
                return self._read_name(node, parameter)
            case _:
                self._unknown(node)
                return None

    def _read_string(
        self, node: cst.SimpleString | cst.ConcatenatedString, name: str, depth: int
    ) -> ParameterType | None:
        text = node.evaluated_value
        if isinstance(text, str) and depth:
            try:
                inner = cst.parse_expression(unicodedata.normalize("NFKC", text))  # Python normalises names
            except cst.ParserSyntaxError:
                self._unknown(node)
                return None
            reader = replace(self, span_of=lambda _: self.span_of(node))
            return reader.read(inner, name, depth - 1)
        self._unknown(node)
        return None

    def _read_name(self, node: cst.Name | cst.Attribute, parameter: str) -> ParameterType | None:
        qualified = self.environment.qualify(node)
        if qualified in PYTHON_TYPES:
            return PYTHON_TYPES[qualified]
        if qualified in TENSORS:
            span = self.span_of(node)
            any_dtype = self._generic("Shaped", GENERIC["Shaped"], span)
            return (
                ir.ArrayType(any_dtype, unnamed_dims(parameter, self.rank_of(parameter), span)) if any_dtype else None
            )
        if qualified == "py2cu.Constexpr":
            return self._read_constexpr(node, [])
        if qualified in _TUPLES:
            return self._read_tuple(node, [], parameter)
        library, _, name = (qualified or "").rpartition(".")
        if library in {"numpy", "torch", "numba"} and (dtype := find_dtype(name)):
            return ir.ElementType(dtype)
        self._unknown(node)
        return None

    def _read_subscript(
        self, node: cst.Subscript, base: cst.BaseExpression, items: list[cst.BaseSlice], parameter: str, depth: int
    ) -> ParameterType | None:
        qualified = self.environment.qualify(base)
        library, _, name = (qualified or "").rpartition(".")
        if qualified in _UNIONS:
            members = [item.value for item in items if isinstance(item, cst.Index)]
            if qualified == "typing.Optional":
                members.append(cst.Name("None"))
            return self._read_union(node, members, parameter, depth)
        if qualified in _TUPLES:
            return self._read_tuple(node, items, parameter)
        if qualified == "py2cu.Index":
            return self._read_index(node, items)
        if qualified == "py2cu.Constexpr":
            return self._read_constexpr(node, items)
        if library == "jaxtyping":
            return self._read_jaxtyping(node, name, items, parameter)
        if library in {"numba", "numba.types", "numba.core.types"} and name in BY_NAME:
            return self._read_slices(BY_NAME[name], node, items, parameter)
        self._unknown(node)
        return None

    def _read_union(
        self, node: cst.BaseExpression, members: list[cst.BaseExpression], parameter: str, depth: int
    ) -> OptionalAnnotation | ir.ArrayType | None:
        """`X | None`, in either order, of an array or a Python number; arrays of several dtypes."""
        others = [member for member in members if not is_named(member, "None")]
        if len(others) > 1:
            return self._read_set(node, others, parameter, depth, is_optional=len(others) < len(members))
        if not others or len(members) != 2:
            self._unknown(node)
            return None
        match self.read(others[0], parameter, depth):
            case OptionalAnnotation() as type_:
                return type_
            case type_ if may_be_none(type_):
                return OptionalAnnotation(type_)
            case None:
                pass
            case IndexAnnotation():
                self._unknown(node)
            case TupleAnnotation(items=items):
                annotated = f"{parameter}: {source_text(others[0])}"
                self.reporter.error(
                    "P301", "a tuple cannot be None", self.span_of(node),
                    f"give it a default: `{annotated} = {_zeros(items)}`",
                )  # fmt: skip
            case _:
                self.reporter.error(
                    "P301", "only an array, an `int`, a `float` or a `bool` may be None", self.span_of(node),
                    f"give it a default number: `{parameter}: {source_text(others[0])} = 1`",
                )  # fmt: skip
        return None

    def _read_set(
        self, node: cst.BaseExpression, members: list[cst.BaseExpression], parameter: str, depth: int, *,
        is_optional: bool,
    ) -> OptionalAnnotation | ir.ArrayType | None:  # fmt: skip
        """`Float32[Tensor, "n"] | BFloat16[Tensor, "n"]`: an array whose dtype is one of a set."""
        reader = replace(self, variables={})  # the members have no type variables of their own
        arrays: list[ir.ArrayType] = []
        for member in members:
            type_ = reader.read(member, parameter, depth)
            if isinstance(type_, OptionalAnnotation):
                is_optional, type_ = True, type_.type
            if type_ is None:
                return None
            if not isinstance(type_, ir.ArrayType):
                self._unknown(node)
                return None
            if arrays and (type_.dims, type_.leading) != (arrays[0].dims, arrays[0].leading):  # rule: set-dims
                what = f"the dimensions of `{source_text(member)}` are not those of `{source_text(members[0])}`"
                hint = f"write `{with_dims_of(arrays[0], type_.dtype)}`: a call chooses the dtype alone"
                self.reporter.error("P302", what, self.span_of(member), hint)
                return None
            arrays.append(type_)
        admitted = {dtype for array in arrays for dtype in array.dtype.admitted}
        admits = tuple(dtype for dtype in GENERIC["Shaped"] if dtype in admitted)  # rule: set-members
        variables = (array.dtype.variable for array in arrays)
        names = (variable.annotation for variable in variables if variable is not None and variable.admits == admits)
        annotation = next(names, " | ".join(dtype.jaxtyping for dtype in admits))  # `Float | Float32` is `Float`
        dtype = self._generic(annotation, admits, self.span_of(node)) if len(admits) > 1 else admits[0]
        if dtype is None:
            return None
        array = replace(arrays[0], dtype=dtype)
        return OptionalAnnotation(array) if is_optional else array

    def _read_tuple(
        self, node: cst.BaseExpression, items: list[cst.BaseSlice], parameter: str
    ) -> TupleAnnotation | None:
        """`tuple[float, int]`: each item is a number."""
        nodes = [item.value for item in items if isinstance(item, cst.Index)]
        if not nodes or any(isinstance(each, cst.Ellipsis | cst.Tuple) for each in nodes):  # rule: tuple-nested
            first = source_text(nodes[0]) if nodes and not isinstance(nodes[0], cst.Tuple) else "float"
            self.reporter.error(
                "P301", f"the annotation does not say how many numbers the tuple `{parameter}` has", self.span_of(node),
                f"write the types out: `{parameter}: tuple[{first}, {first}]` is a tuple of two",
            )  # fmt: skip
            return None
        types: list[ir.ElementType | ir.PythonType] = []
        for each in nodes:
            type_ = self.read(each, parameter)
            if isinstance(type_, ir.ElementType | ir.PythonType):
                types.append(type_)
            elif type_ is not None:
                self.reporter.error(
                    "P301", f"the items of the tuple `{parameter}` are numbers", self.span_of(each),
                    "write `int`, `float`, `bool` or `np.int32`, and take anything else as a parameter of its own",
                )  # fmt: skip
        return TupleAnnotation(tuple(types)) if len(types) == len(nodes) else None

    def _read_index(self, node: cst.Subscript, items: list[cst.BaseSlice]) -> IndexAnnotation | None:
        match items:
            case [cst.Index(value=kind), cst.Index() as extent] if self.environment.qualify(kind) == "builtins.int":
                items = [extent]
        match items:
            case [cst.Index(value=value)]:
                constant = self.environment.constant(value)
                if isinstance(constant, str | int) and not isinstance(constant, bool):
                    dim = self.read_extent(str(constant), self.span_of(value))
                    return IndexAnnotation(dim) if dim else None
        self.reporter.error(
            "P303", "an element index is an `int` over one extent", self.span_of(node),
            'name the dimension: `Index["n"]` or `Index[int, "n"]`',
        )  # fmt: skip
        return None

    def _read_constexpr(self, node: cst.BaseExpression, items: list[cst.BaseSlice]) -> ConstexprAnnotation | None:
        match items:
            case [cst.Index(value=value)] if (kind := self.environment.qualify(value)) in CONSTEXPR_TYPES:
                return ConstexprAnnotation(CONSTEXPR_TYPES[kind])
        self.reporter.error(
            "P310", "a template argument is an `int` or a `bool`", self.span_of(node),
            "write `Constexpr[int]` or `Constexpr[bool]`; a float is a plain parameter",
        )  # fmt: skip
        return None

    def _read_jaxtyping(
        self, node: cst.Subscript, name: str, items: list[cst.BaseSlice], parameter: str
    ) -> ir.ArrayType | None:
        match items:
            case [cst.Index(value=array), cst.Index(value=dims)] if self.environment.qualify(
                array
            ) in TENSORS and isinstance(text := self._string(dims), str):
                if name not in BY_JAXTYPING and name not in GENERIC:
                    self.reporter.error(
                        "P302", f"element type `{name}` is not supported yet", self.span_of(node),
                        f"one of {', '.join((*BY_JAXTYPING, *GENERIC))}",
                    )  # fmt: skip
                    return None
                extents = self.read_dims(text, self.span_of(dims))
                dtype = BY_JAXTYPING.get(name) or self._generic(name, GENERIC[name], self.span_of(node))
                if extents is None or dtype is None:
                    return None
                return ir.ArrayType(dtype, extents, leading=_leading(text))
        self.reporter.error(
            "P301", "an array annotation names the tensor type and the dimensions", self.span_of(node),
            f'write `{name}[Tensor, "{dims_text(self.rank_of(parameter))}"]`',
        )  # fmt: skip
        return None

    def _string(self, node: cst.BaseExpression) -> str | None:
        if isinstance(node, cst.ConcatenatedString):
            value = node.evaluated_value
            return value if isinstance(value, str) else None
        constant = self.environment.constant(node)
        return constant if isinstance(constant, str) else None

    def _read_slices(
        self, dtype: DType, node: cst.Subscript, items: list[cst.BaseSlice], parameter: str
    ) -> ir.ArrayType | None:
        if not all(isinstance(item, cst.Slice) and item.lower is None and item.upper is None for item in items):
            self._unknown(node)
            return None
        return ir.ArrayType(dtype, unnamed_dims(parameter, len(items), self.span_of(node)))

    def read_dims(self, text: str, span: Span) -> tuple[ir.DimExpr, ...] | None:
        """The extents in a dimension string; None, after a diagnostic, if one of them is wrong.

        Spaces separate extents, but for those around an operator: `"n + m k"` is `"n+m k"`.
        """
        text = _SPACED.sub(r"\1", text)
        leading, tokens = _leading(text), text.split()
        if leading:
            tokens[0] = leading.removeprefix("*")
        if misplaced := [token for token in tokens[1:] if _leading(token)]:
            hint = f"put it first, `{misplaced[0]} n`: only leading dimensions may be any number"
            self.reporter.error("P304", f"`{misplaced[0]}` stands behind another dimension", span, hint)
            return None
        extents = [self.read_extent(token, span) for token in tokens]
        return tuple(extent for extent in extents if extent is not None) if None not in extents else None

    def read_extent(self, text: str, span: Span) -> ir.DimExpr | None:
        """One extent: `3`, `n`, `2*n + 1`, `rows=3`, or `...`, the product of unnamed leading extents."""
        if text == ir.UNNAMED_LEADING:
            return ir.Name(text, span, ir.PY_INT)
        label, equals, value = text.partition("=")
        if equals and label.isidentifier():
            text = value
        try:
            extent = _extent(parsed_expression(text), span)
        except (SyntaxError, ValueError, RecursionError):
            extent = None
        if extent is None:
            self.reporter.error(
                "P304", f"`{text}` is not an extent", span,
                "name every dimension: an identifier, a number, or a sum or product of them",
            )  # fmt: skip
        return extent

    def _generic(self, annotation: str, admits: tuple[DType, ...], span: Span) -> DType | None:
        """The type variable of all arrays with this annotation: T for the first annotation, U for the next.

        None, after a diagnostic, if no letter is left.
        """
        if annotation not in self.variables:
            if len(self.variables) == len(_SYMBOLS):
                what = f"`{annotation}` is annotation {len(_SYMBOLS) + 1} of this function that leaves the dtype open"
                self.reporter.error("P302", what, span, "name the dtypes that are always the same: `Float32[…]`")
                return None
            self.variables[annotation] = TypeVariable(_SYMBOLS[len(self.variables)], annotation, admits)
        variable = self.variables[annotation]
        return replace(variable.admits[0], variable=variable)

    def _unknown(self, node: cst.BaseExpression) -> None:
        base = node.value if isinstance(node, cst.Subscript) else node
        if isinstance(base, cst.Name) and self.environment.qualify(base) is None:
            known = [*self.environment.names, *BY_JAXTYPING]
            hint = did_you_mean(base.value, known, "import it, or define it in this file")
            self.reporter.error("P201", f"unknown name `{base.value}`", self.span_of(base), hint)
            return
        self.reporter.error(
            "P301", "this annotation is not a type that a kernel can take", self.span_of(node),
            'write `Float32[Tensor, "n"]` for an array, `int`, `float`, `bool` or `np.int32` for a scalar, '
            '`Index["n"]` for an element index',
        )  # fmt: skip


def unnamed_dims(parameter: str, rank: int, span: Span, taken: Container[str] = ()) -> tuple[ir.DimExpr, ...]:
    """Names for the extents of an array whose annotation names none; they avoid `taken`."""

    def free(name: str) -> str:
        while name in taken:
            name += "_"
        return name

    names = [f"{parameter}_size"] if rank == 1 else [f"{parameter}_size{axis}" for axis in range(rank)]
    return tuple(ir.Name(free(name), span, ir.PY_INT) for name in names)


def _zeros(types: tuple[ir.ElementType | ir.PythonType, ...]) -> str:
    """A default of a tuple, for a hint."""
    kinds = [type_.kind if isinstance(type_, ir.PythonType) else type_.dtype.kind for type_ in types]
    zeros = ["False" if kind is Kind.BOOL else "0" if kind is Kind.INT else "0.0" for kind in kinds]
    return f"({', '.join(zeros)}{',' * (len(zeros) == 1)})"


def _leading(text: str) -> str:
    """`*batch` or `...` at the head of a dimension string, which stand for any number of extents; else nothing."""
    match = _LEADING.match(text)
    return match[1] if match is not None else ""


def _extent(node: ast.expr, span: Span) -> ir.DimExpr | None:
    match node:
        case ast.Constant(value=int(value)) if not isinstance(value, bool) and value < 2**63:
            return ir.Constant(value, span, ir.PY_INT)
        case ast.Name(id=name) if name != "_":
            return ir.Name(name, span, ir.PY_INT)
        case ast.BinOp(op=ast.FloorDiv() | ast.Mod(), right=ast.Constant(value=0)):
            return None
        case ast.BinOp(left=left, op=op, right=right) if is_in_extents(op):
            a, b = _extent(left, span), _extent(right, span)
            return ir.Binary(SYMBOLS[type(op)], a, b, span, ir.PY_INT) if a and b else None
        case _:
            return None
