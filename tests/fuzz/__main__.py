"""The long run: `python -m tests.fuzz --kernels 20000 --device cpu`.

Batches of kernels, each in a process of its own, so that a kernel which ends its process ends nothing else. Every fault
is shrunk and printed; the exit status is 1 if there was one.
"""

from __future__ import annotations

import argparse
import datetime
import gc
import multiprocessing
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import Any, Final

import torch

from py2cu.build import toolchain
from tests.fuzz import gradients
from tests.fuzz.judge import Outcome, Seconds, Verdict, judge
from tests.fuzz.shrink import generate, shrink
from tests.support.libraries import STOPS, Device, Setting

RESULTS: Final = Path(__file__).parent / "results"
BATCH: Final = 64
SHRINK_SECONDS: Final = 240.0
START_SECONDS: Final = 60.0
KERNEL_SECONDS: Final = 10.0
PROGRESS_SECONDS: Final = 15.0
_FORK: Final = multiprocessing.get_context("fork")


@dataclass(frozen=True, slots=True)
class Batch:
    """Kernels of these numbers, judged in one process."""

    seed: int
    numbers: range

    def judge(self, setting: Setting) -> tuple[list[Verdict], Seconds]:
        gc.disable()  # a fifth of the time, and the process ends with its batch
        seconds = Seconds()
        sources = seconds.measure("generate", lambda: [generate(self.seed, number) for number in self.numbers])
        return judge(sources, setting, seconds), seconds

    @property
    def seconds(self) -> float:
        """How long it may take on a slow and busy machine."""
        return START_SECONDS + KERNEL_SECONDS * len(self.numbers)

    def singly(self) -> list[Batch]:
        """What to judge again where the process ended or hung, to find the kernel at fault."""
        return [Batch(self.seed, self.numbers[at : at + 1]) for at in range(len(self.numbers))]


@dataclass(slots=True)
class Tally:
    """What the run has found so far."""

    outcomes: Counter[Outcome] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    faults: dict[int, Verdict] = field(default_factory=dict)  # by number
    overwhelming: list[int] = field(default_factory=list)  # the numbers of kernels on which the compiler crashes
    cases: int = 0
    skipped: int = 0
    elements: int = 0
    seconds: Counter[str] = field(default_factory=Counter)
    began: float = field(default_factory=time.monotonic)

    def enter(self, batch: Batch, verdicts: list[Verdict], seconds: Seconds) -> None:
        self.seconds.update(seconds.spent)
        for number, verdict in zip(batch.numbers, verdicts, strict=True):
            self.outcomes[verdict.outcome] += 1
            self.cases += verdict.cases
            self.skipped += verdict.skipped
            self.elements += verdict.elements
            if verdict.outcome is Outcome.REFUSED:
                self.codes[verdict.message.partition(":")[0]] += 1
            if verdict.is_fault:
                self.faults[number] = verdict
            if verdict.outcome is Outcome.OVERWHELMS:
                self.overwhelming.append(number)

    @property
    def kernels(self) -> int:
        return self.outcomes.total()

    def rows(self) -> list[tuple[str, str]]:
        """The final table."""
        elapsed = time.monotonic() - self.began
        refused = ", ".join(f"{code} {count}" for code, count in self.codes.most_common())
        steps = ", ".join(f"{step} {1000 * spent / self.kernels:.0f}" for step, spent in self.seconds.items())
        return [
            ("kernels", f"{self.kernels:,}"),
            *((str(outcome), f"{self.outcomes[outcome]:,}") for outcome in Outcome if self.outcomes[outcome]),
            ("refused by code", refused or "none"),
            *([("compiler crashes on", ", ".join(map(str, self.overwhelming)))] if self.overwhelming else []),
            ("disagreements", f"{len(self.faults):,}"),
            ("cases compared", f"{self.cases:,} (and {self.skipped:,} in which the Python raises)"),
            ("elements compared", f"{self.elements:,}"),
            ("seconds", f"{elapsed:.0f}"),
            ("kernels a second", f"{self.kernels / elapsed:.1f}"),
            ("ms of a kernel", steps),
        ]


# --- processes ----------------------------------------------------------------------------------------------------


def _send(pipe: Connection, work: Callable[[], object]) -> None:
    pipe.send(work())


def _start(work: Callable[[], object]) -> tuple[Any, Connection]:
    receiver, sender = _FORK.Pipe(duplex=False)
    process = _FORK.Process(target=_send, args=(sender, work))
    process.start()
    sender.close()
    return process, receiver


def in_child(work: Callable[[], Any]) -> Any:
    """The result of `work` in a process of its own; None where that ends without one, or hangs."""
    process, receiver = _start(work)
    result = _received(receiver) if receiver.poll(START_SECONDS) else None
    process.kill()
    process.join()
    return result


def _received(receiver: Any) -> Any:
    """What a process sent; None where it ended without."""
    try:
        return receiver.recv()
    except EOFError:
        return None


def run(batches: list[Batch], setting: Setting, jobs: int) -> Iterator[tuple[Batch, Any]]:
    """Every batch with its verdicts, as they come."""
    waiting = batches[::-1]
    running: dict[Any, tuple[Batch, Any, float]] = {}
    while waiting or running:
        while waiting and len(running) < jobs:
            batch = waiting.pop()
            process, receiver = _start(partial(batch.judge, setting))
            running[receiver] = batch, process, time.monotonic() + batch.seconds
        ready = wait(list(running), timeout=1.0)
        late = [receiver for receiver, (_, _, deadline) in running.items() if deadline < time.monotonic()]
        for receiver in {*ready, *late}:
            batch, process, _ = running.pop(receiver)
            result = _received(receiver) if receiver in ready else None
            process.kill()
            process.join()
            if result is None and len(batch.numbers) > 1:
                waiting += batch.singly()
            else:
                hung = Verdict(Outcome.HANGS, f"no verdict in {batch.seconds:.0f} seconds")
                ended = Verdict(Outcome.CRASHED, f"exit code {process.exitcode}")
                yield batch, result or ([ended if receiver in ready else hung], Seconds())


# --- faults -------------------------------------------------------------------------------------------------------


def least(seed: int, number: int, verdict: Verdict, setting: Setting) -> tuple[str, Verdict]:
    """The shrunk kernel of a fault, and the verdict on it."""

    def again(source: str) -> Verdict:
        found = in_child(lambda: judge([source], setting, Seconds()))
        return found[0] if found else Verdict(Outcome.CRASHED)

    source = shrink(seed, number, lambda source: again(source).outcome is verdict.outcome, SHRINK_SECONDS)
    return source, again(source)


# --- the command --------------------------------------------------------------------------------------------------


def main() -> int:
    with tempfile.TemporaryDirectory(prefix="py2cu-") as folder:  # nobody will call these kernels again
        os.environ["PY2CU_CACHE_DIR"] = folder
        return _run_all(_parser().parse_args())


def _run_gradients(options: argparse.Namespace) -> int:
    """Kernels with backwards, in this process."""
    last, wrong = options.first + options.kernels, 0
    for at in range(options.first, last, options.batch):
        numbers = range(at, min(at + options.batch, last))
        sources = [gradients.generate(options.seed, number) for number in numbers]
        for place, what in gradients.faults(sources):
            print(f"\n--- seed {options.seed}, kernel {numbers[place]}\n{sources[place]}\n{what}", flush=True)
            wrong += 1
        print(f"{numbers.stop - options.first:,} kernels with gradients, {wrong} of them wrong", flush=True)
    return 1 if wrong else 0


def _run_all(options: argparse.Namespace) -> int:
    torch.set_num_threads(1)  # before processes are forked
    if options.gradients:
        return _run_gradients(options)
    setting = Setting(Device(options.device), STOPS if options.sanitize else (), options.fma)
    tally, shown = Tally(), time.monotonic()
    first, last = options.first, options.first + options.kernels
    batches = [
        Batch(options.seed, range(at, min(at + options.batch, last))) for at in range(first, last, options.batch)
    ]
    for batch, (verdicts, seconds) in run(batches, setting, options.jobs):
        tally.enter(batch, verdicts, seconds)
        for number, verdict in zip(batch.numbers, verdicts, strict=True):
            if verdict.is_fault:
                print(f"kernel {number}: {verdict.outcome}", flush=True)
        if time.monotonic() - shown > PROGRESS_SECONDS:
            shown = time.monotonic()
            rate = tally.kernels / (shown - tally.began)
            print(f"{tally.kernels:,} kernels, {rate:.1f} a second, {len(tally.faults)} disagreements", flush=True)
    report = [f"{name:<20} {text}" for name, text in tally.rows()]
    print("\n".join(report), flush=True)
    for place, (number, verdict) in enumerate(sorted(tally.faults.items())):
        print(f"\n--- seed {options.seed}, kernel {number}: {verdict.outcome}", flush=True)
        if place < options.shrink:
            source, verdict = least(options.seed, number, verdict, setting)
            print(source)
        print(verdict.message, flush=True)
    if options.save:
        _save(options, tally)
    return 1 if tally.faults else 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description="Random kernels against CPython.")
    parser.add_argument("--kernels", type=int, default=1000, help="how many")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="the number of the first kernel")
    parser.add_argument("--gradients", action="store_true", help="kernels with backwards, on the CPU")
    parser.add_argument("--device", choices=[device.value for device in Device], default="cpu")
    parser.add_argument("--jobs", type=int, default=2, help="processes at a time")
    parser.add_argument("--batch", type=int, default=BATCH, help="kernels compiled together")
    parser.add_argument("--sanitize", action="store_true", help="stop at undefined behaviour (cpu, emulated)")
    parser.add_argument("--fma", action="store_true", help="round multiply-adds once, as nvcc does unless it is told")
    parser.add_argument("--shrink", type=int, default=10, help="how many faults to shrink")
    parser.add_argument("--save", action="store_true", help=f"keep the result in {RESULTS.name}/")
    return parser


def _save(options: argparse.Namespace, tally: Tally) -> None:
    """The result as a page, with what it was found on."""
    today = datetime.datetime.now(tz=datetime.UTC).date().isoformat()
    facts = [
        ("command", f"`python -m tests.fuzz {' '.join(sys.argv[1:])}`"),
        ("date", today),
        ("machine", _machine(options.device)),
        ("versions", f"Python {platform.python_version()}, torch {torch.__version__}, {_compiler(options.device)}"),
        ("commit", _first_line("git", "describe", "--always", "--dirty")),
    ]
    lines = ["| | |", "|---|---|", *(f"| {name} | {text} |" for name, text in [*facts, *tally.rows()]), ""]
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{today}-{options.device}{'-fma' * options.fma}-{options.seed}.md"
    path.write_text("\n".join(lines), encoding="utf-8")
    print(f"saved as {path}")


def _machine(device: str) -> str:
    gpu = f", {torch.cuda.get_device_name()}" if device == Device.CUDA else ""
    return f"{platform.machine()}, {multiprocessing.cpu_count()} cores{gpu}"


def _compiler(device: str) -> str:
    if device == Device.CUDA:
        return _first_line(str(toolchain.find_nvcc()), "--version", line=-1)
    return _first_line(str(toolchain.find_cxx()), "--version")


def _first_line(*command: str, line: int = 0) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()[line]


if __name__ == "__main__":
    sys.exit(main())
