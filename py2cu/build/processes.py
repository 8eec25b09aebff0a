"""Run compilers so that none outlives its caller.

In: a command and a directory. Out: its exit status and output. Promises: reads nothing from the terminal, prints
nothing; when this process is interrupted, the command and all that it started end first.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple


class Finished(NamedTuple):
    status: int
    output: str


def run_ninja(ninja: Path, directory: Path) -> str:
    """Build, and return the output of ninja and its compilers."""
    command = [str(ninja), "-v"]
    if (jobs := os.environ.get("MAX_JOBS", "")).isdigit():
        command += ["-j", jobs]
    return run(command, directory).output


def run(command: Sequence[str], directory: Path, timeout: float | None = None) -> Finished:
    """Run a command in a session of its own, so that Ctrl-C reaches this process only, which passes it on.

    Raises:
        subprocess.TimeoutExpired: after `timeout` seconds; the command is ended.
    """
    process = subprocess.Popen(
        command,
        cwd=directory,
        env=os.environ | {"LC_ALL": "C"},  # messages are parsed
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
    )
    try:
        output, _ = process.communicate(timeout=timeout)
    except BaseException:
        _end(process)
        raise
    return Finished(process.returncode, output.decode(errors="replace"))


def _end(process: subprocess.Popen[bytes]) -> None:
    """Interrupt the command, which ends what it started; kill its group after 1.5 seconds."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGINT)
    try:
        process.wait(1.5)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
