"""Python's own functions on numbers. `len` and `range` belong to the front end: they are part of the syntax."""

from __future__ import annotations

from typing import Final

from py2cu.builtins.registry import Builtin, Rule

ROWS: Final = (
    Builtin(
        ("builtins.abs", "numpy.abs", "numpy.absolute", "torch.abs", "torch.absolute"),
        Rule.SAME,
        (1, 1),
        {"float": "fabsf", "double": "fabs", "int8_t": "abs", "int16_t": "abs", "int32_t": "abs", "int64_t": "abs"},
    ),
    Builtin(("builtins.min",), Rule.SAME, (2, 64), {"int": "min"}),  # nested calls in C, which does not nest for ever
    Builtin(("builtins.max",), Rule.SAME, (2, 64), {"int": "max"}),
    Builtin(("builtins.round",), Rule.INTEGRAL, (1, 2), {"float": "rintf", "double": "rint"}),
)
