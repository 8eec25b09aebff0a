"""A lock that is free in a forked child, whichever thread of the parent held it.

A child has the forking thread alone: it would wait forever for a lock that another thread held. What the locks of this
package guard is whole at any moment, since results are stored last.
"""

from __future__ import annotations

import os
import threading
import weakref
from typing import Final


class ForkSafeLock:
    """A re-entrant lock for `with`; a forked child has a new one, unless the forking thread holds it."""

    __slots__ = ("__weakref__", "_lock")

    def __init__(self) -> None:
        self._lock = threading.RLock()
        _locks.add(self)

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


_locks: Final[weakref.WeakSet[ForkSafeLock]] = weakref.WeakSet()


def _renew_all() -> None:
    for lock in [*_locks]:
        lock.renew()


os.register_at_fork(after_in_child=_renew_all)
