"""Stop Python code that runs too long: a kernel whose invented arguments make its loop endless.

In: seconds of processor time. Out: a context in which `TooLong` is raised, inside whatever bytecode runs, once the
thread has used them up. On a machine that is busy with other work, nothing is stopped earlier than on an idle one.
A line trace would do the same, but makes every kernel five times slower to catch a rare endless one.
"""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

_SHORTEST: Final = 0.001  # seconds between two readings of the clock


class TooLong(Exception):
    """Raised without arguments, as an asynchronous exception must be."""

    def __str__(self) -> str:
        return "the loop does not end within the time limit of a check"


@contextmanager
def deadline(seconds: float | None) -> Iterator[None]:
    """Raise `TooLong` in this thread if the body still runs after `seconds` of its time; None: never."""
    if seconds is None:
        yield
        return
    is_done = threading.Event()
    timer = threading.Thread(target=_interrupt, args=(threading.get_ident(), seconds, is_done), daemon=True)
    timer.start()
    try:
        yield
    finally:
        # A late `TooLong` is raised inside these calls. Cancelling it, with None for the exception, would leave a
        # pending signal in CPython 3.11 for good, and a debugger would never reach its next line.
        try:
            is_done.set()
            timer.join()
        except TooLong:
            pass


def _interrupt(thread: int, seconds: float, is_done: threading.Event) -> None:
    """Raise `TooLong` in `thread` when it has run for `seconds` more, unless `is_done` comes first."""
    clock = time.pthread_getcpuclockid(thread)
    end = time.clock_gettime(clock) + seconds
    while not is_done.wait(max(end - time.clock_gettime(clock), _SHORTEST)):
        if time.clock_gettime(clock) >= end:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(TooLong))
            return
