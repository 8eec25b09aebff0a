"""What nvcc makes of the CUDA text, read in its PTX: no GPU is needed."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from tests.support.compilers import nvcc
from tests.test_kernel_cases import CASES, read_case, translate

READ_ONLY_LOAD = r"ld\.global\.nc\S*\s+%\w+, \[(%\w+)"
SELECTED_ADDRESS = r"selp\.b64\s+(%\w+),"


def selected_addresses(text: str, folder: Path) -> set[str]:
    """The addresses that a condition selects and that a load of the same kernel through the read-only cache takes."""
    (folder / "k.cu").write_text(text, encoding="utf-8")
    subprocess.run([nvcc(), "-arch=sm_90", "-ptx", "-o", folder / "k.ptx", folder / "k.cu"], check=True)
    kernels = (folder / "k.ptx").read_text().split(".entry")
    return {
        name for ptx in kernels for name in {*re.findall(READ_ONLY_LOAD, ptx)} & {*re.findall(SELECTED_ADDRESS, ptx)}
    }


@pytest.mark.builds
def test_a_written_element_is_not_read_through_the_read_only_cache(tmp_path):
    case = next(path for path in CASES if path.stem == "alternative_loads")
    artifacts = translate(read_case(case)).cuda
    (tmp_path / artifacts.header.name).write_text(artifacts.header.text, encoding="utf-8")
    text = artifacts.kernel.text
    assert selected_addresses(text, tmp_path) == set()
    # With `__restrict__` on the input nvcc 13.0 does it: the test can fail.
    assert selected_addresses(text.replace("const float* x,", "const float* __restrict__ x,"), tmp_path)
