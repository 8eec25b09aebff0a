"""The planted races under each tool: `python -m tests.sanitizers.races [--save]`.

What `compute-sanitizer` says of each wrong kernel of `tests/cases/races`, tool by tool, beside what the simulator says,
which `test_races.py` holds; and that it says nothing of the right ones. Needs a GPU. Each wrong kernel gets a process
of its own, since some of them end it and others never end.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

import torch

from py2cu import Kernel, TranslationError
from py2cu.build.library import build_library
from py2cu.diagnostics import Severity
from py2cu.translation import TargetName
from tests.sanitizers import TOOLS, Outcome, page, save, watch
from tests.test_races import CASES, PRELUDE, sections

PATIENCE: Final = 30  # seconds, of which a kernel takes one
OWN: Final = ("-m", "tests.sanitizers.races", "--launch")


# --- one kernel -------------------------------------------------------------------------------------------------------


def kernel_of(path: Path, which: str, folder: Path) -> Kernel:
    """The kernel of a section, from a file of its own."""
    file = folder / f"{path.stem}_{which}.py"
    source = PRELUDE + sections(path)[1][which]
    file.write_text(source, encoding="utf-8")
    namespace: dict[str, Any] = {"__name__": file.stem}
    exec(compile(source, str(file), "exec"), namespace)
    return next(value for value in namespace.values() if isinstance(value, Kernel))


def launch(path: Path, which: str, folder: Path, device: str) -> None:
    kernel = kernel_of(path, which, folder)
    given = eval(f"dict({sections(path)[1]['launch']})", {**vars(torch), "torch": torch})
    grid, block = given.pop("grid"), given.pop("block")
    values = [given[parameter.name] for parameter in kernel.signature.parameters]
    on_device = [value.to(device) if isinstance(value, torch.Tensor) else value for value in values]
    kernel[grid, block](*on_device)
    if device == "cuda":
        torch.cuda.synchronize()


def build(path: Path, which: str, folder: Path) -> str:
    """Build a kernel, so that the tools find it built; the code by which the translator refuses it, or nothing."""
    try:
        build_library(kernel_of(path, which, folder).translation.artifacts(TargetName.CUDA))
    except TranslationError as error:
        return next(found.code for found in error.diagnostics if found.severity is Severity.ERROR)
    return ""


# --- all of them ------------------------------------------------------------------------------------------------------


def table(jobs: int) -> Iterator[str]:
    with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(jobs) as pool:
        folder = Path(name)
        rights = [pool.submit(build, path, "right", folder) for path in CASES]
        codes = dict(zip(CASES, pool.map(lambda path: build(path, "wrong", folder), CASES), strict=True))
        taken = [path.stem for path, code in codes.items() if not code]
        assert not any(each.result() for each in rights), "a right kernel is refused"
        wrong = {
            (stem, tool): pool.submit(watch, tool, (*OWN, "wrong", stem), PATIENCE) for stem in taken for tool in TOOLS
        }
        everything = (*OWN, "right", *(path.stem for path in CASES))
        right = {tool: pool.submit(watch, tool, everything, 10 * PATIENCE) for tool in TOOLS}
        counts: Counter[str] = Counter()
        yield f"| wrong kernel | the simulator | translator | {' | '.join(TOOLS)} |"
        yield "|---" * (3 + len(TOOLS)) + "|"
        for path, code in codes.items():
            said = sections(path)[1]["found"].splitlines()[0]
            line = said.partition(":")[0]
            cells = [wrong[path.stem, tool].result() if not code else "" for tool in TOOLS]
            counts.update(tool for tool, cell in zip(TOOLS, cells, strict=True) if cell is Outcome.FOUND)
            counts["any"] += Outcome.FOUND in cells
            counts["refused"] += bool(code)
            yield f"| {path.stem} | {line} | {f'refused, {code}' if code else ''} | {' | '.join(cells)} |"
        totals = " | ".join(str(counts[tool]) for tool in TOOLS)
        yield f"| **found of {len(CASES)}** | {len(CASES)} | {counts['refused']} | {totals} |"
        silent = ", ".join(f"{tool}: {found.result()}" for tool, found in right.items())
        yield f"\nBy one of the four tools at least: {counts['any']}. Of all {len(CASES)} right twins: {silent}."


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.sanitizers.races", description=__doc__)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes at a time")
    parser.add_argument("--device", default="cuda", help="where --launch runs")
    parser.add_argument("--save", action="store_true", help="keep the table in results/")
    parser.add_argument("--launch", nargs="+", metavar="NAME", help="`wrong` or `right`, and the cases to launch")
    options = parser.parse_args()
    if options.launch:
        which, *names = options.launch
        with tempfile.TemporaryDirectory() as folder:
            for path in CASES:
                if path.stem in names:
                    launch(path, which, Path(folder), options.device)
        return
    text = page([*table(options.jobs)])
    print(text)
    if options.save:
        save(text, "races")


if __name__ == "__main__":
    main()
