"""The cache on disk: built libraries by content and compiler, translations by content.

    ROOT/builds/KEY/COMPILER.so         a library; any compiler's build of KEY serves where no compiler is found
    ROOT/builds/KEY/build-*/            a build under way, or what a killed one left; the next build of KEY removes it
    ROOT/translations/STAMP/KEY.pickle  a `Translation`; STAMP names the translator that made it

In: keys, and a function that makes what is missing. Out: paths and translations.
Promises: an entry appears whole or not at all (one `os.replace`), also when processes race or die; of many processes
that want one entry, one makes it and the others wait; a cache that cannot be written costs a warning, not the kernel.
Chosen: the lock only saves work. Where a file system has none, two processes build the same and both are right.
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
"""Raised when the layout of the cache or the meaning of a key changes."""

SIZE_LIMIT: Final = 2 * 2**30
"""Bytes; past it, a build drops what was used longest ago."""

_UNUSABLE: Final = frozenset(
    {errno.EROFS, errno.EACCES, errno.EPERM, errno.ENOSPC, errno.EDQUOT, errno.ENOTDIR, errno.EEXIST, errno.EIO}
)
_STALE_AFTER: Final = 24 * 3600.0
_HINT: Final = "make it writable, free some space, or name another directory in PY2CU_CACHE_DIR"


@dataclass(frozen=True, slots=True)
class Usage:
    """What the cache holds."""

    entries: int
    size: int


def find(key: str, compiler: str | None) -> Path | None:
    """The library built from `key` by `compiler`, or by any where that is None."""
    for root in (location(), *_private_roots):
        directory = root / "builds" / key
        with contextlib.suppress(OSError):
            found = directory / f"{compiler}.so" if compiler else max(directory.glob("*.so"), key=_age, default=None)
            if found is not None and found.is_file():
                _touch(found)
                return found
    return None


def add(key: str, compiler: str, make: Callable[[Path], Path]) -> Path:
    """Find the library, or make it: `make` gets an empty directory and returns the library that it left there.

    Raises:
        EnvironmentLacks: neither the cache nor a temporary directory can be written.
        Whatever `make` raises; the cache is then as before.
    """
    try:
        return _add(location(), key, compiler, make)
    except OSError as error:
        if error.errno not in _UNUSABLE:
            raise
        return _add(_private_root(str(error)), key, compiler, make)


def discard(library: Path) -> None:
    """Forget an entry that turned out broken."""
    with contextlib.suppress(OSError):
        library.unlink()


def memo_get(key: str) -> Translation | None:
    """The translation stored under `key` by this very translator; None too where the file is no good."""
    try:
        path = _translation_path(key)
        value = pickle.loads(path.read_bytes())
        _touch(path)
    except Exception:  # a damaged pickle may raise anything at all, and means the same as none
        return None
    return value if isinstance(value, Translation) else None


def memo_put(key: str, translation: Translation) -> None:
    """Store a translation; where the cache cannot be written, it is made again next time."""
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
    """Try the cache out.

    Raises:
        EnvironmentLacks: it cannot be written; kernels would be built for one process alone.
    """
    root = location()
    try:
        root.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=root) as stream:
            stream.write(b"py2cu")
    except OSError as error:
        raise EnvironmentLacks(f"the cache cannot be written: {error.strerror or error}", _HINT) from error


def usage() -> Usage:
    """Count what the cache holds."""
    sizes = [size for _, size, _ in _entries(location())]
    return Usage(len(sizes), sum(sizes))


def prune(limit: int = SIZE_LIMIT) -> None:
    """Drop the entries used longest ago until the rest fits, and what killed builds left a day ago."""
    root = location()
    entries = sorted(_entries(root))
    excess = sum(size for _, size, _ in entries) - limit
    for _, size, path in entries:
        if excess <= 0:
            break
        discard(path)
        excess -= size
    for left in root.glob("builds/*/build-*"):
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > _STALE_AFTER:
                shutil.rmtree(left, ignore_errors=True)


def _add(root: Path, key: str, compiler: str, make: Callable[[Path], Path]) -> Path:
    directory = root / "builds" / key
    directory.mkdir(parents=True, exist_ok=True)
    target = directory / f"{compiler}.so"
    with _lock(directory / "lock"):
        if target.is_file():
            return target
        for left in directory.glob("build-*"):
            shutil.rmtree(left, ignore_errors=True)
        workplace = Path(tempfile.mkdtemp(dir=directory, prefix="build-"))
        try:
            os.replace(make(workplace), target)
        finally:
            shutil.rmtree(workplace, ignore_errors=True)
    with contextlib.suppress(OSError):
        prune()
    return target


@contextlib.contextmanager
def _lock(path: Path) -> Iterator[None]:
    """Hold the entry's lock. The system lets go of it when the holder dies, so none is ever left behind."""
    import filelock  # costs milliseconds that a cached kernel does not have

    lock = filelock.FileLock(path, poll_interval=0.02)
    try:
        lock.acquire()
    except (OSError, NotImplementedError):
        # A file system without locks. A directory that cannot be written says so again at the next step.
        yield
        return
    try:
        yield
    finally:
        lock.release()


_private_roots: list[Path] = []
"""At most one: this process's own cache, where the shared one cannot be written."""


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
    """Names this translator: every source file and template of the package, by size and time.

    An upgrade or an edit thus never meets a translation of the code before it.
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


def _age(path: Path) -> float:
    return path.stat().st_mtime


def _touch(path: Path) -> None:
    with contextlib.suppress(OSError):
        os.utime(path)
