"""The binding launches on the device and the stream of its arguments, of every device: with stubs in place of GPUs.

The emitted binding is linked with stubs of the functions of torch and CUDA that know devices. A tensor then is "on" the
device that its first element names, and the launcher notes the device and the stream that are current.
"""

from __future__ import annotations

import ctypes
import subprocess
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from py2cu.build import toolchain  # noqa: E402
from py2cu.pipeline import translate_file  # noqa: E402
from py2cu.source import SourceFile  # noqa: E402
from tests.support.compilers import gxx, torch_headers  # noqa: E402

PYTHON = """
from jaxtyping import Float32
from torch import Tensor
from py2cu import Index, kernel

@kernel
def plus(i: Index["n"], x: Float32[Tensor, "n"], y: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    out[i] = x[i] + y[i]
"""
STUBS = r"""
#include <torch/csrc/inductor/aoti_torch/c/shim.h>

#include "plus.h"

static int device = 0, launches = 0, launched_on = -1;
static cudaStream_t launched_in = nullptr;

static cudaError_t launch(cudaStream_t stream)
{
    launches += 1;
    launched_on = device;
    launched_in = stream;
    return cudaSuccess;
}

cudaError_t plus_launch(const float*, const float*, float*, int64_t, cudaStream_t stream) { return launch(stream); }
cudaError_t plus_launch(const float*, const float*, float*, int64_t, dim3, dim3, cudaStream_t stream)
{
    return launch(stream);
}

extern "C" {
const char* cudaGetErrorString(cudaError_t) { return "an error"; }
AOTITorchError aoti_torch_get_device_type(AtenTensorHandle, int32_t* type)
{
    *type = aoti_torch_device_type_cuda();
    return AOTI_TORCH_SUCCESS;
}
AOTITorchError aoti_torch_get_device_index(AtenTensorHandle array, int32_t* index)
{
    void* data = nullptr;
    aoti_torch_get_data_ptr(array, &data);
    *index = static_cast<int32_t>(*static_cast<float*>(data));
    return AOTI_TORCH_SUCCESS;
}
AOTITorchError aoti_torch_create_device_guard(int32_t index, DeviceGuardHandle* guard)
{
    *guard = reinterpret_cast<DeviceGuardHandle>(intptr_t(device + 1));  // what the guard restores
    device = index;
    return AOTI_TORCH_SUCCESS;
}
AOTITorchError aoti_torch_delete_device_guard(DeviceGuardHandle guard)
{
    device = reinterpret_cast<intptr_t>(guard) - 1;
    return AOTI_TORCH_SUCCESS;
}
AOTITorchError aoti_torch_get_current_cuda_stream(int32_t index, void** stream)
{
    *stream = reinterpret_cast<void*>(intptr_t(100 + index));
    return AOTI_TORCH_SUCCESS;
}
int current_device() { return device; }
int number_of_launches() { return launches; }
int device_of_launch() { return launched_on; }
intptr_t stream_of_launch() { return reinterpret_cast<intptr_t>(launched_in); }
}
"""


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    home = toolchain.cuda_home()
    if home is None:
        pytest.skip("no CUDA headers here")
    folder = tmp_path_factory.mktemp("guarded")
    texts = translate_file(SourceFile("plus.py", PYTHON)).cuda
    (folder / "plus.h").write_text(texts.header.text)
    (folder / "plus.cpp").write_text(texts.binding.text)
    (folder / "stubs.cpp").write_text(STUBS)
    torch_folder = Path(torch.__file__).parent
    command = [
        gxx(), "-std=c++20", "-shared", "-fPIC", "-O0", "-Wl,-Bsymbolic", "-DUSE_CUDA",
        "-DTORCH_EXTENSION_NAME=py2cu_guarded", *torch_headers(), "-isystem", str(toolchain.cuda_include(home)),
        "-isystem", str(torch_folder / "include" / "torch" / "csrc" / "api" / "include"),
        "plus.cpp", "stubs.cpp", "-o", "guarded.so", f"-L{torch_folder / 'lib'}", "-ltorch_cpu",
    ]  # fmt: skip
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    torch.ops.load_library(folder / "guarded.so")
    return ctypes.CDLL(str(folder / "guarded.so"))


def call(overload: str, *arguments: object) -> object:
    """Call the op as if its tensors were on GPUs."""
    op = getattr(torch.ops.py2cu_guarded.plus, overload)
    return op.redispatch(torch._C.DispatchKeySet(torch._C.DispatchKey.CUDA), *arguments)


def on(device: int) -> torch.Tensor:
    return torch.full((4,), float(device))


@pytest.mark.builds
@pytest.mark.parametrize("device", [1, 3])
def test_a_launch_is_on_the_device_and_the_stream_of_the_arguments(library: ctypes.CDLL, device: int) -> None:
    x, y, out = on(device), on(device), on(device)
    for overload, arguments in {"default": (), "out": (out,), "grid": (out, [1], [4])}.items():
        before = library.number_of_launches()
        call(overload, x, y, *arguments)
        assert library.number_of_launches() == before + 1
        assert library.device_of_launch() == device
        assert library.stream_of_launch() == 100 + device
        assert library.current_device() == 0  # as before


@pytest.mark.builds
def test_arguments_of_two_devices_are_refused(library: ctypes.CDLL) -> None:
    before = library.number_of_launches()
    with pytest.raises(RuntimeError, match="`y` is on device 2 and `x` on device 1"):
        call("default", on(1), on(2))
    with pytest.raises(RuntimeError, match="`out` is on device 3 and `x` on device 1"):
        call("out", on(1), on(1), on(3))
    assert library.number_of_launches() == before
    assert library.current_device() == 0
