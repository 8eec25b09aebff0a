"""The body of a host function in C++: lines, and what nests blocks of them."""

from __future__ import annotations

from dataclasses import dataclass

from py2cu.hosts.model.values import Kind
from py2cu.source import Span


@dataclass(slots=True)
class Line:
    """A statement: `text`, or the value that it assigns to the local `target`, which C++ calls `name`."""

    text: str
    origin: int
    target: str = ""
    kind: Kind = Kind.NONE
    reads: frozenset[str] = frozenset()
    above: tuple[str, ...] = ()
    beside: str = ""
    name: str = ""
    may_go: bool = False  # where nothing reads the target: the value cannot be an error


@dataclass(slots=True)
class Nest:
    """An `if` with its branches, or a loop: each head with the block below it."""

    parts: list[tuple[str, Block]]
    origin: int
    reads: frozenset[str] = frozenset()  # by the heads
    above: tuple[str, ...] = ()
    beside: str = ""


Block = list["Line | Nest"]


@dataclass(frozen=True, slots=True)
class Returned:
    """What a `return` gives. `outputs`: the names in it, if it holds nothing else, with the bases of their tensors."""

    kind: Kind
    count: int | None
    is_list: bool
    outputs: tuple[tuple[str, frozenset[str]], ...]
    span: Span
