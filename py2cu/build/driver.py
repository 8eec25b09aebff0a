"""Load compiled kernels, and ask the CUDA driver about devices and kernels.

In: code, device numbers, handles of kernels. Out: handles that `cuLaunchKernelEx` takes, on every device of the
code's architecture. Errors: `EnvironmentLacks` without a driver of CUDA 12, `RuntimeError` with CUDA's name and text
for what the driver refuses. Promises: a loaded kernel stays loaded until the process ends.

The driver is called by ctypes: `cuda.bindings.driver` takes 0.7 us more for a launch, and importing it took a fifth of
the time to the first result of a cached kernel.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Callable
from typing import Any, Final

from py2cu.diagnostics import EnvironmentLacks

INVALID_VALUE, INVALID_CONTEXT, COOPERATIVE_LAUNCH_TOO_LARGE = 1, 201, 720  # of CUresult
_FIRST_VERSION: Final = 12000  # of libraries without a context
_MAX_DYNAMIC_SHARED_SIZE_BYTES: Final = 8  # of CUfunction_attribute
LAUNCH_CONFIG: Final = "7I4xQQI4x"
"""`CUlaunchConfig`, as `struct` spells it: grid, block, bytes of shared memory, stream, attributes and their number."""
COOPERATIVE: Final = ctypes.create_string_buffer(struct.pack("<I4xI", 2, 1), 72)
"""A `CUlaunchAttribute`: CU_LAUNCH_ATTRIBUTE_COOPERATIVE, and its value."""
_DRIVER_HINT: Final = "install or update the NVIDIA driver"


def load_kernel(image: bytes, symbol: str) -> int:
    """The handle (CUkernel) of a kernel by its mangled name in a cubin or PTX.

    Nothing is loaded onto a device before the first launch there.

    Raises:
        EnvironmentLacks: the driver is older than the compiler.
    """
    library, kernel = ctypes.c_void_p(), ctypes.c_void_p()
    try:
        _call("cuLibraryLoadData", ctypes.byref(library), image, None, None, 0, None, None, 0)
        _call("cuLibraryGetKernel", ctypes.byref(kernel), library, symbol.encode())
    except RuntimeError as error:
        _explain_version()
        raise RuntimeError(f"CUDA cannot load the kernel {symbol}: {error}") from None
    return kernel.value or 0


@functools.cache
def architecture(device: int) -> str:
    """The architecture of a device by its number, "sm_90"."""
    import torch

    major, minor = torch.cuda.get_device_capability(device)
    return f"sm_{major}{minor}"


def launch_function() -> Callable[..., int]:
    """`cuLaunchKernelEx`: config, kernel, addresses of the parameters, None; returns a CUresult."""
    function: Callable[..., int] = load_driver().cuLaunchKernelEx
    return function


def allow_shared_bytes(kernel: int, shared_bytes: int, device: int) -> None:
    """Raise a kernel's limit of dynamic shared memory on a device, 48 KB by default."""
    handle = ctypes.c_int()
    _call("cuDeviceGet", ctypes.byref(handle), device)
    _call("cuKernelSetAttribute", _MAX_DYNAMIC_SHARED_SIZE_BYTES, shared_bytes, ctypes.c_void_p(kernel), handle)


def resident_blocks(kernel: int, threads: int, shared_bytes: int, device: int) -> int:
    """How many blocks of `threads` threads a device holds at once: the largest grid of a cooperative launch.

    The device must be the current one.
    """
    import torch

    blocks = ctypes.c_int()
    function, shared = ctypes.c_void_p(kernel), ctypes.c_size_t(shared_bytes)  # the driver takes a CUkernel here
    _call("cuOccupancyMaxActiveBlocksPerMultiprocessor", ctypes.byref(blocks), function, threads, shared)
    return blocks.value * torch.cuda.get_device_properties(device).multi_processor_count


def error_text(status: int, driver: ctypes.CDLL | None = None) -> str:
    """The name and text of a CUresult: "CUDA_ERROR_INVALID_VALUE: invalid argument"."""
    driver = driver or load_driver()
    name, text = ctypes.c_char_p(), ctypes.c_char_p()
    driver.cuGetErrorString(status, ctypes.byref(text))
    if driver.cuGetErrorName(status, ctypes.byref(name)) or name.value is None or text.value is None:
        return f"CUDA error {status}"
    return f"{name.value.decode()}: {text.value.decode()}"


@functools.cache
def load_driver() -> ctypes.CDLL:
    """The driver's library, initialised.

    Raises:
        EnvironmentLacks: there is no driver of CUDA 12 or later, or it does not start.
    """
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        raise EnvironmentLacks("there is no NVIDIA driver", _DRIVER_HINT) from None
    status, version = driver.cuInit(0), _version(driver)
    if version < _FIRST_VERSION:
        raise EnvironmentLacks(f"the driver supports CUDA {_spelled(version)}; 12.0 is needed", _DRIVER_HINT)
    if status:
        text = error_text(status, driver)
        raise EnvironmentLacks(f"CUDA does not start: {text}", "check that nvidia-smi lists a GPU")
    return driver


def _explain_version() -> None:
    """Raise if the compiler is newer than the driver, which may not load what it compiled."""
    version = _version(load_driver())
    try:
        from py2cu.build import nvrtc

        major, minor = nvrtc.nvrtc_version()
    except EnvironmentLacks:
        return
    if 1000 * major + 10 * minor > version:
        what = f"the driver supports CUDA {_spelled(version)}, and NVRTC is of CUDA {major}.{minor}"
        raise EnvironmentLacks(what, f"update the driver, or install torch for CUDA {version // 1000}")


def _spelled(version: int) -> str:
    """13000 is "13.0"."""
    return f"{version // 1000}.{version % 1000 // 10}"


def _version(driver: ctypes.CDLL) -> int:
    version = ctypes.c_int()
    driver.cuDriverGetVersion(ctypes.byref(version))
    return version.value


def _call(function: str, *arguments: Any) -> None:
    """Call a function of the driver; whole numbers are passed as `int`."""
    if status := getattr(load_driver(), function)(*arguments):
        raise RuntimeError(error_text(status))
