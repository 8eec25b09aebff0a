"""The CUDA text of every case against its Python, on the CPU: see `tests/emulator.py`.

Some cases at a time are one library, without torch's binding, which `tests/test_kernel_cases.py` builds for each.
"""

from __future__ import annotations

import pytest

from py2cu.translation import Translation
from tests.compilers import gxx
from tests.emulator import is_within_reach
from tests.test_kernel_cases import CASES, Case, import_kernels, read_case, signature_of, translate

pytest.importorskip("torch")

import torch

from py2cu.runtime.check import check_kernel
from py2cu.runtime.inputs import given_case, small_values
from tests.libraries import Checked, Device, Setting, build

TOGETHER = 8
CHECKED = [path for path in CASES if "unchecked" not in read_case(path).sections]
PARTS = [CHECKED[at : at + TOGETHER] for at in range(0, len(CHECKED), TOGETHER)]


@pytest.mark.slow
@pytest.mark.parametrize("paths", PARTS, ids=lambda paths: f"{paths[0].stem}-{paths[-1].stem}")
def test_cuda_text_matches_python(paths, tmp_path):
    gxx()
    translated = [(case, instantiated(case)) for case in map(read_case, paths)]
    translated = [(case, translation) for case, translation in translated if is_within_reach(translation)]
    libraries = build([translation for _, translation in translated], Setting(Device.EMULATED))
    wrong = []
    for (case, translation), runs in zip(translated, libraries, strict=True):
        for kernel in import_kernels(case, tmp_path):
            signature = signature_of(kernel, translation)
            checked = Checked(kernel.python, signature, runs[signature.op])
            report = check_kernel(checked, device="cpu", contracts=False)
            wrong += [] if report.ok else [f"{case.path.stem}: {report}"]
    assert not wrong, "\n".join(wrong)


FAR = (2**31, -(2**31) - 1, 2**60 + 5, 2**62 + 12345, -(2**63))


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
            report = check_kernel(checked, [given_case(signature, arguments)], device="cpu", contracts=False)
            wrong += [f"{far}: {report}"] if report.failures else []  # one is beyond 64 bits
    assert not wrong, "\n".join(wrong)


def instantiated(case: Case) -> Translation:
    """The translation, with instances of templates that have none, as `Kernel.check` asks for them."""
    translation = translate(case)
    lacking = {name: values for each in translation.signatures for name, values in small_values(each).items()}
    return translate(case, **lacking) if lacking else translation
