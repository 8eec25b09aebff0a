"""Restrict a debugger to one simulated thread.

In: the code objects of the functions that the kernel runs. Out: `Debugger.listen`, which switches the attached debugger
off and on. It handles debuggers that trace (`sys.settrace`) and, from Python 3.12 on, debuggers that monitor
(`sys.monitoring`).
"""

from __future__ import annotations

import sys
from collections.abc import Iterable
from types import CodeType
from typing import Any


class Debugger:
    """The tracer or monitor that is attached to this Python, if any."""

    def __init__(self, codes: Iterable[CodeType]) -> None:
        self._codes = tuple(codes)
        self._trace = sys.gettrace()
        self._monitoring: Any = getattr(sys, "monitoring", None)
        self._is_on = True
        self._events = 0
        self._inside: dict[CodeType, int] = {}  # the events that the debugger listens to in the kernel's functions

    def listen(self, on: bool) -> None:
        """Let the debugger see what runs next, or hide it."""
        sys.settrace(self._trace if on else None)
        monitoring = self._monitoring
        if monitoring is None or on == self._is_on or monitoring.get_tool(monitoring.DEBUGGER_ID) is None:
            return
        self._is_on, tool = on, monitoring.DEBUGGER_ID
        if not on:
            self._events = monitoring.get_events(tool)
            self._inside = {code: monitoring.get_local_events(tool, code) for code in self._codes}
        monitoring.set_events(tool, self._events if on else 0)
        for code, events in self._inside.items():
            monitoring.set_local_events(tool, code, events if on else 0)
