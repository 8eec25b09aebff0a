"""On a real GPU: `cuda.libdevice` under `py2cu.numba`, and launches with arrays of other libraries."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no GPU here", allow_module_level=True)
pytest.importorskip("numpy")

from py2cu import numba as cuda  # noqa: E402
from tests.from_numba.libdevice import EDGES  # noqa: E402

pytestmark = pytest.mark.gpu


def test_the_functions_of_libdevice_compute_what_the_simulator_does(tmp_path, monkeypatch):
    kernels, found = EDGES.imported(tmp_path), []
    for simulated in ("0", "1"):
        monkeypatch.setenv("NUMBA_ENABLE_CUDASIM", simulated)
        found.append(EDGES.results(kernels))
    assert EDGES.differences(*found) == {}


@cuda.jit
def doubled(x, out):
    i = cuda.grid(1)
    if i < x.shape[0]:
        out[i] = x[i] + x[i]


class OnlyInterface:
    """Memory of a GPU that only says where it is."""

    def __init__(self, tensor: Any) -> None:
        self._tensor = tensor
        self.__cuda_array_interface__ = {
            "shape": tuple(tensor.shape), "typestr": "<f4", "data": (tensor.data_ptr(), False), "version": 3,
            "strides": None,
        }  # fmt: skip


def test_arrays_that_only_have_cudas_interface_are_read_and_written() -> None:
    x, out = torch.arange(40, device="cuda", dtype=torch.float32), torch.zeros(40, device="cuda")
    for _ in range(3):
        out.zero_()
        doubled[2, 32](OnlyInterface(x), OnlyInterface(out))
        assert out.tolist() == [2 * k for k in range(40)]


def test_arrays_of_cupy_are_read_and_written() -> None:
    cupy = pytest.importorskip("cupy")
    x, out = cupy.arange(40, dtype=cupy.float32), cupy.zeros(40, cupy.float32)
    for _ in range(3):
        doubled[2, 32](x, out)
    assert out.tolist() == [2 * k for k in range(40)]
