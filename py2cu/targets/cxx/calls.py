"""Emits calls of builtins, helpers, atomic operations and device functions; whole rows, and declarations of arrays."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from py2cu import ir
from py2cu.builtins import ROWS, Builtin, Rule
from py2cu.builtins.atomics import atomic_function, atomic_helper
from py2cu.builtins.memory import row_access
from py2cu.dtypes import I32
from py2cu.ir.complex_numbers import is_complex_constructor
from py2cu.passes.lowering.calls import BITS_AS
from py2cu.passes.lowering.widen_halves import ROUND_TO
from py2cu.targets.cxx.c_types import FLOATS, arithmetic_type, keeps_value, same_type
from py2cu.targets.cxx.cxx_text import PRIMARY, CxxText, functional_cast
from py2cu.targets.cxx.expressions import ExpressionEmitter
from py2cu.targets.cxx.helpers.bits import BIT_HELPERS
from py2cu.targets.cxx.helpers.catalogue import takes_one_type
from py2cu.targets.cxx.includes import MATH
from py2cu.targets.cxx.literals import generic_literal, table_literal


class CallEmitter(ExpressionEmitter):
    """Emits the expressions of one kernel, calls included."""

    def call(self, expr: ir.Call) -> CxxText:
        """A builtin by its row's spelling, or a helper by its name; arguments of a template get one type."""
        if is_complex_constructor(expr):
            return self.complex_constructor(expr)
        c_type = self.c_type(expr.type)
        row = ROWS.get(expr.function)
        if row is not None and row.rule is Rule.PART:
            method = expr.function.rpartition(".")[2]
            return CxxText(f"{self.expr(expr.args[0]).within(PRIMARY)}.{method}()", PRIMARY, c_type)
        if row is not None and is_collective_builtin(expr.function):
            return self.collective(expr, row)
        if row is not None and row.rule is Rule.ELEMENTS:
            return self.of_elements(expr, row)
        if expr.function == ROUND_TO:
            return CxxText(f"{ROUND_TO}<{self.type_text(expr.type)}>({self.expr(expr.args[0]).text})", PRIMARY, c_type)
        if expr.function == BITS_AS:
            text = f"{BITS_AS}<{self.type_text(expr.type)}>({self.bits_of(expr.args[0])})"
            return CxxText(text, PRIMARY, c_type)
        if row is None and expr.function in BIT_HELPERS:  # the type of a constant is its width
            name, args = expr.function, [self.bits_of(arg) for arg in expr.args]
        elif row is None and not takes_one_type(expr.function):
            name, args = expr.function, [self.expr(arg).text for arg in expr.args]
        elif row is None or row.rule is Rule.CHOICE:
            name = row.name if row else expr.function
            count = {"wrapping_shift": 1, "quotient": 2}.get(name)  # so many arguments have the type of the result
            args = [self.as_type(arg, expr.type) for arg in expr.args[:count]]
            args += [self.expr(arg).text for arg in expr.args[len(args) :]]
            if row is not None:  # CUDA's functions promote narrow integers to int
                c_type = arithmetic_type(c_type)
        else:
            self.headers.add(MATH)
            argument = self.c_type(expr.args[0].type)
            if row.operator and not (self.dialect.has_intrinsics and argument in row.spelling):
                left, right = expr.args
                return self.binary(row.operator, *self.operands(left, right, c_type))
            name = row.spelling.get(argument) or row.spelling.get("int64_t", row.key)
            is_overloaded = row.spelling.get("float") == row.spelling.get("double")
            if self.kernel.type_parameters and argument in FLOATS and not name.startswith("__"):
                is_overloaded, name = True, f"{self.dialect.overloads}{row.spelling['double']}"
            needs_no_cast = is_overloaded and argument != "double"  # a float would select another overload
            args = [  # rule: scaled-cast
                self.expr(arg).text
                if needs_no_cast or (place and row.rule is Rule.SCALED)
                else self.argument(arg, argument)
                for place, arg in enumerate(expr.args)
            ]
            if row.rule is Rule.MAGNITUDE and expr.type == ir.PY_INT:
                c_type = self.expr(expr.args[0]).c_type
            c_type = c_type if c_type == "bool" else arithmetic_type(c_type)  # C's `abs` of a narrow number is an int
        return CxxText(f"{self.function(name)}({', '.join(args)})", PRIMARY, c_type)

    def of_elements(self, expr: ir.Call, row: Builtin) -> CxxText:
        """A C function of elements, each in its own type."""
        self.headers.add(MATH)
        last = expr.args[-1].type
        assert isinstance(last, ir.ElementType)
        args = ", ".join(self.as_type(arg, arg.type) for arg in expr.args)
        return CxxText(f"{self.function(row.spelling[last.dtype.c])}({args})", PRIMARY, self.c_type(expr.type))

    def bits_of(self, arg: ir.Expr) -> str:
        """The argument of a function of bits; an element keeps its width, which the literal `1` lacks."""
        # rule: bits-width
        return self.as_type(arg, arg.type) if isinstance(arg.type, ir.ElementType) else self.expr(arg).text

    def function(self, name: str) -> str:
        """A C function as the target calls it."""
        self.record_header(name)
        return self.dialect.functions.get(name, name)

    def collective(self, expr: ir.Call, row: Builtin) -> CxxText:
        """`__shfl_down_sync(0xFFFFFFFF, v, 16)`; masks are unsigned, votes are ints."""
        if row.rule is Rule.REDUCE:
            return self.reduction(expr, row)
        args = [
            self.mask(arg) if place == 0 and len(expr.args) > 1 else self.expr(arg).text
            for place, arg in enumerate(expr.args)
        ]
        value = expr.args[1] if row.rule is Rule.SHUFFLE else None
        c_type = "int" if row.result == "bool" else "unsigned"
        c_type = c_type if value is None else arithmetic_type(self.expr(value).c_type)
        return CxxText(f"__{row.key.rpartition('.')[2]}({', '.join(args)})", PRIMARY, c_type)

    def reduction(self, expr: ir.Call, row: Builtin) -> CxxText:
        """`reduce_add_sync(0xFFFFFFFF, v)`: a helper, and so a template of the value's type."""
        mask, value = expr.args
        text = f"{row.helper}({self.mask(mask)}, {self.as_type(value, expr.type)})"
        return CxxText(text, PRIMARY, self.c_type(expr.type))

    def mask(self, mask: ir.Expr) -> str:
        """A mask of lanes; a constant in hexadecimal digits."""
        named = self.by_name(mask, "uint32_t") if isinstance(mask, ir.Constant) else None
        if named is not None:
            return named.text
        return f"0x{mask.value:X}" if isinstance(mask, ir.Constant) else self.expr(mask).text

    def complex_constructor(self, expr: ir.Call) -> CxxText:
        """A complex number, constructed from its parts."""
        parts, named = self.parts(expr), self.type_text(expr.type)
        # Of a template argument, gcc parses `int64_t(T(both) == 0)` as the type of a function.
        text = f"static_cast<{named}>({parts})" if parts in self.kernel.constexprs else f"{named}({parts})"
        return CxxText(text, PRIMARY, self.c_type(expr.type))

    def parts(self, expr: ir.Call) -> str:
        """The arguments of a complex number's constructor; an imaginary part of zero is left out."""
        real, imag = expr.args
        is_real = isinstance(imag, ir.Constant) and imag.value == 0 and math.copysign(1, imag.value) > 0
        return ", ".join(self.part(part, expr.type) for part in ((real,) if is_real else (real, imag)))

    def part(self, part: ir.Expr, type_: ir.Type) -> str:
        """A constant is spelled alike in every instance of a type variable."""
        if isinstance(part, ir.Constant) and isinstance(type_, ir.ElementType) and type_.dtype.variable is not None:
            self.record_number(part)
            return generic_literal(part, type_.dtype.part)
        return self.assigned(_unnamed(part), self.c_type(part.type)).text

    def atomic(self, expr: ir.Atomic) -> CxxText:
        """`atomicAdd(&x[i], v)`; helpers are templates: values get the element's type."""
        dtype = self.kernel.array_type(expr.array).dtype
        values = (self.as_type(value, expr.type) for value in expr.values)
        place = f"&{self.element(expr.array, expr.indices)}"
        name = atomic_helper(expr.op) if self.dialect.atomics_are_helpers else atomic_function(expr.op, dtype)
        return CxxText(f"{name}({', '.join((place, *values))})", PRIMARY, dtype.c)

    def invoke(self, expr: ir.DeviceCall) -> CxxText:
        """A call of a device function; scalars are cast to the types of its parameters, which select the overload."""
        callee = self.callees[expr.function]
        args = [
            self.expr(arg).text if isinstance(arg, ir.ArrayName) else self.as_type(arg, parameter.type)
            for parameter, arg in zip(callee.function.parameters, expr.args, strict=True)
        ]
        args += map(self.launch_object, callee.launch)  # rule: launch-passed
        self.types.update(callee.template)  # rule: needed-template
        name = f"{callee.function.symbol}{callee.template_arguments}"
        return CxxText(f"{name}({', '.join(args)})", PRIMARY, "" if expr.type is ir.UNKNOWN else self.c_type(expr.type))

    def launch_object(self, name: str) -> str:
        """The argument that passes a launch object to a device function."""
        return name

    def stored(self, value: ir.Expr, element: ir.ScalarType) -> str:
        """A value in the C type of an element, or of a row of such elements."""
        if isinstance(value, ir.Tuple):
            return self.braced(value.items, (element,) * len(value.items))
        return self.expr(value).text if isinstance(value.type, ir.TupleType) else self.as_type(value, element)

    def braced(self, items: Sequence[ir.Expr], types: Sequence[ir.Type]) -> str:
        """`{a, b}`."""
        return f"{{{', '.join(self.items(items, types))}}}"

    def items(self, items: Sequence[ir.Expr], types: Sequence[ir.Type]) -> list[str]:
        """Items in braces: C++ refuses narrowing there, so all but widened Python integers are cast."""
        texts = []
        for item, type_ in zip(items, types, strict=True):
            spelled, wanted = self.expr(item), self.c_type(type_)
            widens = {spelled.c_type, wanted} <= {"int", "index_t", "int64_t"} and keeps_value(spelled.c_type, wanted)
            texts.append(spelled.text if widens else self.as_type(item, type_))
        return texts

    def as_type(self, arg: ir.Expr, type_: ir.Type) -> str:
        spelled = self.expr(arg)
        if same_type(spelled.c_type, self.c_type(type_)):
            return spelled.text
        if isinstance(arg, ir.Constant) and arg.written is None and self.c_type(type_) == "uint32_t":
            return f"{spelled.text}u"
        return functional_cast(spelled.text, self.type_text(type_))

    def argument(self, arg: ir.Expr, c_type: str) -> str:
        """An argument of a C function; a double gets a cast, since functions such as `sqrt` are overloaded."""
        if c_type != "double":
            return self.assigned(arg, c_type).text
        spelled = self.expr(arg)
        return spelled.text if spelled.c_type == "double" else f"static_cast<double>({spelled.text})"

    def declaration(self, name: str) -> str:
        """The declaration of a kernel-local array or a table: `float acc[4][4]`, `int WEIGHTS[3] = {1, 2, 1}`."""
        decl = self.kernel.array_decl(name)
        assert decl is not None, name
        type_: ir.Type = decl.type.element
        if type_ == ir.PY_INT:
            fits = decl.type.dtype is I32 or (
                not decl.is_list and all(-(2**31) <= value < 2**31 for value in decl.values)
            )
            type_ = replace(ir.PY_INT, width=ir.Width.INT if fits else ir.Width.LONG)
        if decl.is_row:
            return f"{self.vector_text(name)} {self.name(name)}"
        text = f"{self.type_text(type_)} {self.name(name)}{self.extents(decl)}"
        if decl.space is not ir.Space.CONSTANT:
            return text
        values = [self.constant(ir.Constant(value, decl.span, type_)).text for value in decl.values]
        shape = [int(extent.value) for extent in decl.type.dims if isinstance(extent, ir.Constant)]
        return f"{text} = {table_literal(values, shape)}"

    def extents(self, decl: ir.ArrayDecl) -> str:
        """`[4][4]`."""
        return "".join(f"[{self.expr(extent).text}]" for extent in decl.type.dims)

    def vector_text(self, row: str) -> str:
        """The type of an array that is a copy of a row: `aligned_vector<T, W>`."""
        type_ = self.kernel.array_type(row)
        return f"aligned_vector<{self.type_text(type_.element)}, {self.expr(type_.dims[0]).text}>"

    def row_access(self, stmt: ir.Store) -> str:
        """The load or the store of a whole row; empty for an element."""
        match stmt:
            case ir.Store(array=row, indices=(), value=ir.Load() as load) if self.kernel.is_row(row):
                place = f"&{self.element(load.array, load.indices)}"
                if load.hint and self.dialect.has_intrinsics:
                    value = f"{row_access(load.hint)}(reinterpret_cast<const {self.vector_text(row)}*>({place}))"
                else:
                    (length,) = self.kernel.array_type(row).dims
                    value = f"load_vector<{self.expr(length).text}>({place})"
                return f"const auto {self.name(row)} = {value};"
            case ir.Store(value=ir.Load(array=row, indices=())) if self.kernel.is_row(row):
                place = f"&{self.element(stmt.array, stmt.indices)}"
                if stmt.hint and self.dialect.has_intrinsics:
                    place = f"reinterpret_cast<{self.vector_text(row)}*>({place})"
                    return f"{row_access(stmt.hint)}({place}, {self.name(row)});"
                return f"store_vector({place}, {self.name(row)});"
            case _:
                return ""


_COLLECTIVE: Final = (Rule.SHUFFLE, Rule.VOTE, Rule.MATCH, Rule.REDUCE)


def is_collective_builtin(function: str) -> bool:
    """True for a collective builtin: a shuffle, a vote, a match or a reduction."""
    row = ROWS.get(function)
    return row is not None and row.rule in _COLLECTIVE


def _unnamed(part: ir.Expr) -> ir.Expr:
    """Constants by value, also chosen ones: CUDA's constructor takes them by reference, and they have no address."""
    match part:
        case ir.Constant():
            return replace(part, named=None)
        case ir.Select():
            return replace(part, then=_unnamed(part.then), orelse=_unnamed(part.orelse))
        case ir.Convert():
            return replace(part, value=_unnamed(part.value))
        case _:
            return part
