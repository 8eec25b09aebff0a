"""Wrong kernels as data, and what the simulator says of each: races, missed barriers, absent lanes, unwritten memory.

Each file in `tests/cases/races` is a sentence, then sections: `=== launch` (grid, block and arguments), `=== wrong` and
`=== right`, one kernel each, and `=== found`, what is said of the wrong one; of the right one nothing is. `=== benign`
is a kernel whose threads race but store the value already there, which `=== tolerated` says. Lines count from the
section's first. `pytest --update-golden` rewrites what is found; the diff is the review.
"""

import linecache
import re
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

import py2cu  # noqa: E402
from py2cu.kernels import Kernel  # noqa: E402
from py2cu.simulator import SimulationError, simulate  # noqa: E402
from tests.support.kernels_by_annotations import signature_of  # noqa: E402

CASES = sorted((Path(__file__).parent / "cases" / "races").glob("*.case"))
BENIGN = [path for path in CASES if "\n=== benign\n" in path.read_text(encoding="utf-8")]
PRELUDE = (
    "import math; import threading; import numpy as np; from jaxtyping import Float32, Int32, UInt32; "
    f"from torch import Tensor; from py2cu import {', '.join(py2cu.__all__)}\n"
)
SEEDS = (None, 1, 2)


def sections(path):
    sentence, *parts = re.split(r"^=== (\w+)\n", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    return sentence, {name: text.strip("\n") + "\n" for name, text in zip(parts[::2], parts[1::2], strict=True)}


def compiled(path, name, text):
    """The kernel of a section, as a function whose source can be read."""
    file, source = f"{path}:{name}", PRELUDE + text
    linecache.cache[file] = len(source), None, source.splitlines(keepends=True), file
    namespace = {"__name__": "case"}
    exec(compile(source, file, "exec"), namespace)
    (kernel,) = (value for value in namespace.values() if isinstance(value, Kernel))
    return kernel.python, signature_of(kernel.python, source)


def findings_of(path, name, parts, seed=None):
    """What the simulator finds in a section's kernel."""
    function, signature = compiled(path, name, parts[name])
    given = eval(f"dict({parts['launch']})", {**vars(torch), "torch": torch})
    launch = {key: given.pop(key) for key in ("grid", "block")}
    return simulate(function, signature, given, sanitize=True, seed=seed, **launch).findings


def said(path, name, parts, seed=None):
    """The same line by line."""
    try:
        findings = findings_of(path, name, parts, seed)
    except SimulationError as error:
        block, thread = error.place
        return f"line {error.line - 1}: {error.message} (block {block}, thread {thread})\n"
    prelude = re.compile(r"line (\d+)")
    return "".join(prelude.sub(lambda m: f"line {int(m[1]) - 1}", str(finding)) + "\n" for finding in findings)


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_the_wrong_kernel_is_found_and_the_right_one_is_not(path, request):
    sentence, parts = sections(path)
    found = said(path, "wrong", parts)
    assert found
    if request.config.getoption("--update-golden"):
        parts["found"] = found
        path.write_text("\n".join([sentence.strip() + "\n", *(f"=== {n}\n{t}" for n, t in parts.items())]))
    assert found == parts["found"]
    for seed in SEEDS:
        assert said(path, "right", parts, seed) == ""


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_the_wrong_kernel_is_found_in_any_order_of_threads(path):
    _, parts = sections(path)
    assert all(said(path, "wrong", parts, seed) for seed in SEEDS)


@pytest.mark.parametrize("path", BENIGN, ids=lambda path: path.stem)
def test_a_race_that_keeps_the_value_is_a_finding_of_its_own(path, request):
    sentence, parts = sections(path)
    found = said(path, "benign", parts)
    if request.config.getoption("--update-golden"):
        parts["tolerated"] = found
        path.write_text("\n".join([sentence.strip() + "\n", *(f"=== {n}\n{t}" for n, t in parts.items())]))
    assert found == parts["tolerated"]
    for seed in SEEDS:
        findings = findings_of(path, "benign", parts, seed)
        assert findings
        assert all(finding.keeps_value and not finding.is_bug and not finding.is_open for finding in findings)
        assert any(not finding.keeps_value for finding in findings_of(path, "wrong", parts, seed))
