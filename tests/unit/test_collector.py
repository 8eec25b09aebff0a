"""Python's garbage collector around a translation, which makes a great many objects and keeps its parse."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from pathlib import Path

import pytest

from py2cu.pipeline import translate_file
from py2cu.source import SourceFile

KERNELS = Path(__file__).parents[2] / "benchmarks" / "kernels.py"


@pytest.fixture(autouse=True)
def collector() -> Iterator[None]:
    gc.collect()
    yield
    gc.unfreeze()
    gc.enable()


def translate(name: str) -> None:
    """The kernels of a file that is not parsed yet."""
    translate_file(SourceFile(f"{name}.py", f"{KERNELS.read_text(encoding='utf-8')}\n# {name}\n"))


def test_what_a_translation_leaves_counts_as_old():
    translate("old")
    assert gc.isenabled()
    young = [*gc.get_objects(generation=0), *gc.get_objects(generation=1)]
    assert len(young) < 1000  # of the tree alone there are some thousands


def test_what_somebody_froze_stays_frozen():
    gc.freeze()
    translate("frozen")
    assert gc.get_freeze_count() > 1000


def test_a_collector_that_is_off_stays_off():
    gc.disable()
    translate("off")
    assert not gc.isenabled()
