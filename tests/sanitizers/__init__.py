"""NVIDIA's `compute-sanitizer` on a GPU: of the examples it has nothing to say (`examples.py`), of the planted races it
finds some (`races.py`). Tables of what was found are in `results/`.
"""

from __future__ import annotations

import datetime
import enum
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import torch

TOOLS: Final = ("memcheck", "racecheck", "synccheck", "initcheck")
RESULTS: Final = Path(__file__).parent / "results"
FINDING: Final = 99  # the exit status that a tool is asked for


class Outcome(enum.StrEnum):
    """What a tool says of a process."""

    FOUND = "found"
    NOTHING = "–"
    HANGS = "hangs"
    FAILS = "fails"


def watch(tool: str, arguments: Sequence[str], seconds: float) -> Outcome:
    """Run Python with `arguments` under `tool`; a warning is a finding, too. Errors that functions of CUDA
    return are not reported, since libraries look up functions that a driver may lack.
    """
    command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", str(FINDING)]
    if tool == "memcheck":
        command += ["--report-api-errors", "no"]
    command += [sys.executable, *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return Outcome.HANGS
    if done.returncode == FINDING or re.search(r"SUMMARY: [1-9]\d* (error|hazard)", done.stdout):
        return Outcome.FOUND
    return Outcome.NOTHING if done.returncode == 0 else Outcome.FAILS


def page(rows: Sequence[str]) -> str:
    """The rows of a table under what they were found with."""
    version = subprocess.run(["compute-sanitizer", "--version"], capture_output=True, text=True, check=True).stdout
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    tool = version.split("Version")[-1].strip()
    head = f"{today}: {torch.cuda.get_device_name()}, torch {torch.__version__}, compute-sanitizer {tool}"
    return "\n".join([head, "", *rows]) + "\n"


def save(text: str, name: str) -> None:
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{text[:10]}-{name}.md").write_text(text, encoding="utf-8")
