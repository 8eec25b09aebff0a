"""Cache on disk: translations, cubins and libraries, by their content and their tool.

    ROOT/v2/libraries/KEY.COMPILER.so    a library; if no compiler is found, a build of KEY by any compiler is used
    ROOT/v2/libraries/KEY.build-*/       a build in progress, or a killed build; the next build of KEY removes it
    ROOT/v2/*/KEY.lock                   held while KEY is built

In: keys (names of files: hex digests), and functions that build what is missing. Out: translations, bytes and paths.
Promises: an entry that others could have written, or that is damaged, is never used, but built anew. If several
processes want one library, one builds it and the others wait. A cache that cannot be used causes one warning, not an
error. The lock only saves work: on a file system without locks, two processes build the same library and both succeed.
`store.py` says which folders and files are trusted, and removes old entries.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import functools
import hashlib
import os
import re
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path
from typing import Final

from py2cu.build import codec, store
from py2cu.build.codec import Class
from py2cu.build.store import HINT, Kind, Untrusted
from py2cu.diagnostics import EnvironmentLacks
from py2cu.translation import CallTranslation, Translation

_PLAIN: Final = re.compile(r"[\w./+-]+", re.ASCII)
_SUFFIX: Final = Kind.LIBRARY.suffix
_OF_PROCESSES: Final = (None, errno.EMFILE, errno.ENFILE, errno.ENOMEM, errno.EAGAIN)
"""Errors of a build that say nothing about the cache."""


# --- data ---


def get(kind: Kind, key: str) -> bytes | None:
    """What was stored under `key`; None if it is missing or damaged."""
    with _tolerated():
        return store.read(store.shared_folder(kind), kind, key)
    return None


def put(kind: Kind, key: str, name: str, content: bytes) -> None:
    """Store `content`, if the cache can be written; `py2cu cache list` shows `name`."""
    try:
        store.write(store.shared_folder(kind, create=True), kind, key, name, content)
    except OSError as error:
        _warn(error)
    else:
        _prune_sometimes(key)


def get_translation(key: str, class_: type[Class]) -> Class | None:
    """What this version of the translator stored under `key`, of that class; None if it is missing or damaged."""
    content = get(Kind.TRANSLATION, _with_stamp(key, class_))
    return None if content is None else codec.decode(content, class_)


def put_translation(key: str, translation: CallTranslation | Translation) -> None:
    """Store a translation, if the cache can be written."""
    put(Kind.TRANSLATION, _with_stamp(key, type(translation)), translation.name, codec.encode(translation))


def cubin(key: str, name: str, make: Callable[[], bytes]) -> bytes:
    """The cubin that is stored under `key`; without one, that of `make`, for which other processes wait."""
    if (found := get(Kind.CUBIN, key)) is not None:
        return found
    with contextlib.ExitStack() as held:
        with _tolerated():
            held.enter_context(_lock(store.shared_folder(Kind.CUBIN, create=True) / f"{key}.lock"))
        if (found := get(Kind.CUBIN, key)) is None:
            found = make()
            put(Kind.CUBIN, key, name, found)
    return found


def _with_stamp(key: str, class_: type) -> str:
    return store.key_of(translator_stamp(), class_.__name__, key)


@functools.cache
def translator_stamp() -> str:
    """Identify this version of the translator: after an upgrade or an edit, no earlier translation is used.

    The file that holds its version and the time of its installation identify a package; of a checkout, size and time
    of every source file and template do.
    """
    package = Path(__file__).parents[1]
    version = package / "__init__.py"
    if (package / "_templates").is_dir():
        return store.key_of(version.read_text(encoding="utf-8"), version.stat().st_mtime_ns)
    walks = chain(os.walk(package), os.walk(package.with_name("templates")))  # `rglob` takes three times as long
    paths = (os.path.join(folder, name) for folder, _, names in walks for name in names)
    stats = ((path, os.stat(path)) for path in paths if path.endswith((".py", ".j2")))
    return store.key_of(*sorted((path, stat.st_size, stat.st_mtime_ns) for path, stat in stats))


# --- files ---


def get_library(key: str, compiler: str | None) -> Path | None:
    """The library of `key` built by `compiler`, or by any compiler if that is None; None if there is none.

    Its content was checked: load it right away.
    """
    for root in (None, *_private_roots):
        with _tolerated():
            folder = store.folder_of(root or store.shared_root(), Kind.LIBRARY)
            if root is None:
                store.require_loadable(folder)
            paths = folder.glob(f"{key}.{compiler or '*'}{_SUFFIX}")
            for path in sorted(paths, key=lambda path: path.lstat().st_mtime, reverse=True):
                if store.read(folder, Kind.LIBRARY, path.name.removesuffix(_SUFFIX)) is not None:
                    return path
    return None


def put_library(key: str, compiler: str, build: Callable[[Path], Path]) -> Path:
    """Build and store a library, unless another process has stored it: `build` gets an empty directory and returns the
    library's path in it, whose name `py2cu cache list` shows.

    Raises:
        EnvironmentLacks: neither the cache nor a temporary directory can be written.
        Any error of `build`; the cache is then unchanged.
    """
    try:
        return _build_in(store.shared_folder(Kind.LIBRARY, create=True), key, compiler, build)
    except OSError as error:
        if error.errno in _OF_PROCESSES:
            raise
        _warn(error)
        return _build_in(store.folder_of(_private_root(), Kind.LIBRARY, create=True), key, compiler, build)


def _build_in(folder: Path, key: str, compiler: str, build: Callable[[Path], Path]) -> Path:
    entry = f"{key}.{compiler}"
    with _lock(folder / f"{key}.lock"):
        if store.read(folder, Kind.LIBRARY, entry) is not None:
            return folder / f"{entry}{_SUFFIX}"
        for leftover in folder.glob(f"{key}.build-*"):
            shutil.rmtree(leftover, ignore_errors=True)
        # Build tools do not quote paths: where this one needs it, they work in the directory for temporary files.
        place = folder if _PLAIN.fullmatch(str(folder)) else None
        workplace = Path(tempfile.mkdtemp(dir=place, prefix=f"{key}.build-"))
        try:
            built = build(workplace)
            path = store.write(folder, Kind.LIBRARY, entry, built.stem, built.read_bytes())
        finally:
            shutil.rmtree(workplace, ignore_errors=True)
    _prune_sometimes(key)
    return path


def _prune_sometimes(key: str) -> None:
    """After one entry in 256: listing all takes time, half a second of a full cache."""
    if not hashlib.sha256(key.encode()).digest()[0]:
        with contextlib.suppress(OSError, EnvironmentLacks):
            store.prune()


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Hold the entry's lock. The system releases it when the holder dies, so none is ever left behind."""
    import filelock  # takes milliseconds, and a cached kernel needs no lock

    with contextlib.ExitStack() as held:
        # Some file systems have no locks. If the directory cannot be written, the next step raises.
        with contextlib.suppress(OSError, NotImplementedError):
            held.enter_context(filelock.FileLock(path, mode=0o600, poll_interval=0.02))
        yield


# --- roots ---

_private_roots: list[Path] = []
"""At most one: a cache of this process, used if the shared one cannot be."""

_warned: list[str] = []
"""The reason why the shared cache is not used, as the one warning gave it."""


@contextlib.contextmanager
def _tolerated() -> Iterator[None]:
    """Take an entry that cannot be read for a missing one, and warn about a folder that is not trusted."""
    try:
        yield
    except Untrusted as error:
        _warn(error)
    except OSError:
        pass


def _private_root() -> Path:
    if not _private_roots:
        try:
            root = Path(os.path.realpath(tempfile.mkdtemp(prefix="py2cu-")))
        except OSError as error:
            raise EnvironmentLacks(f"no directory to build in can be written: {error}", HINT) from error
        atexit.register(_remove_private, root, os.getpid())
        _private_roots.append(root)
    return _private_roots[0]


def _remove_private(root: Path, owner: int) -> None:
    """Remove the cache of the process `owner` as it exits; a forked child, which inherits the call, does nothing."""
    if os.getpid() == owner:
        shutil.rmtree(root, ignore_errors=True)


def _warn(error: OSError) -> None:
    if not _warned:
        _warned.append(store.reason(error))
        what = f"the cache cannot be used ({_warned[0]}); kernels are built for this process alone: {HINT}"
        warnings.warn(what, stacklevel=5)
