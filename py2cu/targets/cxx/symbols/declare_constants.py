"""Declares the constants of the module that the text names: `constexpr int WIDE = TILE + 2 * RADIUS;`.

In: the kernels of one translation unit, lowered for a target. Out: the same kernels, each with the declarations of the
constants that it may name. A constant that a parameter or a local hides is written as its number there; one whose name
another symbol has gets underscores. An emitter records which declarations its text needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from py2cu import ir
from py2cu.builtins import ROWS, Rule
from py2cu.dtypes import Kind
from py2cu.ir.abi.launch_values import parts
from py2cu.ir.header_names import is_declared
from py2cu.ir.names import names_in_scope
from py2cu.ir.rewrite import with_fields
from py2cu.ir.visit import all_expressions, statements, walk
from py2cu.passes.lowering.identifiers import spell_identifier
from py2cu.targets.cxx.c_types import is_unsigned
from py2cu.targets.cxx.dialect import Dialect
from py2cu.targets.cxx.statements import Emitter

_DEFINITIONS: Final = Dialect(
    widths={each: "int" if each is ir.Width.INT else "int64_t" for each in ir.Width}, launch_type="unsigned"
)
_TYPE_PARAMETERS: Final = frozenset(("T", "U", "V", "W"))
_OF_LANES: Final = (Rule.SHUFFLE, Rule.VOTE, Rule.MATCH, Rule.REDUCE)


def declare_constants(families: tuple[ir.Instances, ...]) -> tuple[ir.Instances, ...]:
    """`families`, with the declarations of the constants that each kernel and each function may name."""
    functions = [each for family in families for kernel in family for each in (kernel, *kernel.functions)]
    signed: set[ir.NamedConstant] = set()
    constants = dict.fromkeys(each for function in functions for each in _constants_in(function, signed))
    if not constants:
        return families
    for constant in constants:
        signed.update(_negated_in(constant))
    declarer = _Declarer(functions, signed)
    for constant in sorted(constants, key=lambda each: each.line):
        declarer.declare(constant)
    return tuple(
        tuple(
            with_fields(
                declarer.with_constants(kernel), functions=tuple(map(declarer.with_constants, kernel.functions))
            )
            for kernel in family
        )
        for family in families
    )


def in_order(declarations: Iterable[ir.ConstantDeclaration]) -> tuple[str, ...]:
    """The declarations as text, with those that they need, in the order of the module."""
    done: dict[str, None] = {}

    def add(declaration: ir.ConstantDeclaration) -> None:
        for needed in declaration.needs:
            add(needed)
        done.setdefault(declaration.text)

    for declaration in sorted(declarations, key=lambda each: (each.constant.line, each.symbol)):
        add(declaration)
    return tuple(done)


class _Declarer:
    def __init__(self, functions: Iterable[ir.Kernel], signed: set[ir.NamedConstant]) -> None:
        self.functions = tuple(functions)
        self.signed = signed
        self.declarations: dict[ir.NamedConstant, ir.ConstantDeclaration] = {}
        self.taken = {*_TYPE_PARAMETERS}
        for each in self.functions:
            name = each.symbol
            self.taken |= {name, f"{name}_kernel", f"{name}_launch", f"launch_{name}", *each.helpers}
            self.taken |= {each.struct.name} if each.struct is not None else set()
            tables = (decl.name for decl in each.array_decls if decl.space is ir.Space.CONSTANT or decl.is_extern)
            self.taken |= {each.c_name(name) for name in tables}

    def declare(self, constant: ir.NamedConstant) -> ir.ConstantDeclaration:
        """The declaration of a constant, after those of the constants that it is computed from."""
        if constant not in self.declarations:
            used = (part.written for part in walk(constant.definition) if isinstance(part, ir.Constant))
            needs = tuple(self.declare(each) for each in dict.fromkeys(used) if each is not None)
            symbol = spell_identifier(constant.name)
            while symbol in self.taken or is_declared(symbol):  # rule: constant-symbol
                symbol += "_"
            self.taken.add(symbol)
            c_type = self._type(constant)
            emitter = Emitter(with_fields(self.functions[0], constants=needs, renamed=()), _DEFINITIONS, {})
            text = f"constexpr {c_type} {symbol} = {emitter.definition(constant.definition)};"
            self.declarations[constant] = ir.ConstantDeclaration(constant, symbol, c_type, text, needs)
        return self.declarations[constant]

    def _type(self, constant: ir.NamedConstant) -> str:
        """The C type that holds the value; unsigned only where every use is. A number of NumPy has its own."""
        if isinstance(type_ := constant.definition.type, ir.ElementType):
            return type_.dtype.c
        match constant.value:
            case bool():
                return "bool"
            case float():
                return "double"
            case value if -(2**31) < value < 2**31:  # C negates no int of -(2**31)
                return "int"
            case value if value >= 2**63:
                return "uint64_t"
            case value:
                return "uint32_t" if 0 <= value < 2**32 and constant not in self.signed else "int64_t"

    def with_constants(self, kernel: ir.Kernel) -> ir.Kernel:
        """A kernel or function with the declarations of its constants, without those that its own names hide."""
        used = dict.fromkeys(_constants_in(kernel, set()))
        hidden = {kernel.c_name(name) for name in names_in_scope(kernel)} if used else set()
        hidden |= {kernel.flag(parameter.name) for parameter in kernel.optional_parameters} if used else set()
        own = [self.declare(constant) for constant in used]
        own = [each for each in own if each.symbol not in hidden]  # rule: constant-hidden
        return with_fields(kernel, constants=tuple(own))


def _constants_in(kernel: ir.Kernel, signed: set[ir.NamedConstant]) -> Iterator[ir.NamedConstant]:
    """The constants that a kernel or a function reads; those that are not always masks or unsigned enter `signed`."""
    masks = {id(mask) for mask in _masks(kernel)}
    extents = [extent for decl in kernel.array_decls for extent in decl.type.dims]
    values = [part for value in kernel.launch_values for part in parts(value.value)]
    for expr in (*all_expressions(kernel.body), *walk(*extents, *(kernel.size or ()), *kernel.block), *values):
        if not isinstance(expr, ir.Constant) or (constant := expr.written) is None or constant.array:
            continue
        if constant.name:
            if id(expr) not in masks and not _is_unsigned(expr.type):
                signed.add(constant)
            yield constant
        else:
            yield from (
                part.named for part in walk(constant.definition) if isinstance(part, ir.Constant) and part.named
            )


def _negated_in(constant: ir.NamedConstant) -> Iterator[ir.NamedConstant]:
    """The constants that appear negated in the definition of `constant`, or in a definition that this one uses."""
    for part in walk(constant.definition):
        if isinstance(part, ir.Constant) and part.written is not None:
            yield from (part.written,) if part.is_negated else ()  # rule: constant-negated
            yield from _negated_in(part.written)


def _is_unsigned(type_: ir.Type) -> bool:
    return isinstance(type_, ir.ElementType) and type_.dtype.kind is Kind.INT and is_unsigned(type_.dtype.c)


def _masks(kernel: ir.Kernel) -> Iterator[ir.Expr]:
    """The masks of lanes, which are unsigned."""
    for expr in all_expressions(kernel.body):
        if isinstance(expr, ir.Call) and expr.function in ROWS and ROWS[expr.function].rule in _OF_LANES and expr.args:
            yield expr.args[0]
    yield from (stmt.args[0] for stmt in statements(kernel.body) if isinstance(stmt, ir.Sync) and stmt.args)
