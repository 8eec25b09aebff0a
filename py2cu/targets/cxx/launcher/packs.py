"""Describes the packs of a kernel for its template."""

from __future__ import annotations

from dataclasses import dataclass

from py2cu.targets.cxx.parameters import Argument


@dataclass(frozen=True, slots=True)
class PackView:
    """The template arguments of a kernel that computes packs, and what its launcher tests for them."""

    width: str  # the names of the template parameters
    count: str
    chosen: tuple[str, str]  # their values; names if they depend on a type
    constants: str  # what these names are: `N = 16 / sizeof(T), PACKS = …`
    launch: str  # the launcher's own names: of a function, of its parameters
    kernel: str
    elements: str
    arrays: tuple[str, ...]
    rows: tuple[str, ...]
    few: str  # the condition under which a thread has one element; empty if that is known

    @property
    def parameters(self) -> tuple[Argument, ...]:
        return (Argument(self.width, "int"), Argument(self.count, "int"))

    @property
    def chosen_elements(self) -> str:
        """How many elements a thread has."""
        return self.chosen[0] if self.chosen[1] == "1" else " * ".join(self.chosen)

    @property
    def condition(self) -> str:
        rows = (f"{row} % {self.chosen[0]} == 0" for row in self.rows)
        return " && ".join((*rows, f"are_aligned({{{', '.join(self.arrays)}}})"))
