"""What `print` says: the compiled kernel's standard output against that of its Python."""

from __future__ import annotations

import ctypes

import pytest

from tests.test_kernel_cases import CASES, import_kernels, read_case

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
    return {k.__name__: k for k in import_kernels(case, tmp_path)}


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
