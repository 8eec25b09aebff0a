"""The cache: entries appear whole, are shared, survive trouble, and stay within their limit."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from py2cu.build import cache, store
from py2cu.build.store import Kind
from py2cu.diagnostics import EnvironmentLacks
from py2cu.translation import Artifacts, TargetName, Text, Translation

EMPTY = Text("k", "", ())
pytestmark = pytest.mark.usefixtures("root")


def make(directory: Path) -> Path:
    (directory / "made").write_text("library")
    return directory / "made"


def translation(name: str) -> Translation:
    texts = {target: Artifacts(name, target, EMPTY, EMPTY, EMPTY) for target in TargetName}
    return Translation(name=name, python_file="k.py", signatures=(), notes=(), texts=texts)


def test_location_is_the_users_unless_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert store.location() == tmp_path / "cache"
    monkeypatch.delenv("PY2CU_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert store.location() == tmp_path / "xdg" / "py2cu"


@pytest.mark.parametrize("named", ["", "~nobody-of-this-name/cache"])
def test_without_a_home_the_cache_is_unusable(named: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PY2CU_CACHE_DIR", named)
    monkeypatch.setattr("platformdirs.user_cache_dir", lambda _: "~/.cache/py2cu")  # no HOME, and an unknown user
    with pytest.warns(UserWarning, match="no home directory is known"):
        cache.put(Kind.CUBIN, "key", "", b"code")
    assert cache.get(Kind.CUBIN, "key") is None
    with pytest.raises(EnvironmentLacks, match="no home directory is known"):
        store.probe()


def test_an_entry_is_made_once_and_found_by_its_compiler(root: Path) -> None:
    assert cache.get_library("key", "gcc") is None
    path = cache.put_library("key", "gcc", make)
    assert path == root / "v2" / "libraries" / "key.gcc.so" == cache.get_library("key", "gcc")
    assert cache.put_library("key", "gcc", lambda directory: pytest.fail("made again")) == path
    assert cache.get_library("key", "clang") is None
    assert cache.get_library("other", None) is None


def test_without_a_compiler_the_newest_build_serves() -> None:
    old, new = cache.put_library("key", "gcc", make), cache.put_library("key", "clang", make)
    os.utime(old, (1, 1))
    assert cache.get_library("key", None) == new


def test_of_many_threads_one_makes_the_entry() -> None:
    calls: list[Path] = []

    def make_slowly(directory: Path) -> Path:
        calls.append(directory)
        time.sleep(0.05)
        return make(directory)

    with ThreadPoolExecutor(4) as threads:
        paths = set(threads.map(lambda _: cache.put_library("key", "gcc", make_slowly), range(8)))
    assert len(paths) == len(calls) == 1


@pytest.mark.parametrize("error", [KeyboardInterrupt(), ValueError("no")])
def test_a_build_that_ends_early_leaves_nothing(root: Path, error: BaseException) -> None:
    def fail(directory: Path) -> Path:
        make(directory)
        raise error

    with pytest.raises(type(error)):
        cache.put_library("key", "gcc", fail)
    assert [path.name for path in (root / "v2" / "libraries").iterdir() if path.suffix != ".lock"] == []
    assert cache.put_library("key", "gcc", make).read_text().startswith("library\n")


def test_what_a_killed_build_left_is_removed_by_the_next(root: Path) -> None:
    cache.put_library("other", "gcc", make)
    left = root / "v2" / "libraries" / "key.build-killed"
    left.mkdir()
    cache.put_library("key", "gcc", make)
    assert not left.exists()


@pytest.mark.parametrize("number", [errno.EROFS, errno.ENOSPC, errno.EACCES])
def test_an_unusable_cache_costs_one_warning(root: Path, number: int) -> None:
    def make_outside(directory: Path) -> Path:
        if directory.is_relative_to(root):
            raise OSError(number, os.strerror(number))
        return make(directory)

    with pytest.warns(UserWarning, match="cache cannot be used") as caught:
        first, second = cache.put_library("a", "gcc", make_outside), cache.put_library("b", "gcc", make_outside)
    assert len(caught) == 1 and "PY2CU_CACHE_DIR" in str(caught[0].message)
    assert cache.get_library("a", "gcc") == first and cache.get_library("b", None) == second


def test_a_file_in_place_of_the_directory_is_an_unusable_cache(root: Path) -> None:
    root.write_text("")
    with pytest.raises(EnvironmentLacks, match="cannot be used"):
        store.probe()
    with pytest.warns(UserWarning, match="cannot be used"):
        cache.put_translation("key", translation("k"))
    assert cache.put_library("key", "gcc", make).is_file()  # without another warning
    assert cache.get_translation("key", Translation) is None and cache.get_library("key", "clang") is None
    with pytest.raises(EnvironmentLacks, match="cannot be used"):
        store.entries()


def test_nowhere_to_write_is_said_so(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root.write_text("")

    def refuse(**_: object) -> str:
        raise OSError(errno.ENOSPC, "full")

    monkeypatch.setattr("py2cu.build.cache.tempfile.mkdtemp", refuse)
    with (
        pytest.warns(UserWarning, match="cannot be used"),
        pytest.raises(EnvironmentLacks, match="no directory to build in"),
    ):
        cache.put_library("key", "gcc", make)


def test_a_forked_child_leaves_the_private_cache_to_its_parent() -> None:
    program = """
import os, sys
from py2cu.build import cache
root = cache._private_root()
child = os.fork()
if not child:
    sys.exit()
os.waitpid(child, 0)
assert root.is_dir()
print(root)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not Path(done.stdout.strip()).exists()


def test_a_file_system_without_locks_still_builds(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise NotImplementedError

    monkeypatch.setattr("filelock.FileLock.acquire", refuse)
    assert cache.put_library("key", "gcc", make).is_file()


def test_translations_come_back_and_damaged_ones_do_not(root: Path) -> None:
    cache.put_translation("key", translation("k"))
    assert cache.get_translation("key", Translation) == translation("k")
    assert cache.get_translation("other", Translation) is None
    (path,) = root.glob("v2/translations/*")
    for damage in (b"", b"no description", path.read_bytes()[:-20], path.read_bytes() + b" "):
        path.write_bytes(damage)
        assert cache.get_translation("key", Translation) is None
        cache.put_translation("key", translation("k"))
        assert cache.get_translation("key", Translation) == translation("k")


def test_cubins_come_back(root: Path) -> None:
    assert cache.get(Kind.CUBIN, "key") is None
    for code in (b"", b"\n", bytes(range(256)) * 100):
        cache.put(Kind.CUBIN, "key", "add", code)
        assert cache.get(Kind.CUBIN, "key") == code
    assert [(entry.kind.value, entry.name) for entry in store.entries()] == [("cubins", "add")]


def test_a_long_name_is_cut() -> None:
    cache.put(Kind.CUBIN, "key", "\u2200" * 10_000, b"code")
    assert cache.get(Kind.CUBIN, "key") == b"code"
    assert [entry.name for entry in store.entries()] == ["\u2200" * 200]


def test_another_translator_does_not_see_them(monkeypatch: pytest.MonkeyPatch) -> None:
    cache.put_translation("key", translation("k"))
    monkeypatch.setattr(cache, "translator_stamp", lambda: "edited")
    assert cache.get_translation("key", Translation) is None


def test_what_was_used_longest_ago_goes_first() -> None:
    paths = [cache.put_library(name, "gcc", make) for name in "abc"]
    for index, path in enumerate(paths):
        os.utime(path, (index, index))
    cache.get_library("a", "gcc")
    size = paths[0].stat().st_size
    assert [entry.size for entry in store.entries()] == [size] * 3
    assert [entry.path for entry in store.prune(limit=2 * size)] == [paths[1]]
    assert [path.exists() for path in paths] == [True, False, True]


def test_pruning_takes_builds_that_were_left_a_day_ago(root: Path) -> None:
    cache.put_library("other", "gcc", make)
    fresh, old, part = (root / "v2" / "libraries" / name for name in ("a.build-fresh", "b.build-old", "x.part"))
    fresh.mkdir()
    old.mkdir()
    part.touch()
    for path in (old, part):
        os.utime(path, (1, 1))
    store.prune()
    assert fresh.exists() and not old.exists() and not part.exists()


def test_clearing_takes_all_but_a_build_in_progress(root: Path) -> None:
    cache.put(Kind.CUBIN, "key", "", b"code")
    cache.put_library("done", "gcc", make)
    (root / "mine.txt").touch()
    (root / "v2" / "libraries" / "dead.build-x").mkdir()

    def clear(directory: Path) -> Path:
        assert len(store.clear()) == 2
        assert directory.is_dir()
        return make(directory)

    path = cache.put_library("key", "gcc", clear)
    assert {each.name for each in root.rglob("*") if each.is_file()} == {path.name, "key.lock", "mine.txt"}
    assert len(store.clear()) == 1 and store.clear() == []
    assert [each for each in root.rglob("*") if each.is_file()] == [root / "mine.txt"]


@pytest.mark.parametrize("name", ["a b", "a'b", 'a"b', "a$b", "a;b", "a\nb", "ä", "-a"])
def test_paths_may_hold_any_characters(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PY2CU_CACHE_DIR", str(tmp_path / name))

    def make_in_plain_path(directory: Path) -> Path:
        assert name == "-a" or name not in str(directory)
        return make(directory)

    path = cache.put_library("key", "gcc", make_in_plain_path)
    assert path == cache.get_library("key", "gcc") and path.is_relative_to(tmp_path / name)


def test_an_installed_package_is_identified_by_its_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "py2cu"
    (package / "_templates").mkdir(parents=True)
    (package / "build").mkdir()
    (package / "__init__.py").write_text('__version__ = "1"')
    monkeypatch.setattr(cache, "__file__", str(package / "build" / "cache.py"))
    stamp = cache.translator_stamp.__wrapped__
    first = stamp()
    (package / "other.py").touch()
    assert stamp() == first
    time.sleep(0.01)
    (package / "__init__.py").write_text('__version__ = "2"')
    assert stamp() != first
