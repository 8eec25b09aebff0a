"""What a translation is: the texts, where their lines came from, and what a call looks like.

Plain frozen data; it pickles into the cache, so that a cached kernel runs without a translator.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, replace

from py2cu.diagnostics import Diagnostic, EnvironmentLacks
from py2cu.ir.abi.signature import Signature


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
    """One Python file (or one kernel of it), translated for the targets asked for."""

    name: str
    python_file: str
    signatures: tuple[Signature, ...]
    notes: tuple[Diagnostic, ...]
    texts: Mapping[TargetName, Artifacts]

    @property
    def cuda(self) -> Artifacts:
        return self.texts[TargetName.CUDA]

    def artifacts(self, target: TargetName) -> Artifacts:
        """The texts for `target`.

        Raises:
            EnvironmentLacks: there are none, since threads of these kernels wait for each other where the CPU's cannot.
        """
        if target not in self.texts:
            what = f"{self.name} has kernels whose threads wait where a CPU's cannot, so that they run on CUDA alone"
            raise EnvironmentLacks(what, "use a CUDA device, or `simulate`")
        return self.texts[target]

    def with_texts(self, artifacts: Artifacts) -> Translation:
        """The same with other texts for their target."""
        return replace(self, texts={**self.texts, artifacts.target: artifacts})
