"""Every kernel of the examples under each tool: `python -m tests.sanitizers.examples [--save]`.

Each is checked against its Python on a GPU meanwhile; the exit status is 1 where a tool has something to say.
"""

from __future__ import annotations

import argparse
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch

from py2cu.cli.loading import load_files
from tests.sanitizers import TOOLS, Outcome, page, save, watch

UNTYPED = "numba_kernels"  # its kernels have no types before a call
EXAMPLES = sorted(path for path in (Path(__file__).parents[2] / "examples").glob("*.py") if path.stem != UNTYPED)
PATIENCE = 300  # seconds, of which the slowest example takes thirty


def check(path: Path) -> None:
    """Check the kernels of an example on the GPU, in this process."""
    for loaded in load_files([path], None):
        for kernel in loaded.kernels:
            report = kernel.check()
            torch.cuda.synchronize()
            assert report.device == "cuda" and report.ok, str(report)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sanitizers.examples", description=__doc__)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    parser.add_argument("--save", action="store_true", help="keep the table in results/")
    parser.add_argument("--check", type=Path, help="check this example, under no tool")
    options = parser.parse_args()
    if options.check:
        check(options.check)
        return 0

    def row(path: Path) -> tuple[Outcome, ...]:
        return tuple(watch(tool, ("-m", "tests.sanitizers.examples", "--check", str(path)), PATIENCE) for tool in TOOLS)

    with ThreadPoolExecutor(options.jobs) as pool:
        found = dict(zip(EXAMPLES, pool.map(row, EXAMPLES), strict=True))
    rows = [f"| example | {' | '.join(TOOLS)} |", "|---" * (1 + len(TOOLS)) + "|"]
    rows += [f"| {path.stem} | {' | '.join(cells)} |" for path, cells in found.items()]
    text = page(rows)
    print(text)
    if options.save:
        save(text, "examples")
    return int(any(cell is not Outcome.NOTHING for cells in found.values() for cell in cells))


if __name__ == "__main__":
    sys.exit(main())
