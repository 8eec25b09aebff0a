"""Run ninja so that no compiler outlives an interrupt.

In: a directory with a build file. Out: the output of ninja and its compilers. Promises: reads nothing from the
terminal, prints nothing; when this process is interrupted, ninja and its compilers end first.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from pathlib import Path


def run_ninja(ninja: Path, directory: Path) -> str:
    """Build, and return the output. Ninja runs in a session of its own, so that Ctrl-C reaches this process only, which
    passes it on.
    """
    command = [str(ninja), "-v"]
    if (jobs := os.environ.get("MAX_JOBS", "")).isdigit():
        command += ["-j", jobs]
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
        output, _ = process.communicate()
    except BaseException:
        _end(process)
        raise
    return output.decode(errors="replace")


def _end(process: subprocess.Popen[bytes]) -> None:
    """Interrupt ninja, which interrupts its compilers and waits for them; kill it after 1.5 seconds."""
    process.send_signal(signal.SIGINT)
    try:
        process.wait(1.5)
    except subprocess.TimeoutExpired:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
