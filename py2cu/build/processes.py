"""Run compilers so that none outlives its caller.

In: a command and a directory. Out: its exit status and output. Promises: reads nothing from the terminal, prints
nothing; when this process is interrupted or killed, the command and all that it started end, too. Temporary files of
compilers are written into the directory, so that those of a killed compiler vanish with it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

_GUARD: Final = """
exec 3<&0
trap 'is_ended=1' TERM
"$@" </dev/null 3<&- & command=$!
{ trap '' TERM; read -r _; kill -TERM 0; sleep 1; kill -KILL 0; } <&3 >/dev/null 2>&1 & guard=$!
wait $command; status=$?
[ -z "$is_ended" ] || wait $command
kill -KILL $guard; wait $guard 2>/dev/null
exit $status
"""
"""Run a command, and end its process group once standard input ends: the caller, who holds the other end, is dead.

First by SIGTERM, for ninja, which has compilers in groups of their own and passes it on.
"""

_KILLED: Final = 128
"""A shell adds this to the number of the signal that ended its command."""

_NOT_EXECUTED: Final = (126, 127)
_DISK_FULL: Final = ("No space left on device", "Disk quota exceeded")


class Finished(NamedTuple):
    """The result of a command; a negative status is the number of the signal that ended it."""

    status: int
    output: str


def require_space(output: str, directory: Path) -> None:
    """Raise an error of the system's if the output of compilers says that the disk is full."""
    if any(sign in output for sign in _DISK_FULL):
        raise OSError(errno.ENOSPC, "no space left to build in", str(directory))


def run(
    command: Sequence[str], directory: Path, *, variables: Mapping[str, str] | None = None, timeout: float | None = None
) -> Finished:
    """Run a compiler, with these `variables` beside those of this process.

    It has a session of its own, so that Ctrl-C reaches this process only, which then ends it.

    Raises:
        subprocess.TimeoutExpired: after `timeout` seconds; the command is ended.
        OSError: the program cannot be executed.
    """
    end, held = os.pipe()  # no child inherits `held`
    try:
        with subprocess.Popen(
            ["/bin/sh", "-c", _GUARD, "sh", *command],
            cwd=directory,
            env=os.environ | {"LC_ALL": "C", "TMPDIR": str(directory)} | dict(variables or {}),  # messages are parsed
            stdin=end,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as process:
            try:
                data, _ = process.communicate(timeout=timeout)
            except BaseException:
                _end(process)
                raise
    finally:
        os.close(end)
        os.close(held)
    status, output = process.returncode, data.decode(errors="replace")
    if status in _NOT_EXECUTED:
        raise OSError(output.strip().removeprefix("sh: "))
    return Finished(_KILLED - status if status - _KILLED in signal.valid_signals() else status, output)


def _end(process: subprocess.Popen[bytes]) -> None:
    """Terminate the command and its children; kill the processes of its group that still run after 1.5 seconds."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGTERM)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(1.5)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
