"""Applies each mutation to a copy of the tree and runs the cases that must notice: `python -m tests.mutations`.

Prints a line each: the rule, the file, the case that failed. The exit status is 1 where a mutation survives, where its
text is no longer there, or where the cases fail without it.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.mutations.rules import MUTATIONS, Mutation, find

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
    parser = argparse.ArgumentParser(prog="python -m tests.mutations", description=__doc__)
    parser.add_argument("--rule", default="", help="only rules whose name holds this text")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="how many run at a time")
    options = parser.parse_args()
    chosen = [mutation for mutation in MUTATIONS if options.rule in mutation.rule]
    cases = sorted({case for mutation in chosen for case in mutation.cases})
    with ThreadPoolExecutor(options.jobs) as pool:
        unsound = [outcome.said for outcome in pool.map(lambda case: run(None, [case]), cases) if not outcome.held]
        if unsound or not cases:
            print(f"these fail without any mutation: {', '.join(unsound) or 'there are none'}")
            return 1
        survivors = 0
        for mutation, outcome in zip(chosen, pool.map(try_out, chosen), strict=True):
            survivors += not outcome.killed
            print(f"| {mutation.rule} | {place(mutation)} | {outcome.said} |", flush=True)
    print(f"{len(chosen)} mutations, {survivors} survived")
    return 1 if survivors else 0


def place(mutation: Mutation) -> str:
    """The file, and the first line of the mutated text."""
    files = " ".join(path.stem for path in find(mutation, ROOT))
    return f"`{files}`: `{mutation.old.strip().splitlines()[0].strip()}`"


def try_out(mutation: Mutation) -> Outcome:
    if len(find(mutation, ROOT)) != 1:
        return Outcome("NOT FOUND, or not just once")
    return run(mutation, mutation.cases)


def run(mutation: Mutation | None, cases: Iterable[str]) -> Outcome:
    """Whether one of `cases` fails in a copy of the tree with `mutation`."""
    with tempfile.TemporaryDirectory(prefix="mutation-") as folder:
        copy(Path(folder), mutation)
        environment = {
            **os.environ,
            "PY2CU_CACHE_DIR": f"{folder}/cache",
            "PYTHONPATH": os.pathsep.join(filter(None, [folder, os.getenv("PYTHONPATH")])),
        }
        for case in cases:
            is_test = case.startswith("tests/")
            command = PYTEST if is_test else JUDGE
            done = subprocess.run(
                [sys.executable, *command, case], cwd=folder, env=environment, capture_output=True, text=True,
                check=False, timeout=SECONDS,
            )  # fmt: skip
            if done.returncode:
                failed = FAILED.search(done.stdout) if is_test else None
                said = [failed[1]] if failed else [*done.stdout.splitlines()[:2], *done.stderr.splitlines()[-1:]]
                is_killed = done.returncode < 0  # a crash, or the alarm of a test that waits for ever
                broke = not is_killed and ("Traceback" in done.stderr or (is_test and failed is None))
                text = " ".join([*(["BROKE"] if broke else []), *said, f"(exit {done.returncode})"])
                return Outcome(text, killed=not broke)
    return Outcome("SURVIVED", held=True)


def copy(folder: Path, mutation: Mutation | None) -> None:
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, folder / name)
    if mutation is not None:
        (path,) = find(mutation, folder)
        text = (folder / path).read_text(encoding="utf-8")
        (folder / path).write_text(text.replace(mutation.old, mutation.new), encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
