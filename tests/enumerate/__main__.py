"""The long run: `python -m tests.enumerate --sample 60000`.

Exit status 1 if a program differs from CPython, or more programs are refused than in the kept run.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import resource
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from py2cu.build import toolchain
from tests.enumerate.batches import BATCH, verdicts_of
from tests.enumerate.compose import programs, sample
from tests.enumerate.in_place import calls, judge_in_place
from tests.enumerate.report import Tally, grown, keep_refusals
from tests.support.libraries import Device

PROGRESS_SECONDS = 15.0
DEVICES = {"cpu": Device.CPU, "optimised": Device.OPTIMISED, "emulated": Device.EMULATED, "gpu": Device.CUDA}
EVERY = {Device.CPU: 1, Device.OPTIMISED: 4, Device.EMULATED: 4, Device.CUDA: 12}
"""Each device takes every Nth program of the sample."""


def main() -> int:
    options = _parser().parse_args()
    if options.keep:
        kept = json.loads(options.keep.read_text(encoding="utf-8"))
        keep_refusals(kept["sample"], Counter(kept["refusals"]))
        return 0
    device = DEVICES[options.device]
    chosen = sample(options.sample) if options.sample else [*programs()]
    if options.every is None:
        options.every = EVERY[device]
    chosen = chosen[options.first :: options.every]
    chosen = chosen[: options.count] if options.count is not None else chosen
    tally, began = Tally(), time.monotonic()
    shown = began
    for done, (program, verdict) in enumerate(verdicts_of(chosen, device, options.jobs, options.batch), start=1):
        tally.enter(program, verdict)
        if time.monotonic() - shown > PROGRESS_SECONDS:
            shown = time.monotonic()
            rate = done / (shown - began)
            faults = f"{len(tally.faults)} disagreements, {tally.faults_of_simulator} of the simulator"
            print(f"{done:,} of {len(chosen):,}, {rate:.0f} a second, {faults}", flush=True)
    for call, verdict in judge_in_place(device, [*calls()]):
        tally.enter(call, verdict)
    facts = _facts(options, time.monotonic() - began)
    page = tally.page(facts)
    print(page)
    if options.results:
        options.results.with_suffix(".md").write_text(page, encoding="utf-8")
        options.results.with_suffix(".json").write_text(tally.as_json(facts, len(chosen)), encoding="utf-8")
    is_whole_sample = device is Device.CPU and options.first == 0 and options.every == 1 and options.count is None
    if is_whole_sample and options.keep_refusals:
        keep_refusals(len(chosen), tally.codes)
    more = grown(len(chosen), tally.codes) if is_whole_sample else []
    print("\n".join(f"more refusals of {row}" for row in more))
    return 1 if tally.faults or tally.faults_of_simulator or more else 0


def _facts(options: argparse.Namespace, seconds: float) -> dict[str, str]:
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    return {
        "command": f"`python -m tests.enumerate {' '.join(sys.argv[1:])}`",
        "date": today,
        "commit": _first_line("git", "describe", "--always", "--dirty"),
        "commit of the package": _first_line("git", "log", "-1", "--format=%h", "--", "py2cu", "templates"),
        "machine": f"{platform.machine()}, {os.cpu_count()} cores",
        "versions": f"Python {platform.python_version()}, {_first_line(str(toolchain.find_cxx()), '--version')}",
        "seconds": f"{seconds:.0f} in {options.jobs} processes, {_processor_seconds():.0f} of processors",
    }


def _processor_seconds() -> float:
    """Of this process and of all that it waited for."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


def _first_line(*command: str) -> str:
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[0]
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.enumerate", description="All compositions against CPython.")
    parser.add_argument("--sample", type=int, default=60_000, help="the size of the fixed sample; 0: all programs")
    parser.add_argument("--from", dest="first", type=int, default=0, help="leave out those before")
    parser.add_argument("--count", type=int, help="how many of the sample")
    parser.add_argument("--every", type=int, help="every Nth program: cpu 1, optimised and emulated 4, gpu 12")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="processes at a time")
    parser.add_argument("--batch", type=int, default=BATCH, help="programs judged together")
    parser.add_argument("--device", choices=DEVICES, default="cpu")
    parser.add_argument("--results", type=Path, help="the files to write, without .md and .json")
    parser.add_argument("--keep-refusals", action="store_true", help="keep the counts of refusals by code")
    parser.add_argument("--keep", type=Path, help="run nothing, and keep the counts of this JSON file")
    return parser


if __name__ == "__main__":
    sys.exit(main())
