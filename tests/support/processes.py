"""Processes that work in a folder, and waiting for them."""

import os
import time
from collections.abc import Callable
from pathlib import Path


def processes_in(directory: Path) -> list[str]:
    """Command lines of processes that work under `directory`."""
    found = []
    for link in Path("/proc").glob("[0-9]*/cwd"):
        try:
            if str(directory) in os.readlink(link):
                found.append((link.parent / "cmdline").read_text())
        except OSError:
            continue
    return found


def wait_for(condition: Callable[[], object], seconds: float = 60) -> None:
    """Wait until `condition` holds; fail after `seconds`."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)
