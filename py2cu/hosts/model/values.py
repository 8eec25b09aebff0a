"""What host functions compute with: kinds of values, and values as C++ text."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from py2cu.hosts.model.ranks import ATOM, SIGN
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
_TAKEN: Final = {
    "uint", "ushort", "ulong", "at", "c10", "torch", "std", "host", "KERNEL", "checked_add", "checked_sub",
    "checked_mul", "checked_div", "floor_div", "floor_mod", "item_at", "check_count", "check_dtype",
    "check_dtype_and_dims", "check_dtype_and_least_dims", "check_extent", "dtype_name", "kernel_operator",
}  # fmt: skip


def identifier(name: str) -> str:
    """A name of the Python in C++."""
    text = ascii_identifier(name)
    is_taken = text in _TAKEN or text.endswith("_t") or text.startswith(("AT_", "C10_", "TORCH_"))
    return f"{text}_" if is_taken or text in KEYWORDS.split() or is_macro(text) else text


def function_identifier(name: str) -> str:
    """The name of a host function in C++, which the registration of the operators has to see."""
    return "m_" if name == "m" else identifier(name)


@dataclass(frozen=True, slots=True)
class Value:
    """A value as C++ text.

    `items`: those of a list of tensors, or of a shape, whose length is known; a list has `least` items or more.
    `known`: the number that it is. `low`: an integer, or each of a shape, is that or more. `is_size`: one that is
    computed from sizes of tensors and constants alone, which fits 64 bits. `bases`: the parameters that a tensor may be
    a view of. `acts`: it calls a kernel or a host function that writes to tensors.
    """

    kind: Kind
    text: str
    rank: int = ATOM
    items: tuple[Value, ...] | None = None
    least: int = 0
    known: bool | int | float | None = None
    low: int | None = None
    is_size: bool = False
    bases: frozenset[str] = frozenset()
    acts: bool = False
    is_list: bool = False  # a list in Python, or what may be one: no tuple, and not equal to a shape
    opposite: str = ""  # of a comparison

    @property
    def is_natural(self) -> bool:
        return self.low is not None and self.low >= 0

    @property
    def literal(self) -> float | None:
        """The number, if the text is no name of it."""
        return self.known if self.text[0] in "-0123456789" else None

    @property
    def length(self) -> int | None:
        return None if self.items is None else len(self.items)

    @property
    def tensor(self) -> str:
        """The tensor whose `sizes()` this is; empty for other values."""
        return self.text.removesuffix(".sizes()") if self.text.endswith(".sizes()") else ""

    def at(self, rank: int) -> str:
        """The text as an operand of an operator that binds like this."""
        return self.text if self.rank >= rank else f"({self.text})"

    def item(self, at: object) -> Value:
        """The item of a shape or a list at an index that is known to be in range."""
        if self.tensor:
            return size(f"{self.tensor}.size({at})")
        kind = Kind.INT if self.kind is Kind.SIZES else Kind.TENSOR
        return Value(kind, f"{self.text}[{at}]", low=self.low, is_size=self.is_size, bases=self.bases)

    def local(self, name: str, *, is_final: bool) -> Value:
        """The local that is assigned this value; `is_final`: nothing else assigns it."""
        is_list = self.is_list or (self.kind is Kind.SIZES and not is_final)
        local = Value(self.kind, name, bases=self.bases, is_list=is_list)
        return replace(local, low=self.low, is_size=self.is_size).with_items(self.length) if is_final else local

    def with_items(self, count: int | None) -> Value:
        """The same list or shape, of a length that is known unless it is None."""
        return self if count is None else replace(self, items=tuple(map(self.item, range(count))))


def integer(text: str, *operands: Value, rank: int = ATOM, low: int | None = None) -> Value:
    """An integer that is computed from `operands`, and otherwise from sizes and constants."""
    return Value(Kind.INT, text, rank, low=low, is_size=all(operand.is_size for operand in operands))


def size(text: str) -> Value:
    """A size of a tensor, or a number of items."""
    return integer(text, low=0)


def display(items: Sequence[Value], kind: Kind) -> Value:
    """`{a, b}`."""
    low, is_size = 0 if all(item.is_natural for item in items) else None, all(item.is_size for item in items)
    bases = frozenset[str]().union(*(item.bases for item in items))
    text = f"{{{', '.join(item.text for item in items)}}}"
    return Value(kind, text, items=tuple(items), low=low, is_size=is_size, bases=bases)


def number(value: float) -> Value:
    """A literal."""
    if isinstance(value, bool):
        return Value(Kind.BOOL, str(value).lower(), known=value)
    if isinstance(value, int):
        return Value(Kind.INT, str(value), ATOM if value >= 0 else SIGN, known=value, low=value, is_size=True)
    return Value(Kind.FLOAT, repr(value), ATOM if value >= 0 else SIGN, known=value)
