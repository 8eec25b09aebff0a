"""CUDA's cache hints: loads and stores of elements, and of rows of views, under CUDA's names without underscores.

In Python, and on the CPU, they are the plain accesses.
"""

from __future__ import annotations

from typing import Any, Final

from py2cu.builtins.public import PY2CU, builtin
from py2cu.builtins.registry import Rule

ElementIndex = int | tuple[int, ...]
LDG: Final = "ldg"
STCS: Final = "stcs"
CACHE_HINTS: Final = (LDG, "ldcs", STCS)


@builtin(Rule.CACHE, PY2CU, in_python=True)
def ldg(array: Any, index: ElementIndex) -> Any:
    """`array[index]`, through the read-only cache: of an array that the kernel does not write."""
    return array[index]


@builtin(Rule.CACHE, PY2CU, in_python=True)
def ldcs(array: Any, index: ElementIndex) -> Any:
    """`array[index]`, which is likely read once: the caches may evict it first."""
    return array[index]


@builtin(Rule.CACHE, PY2CU, in_python=True)
def stcs(array: Any, index: ElementIndex, value: Any) -> None:
    """`array[index] = value`, which is likely not read soon: the caches may evict it first."""
    array[index] = value
