"""All functions and constants of the language: importing this module enters their rows."""

from py2cu.builtins import (  # noqa: F401 - each enters its own
    annotations,
    atomics,
    bits,
    casts,
    floats,
    launch,
    marks,
    math,
    memory,
    methods,
    python,
    sync,
    warp,
)
from py2cu.builtins.formulas import (
    REFUSED,
    find_fold,
    find_formula,
    find_pair_formula,
    formula_names,
    way_to_unpack,
    ways_to_call,
)
from py2cu.builtins.public import PUBLIC
from py2cu.builtins.registry import ROWS, Bound, Builtin, Rule, ThreadScope, lookup, names, register, row_behind

register(math.ROWS)
register(python.ROWS)
register(casts.ROWS)
register(launch.ROWS)
register(methods.ROWS)

CONSTANTS = {**math.CONSTANTS, **launch.CONSTANTS}

__all__ = [
    "CONSTANTS",
    "PUBLIC",
    "REFUSED",
    "ROWS",
    "Bound",
    "Builtin",
    "Rule",
    "ThreadScope",
    "find_fold",
    "find_formula",
    "find_pair_formula",
    "formula_names",
    "lookup",
    "names",
    "row_behind",
    "way_to_unpack",
    "ways_to_call",
]
