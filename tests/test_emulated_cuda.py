"""The CUDA text of every case against its Python, on the CPU: see `tests/support/emulator.py`.

Some cases at a time are one library, without torch's binding.
"""

from __future__ import annotations

import pytest

from tests.support.compilers import gxx
from tests.support.samples import proofs
from tests.test_kernel_cases import BATCHES, CASES, SAMPLE, import_kernels, read_case, signature_of, translate

pytest.importorskip("torch")

import torch

from py2cu.check import check_kernel, user_case
from tests.support.batches import disagreements
from tests.support.libraries import Checked, Device, Setting, build


@pytest.mark.builds
@pytest.mark.slow
@pytest.mark.parametrize(
    "paths",
    [pytest.param(SAMPLE, id="sample"), *proofs(BATCHES)],
    ids=lambda paths: f"{paths[0].stem}-{paths[-1].stem}",
)
def test_cuda_text_matches_python(paths, tmp_path):
    assert not disagreements(paths, Device.EMULATED, tmp_path)


FAR = (2**31, -(2**31) - 1, 2**60 + 5, 2**62 + 12345, -(2**63))


@pytest.mark.builds
@pytest.mark.slow
def test_numbers_of_a_call_may_be_any(tmp_path):
    gxx()
    case = read_case(next(path for path in CASES if path.stem == "far_numbers"))
    translation = translate(case)
    (runs,) = build([translation], Setting(Device.EMULATED))
    wrong = []
    for kernel in import_kernels(case, tmp_path):
        signature = signature_of(kernel, translation)
        checked = Checked(kernel.python, signature, runs[signature.op])
        for far in FAR:
            numbers = {"m": far, "a": far, "b": 5}
            given = {p.name: numbers[p.name] for p in signature.parameters if p.name in numbers}
            if signature.name.endswith("_of_a_sum"):
                n = 2**60 + 1 if signature.name.startswith("share") else 2**30 + 7
                given = {"x": torch.zeros(3, dtype=torch.uint8), "n": n, "m": 3 - n}
            inputs = {p.name: torch.ones(3, dtype=torch.int64) for p in signature.inputs}
            arguments = inputs | given | {"out": torch.zeros(3, dtype=torch.int64)}
            report = check_kernel(checked, [user_case(signature, arguments)], device="cpu", contracts=False)
            wrong += [f"{far}: {report}"] if report.failures else []  # one is beyond 64 bits
    assert not wrong, "\n".join(wrong)
