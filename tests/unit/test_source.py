"""Python's own trees of texts."""

from __future__ import annotations

import sys
import threading
import time

import pytest

from py2cu.source import parsed


class Cycle:
    """What only the collector frees, which then runs Python, and may switch to another thread."""

    def __init__(self) -> None:
        self.own = self

    def __del__(self) -> None:
        sum(range(50))


@pytest.fixture
def switching() -> object:
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.usefixtures("switching")
def test_threads_may_parse_at_the_same_time() -> None:
    text = "\n".join(f"a{number} = (b * 4 + (c if d > 3 else 0)) // {number}" for number in range(60))
    end, errors = time.monotonic() + 1.5, []

    def parse() -> None:
        while time.monotonic() < end and not errors:
            _ = [Cycle() for _ in range(3)]
            try:
                parsed(text)
            except SystemError as error:
                errors.append(error)

    threads = [threading.Thread(target=parse) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not errors
