"""The result of a translation: emitted texts, the Python line behind each of their lines, and signatures of kernels.

Plain frozen data, which the cache pickles: a cached kernel runs without the translator.
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
    """One emitted file; `origin[i]` is the Python line behind line i + 1, or 0 for a line without one."""

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
    """A Python file, or one kernel of it, translated for one or more targets."""

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
            EnvironmentLacks: a kernel has no CPU version, because its threads cooperate in a way that only CUDA allows.
        """
        if target not in self.texts:
            what = f"{self.name} has no CPU version: its threads wait for each other in a way that only CUDA supports"
            raise EnvironmentLacks(what, "use a CUDA device, or `simulate`")
        return self.texts[target]

    def with_texts(self, artifacts: Artifacts) -> Translation:
        """A copy in which `artifacts` replace the texts of their target."""
        return replace(self, texts={**self.texts, artifacts.target: artifacts})
