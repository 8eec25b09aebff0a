"""What marks a function under `@host`: translations meet other host functions, and kernels have them as backwards."""

from __future__ import annotations

from collections.abc import Iterable
from types import FunctionType
from typing import Any


class Marked:
    """A host function, and the kernels' and host functions that compute its gradients."""

    __name__: str

    def __init__(self, function: FunctionType, backwards: Iterable[Marked] = ()) -> None:
        self._function = function
        self.backwards: list[Any] = [*backwards]

    def _prepare(self) -> Any:
        raise NotImplementedError
