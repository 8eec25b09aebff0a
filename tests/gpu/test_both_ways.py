"""On a real GPU: what NVRTC compiles for calls, and what nvcc builds of the written files, give the same bits."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no GPU here", allow_module_level=True)

from tests.support.both_ways import EXAMPLES, disagreements  # noqa: E402

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_calls_and_files_of_every_example_agree_bit_for_bit(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for package in ("skimage", "sklearn"):
        if package in text:
            pytest.importorskip(package)
    assert not disagreements(path, "cuda")
