"""Python's garbage collector around a translation, which makes a great many objects."""

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
    translate("first")
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def translate(name: str) -> None:
    """The kernels of a file that is not parsed yet."""
    translate_file(SourceFile(f"{name}.py", f"{KERNELS.read_text(encoding='utf-8')}\n# {name}\n"))


def test_a_translation_leaves_hardly_a_ring():
    translate("rings")
    assert gc.collect() < 1200  # a walk that refers to itself leaves one for every expression


def test_the_collector_is_as_it_was():
    translate("off")
    assert not gc.isenabled()
    gc.enable()
    translate("on")
    assert gc.isenabled()
