"""`python -m benchmarks`: one table, every ratio measured in this run.

--save writes it to benchmarks/results/<date>-<device>.md; --skip-lecture leaves out the one row that takes minutes.
"""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import re
from collections.abc import Iterator
from pathlib import Path

import torch

from benchmarks import aliasing, blocks, cpu, gpu, simulator, startup
from benchmarks.table import Row, render


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--save", action="store_true", help="also write the table to benchmarks/results")
    parser.add_argument("--skip-lecture", action="store_true", help="leave out the build of the lecture's source")
    options = parser.parse_args()

    rows = list(measured(lecture=not options.skip_lecture))
    text = f"{conditions()}\n\n{render(rows)}\n"
    print(text)
    if options.save:
        path = Path(__file__).parent / "results" / f"{datetime.date.today()}-{device_slug()}.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(f"saved as {path}")


def measured(*, lecture: bool) -> Iterator[Row]:
    on_gpu = torch.cuda.is_available()
    yield from startup.rows(lecture=lecture, device="cuda" if on_gpu else "cpu")
    yield from cpu.rows()
    yield from cpu.rows_of_tiles()
    yield from simulator.rows()
    if on_gpu:
        yield from gpu.rows()
        yield from blocks.rows()
        yield from aliasing.rows()


def conditions() -> str:
    """Where and with what."""
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"
    versions = f"torch {torch.__version__}, Python {platform.python_version()}"
    cores = len(os.sched_getaffinity(0))
    load = f"load {os.getloadavg()[0]:.1f} at the end"  # well above the row under way: others used the machine too
    return f"{datetime.date.today()}: {device}, {cores} CPU cores, {load}, {versions}. Times are medians."


def device_slug() -> str:
    name = torch.cuda.get_device_name() if torch.cuda.is_available() else f"cpu-{platform.machine()}"
    return re.sub(r"\W+", "-", name).strip("-").lower()


if __name__ == "__main__":
    main()
