"""Run compiled code that may never return, in a thread that can be abandoned.

In: functions that launch kernels. Out: their results, or `NeverReturns` if the process computes for too long in one.
Time in which the process waits for another, as for a build, does not count. C++ cannot be interrupted: an abandoned
thread computes on until the process ends.
"""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, Final, Generic, Self, TypeVar

import torch

T = TypeVar("T")
_INTERVAL: Final = 0.1  # seconds between two readings of the clock


class NeverReturns(Exception):
    """A call did not return within its time limit."""


class _Call(Generic[T]):
    """A call for the thread to run, and its outcome."""

    def __init__(self, function: Callable[[], T]) -> None:
        self._function = function
        self._is_inference = torch.is_inference_mode_enabled()
        cuda: Any = torch.cuda
        self._stream = cuda.current_stream() if cuda.is_initialized() else None
        self.is_done = threading.Event()
        self.result: T | None = None
        self.error: BaseException | None = None

    def run(self) -> None:
        try:
            # Torch keeps these for each thread: use the caller's.
            with torch.inference_mode(self._is_inference), torch.cuda.stream(self._stream):
                self.result = self._function()
        except BaseException as error:  # the caller raises the error
            self.error = error
        self.is_done.set()


class Watchdog:
    """A context with a thread of its own, which runs one call after the other."""

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[_Call[Any] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._work, name="py2cu check", daemon=True)
        self._is_idle = True

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, _: type[BaseException] | None, __: BaseException | None, ___: TracebackType | None) -> None:
        self._calls.put(None)
        if self._is_idle:
            # A thread that frees tensors while the interpreter ends is unwound through C++, which aborts the process.
            self._thread.join()

    def run(self, function: Callable[[], T], seconds: float) -> T:
        """The result of `function()`, which may take `seconds` of processor time.

        Raises:
            NeverReturns: the call takes longer; the watchdog must not be used any more.
            Any error of `function`.
        """
        call = _Call(function)
        start = time.process_time()
        self._is_idle = False
        self._calls.put(call)
        while not call.is_done.wait(_INTERVAL):
            if time.process_time() - start > seconds:
                raise NeverReturns(f"the compiled kernel does not return within {seconds:.0f} s of processor time")
        self._is_idle = True
        if call.error is not None:
            raise call.error
        assert call.result is not None
        return call.result

    def _work(self) -> None:
        while (call := self._calls.get()) is not None:
            call.run()
