"""Reads the rows of `tests/mutations/rules/*.rules`.

A rule stands at the start of a line, its rows are indented below it: an anchor, a mutation, the cases of which one must
fail, with two spaces or more between these columns. A mutation is an operator of `operators.py`, the number of a place
where the first is not meant, and Python or text behind a colon where the operator takes it.

`cpu:`, `emulated:`, `optimised:` and `sanitized:` name a kernel case, or one kernel of it, that is compared with its
Python: as CPU text, as CUDA text compiled for the CPU, as CPU text with the flags of a call, as CPU text that stops at
undefined behaviour. `kept:` compares a case with the text that is kept, `refused:` an error case with its messages.
Anything else is a test.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from tests.mutations.anchors import Mutation
from tests.mutations.operators import OPERATORS

RULES: Final = Path(__file__).parent / "rules"
FOLDERS: Final = {
    "cpu": "kernels",
    "emulated": "kernels",
    "optimised": "kernels",
    "sanitized": "kernels",
    "kept": "kernels",
    "refused": "errors",
}
_CHANGE: Final = re.compile(r"(?P<operator>[a-z]+)(?: (?P<number>\d+))?(?:: (?P<code>.+))?")


def read_rules(folder: Path = RULES) -> tuple[Mutation, ...]:
    """Every row; raises `ValueError`, with the place, for a row that cannot be read."""
    return tuple(mutation for path in sorted(folder.glob("*.rules")) for mutation in _read(path))


def _read(path: Path) -> Iterator[Mutation]:
    rule = ""
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip():
            continue
        if not line.startswith(" "):
            rule = line
            continue
        try:
            anchor, change, cases = re.split(r" {2,}", line.strip())
            yield parse(rule, anchor, change, cases)
        except ValueError as error:
            raise ValueError(f"{path.name}:{number}: {error}") from error


def parse(rule: str, anchor: str, change: str, cases: str = "") -> Mutation:
    match = _CHANGE.fullmatch(change)
    if match is None or match["operator"] not in OPERATORS:
        raise ValueError(f"`{change}` is no mutation")
    if OPERATORS[match["operator"]].takes_code != (match["code"] is not None):
        raise ValueError(f"`{change}` has an expression too few or too many")
    number = None if match["number"] is None else int(match["number"])
    return Mutation(rule, anchor, match["operator"], number, match["code"] or "", tuple(cases.split()))
