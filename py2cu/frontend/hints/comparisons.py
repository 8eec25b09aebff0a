"""Comparisons that kernels do not have, as ones that they have.

i in range(3)    0 <= i < 3
v in row         any(each == v for each in row)
v is w           v == w
"""

from __future__ import annotations

import libcst as cst

from py2cu.frontend.names.environment import Environment
from py2cu.frontend.names.syntax import source_text


def rewrite_comparison(value: str, target: cst.ComparisonTarget, environment: Environment) -> str:
    """The text of the comparison of `value`, a text, with `target`, whose operator is `in`, `is` or a negation."""
    operator, other = target.operator, source_text(target.comparator)
    match target.comparator:
        case _ if isinstance(operator, cst.Is | cst.IsNot):
            return f"{value} {'==' if isinstance(operator, cst.Is) else '!='} {other}"
        case cst.Call(func=func, args=[*first, last]) if (
            environment.qualify(func) == "builtins.range" and len(first) < 2
        ):
            start = source_text(first[0].value) if first else "0"
            test = f"{start} <= {value} < {source_text(last.value)}"
        case _:
            test = f"any(each == {value} for each in {other})"
    return f"not {test}" if isinstance(operator, cst.NotIn) else test
