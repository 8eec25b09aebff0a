"""Shared libraries that are built from texts: found in the cache, else compiled, and loaded once in a process.

In: a `LibraryBuild`. Out: the path of the library, or what `open` makes of it. Promises: a cached library is found and
loaded without a compiler; threads and processes may build in parallel, each library once.
"""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, Generic, TypeVar

from py2cu.build import cache, toolchain
from py2cu.build.notices import announced
from py2cu.diagnostics import EnvironmentLacks
from py2cu.source import SourceFile
from py2cu.threads import ForkSafeLock

Loaded = TypeVar("Loaded")
Source = Callable[[], SourceFile]
"""Returns the Python that texts were translated from, for messages."""


class LibraryBuild(ABC, Generic[Loaded]):
    """How a library is compiled on this machine and loaded; `key` says all that its content depends on."""

    __slots__ = ()
    key: str
    notice: str  # what to print of a build that takes long; empty for nothing

    @property
    def compiler(self) -> str | None:
        """What identifies the compilers; None if one is missing."""
        return toolchain.cxx_identity()

    def require_tools(self) -> None:
        """Raise EnvironmentLacks for the first program of a build that is missing, with a hint what to install."""
        toolchain.require_cxx()

    @abstractmethod
    def compile(self, folder: Path, source: Source | None) -> Path:
        """Compile and link in `folder`, which is empty.

        Raises:
            BuildError: a compiler refused the text.
            OSError: the folder cannot be written, or is full.
        """

    @abstractmethod
    def open(self, path: Path) -> Loaded:
        """Load the library into this process.

        Raises:
            EnvironmentLacks: it does not load.
        """

    @property
    def cached(self) -> Path | None:
        """The library, if an earlier process built it."""
        return cache.get_library(self.key, self.compiler)

    def library(self, source: Source | None = None) -> Path:
        """The library, compiled unless it is cached.

        Raises:
            BuildError: a compiler refused the text.
            EnvironmentLacks: the library is not cached, and a tool to build it is missing, hangs or fails.
        """
        if (path := self.cached) is not None:
            return path
        self.require_tools()
        with announced(self.notice):
            return cache.put_library(self.key, str(self.compiler), lambda folder: self.compile(folder, source))

    def load(self, source: Source | None = None) -> Loaded:
        """The library, loaded into this process, once; what does not load here is built once more.

        Raises:
            BuildError, EnvironmentLacks: as `library` and `open`.
        """
        key = self.key
        if key not in _loaded:
            path = self.library(source)
            with _LOADING:
                if key not in _loaded:
                    _loaded[key] = self._opened(path, source)
        loaded: Loaded = _loaded[key]
        return loaded

    def _opened(self, path: Path, source: Source | None) -> Loaded:
        with contextlib.suppress(EnvironmentLacks):
            return self.open(path)
        with contextlib.suppress(OSError):
            path.unlink()
        return self.open(self.library(source))


_loaded: Final[dict[str, Any]] = {}
_LOADING: Final = ForkSafeLock()
