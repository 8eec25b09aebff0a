"""The options of `@kernel(...)`: literals or names of literals, read from the source and checked."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import libcst as cst

from py2cu.diagnostics import Reporter
from py2cu.dtypes import DType
from py2cu.frontend.names.ambiguity import report_ambiguous_name
from py2cu.frontend.names.environment import Environment
from py2cu.frontend.numba.jit import read_options
from py2cu.frontend.source.reader import KernelSource, Module
from py2cu.options import MAX_BLOCKS, MAX_THREADS, KernelKeywords, KernelOptions, is_launchable
from py2cu.suggestions import did_you_mean


@dataclass(frozen=True, slots=True)
class OptionReader:
    """Reads the decorator of one kernel."""

    reporter: Reporter
    source: KernelSource
    module: Module

    def read(self) -> KernelOptions:
        """The options of the decorator; their values are not checked yet."""
        decorator = self.source.decorator
        call = None if decorator is None else self.source.environment.decorator(decorator.decorator)
        if not isinstance(call, cst.Call):
            return KernelOptions(signature=self.source.signature)
        if self.source.is_numba:
            return read_options(call, self.source, self.module, self.reporter)
        values: dict[str, Any] = {}
        at_definition = self.source.environment.as_defined()
        for arg in call.args:
            name = arg.keyword.value if arg.keyword else None
            if name not in KernelKeywords.__annotations__:
                what = f"`kernel` has no option `{name}`" if name else "the options of `kernel` are passed by keyword"
                known = KernelKeywords.__annotations__
                self._error(what, arg, did_you_mean(name or "", known, f"they are {', '.join(known)}"))
            elif isinstance(arg.value, cst.Name) and arg.value.value == "None":
                continue
            elif (value := self._literal(arg.value, at_definition)) is None:
                if not report_ambiguous_name(arg.value, at_definition, self.reporter, self.module.span):
                    self._error(f"`{name}` must be a literal", arg.value, "a kernel's file is read, not run")
            else:
                values[name] = value
        return KernelOptions(**values)

    def _literal(self, node: cst.BaseExpression, at_definition: Environment) -> object:
        match node:
            case cst.Tuple(elements=elements) | cst.List(elements=elements):
                items = [self._literal(element.value, at_definition) for element in elements]
                return tuple(items) if None not in items else None
            case cst.Dict(elements=elements):
                pairs = {}
                for element in elements:
                    if not isinstance(element, cst.DictElement):
                        return None
                    pairs[self._literal(element.key, at_definition)] = self._literal(element.value, at_definition)
                return pairs if None not in pairs and None not in pairs.values() else None
            case _:
                return None if at_definition.first_ambiguous(node) else at_definition.constant(node)

    def _error(self, message: str, node: cst.CSTNode, hint: str) -> None:
        self.reporter.error("P403", message, self.module.span(node), hint)


def find_problems(options: KernelOptions, arrays: Mapping[str, DType], is_index_kernel: bool) -> Iterator[str]:
    """The problems of `options`, whose values may have any type, for a kernel with these arrays."""
    if options.size is not None and is_index_kernel:
        yield "an index kernel has no `size`: its indices say how many threads there are"
    if options.size is not None and not _all_in(options.size, str | int):
        yield "`size` is one to three extents"
    if options.block is not None and not _is_block(options.block):
        yield f"`block` is one to three whole numbers, at most {MAX_THREADS} threads and 64 in z"
    if options.name is not None and not (isinstance(options.name, str) and options.name.isidentifier()):
        yield "`name` is an identifier"
    if not isinstance(options.strided, bool) and not all(isinstance(name, str) for name in _names(options.strided)):
        yield '`strided` is True, False, the name of an array, or several names: `("x", "out")`'
    if options.coarsen not in (None, 1):
        yield "`coarsen` can only be 1 (one element for each thread)"
    if options.launch_bounds is not None and not _are_bounds(options.bounds):
        yield (
            f"`launch_bounds` is `max_threads` (1 to {MAX_THREADS}), or `(max_threads, "
            f"min_blocks_per_multiprocessor)`, the second 1 to {MAX_BLOCKS}"
        )
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


def strided_arrays(options: KernelOptions, arrays: Iterable[str]) -> tuple[str, ...]:
    """The arrays that `strided` names, which may be none of `arrays`."""
    strided = options.strided
    return (tuple(arrays) if strided else ()) if isinstance(strided, bool) else _names(strided)


def _names(value: str | tuple[str, ...]) -> tuple[str, ...]:
    return value if isinstance(value, tuple) else (value,)


def _all_in(value: object, kinds: object) -> bool:
    items = value if isinstance(value, tuple) else (value,)
    return 1 <= len(items) <= 3 and all(isinstance(i, kinds) and not isinstance(i, bool) for i in items)  # type: ignore[arg-type]


def _are_bounds(bounds: tuple[object, ...]) -> bool:
    limits = zip(bounds, (MAX_THREADS, MAX_BLOCKS), strict=False)  # the second may be left out
    return 1 <= len(bounds) <= 2 and all(type(n) is int and 1 <= n <= most for n, most in limits)  # rule: bounds-as-int


def _is_block(block: object) -> bool:
    """Whether the numbers of `block` can be launched; names are checked once their values are known."""
    if not _all_in(block, int | str):
        return False
    extents: tuple[int | str, ...] = block if isinstance(block, tuple) else (block,)
    return is_launchable(tuple(1 if isinstance(extent, str) else extent for extent in extents))
