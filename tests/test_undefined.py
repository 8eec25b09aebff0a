"""No kernel of the cases runs into undefined behaviour, whatever it is given that its Python can do.

The CPU text of all of them is built once with the undefined-behaviour sanitizer, and run on tame and on extreme values.
"""

from __future__ import annotations

import pytest

from py2cu.ir.abi.signature import Signature
from py2cu.kernels import Kernel
from py2cu.translation import TargetName
from tests.support.compilers import gxx
from tests.test_kernel_cases import CASES, import_kernels, read_case, signature_of, translate

torch = pytest.importorskip("torch")

from py2cu.check import Case, make_case  # noqa: E402
from py2cu.check.sizes import choose_sizes  # noqa: E402
from py2cu.simulator import SimulationError, simulate  # noqa: E402
from tests.support.libraries import REPORTS, Device, Setting, build  # noqa: E402

FLAVOURS = ("tame", "random", "extreme", "non-finite")


@pytest.mark.builds
@pytest.mark.proof
def test_cases_have_no_undefined_behaviour(tmp_path, capfd):
    gxx()
    translated = [(case, translate(case)) for case in map(read_case, CASES)]
    translated = [(case, translation) for case, translation in translated if TargetName.CPU in translation.texts]
    libraries = build([translation for _, translation in translated], Setting(Device.CPU, REPORTS))
    for (case, translation), runs in zip(translated, libraries, strict=True):
        for kernel in import_kernels(case, tmp_path):
            signature = signature_of(kernel, translation)
            for instance in signature.instances or (signature,):
                for invented in harmless(kernel, instance) if signature.op in runs else ():
                    runs[signature.op](invented.arguments)

    reports = [line for line in capfd.readouterr().err.splitlines() if "runtime error" in line]
    assert reports == []


def harmless(kernel: Kernel, signature: Signature) -> list[Case]:
    """Invented calls in which the Python does nothing that the compiled kernel leaves open."""
    sizes = choose_sizes(signature, 2)
    found = []
    for seed, values in enumerate(FLAVOURS):
        case = make_case(signature, sizes, values, seed)
        if case is None:
            continue
        clones = {n: v.clone() if isinstance(v, torch.Tensor) else v for n, v in case.arguments.items()}
        try:
            report = simulate(kernel.python, signature, clones, seconds=2.0)
        except (SimulationError, ValueError):
            continue
        if not any(finding.is_open for finding in report.findings):
            found.append(case)
    return found
