"""The functions and constants of the language, as rows; importing the package enters them all."""

from py2cu.builtins import bits, casts, math, python, threads
from py2cu.builtins.formulas import REFUSED, find_formula, find_pair_formula, way_to_unpack, ways_to_call
from py2cu.builtins.registry import ROWS, Builtin, Rule, lookup, names, register

register(math.ROWS)
register(python.ROWS)
register(casts.ROWS)
register(threads.ROWS)
register(bits.ROWS)

CONSTANTS = {**math.CONSTANTS, **threads.CONSTANTS}

__all__ = [
    "CONSTANTS",
    "REFUSED",
    "ROWS",
    "Builtin",
    "Rule",
    "find_formula",
    "find_pair_formula",
    "lookup",
    "names",
    "way_to_unpack",
    "ways_to_call",
]
