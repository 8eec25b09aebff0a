"""What `print` says and `assert` stops: the compiled kernel's standard output against that of its Python."""

from __future__ import annotations

import ctypes
import dataclasses
import signal
import subprocess
import sys

import pytest

from py2cu.kernels import Kernel
from py2cu.translation import Translation
from tests.test_kernel_cases import CASES, import_kernels, read_case, signature_of, translate

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.builds

PRINTS = next(path for path in CASES if path.stem == "print")
INPUTS = {
    "bool": torch.tensor([True, False, True, False]),
    "uint8": torch.tensor([0, 7, 200, 255], dtype=torch.uint8),
    "int32": torch.tensor([-(2**31), -1, 4, 2**31 - 1], dtype=torch.int32),
    "int64": torch.tensor([-(2**63), -1, 0, 2**63 - 1]),
    "float16": torch.tensor([0.1, -2.5, 6e4, float("inf")], dtype=torch.float16),
    "bfloat16": torch.tensor([0.1, -2.5, 1e20, float("-inf")], dtype=torch.bfloat16),
    "uint32": torch.tensor([0, 7, 2**31, 2**32 - 1], dtype=torch.uint32),
    "uint64": torch.tensor([0, 7, 2**63, 2**64 - 1], dtype=torch.uint64),
    "float32": torch.tensor([0.1, -2.5, 1e20, float("inf")]),
    "float64": torch.tensor([0.1, -2.5, 1e20, float("-inf")], dtype=torch.float64),
}


@pytest.fixture
def kernels(tmp_path, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)  # a CPU build, wherever this runs
    case = read_case(PRINTS)
    translation = translate(case)
    return {k.__name__: k.with_translation(_alone(translation, k)) for k in import_kernels(case, tmp_path)}


def _alone(translation: Translation, kernel: Kernel) -> Translation:
    return dataclasses.replace(translation, signatures=(signature_of(kernel, translation),))


def printed(capfd, run) -> list[str]:
    """The lines that `run` prints, C's buffer included; threads may print in any order."""
    ctypes.CDLL(None).fflush(None)
    capfd.readouterr()
    run()
    ctypes.CDLL(None).fflush(None)
    return sorted(capfd.readouterr().out.splitlines())


@pytest.mark.parametrize("name", ["numbers", "floats", "constants", "block", "filled", "unsigned", "halves", "agreed"])
def test_prints_as_python_does(name, kernels, capfd):
    kernel = kernels[name]
    arrays = [INPUTS[p.type.dtype.name].clone() for p in kernel.signature.arrays if p.name != "out"]
    scalars = [0.25] * (name == "floats")
    compiled = printed(capfd, lambda: kernel(*arrays, *scalars))
    python = printed(capfd, lambda: kernel.simulate(*arrays, *scalars))
    assert compiled == python
    assert python


FAILING = """
import importlib.util, sys, torch
torch.cuda.is_available = lambda: False
spec = importlib.util.spec_from_file_location("failing", sys.argv[1])
failing = importlib.util.module_from_spec(spec)
spec.loader.exec_module(failing)
getattr(failing.positive, sys.argv[2])(torch.tensor([1.0, -1.0]))
"""
POSITIVE = """
from jaxtyping import Float32
from torch import Tensor
from py2cu import Index, kernel

@kernel
def positive(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    assert x[i] > 0, "x is positive"
    out[i] = x[i]
"""


@pytest.mark.parametrize(
    ("way", "status", "said"),
    [
        ("__call__", -signal.SIGABRT, 'Assertion `x[i] > 0 && "x is positive"\' failed'),
        ("simulate", 1, "line 8, block (0, 0, 0), thread (1, 0, 0): AssertionError: x is positive"),
    ],
)
def test_a_failed_assertion_stops(way, status, said, tmp_path):
    (tmp_path / "failing.py").write_text(POSITIVE, encoding="utf-8")
    command = [sys.executable, "-c", FAILING, str(tmp_path / "failing.py"), way]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == status, done.stderr
    assert said in done.stderr
