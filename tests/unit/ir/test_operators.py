"""What the rows say of operators, tried on all integers of four bits."""

from __future__ import annotations

from itertools import product

import pytest

from py2cu.ir.operators import OPERATORS, Family, Operator

LOW, HIGH = -8, 7
MODULUS = 8  # integers that differ by it have the same low bits
WHOLE = [row for row in OPERATORS.values() if row.symbol != "/"]


def operands(row: Operator) -> list[tuple[int, int]]:
    """The operands of four bits for which Python computes an integer."""
    pairs = product(range(LOW, HIGH + 1), repeat=2)
    if row.family in (Family.SHIFT, Family.POWER):
        return [(a, b) for a, b in pairs if b >= 0]
    return [(a, b) for a, b in pairs if b % MODULUS or row.family is not Family.QUOTIENT]


def is_modular(row: Operator) -> bool:
    moved = [(a, b, a + MODULUS, b) for a, b in operands(row)]
    moved += [(a, b, a, b + MODULUS) for a, b in operands(row) if row.family is not Family.SHIFT]
    return all((row.compute(a, b) - row.compute(c, d)) % MODULUS == 0 for a, b, c, d in moved)


@pytest.mark.parametrize("row", WHOLE, ids=lambda row: row.symbol)
def test_what_a_row_says_holds(row: Operator) -> None:
    pairs = operands(row)
    assert row.is_modular == is_modular(row)
    assert row.may_leave == any(not LOW <= row.compute(a, b) <= HIGH for a, b in pairs)
    assert row.zero_stays == all(row.compute(0, b) == 0 for _, b in pairs)
    if row.fold is not None:
        assert all(row.fold(a, b) == row.compute(a, b) for a, b in pairs)
    if row.c == "/":
        assert all(row.compute(a, b) == int(a / b) for a, b in pairs if a >= 0 and b > 0)


def test_every_symbol_is_pythons() -> None:
    assert all(eval(f"6 {row.symbol} 2") == row.compute(6, 2) for row in OPERATORS.values())
