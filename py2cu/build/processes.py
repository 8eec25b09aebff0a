"""Run compilers so that none outlives its caller.

In: a command and a directory. Out: its exit status and output. Promises: reads nothing from the terminal, prints
nothing; when this process is interrupted, the command and all that it started end first. Temporary files of compilers
are written into the directory, so that those of a killed compiler vanish with it.
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Final, NamedTuple

_GUARD: Final = """
exec 3<&0
"$@" </dev/null 3<&- & command=$!
{ read -r _; kill -KILL 0; } <&3 >/dev/null 2>&1 & guard=$!
wait $command; status=$?
kill -KILL $guard; wait $guard 2>/dev/null
exit $status
"""
"""Run a command, and kill its process group once standard input ends: the caller, who holds the other end, is dead."""

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


def run_ninja(ninja: Path, directory: Path) -> str:
    """Build, and return the output of ninja and its compilers."""
    command = [str(ninja), "-v"]
    if (jobs := os.environ.get("MAX_JOBS", "")).isdigit():
        command += ["-j", jobs]
    return _run(command, directory, None, subprocess.DEVNULL).output


def run(command: Sequence[str], directory: Path, timeout: float | None = None) -> Finished:
    """Run a compiler, which is killed with all that it started when this process ends, even if that is killed.

    Raises:
        subprocess.TimeoutExpired: after `timeout` seconds; the command is ended.
        OSError: the program cannot be executed.
    """
    end, held = os.pipe()  # no child inherits `held`
    try:
        done = _run(["/bin/sh", "-c", _GUARD, "sh", *command], directory, timeout, end)
    finally:
        os.close(end)
        os.close(held)
    if done.status in _NOT_EXECUTED:
        raise OSError(done.output.strip().removeprefix("sh: "))
    return Finished(_KILLED - done.status if done.status > _KILLED else done.status, done.output)


def _run(command: Sequence[str], directory: Path, timeout: float | None, stdin: int) -> Finished:
    """Run a command in a session of its own, so that Ctrl-C reaches this process only, which passes it on."""
    with subprocess.Popen(
        command,
        cwd=directory,
        env=os.environ | {"LC_ALL": "C", "TMPDIR": str(directory)},  # messages are parsed
        stdin=stdin,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    ) as process:
        try:
            output, _ = process.communicate(timeout=timeout)
        except BaseException:
            _end(process)
            raise
    return Finished(process.returncode, output.decode(errors="replace"))


def _end(process: subprocess.Popen[bytes]) -> None:
    """Interrupt the command, which ends what it started; kill what is left of its group after at most 1.5 seconds."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGINT)
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(1.5)
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
