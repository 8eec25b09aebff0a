"""A builtin is one row and one case: with them, a function that py2cu lacks works everywhere.

The row is entered in a process of its own, before anything reads the rows.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

pytest.importorskip("torch")

from tests.support.compilers import gxx

ROOT: Final = Path(__file__).parents[1]
ROW: Final = '''\
from typing import Any

from py2cu.builtins.public import PY2CU, builtin
from py2cu.builtins.registry import EXACT, Rule


@builtin(
    Rule.FLOAT, PY2CU, spelling={"float": "fdimf", "double": "fdim"}, reference="a - b if not a <= b else 0.0",
    range=(0.0, float("inf")), error=EXACT,
)
def fdim(a: Any, b: Any) -> Any:
    """The positive difference."""
'''
CASE: Final = """\
from jaxtyping import Float, Float32
from torch import Tensor

from py2cu import Index, fdim, kernel


@kernel
def differences(i: Index["n"], x: Float32[Tensor, "n"], y: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    out[i] = fdim(x[i], y[i]) + fdim(y[i], 0.5)


@kernel
def of_any(i: Index["n"], x: Float[Tensor, "n"], out: Float[Tensor, "n"]):
    out[i] = fdim(x[i], 1)


@kernel
def places(i: Index["n"], x: Float32[Tensor, "n"], table: Float32[Tensor, "m"], out: Float32[Tensor, "n"]):
    out[i] = table[int(fdim(min(x[i], 2.0), 0.0)) % len(table)]
"""
USE: Final = """\
from itertools import islice

import row
import torch
import case
from tests.fuzz.judge import Outcome, Seconds, judge
from tests.fuzz.shrink import generate
from tests.support.libraries import Device, Setting

x, y = torch.tensor([3.0, -1.0, 2.0]), torch.tensor([1.0, 4.0, torch.inf])
print("simulated", case.differences.simulate(x, y).tolist())
print("compiled", case.differences(x, y).tolist())
print("checked", *(bool(kernel.check()) for kernel in (case.differences, case.of_any, case.places)))
print(case.differences.cuda_source)
drawn = (source for source in (generate(0, number) for number in range(1500)) if "py2cu.fdim(" in source)
sources = list(islice(drawn, 4))
print("drawn", len(sources))
print("judged", {verdict.outcome for verdict in judge(sources, Setting(Device.CPU), Seconds())} <= {
    Outcome.AGREES, Outcome.REFUSED, Outcome.UNCHECKED,
})
"""


@pytest.mark.builds
@pytest.mark.slow
@pytest.mark.proof
def test_a_builtin_is_a_row_and_a_case(tmp_path: Path) -> None:
    gxx()
    for name, text in {"row": ROW, "case": CASE, "use": USE}.items():
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    paths = f"{tmp_path}:{ROOT}"
    run = subprocess.run(
        [sys.executable, str(tmp_path / "use.py")],
        env={**os.environ, "PYTHONPATH": paths, "CUDA_VISIBLE_DEVICES": ""},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert run.returncode == 0, run.stderr
    said = dict(re.findall(r"^(simulated|compiled|checked|drawn|judged) (.*)$", run.stdout, re.MULTILINE))
    assert said["simulated"] == said["compiled"] == "[2.5, 3.5, inf]"
    assert said["checked"] == "True True True"
    assert "return fdimf(x, y) + fdimf(y, 0.5f);" in run.stdout
    assert said["judged"] == "True"
    assert int(said["drawn"]) > 0
