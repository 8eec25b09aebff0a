"""Entries of the cache as files: which folders are trusted, which files are whole, and what is removed.

    ROOT/v2/KIND/KEY.SUFFIX      an entry: its content, a line break, and a line of JSON that describes it
    ROOT/v2/KIND/*.part          an entry that is being written, or that a killed process left

In: a root, a kind and a key. Out: the content or the path of an entry.
Promises: content is only taken from a folder that nobody else can write, and only if its length and SHA-256 are those
of its description, under the key that the description names. An entry appears complete or not at all. Nothing is
removed from folders that others can write; a build in progress is left alone.
Errors: `Untrusted` for a folder, other `OSError`s as the file system raises them; of upkeep, `EnvironmentLacks`.

The description stands behind the content, where loaders of shared libraries do not look: one file is one entry, and one
`os.replace` publishes it.
"""

from __future__ import annotations

import contextlib
import enum
import errno
import hashlib
import json
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from py2cu.diagnostics import EnvironmentLacks
from py2cu.records import record

HINT: Final = "make it writable for you alone, free some space, or name another directory in PY2CU_CACHE_DIR"
FORMAT: Final = 2
"""Increment this when the layout of the cache or the meaning of a key changes."""

_SYSTEM: Final = (0, 65534)
"""Owners of folders above the cache: root, and the user as which a sandbox shows all users that it does not map."""

_LONGEST_DESCRIPTION: Final = 4096
_LONGEST_NAME: Final = 200
_SIZE_LIMIT: Final = 2 * 2**30
_STALE_AFTER: Final = 24 * 3600.0


class Kind(enum.StrEnum):
    """What an entry is; the folder that holds the entries of this kind."""

    TRANSLATION = "translations"
    CUBIN = "cubins"
    LIBRARY = "libraries"

    @property
    def suffix(self) -> str:
        return {Kind.TRANSLATION: ".json", Kind.CUBIN: ".cubin", Kind.LIBRARY: ".so"}[self]


class Untrusted(PermissionError):
    """A folder that another user owns or may write, or from which no library can be loaded."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(errno.EACCES, reason, str(path))


@record(frozen=True, slots=True)
class Entry:
    """An entry as `py2cu cache list` shows it; `last_use` in seconds since 1970."""

    kind: Kind
    size: int
    last_use: float
    path: Path

    @property
    def name(self) -> str:
        """The name that the entry was stored with; empty for a damaged one."""
        with contextlib.suppress(OSError), open(self.path, "rb", opener=_open_own) as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - _LONGEST_DESCRIPTION))
            return _name(file.read().rpartition(b"\n")[2])
        return ""


def key_of(*content: object) -> str:
    """The key of what `content`, plain data, decides."""
    return hashlib.sha256(json.dumps((FORMAT, *content)).encode()).hexdigest()


def location() -> Path:
    """The root: `PY2CU_CACHE_DIR`, else the user's cache directory of this platform. It may not exist yet.

    Raises:
        Untrusted: the user has no home directory.
    """
    if named := os.environ.get("PY2CU_CACHE_DIR"):
        root = Path(os.path.expanduser(named))
    else:
        import platformdirs  # takes milliseconds

        try:
            root = Path(platformdirs.user_cache_dir("py2cu"))
        except RuntimeError:  # where older ones return "~/.cache"
            root = Path("~")
    if str(root).startswith("~"):
        raise Untrusted(root, "no home directory is known")
    return root.absolute()


def shared_root() -> Path:
    """`location()` without links.

    Raises:
        Untrusted: somebody else can replace one of the folders above.
    """
    root = Path(os.path.realpath(location()))
    for folder in root.parents:
        with contextlib.suppress(FileNotFoundError):
            status = os.lstat(folder)
            if status.st_uid not in (os.geteuid(), *_SYSTEM):
                raise Untrusted(folder, "it belongs to another user")
            if status.st_mode & stat.S_IWOTH and not status.st_mode & stat.S_ISVTX:
                raise Untrusted(folder, "every user may write it")
    return root


def folder_of(root: Path, kind: Kind, *, create: bool = False) -> Path:
    """The folder of the entries of `kind`.

    Raises:
        Untrusted: it, or a folder between `root` and it, is a link, belongs to another user, or others may write it.
        FileNotFoundError: it does not exist, without `create`.
    """
    folder = root / f"v{FORMAT}" / kind
    for each in (*reversed(root.parents), root, folder.parent, folder):
        if create and not os.path.lexists(each):
            with contextlib.suppress(FileExistsError):  # another process was faster
                each.mkdir(mode=0o700)
        if each in root.parents:
            continue
        status = os.lstat(each)
        if not stat.S_ISDIR(status.st_mode):
            raise NotADirectoryError(errno.ENOTDIR, "it is no directory", str(each))
        if status.st_uid != os.geteuid():
            raise Untrusted(each, "it belongs to another user")
        if status.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise Untrusted(each, "other users may write it")
    return folder


def shared_folder(kind: Kind, *, create: bool = False) -> Path:
    """The folder of the entries of `kind` that processes share.

    Raises:
        Untrusted: as `shared_root` and `folder_of`; also if new libraries could not be loaded from there.
        FileNotFoundError: as `folder_of`.
    """
    folder = folder_of(shared_root(), kind, create=create)
    if create and kind is Kind.LIBRARY:
        require_loadable(folder)
    return folder


def require_loadable(folder: Path) -> None:
    """Raise `Untrusted` if the file system does not let a process load libraries."""
    if os.statvfs(folder).f_flag & os.ST_NOEXEC:
        raise Untrusted(folder, "its file system forbids to load libraries (noexec)")


def reason(error: OSError) -> str:
    """The file and the reason of an error, for a message."""
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error)


def read(folder: Path, kind: Kind, key: str) -> bytes | None:
    """The content of an entry, marked as used now; None if the entry is missing or damaged."""
    with contextlib.suppress(OSError), open(folder / f"{key}{kind.suffix}", "rb", opener=_open_own) as file:
        content, _, line = file.read().rpartition(b"\n")
        if line == _description(kind, key, _name(line), content):
            with contextlib.suppress(OSError):
                os.utime(file.fileno())
            return content
    return None


def write(folder: Path, kind: Kind, key: str, name: str, content: bytes) -> Path:
    """Store an entry in place of an earlier one, and return its path."""
    path = folder / f"{key}{kind.suffix}"
    descriptor, temporary = tempfile.mkstemp(dir=folder, suffix=".part")  # of mode 0600
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.write(b"\n" + _description(kind, key, name[:_LONGEST_NAME], content))
        os.replace(temporary, path)
    finally:
        with contextlib.suppress(OSError):  # it has its own name now, unless an error came before
            os.unlink(temporary)
    return path


def _open_own(path: str, flags: int) -> int:
    """Open a file for `open`, if it is a regular one that only this user can write, and no link."""
    descriptor = os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
    status = os.fstat(descriptor)
    is_own = status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
    if not (is_own and stat.S_ISREG(status.st_mode)):
        os.close(descriptor)
        raise PermissionError(errno.EACCES, "it is no file of this user alone", path)
    return descriptor


def _description(kind: Kind, key: str, name: str, content: bytes) -> bytes:
    digest = hashlib.sha256(content).hexdigest()
    facts = {"format": FORMAT, "kind": kind, "key": key, "name": name, "size": len(content), "sha256": digest}
    return json.dumps(facts).encode()


def _name(description: bytes) -> str:
    """The name in a description; empty if that is damaged."""
    with contextlib.suppress(ValueError, TypeError, LookupError, RecursionError):
        return str(json.loads(description)["name"])
    return ""


# --- upkeep ---


def probe() -> None:
    """Check that the cache can be used.

    Raises:
        EnvironmentLacks: it cannot; kernels would be built for each process anew.
    """
    with _lacking():
        for kind in Kind:
            with tempfile.TemporaryFile(dir=shared_folder(kind, create=True)) as stream:
                stream.write(b"py2cu")


def entries() -> list[Entry]:
    """The entries of the shared cache, the least recently used first."""
    found = []
    for kind, folder in _folders():
        for path in folder.glob(f"*{kind.suffix}"):
            with contextlib.suppress(OSError):
                status = path.lstat()
                found.append(Entry(kind, status.st_size, status.st_mtime, path))
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
                yield kind, shared_folder(kind)


@contextlib.contextmanager
def _lacking() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise EnvironmentLacks(f"the cache cannot be used: {reason(error)}", HINT) from error


def _remove_leftover(path: Path) -> None:
    if path.suffix == ".part":
        path.unlink()
        return
    import filelock

    lock = filelock.FileLock(path.with_suffix(".lock"), blocking=False)
    with contextlib.suppress(filelock.Timeout), lock:  # another process builds this key
        shutil.rmtree(path, ignore_errors=True)
        Path(lock.lock_file).unlink(missing_ok=True)
