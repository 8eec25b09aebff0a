"""The results of a translation: emitted texts, the Python line behind each of their lines, and signatures of kernels.

Calls need a `CallTranslation`, with the texts of the targets that were asked for; a `Translation` has whole files.
Plain frozen data, which the cache stores as JSON: a cached kernel runs without the translator.
"""

from __future__ import annotations

import enum
import hashlib
import itertools
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace

from py2cu.diagnostics import Diagnostic, EnvironmentLacks
from py2cu.ir.abi.launch import LaunchProgram
from py2cu.ir.abi.signature import Signature
from py2cu.records import record


class TargetName(enum.StrEnum):
    CUDA = "cuda"
    CPU = "cpu"


@record(frozen=True, slots=True)
class Text:
    """One emitted file; `origin[i]` is the Python line behind line i + 1, or 0 for a line without one."""

    name: str
    text: str
    origin: tuple[int, ...]

    @property
    def code(self) -> list[str]:
        """The lines of the text without those that name the file: its head, and its own header."""
        lines = itertools.dropwhile(lambda line: line.startswith("//"), self.text.split("\n"))
        return [line for line in lines if not line.startswith('#include "')]


@record(frozen=True, slots=True)
class CallText:
    """What calls compile: the kernels as they stand in the file, without what else a C++ program needs.

    The text includes nothing; `headers` are what it needs. `programs` has the launches of each kernel, one for each set
    of dtypes.
    """

    text: Text
    headers: tuple[str, ...]
    programs: tuple[tuple[LaunchProgram, ...], ...]

    def programs_of(self, op: str) -> tuple[LaunchProgram, ...]:
        """The launches of the kernel whose C++ functions are named after `op`."""
        return next(programs for programs in self.programs if programs[0].symbol == op)


@dataclass(frozen=True, slots=True)
class CallTranslation:
    """What calls need of a kernel, or of all kernels of a file: the texts of the targets that were asked for so far."""

    name: str
    python_file: str
    signatures: tuple[Signature, ...]
    notes: tuple[Diagnostic, ...]
    texts: Mapping[TargetName, CallText] = field(default_factory=dict)
    obstacles: Mapping[TargetName, str] = field(default_factory=dict)  # why targets have no text

    def knows(self, target: TargetName) -> bool:
        """Whether `target` was asked for."""
        return target in self.texts or target in self.obstacles

    def text(self, target: TargetName) -> CallText:
        """The text for `target`, which was asked for.

        Raises:
            EnvironmentLacks: a kernel has no CPU version, because its threads cooperate in a way that only CUDA allows.
        """
        _require(target, self.name, self.obstacles)
        return self.texts[target]

    @property
    def digest(self) -> str:
        """A hash of what the kernels do: equal in every process, whatever the file is called and holds besides.

        It is made of the text for CUDA, on every device.
        """
        cuda = self.text(TargetName.CUDA)
        signatures = tuple(each.without_places() for each in self.signatures)
        facts = _compared((cuda.text.text, cuda.headers, cuda.programs, signatures))
        return hashlib.sha256(repr(facts).encode()).hexdigest()

    def joined(self, other: CallTranslation) -> CallTranslation:
        """The same with the texts of `other`, for further targets."""
        return replace(self, texts={**self.texts, **other.texts}, obstacles={**self.obstacles, **other.obstacles})


def _compared(value: object) -> object:
    """The value as tuples, with the fields of records that count when these are compared: without places."""
    if isinstance(value, tuple):
        return tuple(map(_compared, value))
    if not is_dataclass(value):
        return value
    return type(value).__name__, *(_compared(getattr(value, each.name)) for each in fields(value) if each.compare)


@record(frozen=True, slots=True)
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
    """A Python file, or one kernel of it, translated to the files of one or more targets."""

    name: str
    python_file: str
    signatures: tuple[Signature, ...]
    notes: tuple[Diagnostic, ...]
    texts: Mapping[TargetName, Artifacts]
    obstacles: Mapping[TargetName, str] = field(default_factory=dict)  # why targets have no text
    host: Text | None = None  # of the host functions, where the file has some

    @property
    def cuda(self) -> Artifacts:
        return self.texts[TargetName.CUDA]

    @property
    def digest(self) -> str:
        """A hash of what the files for CUDA do."""
        lines = [*self.cuda.kernel.code, *self.cuda.binding.code]
        return hashlib.sha256("\n".join(lines).encode()).hexdigest()

    def files(self, target: TargetName) -> tuple[Text, ...]:
        """Every text for `target`: the three of the kernels, if there are some, and that of the host functions."""
        of_kernels = self.artifacts(target).files if self.signatures else ()
        return of_kernels if self.host is None else (*of_kernels, self.host)

    def artifacts(self, target: TargetName) -> Artifacts:
        """The texts for `target`.

        Raises:
            EnvironmentLacks: a kernel has no CPU version, because its threads cooperate in a way that only CUDA allows.
        """
        _require(target, self.name, self.obstacles)
        return self.texts[target]

    def with_texts(self, artifacts: Artifacts) -> Translation:
        """A copy in which `artifacts`, which somebody edited, replace the texts of their target."""
        return replace(self, texts={**self.texts, artifacts.target: artifacts})


def _require(target: TargetName, name: str, obstacles: Mapping[TargetName, str]) -> None:
    if target in obstacles:
        what = f"{name} has no CPU version: {obstacles[target]}"
        raise EnvironmentLacks(what, "use a CUDA device, or `simulate`")
