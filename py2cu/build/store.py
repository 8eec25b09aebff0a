"""Entries of the cache as files: which folders are trusted, and which files are whole.

    ROOT/v2/KIND/KEY.SUFFIX      an entry: its content, a line break, and a line of JSON that describes it
    ROOT/v2/KIND/*.part          an entry that is being written, or that a killed process left

In: a root, a kind and a key. Out: the content or the path of an entry.
Promises: content is only taken from a folder that nobody else can write, and only if its length and SHA-256 are those
of its description, under the key that the description names. An entry appears complete or not at all.
Errors: `Untrusted` for a folder, `Damaged` for an entry, other `OSError`s as the file system raises them.

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
import stat
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from py2cu.records import record

HINT: Final = "make it writable for you alone, free some space, or name another directory in PY2CU_CACHE_DIR"
FORMAT: Final = 2
"""Increment this when the layout of the cache or the meaning of a key changes."""

_SYSTEM: Final = (0, 65534)
"""Owners of folders above the cache: root, and the user as which a sandbox shows all users that it does not map."""

_LONGEST_DESCRIPTION: Final = 4096
_LONGEST_NAME: Final = 200


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


class Damaged(OSError):
    """An entry that is a link, belongs to another user, is cut short or changed, or has another entry's place."""


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
        with contextlib.suppress(OSError), _opened(self.path) as descriptor:
            start = max(0, os.fstat(descriptor).st_size - _LONGEST_DESCRIPTION)
            return _name(_split(os.pread(descriptor, _LONGEST_DESCRIPTION, start))[1])
        return ""


def location() -> Path:
    """The root: `PY2CU_CACHE_DIR`, else the user's cache directory of this platform. It may not exist yet.

    Raises:
        Untrusted: the user has no home directory.
    """
    if named := os.environ.get("PY2CU_CACHE_DIR"):
        root = Path(os.path.expanduser(named))
    else:
        import platformdirs

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
    if create and not os.path.lexists(folder):
        for each in reversed([folder, *folder.parents]):
            if not os.path.lexists(each):
                with contextlib.suppress(FileExistsError):  # another process was faster
                    each.mkdir(mode=0o700)
    for each in (root, folder.parent, folder):
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
        OSError: as `shared_root` and `folder_of`.
    """
    return folder_of(shared_root(), kind, create=create)


def require_loadable(folder: Path) -> None:
    """Check that the file system lets a process load libraries.

    Raises:
        Untrusted: it is mounted `noexec`.
    """
    if os.statvfs(folder).f_flag & os.ST_NOEXEC:
        raise Untrusted(folder, "its file system forbids to load libraries (noexec)")


def reason(error: OSError) -> str:
    """The file and the reason of an error, for a message."""
    return f"{error.filename}: {error.strerror}" if error.filename else error.strerror or str(error)


def read(folder: Path, kind: Kind, key: str) -> bytes:
    """The content of an entry, which counts as used now.

    Raises:
        Damaged: the file is not what was written under this key.
        FileNotFoundError: there is no entry.
    """
    with _opened(folder / f"{key}{kind.suffix}") as descriptor:
        with open(descriptor, "rb", closefd=False) as stream:
            data = stream.read()
        content, line = _split(data)
        if line != _description(kind, key, _name(line), content):
            raise Damaged(errno.EBADMSG, "its content is not what was written")
        with contextlib.suppress(OSError):
            os.utime(descriptor)
    return bytes(content)


def write(folder: Path, kind: Kind, key: str, name: str, content: bytes) -> Path:
    """Store an entry in place of an earlier one, and return its path."""
    path = folder / f"{key}{kind.suffix}"
    descriptor, temporary = tempfile.mkstemp(dir=folder, suffix=".part")  # of mode 0600
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.write(b"\n" + _description(kind, key, name[:_LONGEST_NAME], memoryview(content)))
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    return path


def entries(folder: Path, kind: Kind) -> Iterator[Entry]:
    """The entries in a folder."""
    with os.scandir(folder) as files:
        for file in files:
            if file.name.endswith(kind.suffix):
                with contextlib.suppress(OSError):
                    status = file.stat(follow_symlinks=False)
                    yield Entry(kind, status.st_size, status.st_mtime, Path(file.path))


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int]:
    """A descriptor of a regular file that only this user can write; a link is not followed.

    Raises:
        Damaged: `path` is something else.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise Damaged(error.errno, error.strerror) from error
    try:
        status = os.fstat(descriptor)
        is_private = status.st_uid == os.geteuid() and not status.st_mode & (stat.S_IWGRP | stat.S_IWOTH)
        if not stat.S_ISREG(status.st_mode) or not is_private:
            raise Damaged(errno.EACCES, "it is no file of this user alone")
        yield descriptor
    finally:
        os.close(descriptor)


def _split(data: bytes) -> tuple[memoryview, bytes]:
    """The content of an entry, and the line that describes it.

    Raises:
        Damaged: there is no such line.
    """
    at = data.rfind(b"\n", max(0, len(data) - _LONGEST_DESCRIPTION))
    if at < 0:
        raise Damaged(errno.EBADMSG, "its description is missing")
    return memoryview(data)[:at], data[at + 1 :]


def _description(kind: Kind, key: str, name: str, content: memoryview) -> bytes:
    digest = hashlib.sha256(content).hexdigest()
    facts = {"format": FORMAT, "kind": kind, "key": key, "name": name, "size": len(content), "sha256": digest}
    return json.dumps(facts).encode()


def _name(description: bytes) -> str:
    """The name in a description.

    Raises:
        Damaged: it is none.
    """
    try:
        facts = json.loads(description)
    except (ValueError, RecursionError):
        facts = None
    if not isinstance(facts, dict) or not isinstance(facts.get("name"), str):
        raise Damaged(errno.EBADMSG, "its description is damaged")
    return str(facts["name"])
