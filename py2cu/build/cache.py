"""Cache on disk: libraries by content and compiler, translations by content.

    ROOT/builds/KEY/COMPILER.so         a library; if no compiler is found, a build of KEY by any compiler is used
    ROOT/builds/KEY/build-*/            a build in progress, or a killed build; the next build of KEY removes it
    ROOT/translations/STAMP/KEY.pickle  a `Translation`; STAMP identifies the translator that wrote it

In: keys, and a function that builds a missing library. Out: paths and translations.
Promises: an entry appears complete or not at all (one `os.replace`), even if processes race or die. If several
processes want one library, one builds it and the others wait. A cache that cannot be written causes a warning, not an
error. The lock only saves work: on a file system without locks, two processes build the same library and both succeed.
"""

from __future__ import annotations

import atexit
import contextlib
import errno
import functools
import hashlib
import os
import pickle
import shutil
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from py2cu.cache_directory import location
from py2cu.diagnostics import EnvironmentLacks
from py2cu.translation import Translation

FORMAT: Final = 1
"""Increment this when the layout of the cache or the meaning of a key changes."""

SIZE_LIMIT: Final = 2 * 2**30
"""Bytes; beyond this size, a build removes the least recently used entries."""

_UNUSABLE: Final = frozenset(
    {errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EDQUOT, errno.ENOTDIR, errno.EEXIST, errno.EIO}
)
_STALE_AFTER: Final = 24 * 3600.0
_HINT: Final = "make it writable, free some space, or name another directory in PY2CU_CACHE_DIR"


@dataclass(frozen=True, slots=True)
class Usage:
    """The number of entries in the cache, and their total size in bytes."""

    entries: int
    size: int


def get_library(key: str, compiler: str | None) -> Path | None:
    """The library of `key` built by `compiler`, or by any compiler if that is None; None if there is none."""
    for root in (location(), *_private_roots):
        directory = root / "builds" / key
        with contextlib.suppress(OSError):
            path = directory / f"{compiler}.so"
            if compiler is None:
                path = max(directory.glob("*.so"), key=_last_use, default=path)
            if path.is_file():
                _mark_used(path)
                return path
    return None


def put_library(key: str, compiler: str, build: Callable[[Path], Path]) -> Path:
    """Build and store a library, unless another process has stored it: `build` gets an empty directory and returns the
    library's path in it.

    Raises:
        EnvironmentLacks: neither the cache nor a temporary directory can be written.
        Any error of `build`; the cache is then unchanged.
    """
    try:
        return _put_library(location(), key, compiler, build)
    except OSError as error:
        if error.errno not in _UNUSABLE:
            raise
        return _put_library(_private_root(str(error)), key, compiler, build)


def discard(library: Path) -> None:
    """Remove a damaged entry."""
    with contextlib.suppress(OSError):
        library.unlink()


def get_translation(key: str) -> Translation | None:
    """The translation that this version of the translator stored under `key`; None if it is missing or damaged."""
    try:
        path = _translation_path(key)
        value = pickle.loads(path.read_bytes())
        _mark_used(path)
    except Exception:  # a damaged pickle may raise anything, and counts as a missing entry
        return None
    return value if isinstance(value, Translation) else None


def put_translation(key: str, translation: Translation) -> None:
    """Store a translation, if the cache can be written."""
    path = _translation_path(key)
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        descriptor, temporary = tempfile.mkstemp(dir=path.parent, suffix=".part")
        try:
            with os.fdopen(descriptor, "wb") as stream:
                pickle.dump(translation, stream, protocol=pickle.HIGHEST_PROTOCOL)
            os.replace(temporary, path)
        except BaseException:
            os.unlink(temporary)
            raise


def probe() -> None:
    """Check that the cache can be written.

    Raises:
        EnvironmentLacks: it cannot; kernels would be built for each process anew.
    """
    root = location()
    try:
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=root) as stream:
            stream.write(b"py2cu")
    except OSError as error:
        raise EnvironmentLacks(f"the cache cannot be written: {error.strerror or error}", _HINT) from error


def usage() -> Usage:
    """The number of entries and their total size."""
    sizes = [size for _, size, _ in _entries(location())]
    return Usage(len(sizes), sum(sizes))


def prune(limit: int = SIZE_LIMIT) -> None:
    """Remove the least recently used entries until the rest fits in `limit` bytes, and day-old leftovers of builds."""
    root = location()
    entries = sorted(_entries(root))
    excess = sum(size for _, size, _ in entries) - limit
    for _, size, path in entries:
        if excess <= 0:
            break
        discard(path)
        excess -= size
    for leftover in root.glob("builds/*/build-*"):
        with contextlib.suppress(OSError):
            if time.time() - leftover.stat().st_mtime > _STALE_AFTER:
                shutil.rmtree(leftover, ignore_errors=True)


def _put_library(root: Path, key: str, compiler: str, build: Callable[[Path], Path]) -> Path:
    directory = root / "builds" / key
    directory.mkdir(parents=True, exist_ok=True)
    target = directory / f"{compiler}.so"
    with _lock(directory / "lock"):
        if target.is_file():
            return target
        for leftover in directory.glob("build-*"):
            shutil.rmtree(leftover, ignore_errors=True)
        workplace = Path(tempfile.mkdtemp(dir=directory, prefix="build-"))
        try:
            os.replace(build(workplace), target)
        finally:
            shutil.rmtree(workplace, ignore_errors=True)
    with contextlib.suppress(OSError):
        prune()
    return target


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Hold the entry's lock. The system releases it when the holder dies, so none is ever left behind."""
    import filelock  # takes milliseconds, and a cached kernel needs no lock

    lock = filelock.FileLock(path, poll_interval=0.02)
    try:
        lock.acquire()
    except (OSError, NotImplementedError):
        # A file system without locks. If the directory cannot be written, the next step raises.
        yield
        return
    try:
        yield
    finally:
        lock.release()


_private_roots: list[Path] = []
"""At most one: a cache of this process, used if the shared one cannot be written."""


def _private_root(reason: str) -> Path:
    if not _private_roots:
        try:
            root = Path(tempfile.mkdtemp(prefix="py2cu-"))
        except OSError as error:
            raise EnvironmentLacks(f"no directory to build in can be written: {error}", _HINT) from error
        atexit.register(shutil.rmtree, root, ignore_errors=True)
        _private_roots.append(root)
        warnings.warn(
            f"the cache cannot be written ({reason}); kernels are built for this process alone: {_HINT}", stacklevel=4
        )
    return _private_roots[0]


def _translation_path(key: str) -> Path:
    name = hashlib.sha256(key.encode()).hexdigest()[:32]
    return location() / "translations" / translator_stamp() / f"{name}.pickle"


@functools.cache
def translator_stamp() -> str:
    """Identify this version of the translator: every source file and template of the package, by size and time.

    After an upgrade or an edit, no earlier translation is used.
    """
    package = Path(__file__).parents[1]
    places = (package.rglob("*.py"), package.rglob("*.j2"), (package.parent / "templates").rglob("*.j2"))
    stats = ((str(path), path.stat()) for place in places for path in place)
    facts = sorted((path, stat.st_size, stat.st_mtime_ns) for path, stat in stats)
    return hashlib.sha256(repr((FORMAT, facts)).encode()).hexdigest()[:16]


def _entries(root: Path) -> Iterator[tuple[float, int, Path]]:
    """Time of last use, size and path of each entry."""
    for pattern in ("builds/*/*.so", "translations/*/*.pickle"):
        for path in root.glob(pattern):
            with contextlib.suppress(OSError):
                stat = path.stat()
                yield stat.st_mtime, stat.st_size, path


def _last_use(path: Path) -> float:
    return path.stat().st_mtime


def _mark_used(path: Path) -> None:
    with contextlib.suppress(OSError):
        os.utime(path)
