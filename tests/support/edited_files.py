"""Python files that a test edits while its process runs."""

from __future__ import annotations

import importlib
import os
from pathlib import Path


def write(folder: Path, name: str, text: str) -> Path:
    """Write a version of `name.py`, two seconds later than the last, whatever the resolution of the file system."""
    path = folder / f"{name}.py"
    moment = path.stat().st_mtime + 2 if path.exists() else None
    path.write_text(text, encoding="utf-8")
    if moment is not None:
        os.utime(path, (moment, moment))
    importlib.invalidate_caches()
    return path
