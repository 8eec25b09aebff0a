"""Measures the same calls in another checkout of py2cu, which runs in a second process.

That process imports py2cu from that checkout and these benchmarks from this one. It measures what a line of JSON on its
standard input names, and answers with the seconds, so that the two checkouts take turns within each round. On the CPU
target both processes run on one core, since other programs may slow one core down more than another.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from types import TracebackType
from typing import Final

ROOT: Final = Path(__file__).parents[2]
SERVER: Final = """
import sys
sys.path.insert(0, sys.argv[1])
import py2cu
sys.path[0] = sys.argv[2]
from benchmarks.latency import beside
beside.serve()
"""


class Beside:
    """A context that runs the process of `tree`, if there is one; it starts with the first measure."""

    def __init__(self, tree: Path | None, device: str) -> None:
        self.tree = tree
        self._device = device
        self._process: subprocess.Popen[str] | None = None
        self._cores = os.sched_getaffinity(0)

    def __enter__(self) -> Beside:
        if self.tree and self._device == "cpu":
            os.sched_setaffinity(0, {max(self._cores)})
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        os.sched_setaffinity(0, self._cores)
        if self._process:
            self._process.communicate()

    def name_of(self, call: str) -> str:
        return f"{call} of {self.tree}"

    def measure(self, call: str) -> float:
        process = self._process = self._process or self._start()
        assert process.stdin and process.stdout
        process.stdin.write(json.dumps([self._device, call]) + "\n")
        process.stdin.flush()
        answer = process.stdout.readline()
        if not answer:
            raise SystemExit(f"the measurements of {self.tree} ended with status {process.wait()}")
        return float(answer)

    def _start(self) -> subprocess.Popen[str]:
        command = [sys.executable, "-c", SERVER, str(self.tree), str(ROOT)]
        return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def serve() -> None:
    """Answer each line of the standard input. What else is printed goes to the standard error."""
    from benchmarks.latency.calls import Call, calls
    from benchmarks.latency.rounds import each

    answers = os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8")
    os.dup2(2, 1)
    made: dict[str, dict[str, Call]] = {}
    checked: set[tuple[str, str]] = set()
    for line in sys.stdin:
        device, name = json.loads(line)
        if device not in made:
            made[device] = calls(device)
        call = made[device][name]
        if (device, name) not in checked:
            call.check()
            checked.add((device, name))
        print(each(call.run), file=answers)
