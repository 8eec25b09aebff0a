"""What a translation is: the texts, where their lines came from, and what a call looks like.

Plain frozen data; it pickles into the cache, so that a cached kernel runs without a translator.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from py2cu.diagnostics import Diagnostic
from py2cu.ir.signature import Signature


class TargetName(enum.StrEnum):
    CUDA = "cuda"
    CPU = "cpu"


@dataclass(frozen=True, slots=True)
class Text:
    """One emitted file; `origin[i]` is the Python line behind line i + 1, 0 where the template wrote it."""

    name: str
    text: str
    origin: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Artifacts:
    """The three files of one target: kernels with launchers, their declarations, the torch binding."""

    name: str
    target: TargetName
    kernel: Text
    header: Text
    binding: Text

    @property
    def files(self) -> tuple[Text, Text, Text]:
        return (self.kernel, self.header, self.binding)


@dataclass(frozen=True, slots=True)
class Translation:
    """One Python file (or one kernel of it), translated for every target."""

    name: str
    python_file: str
    signatures: tuple[Signature, ...]
    notes: tuple[Diagnostic, ...]
    cuda: Artifacts
    cpu: Artifacts

    def artifacts(self, target: TargetName) -> Artifacts:
        return self.cuda if target is TargetName.CUDA else self.cpu
