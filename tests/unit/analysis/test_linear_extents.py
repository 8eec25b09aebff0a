"""An extent as a multiple of one dimension and a rest: `linear`."""

import pytest

from py2cu import ir
from py2cu.analysis.linear_extents import linear
from py2cu.ir.extents import folded
from py2cu.ir.printer import print_expr

N, K = ir.Name("n", type=ir.PY_INT), ir.Name("k", type=ir.PY_INT)
ONE, TWO = ir.constant_extent(1), ir.constant_extent(2)


@pytest.mark.parametrize(
    ("extent", "factor", "rest"),
    [
        (folded("+", folded("*", TWO, N), ONE), "2", "1"),
        (ir.Binary("*", N, K), "k", "0"),
        (ir.Binary("*", K, N), "k", "0"),
        (ir.Binary("*", folded("+", N, ONE), K), "k", "k"),
        (ir.Binary("*", K, folded("+", N, ONE)), "k", "k"),
        (folded("-", N, K), "1", "0 - k"),
    ],
    ids=["2n+1", "nk", "kn", "(n+1)k", "k(n+1)", "n-k"],
)
def test_factor_and_rest(extent, factor, rest):
    parts = linear(extent, "n")
    assert parts is not None
    assert tuple(map(print_expr, parts)) == (factor, rest)


@pytest.mark.parametrize(
    "extent", [ir.Binary("//", N, TWO), ir.Binary("*", N, N), folded("-", K, N), K], ids=print_expr
)
def test_extents_that_determine_nothing(extent):
    assert linear(extent, "n") is None
