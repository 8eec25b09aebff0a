"""A kernel in both of its ways at once: what calls compile, and what `load_inline` builds of the written files."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import torch

from py2cu import Kernel
from py2cu.check import check_kernel
from tests.support.modules import import_file

_FILES: Final = sorted((Path(__file__).parents[2] / "examples").glob("*.py"))
EXAMPLES: Final = [path for path in _FILES if "@kernel" in path.read_text(encoding="utf-8")]
BY_CHANCE: Final = {"warp_sums"}
"""Kernels that add floats by atomics, in any order: two runs of one build differ, too."""


class BothWays:
    """What `check` takes for a kernel. Each launch runs what calls compile, and then the files, on the same memory."""

    def __init__(self, kernel: Kernel) -> None:
        self.of_calls = kernel.with_small_values()
        self.of_files = self.of_calls.with_translation(self.of_calls.translation)
        self.python, self.signature = self.of_calls.python, self.of_calls.signature
        self.launches = 0
        self.differences: list[str] = []

    def run(self, target_device: str, arguments: Mapping[str, Any]) -> None:
        """Launch the files last; `differences` has the arrays in which a bit is another one."""
        written = {p.name: arguments[p.name] for p in self.signature.written if p.name in arguments}
        before = {name: array.clone() for name, array in written.items()}
        self.of_calls.run(target_device, arguments)
        of_calls = {name: _bits(array.clone()) for name, array in written.items()}
        for name, array in written.items():
            array.copy_(before[name])
        self.of_files.run(target_device, arguments)
        self.launches += 1
        if self.signature.name not in BY_CHANCE:
            differs = (name for name, array in written.items() if not torch.equal(_bits(array), of_calls[name]))
            self.differences += [f"`{name}` of {self.signature.name}, {_shown(arguments)}" for name in differs]


def disagreements(path: Path, device: str) -> list[str]:
    """What both ways of the kernels of an example do not agree about, with each other and with the Python."""
    module = import_file(path)
    kernels = [each for each in vars(module).values() if isinstance(each, Kernel) and each.__module__ == path.stem]
    assert kernels
    return [said for kernel in kernels for said in disagreements_of(BothWays(kernel), device)]


def disagreements_of(both: BothWays, device: str) -> Iterator[str]:
    """The same of a kernel."""
    report = check_kernel(both, device=device)
    if not report.ok:
        yield str(report)
    if not both.launches:
        yield f"{both.signature.name} is not launched"
    yield from both.differences


def _bits(array: torch.Tensor) -> torch.Tensor:
    """The bits, alike for all NaNs: the sign of `nan + nan` is that of the operand that the compiler puts first."""
    parts = torch.view_as_real(array) if array.is_complex() else array
    if parts.is_floating_point():
        parts = parts.masked_fill(parts.isnan(), math.nan)
    return parts.reshape(-1).view(torch.uint8)


def _shown(arguments: Mapping[str, Any]) -> str:
    shown = {name: [*each.shape] if isinstance(each, torch.Tensor) else each for name, each in arguments.items()}
    return ", ".join(f"{name}={each}" for name, each in shown.items())
