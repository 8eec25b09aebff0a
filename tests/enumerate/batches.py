"""Judges many programs, a process for each batch, so that what ends a process ends nothing else.

The parent imports and translates once before it forks: each process begins warm.
"""

from __future__ import annotations

import gc
import multiprocessing
import time
from collections.abc import Iterator, Sequence
from multiprocessing.connection import Connection, wait
from typing import Any, Final

from tests.enumerate.compose import Program
from tests.enumerate.judge import Outcome, Verdict, judge
from tests.support.libraries import Device

BATCH: Final = 100
START_SECONDS: Final = 60.0
PROGRAM_SECONDS: Final = 10.0
"""How long a batch and each of its programs may take on a slow and busy machine."""
_FORK: Final = multiprocessing.get_context("fork")


def verdicts_of(
    programs: Sequence[Program], device: Device, jobs: int, batch: int = BATCH
) -> Iterator[tuple[Program, Verdict]]:
    """Each program with its verdict, as they come."""
    judge([programs[0].source], device)
    gc.freeze()
    waiting = [programs[at : at + batch] for at in range(0, len(programs), batch)][::-1]
    running: dict[Any, tuple[Sequence[Program], Any, float]] = {}
    while waiting or running:
        while waiting and len(running) < jobs:
            part = waiting.pop()
            receiver, sender = _FORK.Pipe(duplex=False)
            process = _FORK.Process(target=_send, args=(sender, part, device))
            process.start()
            sender.close()
            running[receiver] = part, process, time.monotonic() + START_SECONDS + PROGRAM_SECONDS * len(part)
        ready = wait([*running], timeout=1.0)
        late = [receiver for receiver, (_, _, deadline) in running.items() if deadline < time.monotonic()]
        for receiver in {*ready, *late}:
            part, process, _ = running.pop(receiver)
            verdicts = _received(receiver) if receiver in ready else None
            process.kill()
            process.join()
            receiver.close()
            if verdicts is not None:
                yield from zip(part, verdicts, strict=True)
            elif len(part) > 1:
                waiting += [part[: len(part) // 2], part[len(part) // 2 :]]
            else:
                why = f"exit code {process.exitcode}" if receiver in ready else "no verdict"
                yield part[0], Verdict(Outcome.BREAKS, why, source=part[0].source)


def _send(sender: Connection, programs: Sequence[Program], device: Device) -> None:
    gc.disable()  # the process ends with its batch
    sender.send(judge([program.source for program in programs], device))


def _received(receiver: Any) -> Any:
    """The verdicts that a process sent; None where it ended without."""
    try:
        return receiver.recv()
    except EOFError:
        return None
