"""What `@kernel(...)` says beside the function: threads wanted, block, name, initial values.

`KernelOptions` is filled by the decorator at run time, or read here from the decorator's source, which is not run.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from py2cu.dtypes import DType

Size = str | int | tuple[str | int, ...]
Block = int | tuple[int, ...]

DEFAULT_BLOCKS = {1: (256,), 2: (16, 16), 3: (8, 8, 8)}
MAX_BLOCK = (1024, 1024, 64)  # CUDA's limits in x, y, z
MAX_THREADS = 1024


@dataclass(frozen=True, slots=True)
class KernelOptions:
    """The keywords of `kernel`; see the contract's vocabulary."""

    size: Size | None = None
    block: Block | None = None
    init: Mapping[str, int | float] = field(default_factory=dict)
    name: str | None = None
    strided: bool = False
    coarsen: int | None = None

    def __hash__(self) -> int:
        return hash((self.size, self.block, tuple(self.init.items()), self.name, self.strided, self.coarsen))


def find_problems(options: KernelOptions, arrays: Mapping[str, DType], is_index_kernel: bool) -> Iterator[str]:
    """What is wrong with the values of `options`, which may be of any type, for a kernel with these arrays."""
    if options.size is not None and is_index_kernel:
        yield "an index kernel has no `size`: its indices say how many threads there are"
    if options.size is not None and not _all_in(options.size, str | int):
        yield "`size` is one to three extents"
    if options.block is not None and not _is_block(options.block):
        yield f"`block` is one to three whole numbers, at most {MAX_THREADS} threads and 64 in z"
    if options.name is not None and not (isinstance(options.name, str) and options.name.isidentifier()):
        yield "`name` is an identifier"
    if not isinstance(options.strided, bool):
        yield "`strided` is True or False"
    if options.coarsen not in (None, 1):
        yield "`coarsen` is 1: one element a thread"
    yield from _init_problems(options.init, arrays)


def _init_problems(init: object, arrays: Mapping[str, DType]) -> Iterator[str]:
    if not isinstance(init, Mapping):
        yield "`init` maps names of arrays to numbers"
        return
    for name, value in init.items():
        if name not in arrays:
            yield f"`init` names `{name}`, which is no array"
        elif not isinstance(value, int | float) or not arrays[name].holds(value):
            yield f"`init` gives `{name}` the value {value!r}, which {arrays[name]} cannot hold"


def _all_in(value: object, kinds: object) -> bool:
    items = value if isinstance(value, tuple) else (value,)
    return 1 <= len(items) <= 3 and all(isinstance(i, kinds) and not isinstance(i, bool) for i in items)  # type: ignore[arg-type]


def _is_block(block: object) -> bool:
    if not _all_in(block, int):
        return False
    extents: tuple[int, ...] = block if isinstance(block, tuple) else (block,)
    within = all(1 <= extent <= limit for extent, limit in zip(extents, MAX_BLOCK, strict=False))
    return within and math.prod(extents) <= MAX_THREADS
