"""Python's own functions on numbers. `len` and `range` belong to the front end: they are part of the syntax."""

from __future__ import annotations

from typing import Final

from py2cu.builtins.registry import Bound, Builtin, Rule
from py2cu.dtypes import C64, C128

_MOST: Final = 64  # nested calls in C++, whose depth compilers limit


def _extremum(name: str, range_: Bound) -> Builtin:
    """The row of `min` or `max`."""
    key, helper = f"builtins.{name}", f"python_{name}"
    return Builtin((key,), Rule.CHOICE, (2, _MOST), {"int": name}, helper, range=range_, of_integers=key)


ROWS: Final = (
    Builtin(
        ("builtins.abs", "numpy.abs", "numpy.absolute", "torch.abs", "torch.absolute"),
        Rule.MAGNITUDE,
        (1, 1),
        {"float": "fabsf", "double": "fabs"}
        | dict.fromkeys(("int8_t", "int16_t", "int32_t", "int64_t", C64.c, C128.c), "abs"),
        range=Bound.MAGNITUDE,
    ),
    _extremum("min", Bound.LEAST),
    _extremum("max", Bound.GREATEST),
    Builtin(("complex.real", "numpy.real", "torch.real"), Rule.PART),
    Builtin(("complex.imag", "numpy.imag"), Rule.PART),
    Builtin(
        ("complex.conjugate", "numpy.conj", "numpy.conjugate", "torch.conj", "torch.conj_physical"),
        Rule.SAME,
        (1, 1),
        {C64.c: "conj", C128.c: "conj"},
    ),
    Builtin(("builtins.round",), Rule.INTEGRAL, (1, 2), {"float": "rintf", "double": "rint"}),  # rule: round-half-even
)
