"""Compile and load translations, with a cache on disk.

`fill_cache` compiles the instances that calls run, `build_library` the written files unless they are cached; `load`
also registers the operators of the files with torch. `doctor` examines the tools, `cache` stores translations and
binaries. Errors: `BuildError`, and `EnvironmentLacks` for a missing tool.

Modules are imported lazily: the call of a cached kernel needs few of them.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from py2cu.build.instances import fill_cache
    from py2cu.build.library import build_library, load
    from py2cu.build.messages import BuildError

__all__ = ["BuildError", "build_library", "fill_cache", "load"]
_PLACES = {"fill_cache": "instances", "build_library": "library", "load": "library", "BuildError": "messages"}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    value = globals()[name] = getattr(importlib.import_module(f"{__name__}.{_PLACES[name]}"), name)
    return value
