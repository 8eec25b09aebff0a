"""Flatten the tuples of a call: each number becomes a separate keyword argument.

    k(x, (0.1, 0.2))    →    k(x=x, force_0=0.1, force_1=0.2)

Dynamo traces the function here, too. Importing this module does not import torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Tuples = tuple[tuple[str, tuple[str, ...]], ...]
"""The tuple parameters of a kernel, each with the names of its scalar parameters."""


def flatten(usage: str, tuples: Tuples, values: Mapping[str, Any]) -> dict[str, Any]:
    """`values`, arguments by name, with each tuple replaced by its numbers.

    Raises:
        TypeError: a tuple has another length; the message shows the usage.
    """
    numbers = {**values}
    for name, names in tuples:
        if name in numbers:
            items = numbers.pop(name)
            if len(items) != len(names):  # rule: tuple-length
                raise TypeError(f"{usage} takes {tuple_of(len(names))} as `{name}`, got one of {len(items)}")
            numbers.update(zip(names, items, strict=True))
    return numbers


def tuple_of(count: int) -> str:
    return f"a tuple of {count} number{'s' * (count != 1)}"
