"""Random kernels on a real GPU."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("hypothesis")
if not torch.cuda.is_available():
    pytest.skip("no GPU here", allow_module_level=True)

from tests.fuzz.judge import Seconds, judge  # noqa: E402
from tests.fuzz.shrink import generate  # noqa: E402
from tests.support.libraries import Device, Setting  # noqa: E402

pytestmark = pytest.mark.gpu


def test_compiled_code_matches_python():
    sources = [generate(1, number) for number in range(100)]
    verdicts = judge(sources, Setting(Device.CUDA), Seconds())
    faults = [f"{source}\n{v.outcome}: {v.message}" for source, v in zip(sources, verdicts, strict=True) if v.is_fault]
    assert not faults, "\n\n".join(faults)
