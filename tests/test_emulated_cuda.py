"""The CUDA text of every case against its Python, on the CPU: see `tests/emulator.py`."""

from __future__ import annotations

import dataclasses

import pytest

from py2cu.testing import assert_matches_python
from tests.emulator import emulate, is_within_reach
from tests.test_kernel_cases import CASES, import_kernels, read_case, signature_of, translate

pytest.importorskip("torch")


@pytest.mark.slow
@pytest.mark.parametrize("path", CASES, ids=lambda path: path.stem)
def test_cuda_text_matches_python(path, tmp_path, monkeypatch):
    case = read_case(path)
    if "unchecked" in case.sections:
        pytest.skip(case.sections["unchecked"].strip())
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)  # a CPU build, wherever this runs
    translation = translate(case)
    if not is_within_reach(translation):
        pytest.skip("its threads work together")
    emulated = emulate(translation)
    for kernel in import_kernels(case, tmp_path):
        signature = signature_of(kernel, emulated)
        assert_matches_python(kernel.with_translation(dataclasses.replace(emulated, signatures=(signature,))))
