"""Functions of the bits of integers: `popc`, `ffs`, `clz`, `brev`, and CUDA's for products and bytes.

In: an integer element, of the width of its dtype, or a Python integer, of 64 bits.
"""

from __future__ import annotations

from typing import Any, Final

from py2cu.builtins import Builtin, Rule
from py2cu.simulator.state import THREAD
from py2cu.simulator.values.family import element_class
from py2cu.simulator.values.integer_elements import IntElement
from py2cu.simulator.values.math_functions import Function, compiled

_PYTHON_BITS: Final = 64


def function_of_bits(row: Builtin) -> Function:
    """The function that a row defines; its result is a Python integer, or an element of the argument's width."""
    compute = compiled(row.reference, "bits", "width")

    def call(value: Any) -> Any:
        is_element = isinstance(value, IntElement)
        if not is_element and (row.rule is Rule.WORD or not isinstance(value, int)):
            raise TypeError(f"{value!r} is not an integer element")
        width = value.dtype.bits if is_element else _PYTHON_BITS
        if width < 32:
            raise TypeError(f"{value!r} is not an integer of 32 or 64 bits")
        result = compute(int(value) & ((1 << width) - 1), width)
        if row.result == "int":
            return THREAD.integer(result)
        of_result: Any = element_class(value.dtype.unsigned) if row.result == "unsigned" else value
        return of_result.wrapped(result)

    return call


def high_product(a: Any, b: Any) -> Any:
    """The upper half of the bits of a product."""
    _check_sure(a, b)
    return a.wrapped(a.value * b.value >> a.dtype.bits)


def byte_perm(a: Any, b: Any, selector: Any) -> Any:
    """CUDA's `__byte_perm`: four of the eight bytes of `b` and `a`, as the digits of the selector say."""
    _check_sure(a, b, selector)
    both = b.value << 32 | a.value
    chosen = (both >> 8 * (selector.value >> 4 * place & 7) & 255 for place in range(4))
    return a.wrapped(sum(byte << 8 * place for place, byte in enumerate(chosen)))


def _check_sure(*operands: Any) -> None:
    """Taint the thread if an operand has an error."""
    if any(operand.error for operand in operands):
        THREAD.tainted = True
