"""The host functions in a file."""

from __future__ import annotations

from typing import Final

from py2cu.frontend.source.reader import KernelSource, Module

DECORATOR: Final = "py2cu.host"


def host_sources(module: Module, only: str | None = None) -> tuple[KernelSource, ...]:
    """The functions of a file under `@py2cu.host`, or the one called `only`."""
    return tuple(
        source
        for source in module.functions
        if only in (None, source.function.name.value)
        and any(source.environment.decorates(each.decorator) == DECORATOR for each in source.function.decorators)
    )
