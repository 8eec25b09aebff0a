"""Many cases in one library, each of their kernels checked against its Python.

Without torch's binding, and compiled together, a case takes a fraction of a second where it took three and a half.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from py2cu.check import check_kernel, small_values
from py2cu.translation import TargetName, Translation
from tests.support.compilers import gxx
from tests.support.emulator import is_within_reach
from tests.support.libraries import Checked, Device, Setting, build
from tests.test_kernel_cases import Case, import_kernels, read_case, signature_of, translate


def disagreements(paths: Iterable[Path], device: Device, folder: Path) -> str:
    """The reports of the kernels that differ from their Python; their modules are written to `folder`."""
    gxx()
    translated = [(case, instantiated(case)) for case in map(read_case, paths)]
    translated = [(case, translation) for case, translation in translated if _runs_on(device, translation)]
    libraries = build([translation for _, translation in translated], Setting(device))
    reports = []
    for (case, translation), runs in zip(translated, libraries, strict=True):
        kernels = import_kernels(case, folder)
        assert len(kernels) == len(translation.signatures)
        for kernel in kernels:
            signature = signature_of(kernel, translation)
            checked = Checked(kernel.python, signature, runs[signature.op])
            reports.append((case, check_kernel(checked, device="cpu", contracts=device is not Device.EMULATED)))
    return "\n".join(f"{case.path.stem}: {report}" for case, report in reports if not (report.ok and report.has_run))


def instantiated(case: Case) -> Translation:
    """The translation, with instances of templates that have none, as `Kernel.check` asks for them."""
    translation = translate(case)
    lacking = {name: values for each in translation.signatures for name, values in small_values(each).items()}
    return translate(case, **lacking) if lacking else translation


def _runs_on(device: Device, translation: Translation) -> bool:
    return TargetName.CPU in translation.texts and (device is not Device.EMULATED or is_within_reach(translation))
