"""Emits the extents of a launch, and lists the constants of the module in them."""

from __future__ import annotations

from collections.abc import Iterator

from py2cu import ir
from py2cu.ir.abi.launch import INT32_MAX
from py2cu.ir.abi.launch_values import parts
from py2cu.ir.abi.signature import evaluate
from py2cu.ir.operators import OPERATORS
from py2cu.ir.visit import walk


def launch_constants(kernel: ir.Kernel) -> Iterator[ir.ConstantDeclaration]:
    """The declarations of the constants in the launcher."""
    dynamic = (extent for decl in kernel.array_decls if decl.is_dynamic for extent in decl.type.dims)
    extents = [*(kernel.size or ()), *(kernel.block if kernel.size else ()), *dynamic]
    inner = (part.written.definition for part in walk(*extents) if isinstance(part, ir.Constant) and part.written)
    values = (part for value in kernel.launch_values for part in parts(value.value))
    used = {part.written for part in (*walk(*extents, *inner), *values) if isinstance(part, ir.Constant)}
    yield from (each for each in kernel.constants if each.constant in used)


def extent_text(expr: ir.Expr, kernel: ir.Kernel, outer: int = 0) -> str:
    """An extent in the host's C++; dimensions are not negative, so `//` and `%` are C's.

    `outer` is the precedence of the operator around it.
    """
    match expr:
        case ir.Constant(value=value, written=constant):
            if constant is not None and not constant.name:
                return extent_text(constant.definition, kernel, outer)
            declared = (each.symbol for each in kernel.constants if each.constant == constant)
            return next(declared, str(value))
        case ir.Name(id=name):
            return kernel.c_name(name)
        case ir.LaunchIndex(object=launched, axis=axis):
            return f"{'block' if launched == 'blockDim' else 'grid'}.{axis}"
        case ir.Unary(op="-", operand=operand):
            return f"-{extent_text(operand, kernel, 3)}"
        case ir.Binary(op=op, left=left, right=right):
            rank = 1 if op in "+-" else 2
            first = extent_text(left, kernel, rank)
            if _is_beyond_int(expr):  # rule: extent-of-constants
                first = f"int64_t({first})"
            text = f"{first} {OPERATORS[op].c} {extent_text(right, kernel, rank + 1)}"
            return f"({text})" if rank < outer else text
        case _:
            raise AssertionError(expr)


def _is_beyond_int(expr: ir.Expr) -> bool:
    """Whether an extent of constants is more than an `int` holds, in which C++ would compute it."""
    is_known = all(isinstance(node, ir.Constant | ir.Binary) for node in walk(expr))
    return is_known and evaluate(expr, {}) > INT32_MAX  # type: ignore[arg-type]  # extents have no other nodes
