"""Processes that share a cache: one builds, and one that is killed at any moment harms none of the others."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from py2cu.build import cache, store
from py2cu.build.store import Kind

PACKAGE = Path(cache.__file__).parents[2]
HEAD = """
import os, signal, sys, time
from pathlib import Path
from py2cu.build import cache, store

def die(*_, **__):
    os.kill(os.getpid(), signal.SIGKILL)

def make(directory):
    with open(Path(os.environ["PY2CU_CACHE_DIR"]).parent / "log", "a") as log:
        log.write("built\\n")
    (directory / "made.so").write_text("library")
    time.sleep(0.1)
    return directory / "made.so"
"""
KEYS = ("key", "gcc")

pytestmark = pytest.mark.usefixtures("root")


def start(program: str) -> subprocess.Popen[str]:
    environment = os.environ | {"PYTHONPATH": str(PACKAGE)}
    return subprocess.Popen([sys.executable, "-c", HEAD + program], env=environment, stdout=subprocess.PIPE, text=True)


def make(directory: Path) -> Path:
    (directory / "made.so").write_text("library")
    return directory / "made.so"


@pytest.mark.parametrize(
    "moment",
    [
        "make = die",
        "original = make; make = lambda directory: original(directory) and die()",
        "os.replace = die",
        "os.fdopen = die",
        "original = os.replace; os.replace = lambda *a: original(*a) or die()",
    ],
)
def test_a_builder_that_is_killed(moment: str, root: Path) -> None:
    process = start(f"{moment}\ncache.put_library('key', 'gcc', make)")
    assert process.wait(30) == -signal.SIGKILL
    process.communicate()
    is_stored = moment.startswith("original = os.replace")
    assert (cache.get_library(*KEYS) is not None) == is_stored
    path = cache.put_library(*KEYS, make)
    assert path == cache.get_library(*KEYS) and path.read_text().startswith("library\n")
    store.clear()
    assert [each for each in root.rglob("*") if each.is_file()] == []


def test_a_writer_of_data_that_is_killed(root: Path) -> None:
    process = start("os.replace = die\ncache.put(store.Kind.CUBIN, 'key', '', b'code')")
    assert process.wait(30) == -signal.SIGKILL
    process.communicate()
    assert cache.get(Kind.CUBIN, "key") is None and len(list(root.glob("v2/cubins/*.part"))) == 1
    cache.put(Kind.CUBIN, "key", "", b"code")
    assert cache.get(Kind.CUBIN, "key") == b"code"
    store.prune(stale_after=0)
    assert len(list(root.glob("v2/cubins/*"))) == 1


def test_of_eight_processes_one_builds(root: Path) -> None:
    processes = [start("print(cache.put_library('key', 'gcc', make))") for _ in range(8)]
    outputs = {process.communicate(timeout=60)[0] for process in processes}
    assert outputs == {f"{cache.get_library(*KEYS)}\n"}
    assert (root.parent / "log").read_text() == "built\n"


def test_those_that_wait_for_a_killed_builder_go_on(root: Path) -> None:
    first = start("print('building', flush=True)\nmake = lambda directory: print('now', flush=True) or time.sleep(60)\n"
                  "cache.put_library('key', 'gcc', make)")  # fmt: skip
    assert first.stdout is not None and first.stdout.readline() and first.stdout.readline() == "now\n"
    others = [start("print(cache.put_library('key', 'gcc', make))") for _ in range(2)]
    for process in others:
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(0.5)
    first.kill()
    assert {process.communicate(timeout=60)[0] for process in others} == {f"{cache.get_library(*KEYS)}\n"}
    first.communicate()
    assert (root.parent / "log").read_text() == "built\n"
