"""Upkeep of the cache on disk: examine it, list its entries, and remove what is old or left over.

In: the shared cache. Out: its entries, or those that were removed.
Promises: nothing is removed from folders that others can write; a build in progress is left alone.
Errors: `EnvironmentLacks` if the cache cannot be used: its folders belong to another user, or others may write them.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from py2cu.build import store
from py2cu.build.store import HINT, Entry, Kind
from py2cu.diagnostics import EnvironmentLacks

_SIZE_LIMIT: Final = 2 * 2**30
_STALE_AFTER: Final = 24 * 3600.0


def probe() -> None:
    """Check that the cache can be used.

    Raises:
        EnvironmentLacks: it cannot; kernels would be built for each process anew.
    """
    with _lacking():
        for kind in Kind:
            with tempfile.TemporaryFile(dir=store.shared_folder(kind, create=True)) as stream:
                stream.write(b"py2cu")


def entries() -> list[Entry]:
    """The entries of the shared cache, the least recently used first."""
    found = (entry for kind, folder in _folders() for entry in store.entries(folder, kind))
    return sorted(found, key=lambda entry: (entry.last_use, entry.path))


def prune(limit: int = _SIZE_LIMIT, stale_after: float = _STALE_AFTER) -> list[Entry]:
    """Remove the least recently used entries until the rest fits in `limit` bytes, and what killed processes left.

    Leftovers are younger than `stale_after` seconds while their process may be alive. Returns what was removed.
    """
    found = entries()
    excess, removed = sum(entry.size for entry in found) - limit, []
    for entry in found:
        if excess <= 0:
            break
        with contextlib.suppress(OSError):
            entry.path.unlink()
            removed.append(entry)
            excess -= entry.size
    for _, folder in _folders():
        for leftover in (*folder.glob("*.part"), *folder.glob("*.build-*"), *folder.glob("*.lock")):
            with contextlib.suppress(OSError):
                if time.time() - os.lstat(leftover).st_mtime >= stale_after:
                    _remove_leftover(leftover)
    return removed


def clear() -> list[Entry]:
    """Remove every entry, and what killed processes left; builds in progress go on. Returns what was removed."""
    return prune(limit=-1, stale_after=0)


def _folders() -> Iterator[tuple[Kind, Path]]:
    """The folders of the shared cache that exist."""
    with _lacking():
        for kind in Kind:
            with contextlib.suppress(FileNotFoundError):
                yield kind, store.shared_folder(kind)


@contextlib.contextmanager
def _lacking() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise EnvironmentLacks(f"the cache cannot be used: {store.reason(error)}", HINT) from error


def _remove_leftover(path: Path) -> None:
    if path.suffix == ".part":
        return path.unlink()
    import filelock

    lock = filelock.FileLock(path.with_suffix(".lock"), blocking=False)
    with contextlib.suppress(filelock.Timeout), lock:  # another process builds this key
        shutil.rmtree(path, ignore_errors=True)
        Path(lock.lock_file).unlink(missing_ok=True)
    return None
