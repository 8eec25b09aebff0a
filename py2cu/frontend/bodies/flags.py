"""Refuses operators of `IntFlag` that differ from those of integers: flags are never negative.

~Option.RELU              all other options, and -2 of the integer
-8 | Option.RELU          a flag of Python's choice, and -7 of the integer
"""

from __future__ import annotations

from typing import Final

import libcst as cst

from py2cu.frontend.bodies.scope import Scope
from py2cu.frontend.names.syntax import source_text

_SETTING: Final = (cst.BitOr, cst.BitXor, cst.BitOrAssign, cst.BitXorAssign)


def refuse_flags(sign: cst.CSTNode, operands: tuple[cst.BaseExpression, ...], scope: Scope) -> None:
    """Report a flag among `operands`, unless the operator `sign` computes the same as for integers."""
    if not isinstance(sign, (cst.BitInvert, *_SETTING)):
        return
    flag = next((operand for operand in operands if scope.environment.is_flag(operand)), None)
    if flag is None or (isinstance(sign, _SETTING) and all(map(scope.environment.is_flag, operands))):
        return
    text = source_text(flag)
    what = f"this operator of the flag `{text}` differs from that of an integer, as flags are never negative"
    scope.error("P202", what, flag, f"take the integer: `int({text})`")
