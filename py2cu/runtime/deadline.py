"""Stop Python code that runs too long: a kernel whose invented values never end its loop.

In: seconds. Out: a context in which `TooLong` is raised inside whatever bytecode runs when they have passed.
Chosen over a line trace, which slows every kernel down fivefold to catch the rare endless one.
"""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Iterator
from contextlib import contextmanager


class TooLong(Exception):
    """Raised without arguments, as an asynchronous exception must be."""

    def __str__(self) -> str:
        return "the loop does not end within the time that a check gives it"


@contextmanager
def deadline(seconds: float | None) -> Iterator[None]:
    """Raise `TooLong` in this thread if the body still runs after `seconds`; None: never."""
    if seconds is None:
        yield
        return
    watched = ctypes.c_ulong(threading.get_ident())
    interrupt = ctypes.pythonapi.PyThreadState_SetAsyncExc
    timer = threading.Timer(seconds, interrupt, (watched, ctypes.py_object(TooLong)))
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        # If it comes only now, it comes inside these calls. Withdrawing it (None for the exception) would leave CPython
        # 3.11 with a pending signal for good, over which a debugger's next line never ends.
        try:
            timer.cancel()
            timer.join()
        except TooLong:
            pass
