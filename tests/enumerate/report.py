"""What a run has found: counts, refusals by code, disagreements by family, and what the simulator says.

In: programs with their verdicts. Out: a page, and everything as JSON.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.enumerate.compose import Program
from tests.enumerate.in_place import Call
from tests.enumerate.judge import Outcome, Verdict
from tests.enumerate.simulated import is_fault

RESULTS: Final = Path(__file__).with_name("results")
REFUSALS: Final = RESULTS / "refusals.json"

_ACTS: Final = r"(?:bump\(|two\(|put\(|pair\(|:= |inner\(|for r in \(|sum\()"
_NATURAL: Final = re.compile(r"0xFFFFFFFFFFFFFFFF|MASK|<< 32|0xFF51AFD7|\bmix\(|\bfolded\(|9223372036854775808")
_WRITES: Final = re.compile(r"bump\(|two\(|put\(|pair\(|:= |y\[i, 0\] = y")
NATURALS: Final = "naturals from 2**63 on"
IN_CALLS: Final = "such naturals in calls, ranges and quotients"
IN_PLACE: Final = "a call in place of which several threads own an element"
BEYOND: Final = "leaves 64 bits without a report"
_CALLED: Final = re.compile(r"gcd\(|lcm\(|isqrt\(|range\((?!3\)|i\))|//|%|divmod")
FAMILIES: Final = (
    ("a negative constant index of a part", r"\b[wzyr]\[[^\n=]*\]\[-\d\]|last\(|r\[-1\] =|r\[1:\]\[-2\]|r\[:3\]\[-1\]"),
    ("a bound of a loop, or a slice's start, that acts", rf"for \w+ in [^\n]*{_ACTS}[^\n]*:\n|w\[[^\n]*{_ACTS}"),
    ("an index of a store that acts, or is lifted", rf"y\[i, [^\n=]*({_ACTS}|\bor\b|<)[^\n=]*\] \+?= "),
    ("compared tuples that stop early", r"\) (<|==|!=|in|not in) \(|\b[lo] (<|==|!=) \(|\) (<|==|!=) [lo]\b"),
    ("what is hoisted before what stands in front of it", r"\b(sum|max|min|any|all|dist)\(|\) if bump"),
    ("effects in an item of a tuple", rf"two\(y, i\)|pair\(|{_ACTS}[^\n]*\)\["),
    ("a walrus behind a read of its name", ":= "),
)  # fmt: skip
"""What a disagreement probably belongs to: the first whose pattern its body has."""


def family_of(verdict: Verdict) -> str:
    """The family to which a disagreement probably belongs."""
    if "out[" in verdict.source:
        return IN_PLACE
    body = re.sub(r"\n    y\[i, [457]\] = .*", "", "\n" + verdict.source.rpartition('"n 8"],\n):\n')[2])
    is_natural, writes = _NATURAL.search(verdict.source.partition("\n\n\n")[2]), _WRITES.search(body)
    if re.search(FAMILIES[0][1], body):
        return FAMILIES[0][0]
    low, high = verdict.extremes
    if is_natural and not (low >= -(2**63) and high < 2**64) and not writes:
        return BEYOND
    is_same_effect = verdict.expected[:4] == verdict.got[:4]
    if is_natural and (not writes or (is_same_effect and _differs_by_sign(verdict))):
        return IN_CALLS if _CALLED.search(verdict.source.partition("\n\n\n")[2]) else NATURALS
    found = next((name for name, pattern in FAMILIES if re.search(pattern, body)), None)
    return found or (NATURALS if is_natural else "something else")


def _differs_by_sign(verdict: Verdict) -> bool:
    """Whether the upper halves differ by all of their bits, or by the sign."""
    pairs = zip(verdict.expected, verdict.got, strict=False)
    return all((a - b) % 2**31 == 0 or abs(a - b) >= 2**31 for a, b in pairs)


@dataclass(slots=True)
class Tally:
    """The verdicts of a run."""

    outcomes: Counter[str] = field(default_factory=Counter)
    codes: Counter[str] = field(default_factory=Counter)
    faults: list[dict[str, Any]] = field(default_factory=list)
    simulator: dict[str, list[dict[str, Any]]] = field(default_factory=lambda: defaultdict(list))
    said: Counter[str] = field(default_factory=Counter)
    faults_of_simulator: int = 0

    def enter(self, program: Program | Call, verdict: Verdict) -> None:
        self.outcomes[verdict.outcome.value] += 1
        if verdict.outcome is Outcome.REFUSED:
            self.codes.update(verdict.code.split())
        if verdict.is_fault:
            self.faults.append(
                {
                    "family": family_of(verdict),
                    "outcome": verdict.outcome.value,
                    "message": verdict.message,
                    "expected": verdict.expected,
                    "got": verdict.got,
                    "key": program.key,
                    "source": verdict.source,
                }
            )
        self.faults_of_simulator += verdict.is_fault_of_simulator
        for kind, what in verdict.simulator.items():
            self.said[kind] += 1
            self.simulator[kind].append({"key": program.key, "what": what, "source": verdict.source})

    def as_json(self, facts: dict[str, str], sample: int) -> str:
        families = Counter(fault["family"] for fault in self.faults)
        everything = {
            "facts": facts,
            "sample": sample,
            "outcomes": dict(self.outcomes.most_common()),
            "refusals": dict(sorted(self.codes.items())),
            "families": dict(families.most_common()),
            "simulator": dict(self.said.most_common()),
            "disagreements": sorted(self.faults, key=lambda fault: (fault["family"], len(fault["source"]))),
            "what the simulator says": {
                kind: sorted(rows, key=lambda row: len(row["source"]))[:40] for kind, rows in self.simulator.items()
            },
        }
        return json.dumps(everything, indent=1)

    def page(self, facts: dict[str, str]) -> str:
        """The run for a reader: an example of each family and of each thing that the simulator says."""
        total = self.outcomes.total()
        rows = [*facts.items(), ("programs", f"{total:,}")]
        rows += [(outcome, f"{count:,}") for outcome, count in self.outcomes.most_common()]
        rows += [("refused by code", ", ".join(f"{code} {count:,}" for code, count in sorted(self.codes.items())))]
        lines = ["| | |", "|---|---|", *(f"| {name} | {text} |" for name, text in rows)]
        families: dict[str, list[dict[str, Any]]] = defaultdict(list)
        for fault in self.faults:
            families[fault["family"]].append(fault)
        lines += ["", f"## Disagreements: {len(self.faults):,}"]
        for name, faults in sorted(families.items(), key=lambda item: -len(item[1])):
            example = min(faults, key=lambda fault: len(fault["source"]))
            lines += ["", f"**{name}**: {len(faults):,}", "", "```text", body_of(example["source"]), "```", ""]
            lines += [f"{example['outcome']}: {example['message']}".strip(": ")]
        faults = f"in {self.faults_of_simulator:,} programs it may not"
        lines += ["", f"## What the simulator says where CPython computes; {faults}"]
        for kind, count in self.said.most_common():
            example = min(self.simulator[kind], key=lambda row: len(row["source"]))
            mark = ", a fault" if is_fault(kind) else ""
            lines += ["", f"**{kind}**: {count:,}{mark}", "", "```text", body_of(example["source"]), "```", ""]
            lines += [example["what"]]
        return "\n".join([*lines, ""])


def body_of(source: str) -> str:
    """The functions and the body of a kernel, without what all files have."""
    if "MASK" not in source:
        return source[source.index("@kernel") :].rstrip()
    head, _, body = source.rpartition("@kernel\n")
    functions = head.partition("MASK = 2**64 - 1\n")[2].strip()
    lines = body.partition("):\n    ")[2]
    return "\n\n\n".join([*([functions] if functions else []), f"def f(i, x, z, w, y):\n    {lines.rstrip()}"])


def kept_refusals(size: int) -> dict[str, int] | None:
    """The refusals by code that are kept for a sample of this size."""
    kept: dict[str, dict[str, int]] = json.loads(REFUSALS.read_text(encoding="utf-8")) if REFUSALS.exists() else {}
    return kept.get(str(size))


def keep_refusals(size: int, codes: Counter[str]) -> None:
    kept = json.loads(REFUSALS.read_text(encoding="utf-8")) if REFUSALS.exists() else {}
    kept[str(size)] = dict(sorted(codes.items()))
    REFUSALS.write_text(json.dumps(dict(sorted(kept.items(), key=lambda item: int(item[0]))), indent=1) + "\n")


def grown(size: int, codes: Counter[str]) -> list[str]:
    """The codes that refuse more programs than the kept run."""
    kept = kept_refusals(size)
    if kept is None:
        return []
    return [f"{code}: {kept.get(code, 0)} → {n}" for code, n in sorted(codes.items()) if n > kept.get(code, 0)]
