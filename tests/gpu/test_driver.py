"""On a real GPU: kernels that NVRTC compiles are loaded, launched and asked about."""

from __future__ import annotations

import ctypes
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no GPU here", allow_module_level=True)

from py2cu.build import driver  # noqa: E402
from py2cu.build.nvrtc import compile_by_nvcc, compile_cubin  # noqa: E402
from tests.support import compilers  # noqa: E402

pytestmark = pytest.mark.gpu
AXPY = """\
template <typename T>
__global__ void axpy_kernel(const T* x, T* out, int n)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = out[i] + x[i] * x[i];
}
"""
SHARED = """\
template <typename index_t>
__global__ void reverse_kernel(float* out, index_t n)
{
    extern __shared__ float tile[];
    for (index_t i = threadIdx.x; i < n; i += blockDim.x) tile[i] = out[i];
    __syncthreads();
    for (index_t i = threadIdx.x; i < n; i += blockDim.x) out[i] = tile[n - 1 - i];
}
"""
GRID = """\
template <typename index_t>
__global__ void grid_kernel(int* out, index_t n)
{
    if (threadIdx.x == 0) atomicAdd(out, 1);
    cooperative_groups::this_grid().sync();
    if (threadIdx.x == 0) out[1 + blockIdx.x] = *const_cast<volatile int*>(out);
}
"""


def launch(kernel: int, grid: int, block: int, shared_bytes: int, *arguments: object) -> int:
    """Launch on torch's current stream; tensors pass their address, numbers are ints. Returns the status."""
    values = [
        ctypes.c_void_p(one.data_ptr()) if isinstance(one, torch.Tensor) else ctypes.c_int(one) for one in arguments
    ]
    block_of_addresses = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    status: int = driver.load_driver().cuLaunchKernel(
        ctypes.c_void_p(kernel), grid, 1, 1, block, 1, 1, shared_bytes, stream, block_of_addresses, None
    )
    return status


@pytest.fixture(autouse=True)
def _context() -> None:
    torch.zeros(1, device="cuda")


@pytest.mark.parametrize(
    ("expression", "dtype", "headers"),
    [
        ("axpy_kernel<float>", torch.float32, ()),
        ("axpy_kernel<__half>", torch.float16, ("cuda_fp16.h",)),
        ("axpy_kernel<__nv_bfloat16>", torch.bfloat16, ("cuda_bf16.h",)),
        ("axpy_kernel<complex<float>>", torch.complex64, ("cuda/std/complex",)),
    ],
)
@pytest.mark.parametrize("compiler", ["nvrtc", "nvcc"])
def test_a_kernel_runs(expression: str, dtype: torch.dtype, headers: tuple[str, ...], compiler: str) -> None:
    text = ("using cuda::std::complex;\n" if dtype.is_complex else "") + AXPY
    architecture = driver.architecture(0)
    if compiler == "nvrtc":
        cubin = compile_cubin(text, expression, architecture=architecture, headers=headers)
    else:
        options = {"architecture": architecture, "fma": True, "headers": headers, "name": "axpy.cu"}
        cubin = compile_by_nvcc(Path(compilers.nvcc()), text, expression, **options)  # type: ignore[arg-type]
    x = torch.randint(-8, 8, (1000,), device="cuda").to(dtype)
    out = torch.ones(1000, device="cuda", dtype=dtype)
    assert launch(driver.load_kernel(*cubin), 4, 256, 0, x, out, 1000) == 0
    assert torch.equal(out, x * x + 1)


def test_fma_false_rounds_twice() -> None:
    results = []
    for fma in (True, False):
        cubin = compile_cubin(AXPY, "axpy_kernel<float>", architecture=driver.architecture(0), fma=fma)
        x = torch.full((1,), 1 + 2.0**-12, device="cuda")
        out = torch.full((1,), -1.0, device="cuda")
        launch(driver.load_kernel(*cubin), 1, 1, 0, x, out, 1)
        results.append(out.item())
    assert results == [2.0**-11 + 2.0**-24, 2.0**-11]


def test_ptx_of_an_earlier_architecture_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("py2cu.build.nvrtc._target", lambda architecture: "compute_75")
    cubin = compile_cubin(AXPY, "axpy_kernel<float>", architecture="sm_999")
    assert b".version" in cubin.image
    x, out = torch.ones(8, device="cuda"), torch.ones(8, device="cuda")
    assert launch(driver.load_kernel(*cubin), 1, 32, 0, x, out, 8) == 0
    assert out.tolist() == [2.0] * 8


def test_more_shared_memory_needs_leave() -> None:
    kernel = driver.load_kernel(*compile_cubin(SHARED, "reverse_kernel<int>", architecture=driver.architecture(0)))
    n = 15_000
    x = torch.arange(n, device="cuda", dtype=torch.float32)
    status = launch(kernel, 1, 256, 4 * n, x, n)
    assert driver.error_text(status) == "CUDA_ERROR_INVALID_VALUE: invalid argument"
    driver.allow_shared_bytes(kernel, 4 * n, 0)
    assert launch(kernel, 1, 256, 4 * n, x, n) == 0
    assert x.tolist() == list(range(n - 1, -1, -1))
    with pytest.raises(RuntimeError, match="CUDA_ERROR_INVALID_VALUE"):
        driver.allow_shared_bytes(kernel, 1 << 30, 0)


def test_a_cooperative_launch_fits_the_resident_blocks() -> None:
    cubin = compile_cubin(
        GRID, "grid_kernel<int>", architecture=driver.architecture(0), headers=["cooperative_groups.h"]
    )
    kernel = driver.load_kernel(*cubin)
    most = driver.resident_blocks(kernel, 256, 0, 0)
    assert most % torch.cuda.get_device_properties(0).multi_processor_count == 0
    assert most > driver.resident_blocks(kernel, 256, 40_000, 0) > 0
    out = torch.zeros(most + 2, device="cuda", dtype=torch.int32)
    values = [ctypes.c_void_p(out.data_ptr()), ctypes.c_int(most)]
    addresses = (ctypes.c_void_p * 2)(*map(ctypes.addressof, values))
    for grid, expected in ((most + 1, "COOPERATIVE_LAUNCH_TOO_LARGE"), (most, "SUCCESS")):
        status = driver.load_driver().cuLaunchCooperativeKernel(
            ctypes.c_void_p(kernel), grid, 1, 1, 256, 1, 1, 0, None, addresses
        )
        assert expected in driver.error_text(status)
    assert out[: most + 1].tolist() == [most] * (most + 1)


@pytest.mark.parametrize("image", [b"", b"nonsense\0", b"\x7fELF" + bytes(100)])
def test_a_damaged_image_is_an_error_with_cudas_name(image: bytes) -> None:
    with pytest.raises(RuntimeError, match="cannot load the kernel k: CUDA_ERROR_"):
        driver.load_kernel(image, "k")


def test_a_symbol_that_is_not_there_is_an_error() -> None:
    cubin = compile_cubin(AXPY, "axpy_kernel<float>", architecture=driver.architecture(0))
    with pytest.raises(RuntimeError, match="cannot load the kernel other: CUDA_ERROR_NOT_FOUND"):
        driver.load_kernel(cubin.image, "other")


def test_numbers_that_are_no_status_have_a_text() -> None:
    assert driver.error_text(0) == "CUDA_SUCCESS: no error"
    assert driver.error_text(12345) == "CUDA error 12345"


def test_a_failed_assert_names_the_file_and_line() -> None:
    program = f"""
import sys, torch
sys.path.insert(0, {__file__.rpartition("/")[0]!r})
from test_driver import *
text = AXPY.replace("    if", "    assert(n < 0);\\n    printf(\\"reached\\");\\n    if")
kernel = driver.load_kernel(
    *compile_cubin(text, "axpy_kernel<float>", architecture=driver.architecture(0), name="axpy.cu"))
x = torch.ones(1, device="cuda")
launch(kernel, 1, 1, 0, x, x, 1)
torch.cuda.synchronize()
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.returncode != 0
    assert "axpy.cu:5: void axpy_kernel(const T *, T *, int) [with T = float]" in run.stderr, run.stderr
    assert "Assertion `n < 0` failed" in run.stderr
