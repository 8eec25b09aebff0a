"""The functions and constants of the language, as rows, which the first use of a name from here enters.

Importing the package enters nothing: the file of a kernel needs the names that it imports alone.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
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
    from py2cu.builtins.registry import ROWS, Bound, Builtin, Rule, ThreadScope, lookup, names, row_behind
    from py2cu.builtins.rows import CONSTANTS

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


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from py2cu.builtins import formulas, public, registry, rows

    value = globals()[name] = next(
        vars(home)[name] for home in (rows, public, registry, formulas) if name in vars(home)
    )
    return value
