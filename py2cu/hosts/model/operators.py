"""The operators of Python, by sign: how C++ ranks them, what they compute, and the helper where C++ differs."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Final

from py2cu.hosts.model.ranks import EQUAL, ORDER, PRODUCT, SUM

RANKS: Final = {
    "+": SUM, "-": SUM, "*": PRODUCT, "/": PRODUCT, "%": PRODUCT, "==": EQUAL, "!=": EQUAL, "<": ORDER, "<=": ORDER,
    ">": ORDER, ">=": ORDER,
}  # fmt: skip
COMPUTE: Final[Mapping[str, Callable[[float, float], float]]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod,
}  # fmt: skip
HELPERS: Final = {
    "+": "checked_add", "-": "checked_sub", "*": "checked_mul", "/": "checked_div", "//": "floor_div", "%": "floor_mod",
}  # fmt: skip
OPPOSITES: Final = {"==": "!=", "!=": "==", "<": ">=", "<=": ">", ">": "<=", ">=": "<"}
