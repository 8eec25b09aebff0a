"""On the CPU: what calls compile, and what `load_inline` builds of the written files, give the same bits."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

pytest.importorskip("torch")

from py2cu.translation import TargetName
from tests.support.both_ways import EXAMPLES, BothWays, disagreements, disagreements_of
from tests.support.modules import import_file
from tests.support.samples import proofs


@pytest.mark.builds
@pytest.mark.parametrize("path", proofs(EXAMPLES, 8), ids=lambda path: path.stem)
def test_calls_and_files_of_examples_agree_bit_for_bit(path: Path) -> None:
    pytest.importorskip("skimage")
    pytest.importorskip("sklearn")
    assert not disagreements(path, "cpu")


@pytest.mark.builds
def test_a_bit_that_differs_is_found() -> None:
    """One within what `check` grants to rounding."""
    both = BothWays(import_file(EXAMPLES[0].with_name("sigmoid.py")).sigmoid)
    files = both.of_files.translation
    sound = files.artifacts(TargetName.CPU)
    text = sound.kernel.text.replace("out[i] = res;", "out[i] = res * 1.0000001f;")
    assert text != sound.kernel.text
    both.of_files = both.of_calls.with_translation(
        files.with_texts(replace(sound, kernel=replace(sound.kernel, text=text)))
    )
    found = [*disagreements_of(both, "cpu")]
    assert found and all(each.startswith("`out` of sigmoid, ") for each in found)
