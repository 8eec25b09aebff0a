"""The planted races on a GPU: `python -m tests.planted_races [--save]`.

What `compute-sanitizer` says of each wrong kernel of `tests/cases/races`, tool by tool, beside what the simulator says,
which `test_races.py` holds; and that it says nothing of the right ones. Needs a GPU. Each wrong kernel gets a process
of its own, since some of them end it and others never end.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import torch

from py2cu import Kernel, TranslationError
from py2cu.diagnostics import Severity
from tests.test_races import CASES, PRELUDE, sections

TOOLS: Final = ("memcheck", "racecheck", "synccheck", "initcheck")
RESULTS: Final = Path(__file__).parent / "cases" / "races" / "results"
PATIENCE: Final = 60  # seconds, of which a kernel takes one
FOUND, NOTHING, HANGS, FAILS = "found", "–", "hangs", "fails"


# --- one kernel -------------------------------------------------------------------------------------------------------


def kernel_of(path: Path, which: str, folder: Path) -> Kernel:
    """The kernel of a section, from a file of its own."""
    file = folder / f"{path.stem}_{which}.py"
    source = PRELUDE + sections(path)[1][which]
    file.write_text(source, encoding="utf-8")
    namespace: dict[str, Any] = {"__name__": file.stem}
    exec(compile(source, str(file), "exec"), namespace)
    return next(value for value in namespace.values() if isinstance(value, Kernel))


def launch(path: Path, which: str, folder: Path, device: str) -> None:
    kernel = kernel_of(path, which, folder)
    given = eval(f"dict({sections(path)[1]['launch']})", {**vars(torch), "torch": torch})
    grid, block = given.pop("grid"), given.pop("block")
    values = [given[parameter.name] for parameter in kernel.signature.parameters]
    on_device = [value.to(device) if isinstance(value, torch.Tensor) else value for value in values]
    kernel[grid, block](*on_device)
    if device == "cuda":
        torch.cuda.synchronize()


def refusal(path: Path, folder: Path) -> str:
    """The code by which the translator refuses the wrong kernel; empty where it takes it."""
    try:
        kernel_of(path, "wrong", folder).cuda_source  # noqa: B018
    except TranslationError as error:
        return next(found.code for found in error.diagnostics if found.severity is Severity.ERROR)
    return ""


# --- all of them ------------------------------------------------------------------------------------------------------


def verdict(tool: str, which: str, names: list[str]) -> str:
    """What one tool says of a process that launches these kernels."""
    own = [sys.executable, "-m", "tests.planted_races", "--launch", which, *names]
    command = ["compute-sanitizer", "--tool", tool, "--error-exitcode", "99", *own]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE * max(1, len(names) // 8))
    except subprocess.TimeoutExpired:
        return HANGS
    if re.search(r"SUMMARY: [1-9]\d* (error|hazard)", done.stdout) or (
        "RACECHECK SUMMARY: 0" not in done.stdout and (done.returncode == 99)
    ):
        return FOUND
    return NOTHING if done.returncode == 0 else FAILS


def table(jobs: int) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(jobs) as pool:
        codes = dict(zip(CASES, pool.map(lambda path: refusal(path, Path(name)), CASES), strict=True))
        taken = [path.stem for path, code in codes.items() if not code]
        everything = [("right", [path.stem]) for path in CASES] + [("wrong", [stem]) for stem in taken]
        list(pool.map(lambda job: build(*job), everything))
        wrong = {(stem, tool): pool.submit(verdict, tool, "wrong", [stem]) for stem in taken for tool in TOOLS}
        right = {tool: pool.submit(verdict, tool, "right", [path.stem for path in CASES]) for tool in TOOLS}
        counts: Counter[str] = Counter()
        yield f"| wrong kernel | the simulator | translator | {' | '.join(TOOLS)} |"
        yield "|---" * (3 + len(TOOLS)) + "|"
        for path, code in codes.items():
            said = sections(path)[1]["found"].splitlines()[0]
            line = said.partition(":")[0]
            cells = [wrong[path.stem, tool].result() if not code else "" for tool in TOOLS]
            counts.update(tool for tool, cell in zip(TOOLS, cells, strict=True) if cell == FOUND)
            counts["any"] += FOUND in cells
            counts["refused"] += bool(code)
            yield f"| {path.stem} | {line} | {f'refused, {code}' if code else ''} | {' | '.join(cells)} |"
        totals = " | ".join(str(counts[tool]) for tool in TOOLS)
        yield f"| **found of {len(CASES)}** | {len(CASES)} | {counts['refused']} | {totals} |"
        silent = ", ".join(f"{tool}: {found.result()}" for tool, found in right.items())
        yield f"\nBy one of the four tools at least: {counts['any']}. Of all {len(CASES)} right twins: {silent}."


def build(which: str, names: list[str]) -> None:
    """Launch them without a tool, so that the tools find them built; wrong ones may end or hang their process."""
    own = [sys.executable, "-m", "tests.planted_races", "--launch", which, *names]
    with contextlib.suppress(subprocess.TimeoutExpired):
        subprocess.run(own, capture_output=True, timeout=PATIENCE)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.planted_races", description=__doc__)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    parser.add_argument("--device", default="cuda", help="where --launch runs")
    parser.add_argument("--save", action="store_true", help=f"keep the table in {RESULTS.name}/")
    parser.add_argument("--launch", nargs="+", metavar="NAME", help="`wrong` or `right`, and the cases to launch")
    options = parser.parse_args()
    if options.launch:
        which, *names = options.launch
        with tempfile.TemporaryDirectory() as folder:
            for path in CASES:
                if path.stem in names:
                    launch(path, which, Path(folder), options.device)
        return
    version = subprocess.run(["compute-sanitizer", "--version"], capture_output=True, text=True, check=True).stdout
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    head = f"{today}: {torch.cuda.get_device_name()}, torch {torch.__version__}, {version.split('Version')[-1].strip()}"
    text = "\n".join([head, "", *table(options.jobs)]) + "\n"
    print(text)
    if options.save:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"{today}.md").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
