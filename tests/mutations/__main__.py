"""Applies each mutation to a copy of the tree and runs the cases that must notice: `python -m tests.mutations`.

Prints a line each: the rule, the mutation, the case that failed. The exit status is 1 where a mutation survives, where
its anchor is not there, or where the cases fail without it. `--show NAME` prints every mutation that an anchor offers,
with the source that it makes.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.mutations.anchors import Anchor, Mutation, find_anchors, mutated, offers
from tests.mutations.operators import OPERATORS
from tests.mutations.rows import read_rules

ROOT: Final = Path(__file__).parents[2]
COPIED: Final = ("py2cu", "templates", "tests", "examples", "docs", "pyproject.toml")
FAILED: Final = re.compile(r"^FAILED (?:tests/)?(.+?)(?: - (.*))?$", re.MULTILINE)
PYTEST: Final = ("-m", "pytest", "-x", "-q", "--tb=no", "-p", "no:cacheprovider")
JUDGE: Final = ("-m", "tests.mutations.judge")
SECONDS: Final = 600


@dataclass(frozen=True)
class Outcome:
    """What became of a run: all cases held, or one `killed` the mutation, or neither: something broke."""

    said: str
    killed: bool = False
    held: bool = False


def main() -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutations",
        description=__doc__,
        epilog="\n".join(["mutations:", *(f"  {name:<12} {each.meaning}" for name, each in OPERATORS.items())]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--rule", default="", help="only rules whose name holds this text")
    parser.add_argument("--show", metavar="NAME", help="the mutations that an anchor offers; runs nothing")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many run at a time")
    options = parser.parse_args()
    if options.show is not None:
        return show(options.show)
    anchors = {anchor.name: anchor for anchor in find_anchors(ROOT)}
    chosen = [mutation for mutation in read_rules() if options.rule in mutation.rule]
    cases = sorted({case for mutation in chosen for case in mutation.cases})
    with ThreadPoolExecutor(options.jobs) as pool:
        unsound = [outcome.said for outcome in pool.map(lambda case: run({}, [case]), cases) if not outcome.held]
        if unsound or not cases:
            print(f"these fail without any mutation: {', '.join(unsound) or 'there are none'}")
            return 1
        survivors = 0
        outcomes = pool.map(lambda mutation: try_out(mutation, anchors.get(mutation.anchor)), chosen)
        for mutation, outcome in zip(chosen, outcomes, strict=True):
            survivors += not outcome.killed
            print(f"| {mutation.rule} | `{mutation}` | {outcome.said} |", flush=True)
    print(f"{len(chosen)} mutations, {survivors} survived")
    return 1 if survivors else 0


def show(name: str) -> int:
    """Print the mutations that an anchor offers."""
    found = [anchor for anchor in find_anchors(ROOT) if anchor.name == name]
    for anchor in found:
        print(f"{anchor.path}:{anchor.line}")
        for change, source in offers((ROOT / anchor.path).read_text(encoding="utf-8"), anchor):
            print(f"  {change:<12} {source}")
    return 0 if found else 1


def try_out(mutation: Mutation, anchor: Anchor | None) -> Outcome:
    if anchor is None:
        return Outcome("NOT FOUND")
    text = mutated((ROOT / anchor.path).read_text(encoding="utf-8"), anchor, mutation)
    return run({anchor.path: text}, mutation.cases)


def run(changed: Mapping[Path, str], cases: Iterable[str]) -> Outcome:
    """Whether one of `cases` fails in a copy of the tree with other texts for some files."""
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        copy(Path(folder), changed)
        environment = {
            **os.environ,
            "PY2CU_CACHE_DIR": f"{folder}/cache",
            "PYTHONPATH": os.pathsep.join(filter(None, [folder, os.getenv("PYTHONPATH")])),
        }
        for case in cases:
            is_test = case.startswith("tests/")
            command = PYTEST if is_test else JUDGE
            try:
                done = subprocess.run(
                    [sys.executable, *command, case], cwd=folder, env=environment, capture_output=True, text=True,
                    check=False, timeout=SECONDS,
                )  # fmt: skip
            except subprocess.TimeoutExpired:
                return Outcome(f"{case} never ends", killed=True)
            if done.returncode:
                failed = FAILED.search(done.stdout) if is_test else None
                said = [failed[1]] if failed else [*done.stdout.splitlines()[:2], *done.stderr.splitlines()[-1:]]
                is_killed = done.returncode < 0  # a crash, or the alarm of a test that waits for ever
                broke = not is_killed and ("Traceback" in done.stderr or (is_test and failed is None))
                text = " ".join([*(["BROKE"] if broke else []), *said, f"(exit {done.returncode})"])
                return Outcome(text, killed=not broke)
    return Outcome("SURVIVED", held=True)


def copy(folder: Path, changed: Mapping[Path, str]) -> None:
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder / name)
    for path, text in changed.items():
        (folder / path).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
