"""An empty cache, kept apart from the other tests' own."""

from pathlib import Path

import pytest

from py2cu.build import cache


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PY2CU_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "_private_roots", [])
    monkeypatch.setattr(cache, "_warned", [])
    return tmp_path / "cache"
