"""A few random kernels in every run, the same each time; `python -m tests.fuzz` makes thousands."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytest.importorskip("torch")
pytest.importorskip("hypothesis")

from py2cu.targets.helpers import HELPERS
from tests.compilers import gxx
from tests.fuzz.judge import Outcome, Seconds, judge
from tests.fuzz.shrink import generate, shrink
from tests.libraries import Device, Setting

SEED = 0
NUMBERS = {Device.CPU: range(36), Device.EMULATED: range(36, 60)}


@pytest.mark.builds
@pytest.mark.parametrize("device", NUMBERS)
def test_compiled_code_matches_python(device):
    gxx()
    sources = [generate(SEED, number) for number in NUMBERS[device]]
    if device is Device.EMULATED:  # where no threads meet
        sources = [source for source in sources if "syncthreads" not in source]
    verdicts = judge(sources, Setting(device), Seconds())
    faults = [f"{source}\n{v.outcome}: {v.message}" for source, v in zip(sources, verdicts, strict=True) if v.is_fault]
    assert not faults, "\n\n".join(faults)
    assert sum(verdict.outcome is Outcome.AGREES for verdict in verdicts) >= 0.8 * len(sources), verdicts


@pytest.mark.builds
def test_a_planted_bug_is_found(monkeypatch):
    gxx()
    monkeypatch.setitem(HELPERS, "floor_mod", HELPERS["floor_mod"].replace("(rest < 0) != (b < 0)", "false"))
    sources = [source for source in (generate(SEED, number) for number in range(60)) if " % " in source]
    assert Outcome.DIFFERS in {verdict.outcome for verdict in judge(sources, Setting(Device.CPU), Seconds())}


@pytest.mark.slow
@pytest.mark.parametrize("piece", ["elif", "while True", " % len("])
def test_kernels_shrink(piece):
    number = next(number for number in range(200) if piece in generate(SEED, number))
    least = shrink(SEED, number, lambda source: piece in source, seconds=12)
    assert piece in least
    assert len(least) < 0.75 * len(generate(SEED, number)), least


@pytest.mark.slow
def test_translation_does_not_depend_on_hashes():
    program = (
        "from tests.fuzz.shrink import generate; from tests.fuzz.judge import translate; "
        "from tests.libraries import Device; "
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
