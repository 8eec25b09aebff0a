"""The annotations of a kernel's parameters that are py2cu's: `Index` and `Constexpr`."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, TypeVar

from py2cu.builtins.public import public


@public
@dataclass(frozen=True)
class Index:
    """The annotation of an element index: `i: Index["n"]` runs over `n` elements, `Index["h * w"]` over `h * w`.

    `Index[int, "n"]` means the same. Both are `Annotated[int, Index("n")]`. For type checkers, `Index` is `Annotated`
    itself: they accept the second form, and read the index as an `int`.
    """

    extent: str | int

    def __class_getitem__(cls, arguments: object) -> object:
        kind, extent = arguments if isinstance(arguments, tuple) and len(arguments) == 2 else (int, arguments)
        if kind is not int or not isinstance(extent, str | int):
            raise TypeError(f'Index["n"] or Index[int, "n"] takes the name of a dimension, not {arguments!r}')
        return Annotated[int, cls(extent)]


if TYPE_CHECKING:
    N = TypeVar("N", int, bool)
    Constexpr = Annotated[N, "a template argument"]
else:

    @public
    class Constexpr:
        """The annotation of a template argument: `tile: Constexpr[int]` is constant when the CUDA code is compiled.

        To Python and type checkers, `Constexpr[int]` is `int` and `Constexpr[bool]` is `bool`.
        """

        def __class_getitem__(cls, kind: type) -> object:
            return Annotated[kind, cls]
