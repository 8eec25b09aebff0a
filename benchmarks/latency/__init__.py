"""From an edit to its result, and from a call to its launch: what a user waits for, beside Triton and torch.

`python -m benchmarks latency` measures all rows in one process, in alternating rounds: a round measures each quantity
once, a row's peer in the same round, and every other round runs backwards. A row has the least, the median and the
greatest time over the rounds; its ratio is the median of the ratios within a round. On a machine with a GPU it measures
both targets, without one the CPU target alone; without Triton, edits on the GPU have no peer.

| file | rows |
|---|---|
| `edits.py` | an edited kernel to its result; an edited forward and backward to the first gradient |
| `first_result.py` | the first result in a new process, with a cached kernel |
| `calls.py`, `operators.py` | a call in each of its forms; the operator; a call that autograd records |
| `beside.py` | with `--beside TREE`: the same calls in another checkout of py2cu, which runs in a second process |
"""

from __future__ import annotations

from argparse import ArgumentParser, Namespace
from collections.abc import Iterator
from pathlib import Path

import torch

from benchmarks.latency import calls, edits, first_result
from benchmarks.latency.rounds import Options
from benchmarks.table import Row


def rows(options: Options) -> Iterator[Row]:
    devices = ("cuda", "cpu") if torch.cuda.is_available() else ("cpu",)
    for device in devices:
        yield from edits.rows(device, options)
    yield from first_result.rows(devices[0], options)
    for device in devices:
        yield from calls.rows(device, options)


def add_options(parser: ArgumentParser) -> None:
    group = parser.add_argument_group("options of latency")
    group.add_argument(
        "--only", action="append", metavar="TEXT", help="measure the rows whose name contains TEXT, all that are given"
    )
    group.add_argument("--rounds", type=int, metavar="N", help=f"rounds that count (default: {Options.rounds})")
    group.add_argument("--beside", type=Path, metavar="TREE", help="also time the calls of another checkout of py2cu")


def read_options(options: Namespace, parser: ArgumentParser) -> Options:
    """The options of `latency`; `parser` reports an error if another part was given them."""
    given = {name: value for name in ("only", "rounds", "beside") if (value := getattr(options, name)) is not None}
    if given and options.part != "latency":
        parser.error(f"--{next(iter(given))} is an option of latency: python -m benchmarks latency")
    if given.get("rounds", 1) < 1:
        parser.error("--rounds must be at least 1")
    if "beside" in given and not (given["beside"] / "py2cu" / "__init__.py").is_file():
        parser.error(f"--beside: {given['beside']} holds no py2cu")
    return Options(**given)
