"""A few random kernels in every run, the same each time; `python -m tests.fuzz` makes thousands."""

from __future__ import annotations

import os
import re
import subprocess
import sys

import pytest

pytest.importorskip("torch")
pytest.importorskip("hypothesis")

from py2cu.diagnostics import TranslationError
from py2cu.targets.cxx.helpers.catalogue import HELPERS
from tests.fuzz import gradients
from tests.fuzz.judge import Outcome, Seconds, cases, instantiated, judge, run_cell, run_cells
from tests.fuzz.kernels import NAME
from tests.fuzz.redefinitions import CELL
from tests.fuzz.shrink import generate, shrink
from tests.support.compilers import gxx
from tests.support.libraries import STOPS, Device, Setting
from tests.support.samples import proofs

SEED = 0
NUMBERS = {Device.CPU: range(30, 36), Device.EMULATED: range(36, 42), Device.OPTIMISED: range(80, 84)}


@pytest.mark.builds
@pytest.mark.parametrize("device", proofs(NUMBERS, 2))
def test_compiled_code_matches_python(device):
    gxx()
    sources = [generate(SEED, number) for number in NUMBERS[device]]
    if device is Device.EMULATED:  # where no threads meet
        sources = [source for source in sources if "syncthreads" not in source]
    verdicts = judge(sources, Setting(device, STOPS), Seconds())
    faults = [f"{source}\n{v.outcome}: {v.message}" for source, v in zip(sources, verdicts, strict=True) if v.is_fault]
    assert not faults, "\n\n".join(faults)
    translated = [verdict for verdict in verdicts if verdict.outcome is not Outcome.REFUSED]
    assert len(translated) >= 0.7 * len(sources), verdicts
    assert sum(verdict.outcome is Outcome.AGREES for verdict in translated) >= 0.9 * len(translated), verdicts


@pytest.mark.builds
def test_a_planted_bug_is_found(monkeypatch):
    gxx()
    monkeypatch.setitem(HELPERS, "floor_mod", HELPERS["floor_mod"].replace("(rest < 0) != (b < 0)", "false"))
    # Kernels before these have indices that the bug sends out of bounds, which may end the process.
    sources = [source for source in (generate(SEED, number) for number in range(90, 105)) if " % " in source]
    assert Outcome.DIFFERS in {verdict.outcome for verdict in judge(sources, Setting(Device.CPU), Seconds())}


@pytest.mark.builds
def test_gradients_are_derivatives():
    gxx()
    sources = [gradients.generate(SEED, number) for number in range(14)]
    faults = [f"{sources[place]}\n{what}" for place, what in gradients.faults(sources)]
    assert not faults, "\n\n".join(faults)


@pytest.mark.builds
def test_a_planted_wrong_derivative_is_found(monkeypatch):
    gxx()
    function, derivative = gradients.RULES["sine"]
    monkeypatch.setitem(gradients.RULES, "sine", (function, f"-{derivative}"))
    sources = [source for source in (gradients.generate(SEED, n) for n in range(20)) if "-math.cos(" in source]
    found = [*gradients.faults(sources)]  # unless no argument requires grad on which the sine depends
    assert len(found) >= 0.7 * len(sources) >= 3, found


@pytest.mark.slow
@pytest.mark.proof
@pytest.mark.parametrize(
    "piece", [" % len(", "*/", "elif", "while True", "blockIdx.x * blockDim.x + threadIdx.x]", CELL]
)
def test_kernels_shrink(piece):
    number = next(number for number in range(200) if piece in generate(SEED, number))
    least = shrink(SEED, number, lambda source: piece in source, seconds=90)
    assert piece in least
    assert len(least) < 0.75 * len(generate(SEED, number)), least


# What some kernels of three hundred contain, and how many at least.
REACHED = {
    "constant inner extents": (r'Tensor, "[^"]*[a-z)] (\d+ )*\d+"', 150),
    "constant extents alone": (r'Tensor, "\d+ \d+"', 80),
    "flat extents with a constant factor": (r'Tensor, "\d+\*', 60),
    "a product of extents, indexed": (r'Index\["[a-z] ?\* ?[a-z]', 10),
    "a quotient of extents, indexed": (r'Index\["[^"]*//', 6),
    "a product of extents, launched": (r"size=\('[a-z] ?\* ?[a-z]", 3),
    "a quotient of extents, launched": (r"size=\([^)]*//", 3),
    "blocks and threads as indices": (r"\w\[.*blockIdx.*, .*threadIdx[^\]]*\]", 20),
    "a block's place in a subscript": (r"\w\[[^\]]*blockIdx\.x \* (4|blockDim\.x) \+ threadIdx\.x", 10),
    "an element of an output read": (r"= .*\bout_\w+\[", 40),
    "a row that no thread writes": (r"= .*\bout_\w+\[0, ", 1),
    "a starred target": (r"^ *t\d+, \*t\d+ = ", 20),
    "lists that exchange names": (r"^ *(v\d+), (v\d+) = \2, \1$", 5),
    "a counter that indexes a tuple of tuples": (r"range\(1, -1, -1\)", 10),
    "a function of tuples": (r"def of_tuples", 8),
    "rows that take tuples": (r"local\(\(2, 2\)", 10),
    "C's end of a comment": (r"# \*/", 15),
    "a comment that ends in a backslash": (r"#.*\\$", 15),
    "a docstring of a kernel": (r'def f\(.*\n +r"""', 10),
    "a docstring of a device function": (r'def g\d\(.*\n +r"""', 5),
    "index_t in a remark": (r"(#|\"\"\") ?index_t", 10),
    "the end of a slice": (r"\[[^\]\n]*:1?\](\[:1\])?\[-1\]", 30),
    "a number from 2**63 on that meets an index": (r"& 0xFFFFFFFF\) << 32", 12),
    "an operand that acts": (r" = int\(\(1, acts|acts\d+\(2\)", 15),
    "a redefined constant": (rf"{CELL}\n(.*\n)*[A-Z]+ = ", 15),
    "a redefined function": (rf"{CELL}\n(.*\n)*def g\d", 5),
}


@pytest.mark.slow
@pytest.mark.proof
def test_each_production_is_reached():
    sources = [generate(SEED, number) for number in range(300)]
    found = {
        name: sum(bool(re.search(pattern, source, re.MULTILINE)) for source in sources)
        for name, (pattern, _) in REACHED.items()
    }
    assert {name: count for name, count in found.items() if count < REACHED[name][1]} == {}, found


@pytest.mark.builds
@pytest.mark.filterwarnings("ignore::py2cu.NarrowIntegerWarning")
def test_calls_see_what_a_later_cell_redefines():
    gxx()
    drawn = (generate(SEED, number) for number in range(120))
    called = 0
    for source in (source for source in drawn if CELL in source):
        first, later = source.split(CELL)
        home = run_cells(first)
        kernel = home[NAME]
        if not (is_translated(kernel) and is_translated(run_cells(source)[NAME])):
            continue
        for text in ("", later):
            run_cell(1, text, home)
            case = next(cases(instantiated(home).signature))
            for _ in range(2):  # the call after is planned
                report = kernel.check(**case.arguments)
                assert not report.failures, f"{source}\n{report}"
        called += 1
        if called == 2:
            break
    assert called == 2


def is_translated(kernel):
    try:
        return bool(kernel.translation)
    except TranslationError:
        return False


@pytest.mark.slow
@pytest.mark.proof
def test_translation_does_not_depend_on_hashes():
    program = (
        "from tests.fuzz.shrink import generate; from tests.fuzz.judge import translate; "
        "from tests.support.libraries import Device; "
        f"print([translate(generate({SEED}, n), Device.EMULATED) for n in range(5)])"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program], env={**os.environ, "PYTHONHASHSEED": hash_seed},
            capture_output=True, text=True, check=True,
        ).stdout
        for hash_seed in ("1", "2")
    }  # fmt: skip
    assert len(outputs) == 1
