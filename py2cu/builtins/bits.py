"""Functions of the bits of integers, under CUDA's names without underscores.

`popc` and `ffs` of a Python integer count 64 bits. `clz` and `brev` depend on the width, which Python integers lack.
"""

from __future__ import annotations

from typing import Final

from py2cu.builtins.registry import Builtin, Rule


def _row(name: str, rule: Rule, helper: str, result: str | None = "int") -> Builtin:
    names = tuple(f"{library}.{name}" for library in ("py2cu", "py2cu.vocabulary", "numba.cuda"))
    return Builtin(names, rule, helper=helper, result=result)


ROWS: Final = (
    _row("popc", Rule.BITS, "count_bits"),
    _row("ffs", Rule.BITS, "first_bit"),
    _row("clz", Rule.WORD, "leading_zeros"),
    _row("brev", Rule.WORD, "reverse_bits", result=None),
)
