"""Compiles the kernels of many programs together and runs each of them in a process that may crash or hang.

In: jobs, a device. Out: `Launched`: the elements of the result, or what went wrong.
"""

from __future__ import annotations

import enum
import math
import multiprocessing
import resource
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from multiprocessing.connection import Connection
from typing import Any, Final

from py2cu.translation import Translation
from tests.enumerate.arguments import Grid
from tests.support.libraries import CompileFailure, Device, Run, Setting, build

KERNEL_SECONDS: Final = 4
"""Of processor time, that a kernel may take."""
GPU_SECONDS: Final = 30
"""In place of it, for a kernel on a GPU: the first one of a process makes a context."""
SILENT_SECONDS: Final = 60.0
"""That a process may take for a kernel: on a GPU the processor may wait, and a process starts slowly."""
_FORK: Final = multiprocessing.get_context("fork")


class Fault(enum.StrEnum):
    """What a kernel does instead of a result."""

    CRASHES = "crashes"
    HANGS = "hangs"
    RAISES = "raises"
    UNCOMPILED = "does not compile"


@dataclass(frozen=True, slots=True)
class Job:
    """A kernel, what makes its arguments, and which of them is its result."""

    translation: Translation
    arguments: Callable[[], dict[str, Any]]
    result: str = "y"


@dataclass(frozen=True, slots=True)
class Launched:
    """The elements of the result behind a launch, or a fault in words."""

    elements: list[int] | None = None
    fault: Fault | None = None
    message: str = ""


def launch(jobs: Mapping[int, Job], device: Device) -> dict[int, Launched]:
    """The result of each job, by its number."""
    results: dict[int, Launched] = {}
    runs: dict[int, Run] = {}
    for number, run in _compile(jobs, Setting(device, quick=True)):
        if isinstance(run, Launched):
            results[number] = run
        else:
            runs[number] = run
    left = [*runs]
    while left:
        results.update(_in_child([(number, runs[number], jobs[number]) for number in left], device))
        left = [number for number in left if number not in results]
    return results


def _compile(jobs: Mapping[int, Job], setting: Setting) -> Iterator[tuple[int, Run | Launched]]:
    """What runs each kernel. Where not all compile, those that the compiler names are left out, or halves are tried."""
    if not jobs:
        return
    numbers = [*jobs]
    try:
        runs = build([job.translation for job in jobs.values()], setting)
    except CompileFailure as failure:
        named = failure.errors if failure.errors or len(numbers) > 1 else {0: str(failure)}
        for place, error in named.items():
            yield numbers[place], Launched(fault=Fault.UNCOMPILED, message=error)
        rest = [number for place, number in enumerate(numbers) if place not in named]
        half = len(rest) if named else len(rest) // 2
        for part in (rest[:half], rest[half:]):
            yield from _compile({number: jobs[number] for number in part}, setting)
    else:
        for number, (run,) in zip(numbers, map(dict.values, runs), strict=True):
            yield number, run


def _in_child(runs: Sequence[tuple[int, Run, Job]], device: Device) -> Iterator[tuple[int, Launched]]:
    """The results of kernels that run one after the other in a process of their own, up to the first that ends it."""
    receiver, sender = _FORK.Pipe(duplex=False)
    process = _FORK.Process(target=_send, args=(sender, runs, device))
    process.start()
    sender.close()
    for number, _, _ in runs:
        if not receiver.poll(SILENT_SECONDS):
            yield number, Launched(fault=Fault.HANGS)
            break
        try:
            launched = receiver.recv()
            yield number, launched
            if launched.fault is not None:  # on a GPU, every later launch of the process fails, too
                break
        except EOFError:
            process.join()
            is_late = process.exitcode == -signal.SIGXCPU
            message = "" if is_late else f"exit code {process.exitcode}"
            yield number, Launched(fault=Fault.HANGS if is_late else Fault.CRASHES, message=message)
            break
    process.kill()
    process.join()
    receiver.close()


def _send(sender: Connection, runs: Sequence[tuple[int, Run, Job]], device: Device) -> None:
    """Sends the result of each kernel; the system ends the process where one takes longer than it may."""
    _, most = resource.getrlimit(resource.RLIMIT_CPU)
    seconds = GPU_SECONDS if device is Device.CUDA else KERNEL_SECONDS
    for _, run, job in runs:
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(time.process_time()) + seconds, most))
        arguments = job.arguments()
        if device is Device.CUDA:
            tensors = {id(value): _on_gpu(value) for value in arguments.values()}  # one array may be two parameters
            arguments = {name: tensors[id(value)] for name, value in arguments.items()}
        try:
            run(arguments)
        except RuntimeError as error:
            sender.send(Launched(fault=Fault.RAISES, message=str(error)))
        else:
            sender.send(Launched(arguments[job.result].flatten().tolist()))


def _on_gpu(grid: Any) -> Any:
    """A tensor with the elements of an array; a number as it is."""
    if not isinstance(grid, Grid):
        return grid
    import torch

    dtype = getattr(torch, grid.dtype.removeprefix("torch."))
    return torch.tensor(grid.tolist(), dtype=dtype, device="cuda").view(grid.shape)
