"""A forked child finds every lock free, whichever thread of the parent held it."""

from __future__ import annotations

import os
import re
import signal
import sys
import threading
import warnings
from pathlib import Path

import pytest

from py2cu import threads
from py2cu.threads import ForkSafeLock


def is_free_in_child(lock: ForkSafeLock) -> bool:
    """Whether the child's one thread can take the lock."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # of Python 3.12, about threads
        child = os.fork()
    if child == 0:
        signal.alarm(2)
        with lock:
            os._exit(0)
    return os.waitpid(child, 0)[1] == 0


@pytest.mark.parametrize("holder", ["nobody", "another thread", "this thread"])
def test_a_forked_child(holder: str) -> None:
    lock, let_go, held = ForkSafeLock(), threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            let_go.wait(20)

    thread = threading.Thread(target=hold)
    if holder == "another thread":
        thread.start()
        held.wait(20)
    if holder == "this thread":
        with lock, lock:
            assert is_free_in_child(lock)
    else:
        assert is_free_in_child(lock)
    let_go.set()
    if thread.ident:
        thread.join()
    with lock:
        pass


def test_a_lock_that_goes_runs_no_python() -> None:
    """An interrupt would be ignored there."""
    lock, events = ForkSafeLock(), []
    count = len(threads._locks)
    sys.setprofile(lambda frame, event, _: events.append(event))
    del lock
    sys.setprofile(None)
    assert "call" not in events
    assert len(threads._locks) == count - 1


def test_every_lock_of_the_package_is_one() -> None:
    """But for the lock of simulations, which renews itself."""
    package = Path(threads.__file__).parent
    plain = re.compile(r"threading\.R?Lock\(")
    found = {str(path.relative_to(package)) for path in package.rglob("*.py") if plain.search(path.read_text())}
    assert found == {"threads.py", "simulator/state.py"}
