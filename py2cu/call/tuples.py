"""Spread the tuples of a call: each number becomes an argument of its own, by name.

    k(x, (0.1, 0.2))    →    k(x=x, force_0=0.1, force_1=0.2)

Dynamo traces the function here, too. Importing this module does not import torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Tuples = tuple[tuple[str, tuple[str, ...]], ...]
"""The parameters that are tuples, each with the parameters of its numbers."""


def spread(usage: str, tuples: Tuples, values: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments by name, with numbers in place of tuples.

    Raises:
        TypeError: a tuple has another length; the message shows the usage.
    """
    numbers = {**values}
    for name, names in tuples:
        if name in numbers:
            items = numbers.pop(name)
            if len(items) != len(names):
                raise TypeError(f"{usage} takes {tuple_of(len(names))} as `{name}`, got one of {len(items)}")
            numbers.update(zip(names, items, strict=True))
    return numbers


def tuple_of(count: int) -> str:
    return f"a tuple of {count} number{'s' * (count != 1)}"
