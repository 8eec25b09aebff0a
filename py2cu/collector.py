"""Pause Python's garbage collector where many objects are made and hardly a cycle.

A translation spent a tenth of its time in the collector, and the modules of a first call half of theirs: a collection
goes through all objects of torch.
"""

from __future__ import annotations

import contextlib
import gc
from collections.abc import Iterator


@contextlib.contextmanager
def collector_paused() -> Iterator[None]:
    """Pause the collector, if it is on."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
