"""Locks that are released in a forked child, and calls on a thread with a deep stack.

A forked child has the forking thread alone: it would wait forever for a lock that another thread held. What the locks
of this package guard is whole at any moment, since results are stored last.

Long chains of operators are deep trees, and every walk over a tree takes a few frames for each level. In: a function
that raises `RecursionError`, or `StackWanted` before code in C would overflow the stack. Out: the result of a second
call, on a deep stack. Ordinary calls cost nothing extra.
"""

from __future__ import annotations

import functools
import os
import sys
import threading
import weakref
from collections.abc import Callable
from typing import Final, ParamSpec, TypeVar

# --- locks ---


class ForkSafeLock:
    """A re-entrant lock for `with`; a forked child has a new one, unless the forking thread holds it."""

    __slots__ = ("__weakref__", "_lock")

    def __init__(self) -> None:
        self._lock = threading.RLock()
        _locks[weakref.ref(self, _locks.pop)] = None

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def renew(self) -> None:
        """Forget a holder that does not exist in this process."""
        if self._lock.acquire(blocking=False):
            self._lock.release()
        else:
            self._lock = threading.RLock()


_locks: Final[dict[weakref.ref[ForkSafeLock], None]] = {}
"""No `WeakSet`: Python ignores a Ctrl-C that arrives in a callback of a weak reference, except in one written in C."""


def _renew_all() -> None:
    for reference in [*_locks]:
        if (lock := reference()) is not None:
            lock.renew()


os.register_at_fork(after_in_child=_renew_all)


# --- a deep stack ---

_BYTES: Final = 256 * 2**20  # of address space: the system backs only the pages that are used
_FRAMES: Final = 60_000
_ONE_AT_A_TIME: Final = ForkSafeLock()  # the recursion limit and the stack size are process-wide
_this_thread = threading.local()

Arguments = ParamSpec("Arguments")
Result = TypeVar("Result")


class StackWanted(RecursionError):
    """The source is nested too deeply for an ordinary stack."""


def is_deep() -> bool:
    """Whether this thread has a deep stack."""
    return getattr(_this_thread, "is_deep", False)


def with_deep_stack(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """`function`, called a second time on a deep stack if the first call raises `RecursionError`."""

    @functools.wraps(function)
    def call(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
        try:
            return function(*args, **kwargs)
        except RecursionError:
            if is_deep():
                raise
        return _run(functools.partial(function, *args, **kwargs))

    return call


def _run(function: Callable[[], Result]) -> Result:
    """The result of `function`, called on a thread with a deep stack."""
    from concurrent.futures import Future  # takes milliseconds

    outcome: Future[Result] = Future()

    def run() -> None:
        _this_thread.is_deep = True
        before = sys.getrecursionlimit()
        sys.setrecursionlimit(max(before, _FRAMES))
        try:
            outcome.set_result(function())
        except BaseException as error:
            outcome.set_exception(error)
        finally:
            sys.setrecursionlimit(before)

    with _ONE_AT_A_TIME:
        size = threading.stack_size(_BYTES)
        try:
            thread = threading.Thread(target=run, daemon=True)
            thread.start()
        finally:
            threading.stack_size(size)
        thread.join()
        return outcome.result()
