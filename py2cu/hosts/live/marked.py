"""What marks a function under `@host`: its translation meets other host functions, and asks for their Python alone."""

from __future__ import annotations

from types import FunctionType


class Marked:
    """A host function."""

    def __init__(self, function: FunctionType) -> None:
        self._function = function
