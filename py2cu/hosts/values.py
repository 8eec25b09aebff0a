"""What host functions compute with: kinds of values, and values as C++ text."""

from __future__ import annotations

import enum
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from py2cu.ir.header_names import is_macro
from py2cu.passes.lowering.identifiers import KEYWORDS, ascii_identifier


class Kind(enum.Enum):
    """The kind of a value, as messages name it."""

    TENSOR = "a tensor"
    TENSORS = "a list of tensors"
    INT = "an integer"
    FLOAT = "a float"
    BOOL = "a bool"
    SIZES = "a shape"
    DTYPE = "a dtype"
    DEVICE = "a device"
    NONE = "None"

    @property
    def cpp(self) -> str:
        """The type of a local in C++."""
        return _CPP[self]

    @property
    def is_number(self) -> bool:
        return self in (Kind.INT, Kind.FLOAT, Kind.BOOL)


_CPP: Final = {
    Kind.TENSOR: "at::Tensor", Kind.TENSORS: "std::vector<at::Tensor>", Kind.INT: "int64_t", Kind.FLOAT: "double",
    Kind.BOOL: "bool", Kind.SIZES: "std::vector<int64_t>", Kind.DTYPE: "at::ScalarType", Kind.DEVICE: "at::Device",
    Kind.NONE: "void",
}  # fmt: skip

_TAKEN: Final = frozenset(
    [
        "at",
        "c10",
        "torch",
        "std",
        "m",
        "op",
        "KERNEL",
        "checked_add",
        "checked_sub",
        "checked_mul",
        "checked_div",
        "floor_div",
        "floor_mod",
        "item_at",
        "check_count",
        "check_dtype",
        "check_extent",
        "dtype_name",
        "kernel_operator",
    ]
)


def identifier(name: str) -> str:
    """A name of the Python in C++."""
    text = ascii_identifier(name)
    return f"{text}_" if text in _TAKEN or text in KEYWORDS.split() or is_macro(text) else text


# How tightly the operators of C++ bind.
CHOICE, OR, AND, EQUAL, ORDER, SUM, PRODUCT, SIGN, ATOM = range(9)


@dataclass(frozen=True, slots=True)
class Value:
    """A value as C++ text.

    `items`: those of a display of tensors or integers. `known`: the number that it is. `low`: an integer is that or
    more. `is_size`: one that is computed from sizes of tensors and constants alone, which fits 64 bits. `bases`:
    the parameters that a tensor may be a view of. `acts`: it calls a kernel or a host function that writes to tensors.
    """

    kind: Kind
    text: str
    rank: int = ATOM
    items: tuple[Value, ...] | None = None
    known: bool | int | float | None = None
    low: int | None = None
    is_size: bool = False
    bases: frozenset[str] = frozenset()
    acts: bool = False
    opposite: str = ""  # of a comparison

    @property
    def is_natural(self) -> bool:
        return self.low is not None and self.low >= 0

    def at(self, rank: int) -> str:
        """The text as an operand of an operator that binds like this."""
        return self.text if self.rank >= rank else f"({self.text})"


def display(items: Iterable[Value], kind: Kind) -> Value:
    """`{a, b}`."""
    items = tuple(items)
    bases = frozenset[str]().union(*(item.bases for item in items))
    text = f"{{{', '.join(item.text for item in items)}}}"
    return Value(kind, text, items=items, bases=bases, acts=any(item.acts for item in items))


def number(value: float) -> Value:
    """A literal."""
    if isinstance(value, bool):
        return Value(Kind.BOOL, str(value).lower(), known=value)
    if isinstance(value, int):
        return Value(Kind.INT, str(value), ATOM if value >= 0 else SIGN, known=value, low=value, is_size=True)
    return Value(Kind.FLOAT, repr(value), ATOM if value >= 0 else SIGN, known=value)


@dataclass(frozen=True, slots=True)
class Local:
    """A name of the function. `length` is that of a list, where it is known; it has `least` items or more."""

    kind: Kind
    text: str  # its name in C++
    low: int | None = None
    is_size: bool = False
    length: int | None = None
    least: int = 0
    bases: frozenset[str] = frozenset()

    @property
    def value(self) -> Value:
        return Value(self.kind, self.text, low=self.low, is_size=self.is_size, bases=self.bases)


def local_of(value: Value, text: str, *, is_final: bool) -> Local:
    """The local that is assigned `value`; `is_final`: nothing else assigns it."""
    length = None if value.items is None else len(value.items)
    return Local(
        value.kind, text, value.low if is_final else None, value.is_size and is_final, length, bases=value.bases
    )
