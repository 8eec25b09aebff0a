"""An attacker who wrote into the cache, or may write it: nothing of theirs is ever read, loaded or removed."""

from __future__ import annotations

import os
import pickle
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from py2cu.build import cache, codec, store
from py2cu.build.store import Kind
from py2cu.diagnostics import EnvironmentLacks
from py2cu.translation import Translation

TRANSLATION = Translation(name="k", python_file="k.py", signatures=(), notes=(), texts={})
NOBODY = 12345
pytestmark = pytest.mark.usefixtures("root")


def make(directory: Path) -> Path:
    (directory / "made.so").write_text("mine")
    return directory / "made.so"


def fill() -> None:
    cache.put_translation("key", TRANSLATION)
    cache.put(Kind.CUBIN, "key", "", b"mine")
    cache.put_library("key", "gcc", make)


def is_filled() -> bool:
    library = cache.get_library("key", "gcc")
    found = (
        cache.get_translation("key", Translation),
        cache.get(Kind.CUBIN, "key"),
        library and library.read_bytes()[:4],
    )
    assert found in ((TRANSLATION, b"mine", b"mine"), (None, None, None))
    return found[0] is not None


def chown(path: Path) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    os.chown(path, NOBODY, NOBODY, follow_symlinks=False)


def is_private(library: Path, root: Path) -> bool:
    return not library.is_relative_to(root) and library.read_bytes()[:4] == b"mine"


def test_nothing_is_written_where_others_may_write(root: Path) -> None:
    root.mkdir()
    root.chmod(0o1777)
    with pytest.warns(UserWarning, match="other users may write it"):
        fill()
    assert not [*root.iterdir()]


FOLDERS = (".", "v2", "v2/*")


@pytest.mark.parametrize("folder", FOLDERS)
@pytest.mark.parametrize("mode", [0o775, 0o757, 0o777, 0o1777])
def test_a_folder_that_others_may_write(folder: str, mode: int, root: Path) -> None:
    fill()
    assert is_filled()
    for path in root.glob(folder) if folder != "." else [root]:
        path.chmod(mode)
    with pytest.warns(UserWarning, match=r"cannot be used \(.*other users may write it\)"):
        assert not is_filled()
    # Another warning would be an error.
    assert is_private(cache.put_library("key", "gcc", make), root)
    cache.put(Kind.CUBIN, "key", "", b"mine")
    cache.put_translation("key", TRANSLATION)
    assert cache.get_library("key", "gcc") is not None
    for command in (store.probe, store.entries, store.clear):
        with pytest.raises(EnvironmentLacks, match="other users may write it"):
            command()


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_folder_of_another_user(folder: str, root: Path) -> None:
    fill()
    for path in root.glob(folder) if folder != "." else [root]:
        chown(path)
    with pytest.warns(UserWarning, match="belongs to another user"):
        assert not is_filled()
    assert is_private(cache.put_library("key", "gcc", make), root)


def test_a_cache_of_another_user_without_being_root(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill()
    user = os.geteuid()
    monkeypatch.setattr(store, "_SYSTEM", (user, 0))  # the folders above are as they were
    monkeypatch.setattr("os.geteuid", lambda: user + 1)
    with pytest.warns(UserWarning, match="belongs to another user"):
        assert not is_filled()


def test_a_folder_above_that_every_user_may_write(tmp_path: Path) -> None:
    fill()
    tmp_path.chmod(0o1777)  # as /tmp: nobody can replace what is another user's
    assert is_filled()
    tmp_path.chmod(0o777)
    with pytest.warns(UserWarning, match="every user may write it"):
        assert not is_filled()
    tmp_path.chmod(0o700)


def test_a_folder_above_of_another_user(tmp_path: Path) -> None:
    fill()
    chown(tmp_path)
    with pytest.warns(UserWarning, match="belongs to another user"):
        assert not is_filled()


def test_the_umask_opens_nothing(root: Path) -> None:
    before = os.umask(0)
    try:
        fill()
    finally:
        os.umask(before)
    assert is_filled()
    paths = [root, *root.rglob("*")]
    assert not [path for path in paths if path.stat().st_mode & 0o022 and path.suffix != ".lock"]


def test_a_link_to_a_cache_of_ones_own_is_followed_and_checked(root: Path, tmp_path: Path) -> None:
    fill()
    root.rename(tmp_path / "elsewhere")
    root.symlink_to("elsewhere")
    assert is_filled()
    (tmp_path / "elsewhere").chmod(0o777)
    with pytest.warns(UserWarning, match="elsewhere: other users may write it"):
        assert not is_filled()


@pytest.mark.parametrize("folder", ["v2", "v2/translations"])
def test_a_linked_folder_within_is_not_followed(folder: str, root: Path, tmp_path: Path) -> None:
    fill()
    (root / folder).rename(tmp_path / "elsewhere")
    (root / folder).symlink_to(tmp_path / "elsewhere")
    assert cache.get_translation("key", Translation) is None
    with pytest.warns(UserWarning, match="it is no directory"):
        cache.put_translation("key", TRANSLATION)
    with pytest.raises(EnvironmentLacks, match="it is no directory"):
        store.clear()
    assert list((tmp_path / "elsewhere").iterdir())


def entries(root: Path) -> list[Path]:
    return [path for path in root.glob("v2/*/*") if path.suffix in {".json", ".cubin", ".so"}]


def replaced_by_link(path: Path) -> None:
    path.rename(path.with_name("moved"))
    path.symlink_to("moved")


def replaced_by_pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


PLANTS: tuple[Callable[[Path], object], ...] = (
    replaced_by_link, replaced_by_pipe, chown, lambda path: path.chmod(0o620), lambda path: path.chmod(0o602),
)  # fmt: skip


@pytest.mark.parametrize("plant", PLANTS)
def test_an_entry_that_others_could_have_written_is_made_anew(plant: Callable[[Path], object], root: Path) -> None:
    fill()
    assert len(entries(root)) == 3
    for path in entries(root):
        plant(path)
    assert not is_filled()
    fill()
    assert is_filled()


class Planted:
    """Its pickle runs a command when it is loaded."""

    def __reduce__(self) -> tuple[Callable[[str], object], tuple[str]]:
        return os.system, (f"touch '{os.environ['PY2CU_CACHE_DIR']}/run'",)


def test_a_planted_pickle_is_not_run(root: Path) -> None:
    fill()
    for path in entries(root):
        path.write_bytes(pickle.dumps(Planted()))
    (root / "translations" / "stamp").mkdir(parents=True)
    (root / "translations" / "stamp" / "key.pickle").write_bytes(pickle.dumps(Planted()))
    assert not is_filled() and not (root / "run").exists()
    folder = store.shared_folder(Kind.TRANSLATION)
    store.write(folder, Kind.TRANSLATION, cache._with_stamp("key", Translation), "k", pickle.dumps(Planted()))
    assert cache.get_translation("key", Translation) is None and not (root / "run").exists()


def test_an_entry_serves_for_its_own_key_only(root: Path) -> None:
    fill()
    for path in entries(root):
        name = cache._with_stamp("other", Translation) if path.suffix == ".json" else path.stem.replace("key", "other")
        shutil.copy(path, path.with_name(f"{name}{path.suffix}"))
        shutil.copy(path, path.with_name(f"key.clang{path.suffix}"))
    assert cache.get(Kind.CUBIN, "other") is cache.get_translation("other", Translation) is None
    assert cache.get_library("other", "gcc") is cache.get_library("key", "clang") is None
    assert cache.get_library("key", None) == cache.get_library("key", "gcc")


def test_a_file_system_that_loads_no_libraries(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill()
    status = os.statvfs(root)
    flagged = os.statvfs_result((*status[:8], status.f_flag | os.ST_NOEXEC, status.f_namemax))
    monkeypatch.setattr("os.statvfs", lambda _: flagged)
    with pytest.warns(UserWarning, match="noexec"):
        assert cache.get_library("key", "gcc") is None  # where it can be loaded, it stays
    assert is_private(cache.put_library("key", "gcc", make), root)
    found = cache.get_library("key", "gcc")
    assert found is not None and is_private(found, root)
    assert (cache.get_translation("key", Translation), cache.get(Kind.CUBIN, "key")) == (TRANSLATION, b"mine")


@pytest.mark.parametrize("kind", ["cut", "flip", "swap"])
def test_each_damage_of_each_entry_is_noticed(kind: str, root: Path) -> None:
    fill()
    whole = {path: path.read_bytes() for path in entries(root)}
    for path, data in whole.items():
        at = data.index(b'"name": ') + 9  # the name is only shown
        named = range(at, data.index(b'"', at))
        if kind == "cut":
            damaged = [data[:length] for length in range(len(data))]
        elif kind == "flip":
            damaged = [
                data[:i] + bytes([data[i] ^ 1 << i % 8]) + data[i + 1 :] for i in range(len(data)) if i not in named
            ]
        else:
            damaged = [other for other in whole.values() if other != data]
        for each in damaged:
            path.write_bytes(each)
            assert not (
                cache.get_translation("key", Translation)
                and cache.get(Kind.CUBIN, "key")
                and cache.get_library("key", "gcc")
            )
        path.write_bytes(data)
    assert is_filled()


def test_a_valid_entry_of_other_json_is_missing(root: Path) -> None:
    folder = store.shared_folder(Kind.TRANSLATION, create=True)
    encoded = codec.encode(TRANSLATION)
    for content in (b"[]", b'{"Translation":[]}', encoded.replace(b"Translation", b"os.system"), encoded + b"\n[]"):
        store.write(folder, Kind.TRANSLATION, cache._with_stamp("key", Translation), "k", content)
        assert cache.get_translation("key", Translation) is None
