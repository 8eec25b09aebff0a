"""`python -m benchmarks [PART]`: one table, every ratio measured in this run.

PART measures one part alone: `python -m benchmarks lltm`. --save writes the table to
benchmarks/results/<date>-<device>[-<part>].md, --json FILE the rows as JSON; --skip-lecture leaves out the one row that
takes minutes.
"""

from __future__ import annotations

import argparse
import datetime
import functools
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

import torch

from benchmarks import aliasing, bandwidth, blocks, cpu, few, gpt2, gpu, latency, lltm, numba_cuda, simulator, startup
from benchmarks.table import Row, render
from py2cu.build import toolchain


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "part",
        nargs="?",
        choices=parts(lecture=True, latency_options=latency.Options()),
        help="measure this part alone",
    )
    parser.add_argument("--save", action="store_true", help="also write the table to benchmarks/results")
    parser.add_argument("--skip-lecture", action="store_true", help="leave out the build of the lecture's source")
    parser.add_argument("--json", type=Path, metavar="FILE", help="also write the rows to FILE, times in seconds")
    latency.add_options(parser)
    options = parser.parse_args()
    if options.json and not options.json.absolute().parent.is_dir():
        parser.error(f"--json: {options.json.parent} is not a folder")
    latency_options = latency.read_options(options, parser)

    chosen = parts(lecture=not options.skip_lecture, latency_options=latency_options)
    measures = [measure for part, measure in chosen.items() if options.part in (None, part)]
    rows = []
    for row in chain.from_iterable(measure() for measure in measures):
        print(" | ".join(row.cells), file=sys.stderr)  # some parts take minutes
        rows.append(row)
    if not rows:
        raise SystemExit(f"no row's name contains {' and '.join(latency_options.only)}")
    where = conditions()
    text = f"{where}\n\n{render(rows)}\n"
    print(text)
    if options.json:
        records = {"conditions": where, "rows": [row.record() for row in rows]}
        options.json.write_text(json.dumps(records, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")
    if options.save:
        name = "-".join(filter(None, [str(datetime.date.today()), device_slug(), options.part]))
        path = Path(__file__).parent / "results" / f"{name}.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        print(f"saved as {path}")


def parts(*, lecture: bool, latency_options: latency.Options) -> dict[str, Callable[[], Iterator[Row]]]:
    """What this machine can measure."""
    on_gpu = torch.cuda.is_available()
    everywhere: dict[str, Callable[[], Iterator[Row]]] = {
        "startup": functools.partial(startup.rows, lecture=lecture, device="cuda" if on_gpu else "cpu"),
        "cpu": cpu.rows,
        "tiles": cpu.rows_of_tiles,
        "simulator": simulator.rows,
        "lltm": lltm.rows,
        "latency": functools.partial(latency.rows, latency_options),
    }
    return (
        {
            **everywhere,
            "gpu": gpu.rows,
            "bandwidth": bandwidth.rows,
            "few": few.rows,
            "blocks": blocks.rows,
            "gpt2": gpt2.rows,
            "gpt2-step": gpt2.rows_of_step,
            "aliasing": aliasing.rows,
            "numba": numba_cuda.rows,
        }
        if on_gpu
        else everywhere
    )


def conditions() -> str:
    """Where and with what."""
    device = torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"
    versions = ", ".join([f"torch {torch.__version__}", f"Python {platform.python_version()}", *compilers()])
    cores = len(os.sched_getaffinity(0))
    load = f"load {os.getloadavg()[0]:.1f} at the end"  # well above the row under way: others used the machine too
    return f"{datetime.date.today()}: {device}, {cores} CPU cores, {load}, {versions}. Times are medians."


def compilers() -> Iterator[str]:
    """The C++ compiler and nvcc, with their versions."""
    if cxx := toolchain.find_cxx():
        yield version_text(cxx).splitlines()[0]
    if nvcc := toolchain.find_nvcc():
        release = re.search(r"release ([\d.]+)", version_text(nvcc))
        yield f"nvcc {release[1] if release else 'of unknown version'}"


def version_text(tool: Path) -> str:
    return subprocess.run([str(tool), "--version"], capture_output=True, text=True, check=True).stdout


def device_slug() -> str:
    name = torch.cuda.get_device_name() if torch.cuda.is_available() else f"cpu-{platform.machine()}"
    return re.sub(r"\W+", "-", name).strip("-").lower()


if __name__ == "__main__":
    main()
