"""Load compiled kernels, and ask the CUDA driver about devices and kernels.

In: code, device numbers, handles of kernels. Out: handles that `cuLaunchKernelEx` takes, on every device of the
code's architecture. Errors: `EnvironmentLacks` without cuda-bindings or a driver of CUDA 12, `RuntimeError` with
CUDA's name and text for what the driver refuses. Promises: a loaded kernel stays loaded until the process ends.
"""

from __future__ import annotations

import ctypes
import functools
import struct
from collections.abc import Callable
from types import ModuleType
from typing import Any, Final

from py2cu.diagnostics import EnvironmentLacks

_FIRST_VERSION: Final = 12000  # of libraries without a context
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
    driver = load_driver()
    try:
        library = _value(driver.cuLibraryLoadData(image, [], [], 0, [], [], 0))
        return int(_value(driver.cuLibraryGetKernel(library, symbol.encode())))
    except RuntimeError as error:
        _explain_version()
        raise RuntimeError(f"CUDA cannot load the kernel {symbol}: {error}") from None


@functools.cache
def architecture(device: int) -> str:
    """The architecture of a device by its number, "sm_90"."""
    import torch

    major, minor = torch.cuda.get_device_capability(device)
    return f"sm_{major}{minor}"


@functools.cache
def launch_function() -> Callable[..., int]:
    """`cuLaunchKernelEx`: config, kernel, addresses of the parameters, None; returns a CUresult.

    With its pointers at hand, ctypes calls it in 0.7 us less than `cuda.bindings` takes for `cuLaunchKernel`.
    """
    load_driver()
    function: Callable[..., int] = ctypes.CDLL("libcuda.so.1").cuLaunchKernelEx
    return function


def allow_shared_bytes(kernel: int, shared_bytes: int, device: int) -> None:
    """Raise a kernel's limit of dynamic shared memory on a device, 48 KB by default."""
    driver = load_driver()
    attribute = driver.CUfunction_attribute.CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
    handle = _value(driver.cuDeviceGet(device))
    _value(driver.cuKernelSetAttribute(attribute, shared_bytes, driver.CUkernel(kernel), handle))


def resident_blocks(kernel: int, threads: int, shared_bytes: int, device: int) -> int:
    """How many blocks of `threads` threads a device holds at once: the largest grid of a cooperative launch.

    The device must be the current one.
    """
    import torch

    driver = load_driver()
    function = driver.CUfunction(kernel)  # the driver takes a CUkernel here
    blocks: int = _value(driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(function, threads, shared_bytes))
    return blocks * torch.cuda.get_device_properties(device).multi_processor_count


def error_text(status: int) -> str:
    """The name and text of a CUresult: "CUDA_ERROR_INVALID_VALUE: invalid argument"."""
    driver = load_driver()
    try:
        result = driver.CUresult(status)
    except ValueError:
        return f"CUDA error {status}"
    (_, name), (_, text) = driver.cuGetErrorName(result), driver.cuGetErrorString(result)
    return f"{name.decode()}: {text.decode()}"


@functools.cache
def load_driver() -> ModuleType:
    """`cuda.bindings.driver`, initialised.

    Raises:
        EnvironmentLacks: cuda-bindings or a driver of CUDA 12 is missing.
    """
    try:
        from cuda.bindings import driver
    except ImportError:
        raise EnvironmentLacks("launching a kernel needs cuda-bindings", "pip install cuda-bindings") from None
    try:
        (status,) = driver.cuInit(0)
        _, version = driver.cuDriverGetVersion()
    except RuntimeError:  # libcuda.so.1 is missing
        raise EnvironmentLacks("there is no NVIDIA driver", _DRIVER_HINT) from None
    if version < _FIRST_VERSION:
        raise EnvironmentLacks(f"the driver supports CUDA {_spelled(version)}; 12.0 is needed", _DRIVER_HINT)
    if status != driver.CUresult.CUDA_SUCCESS:
        raise EnvironmentLacks(f"CUDA does not start: {status.name}", "check that nvidia-smi lists a GPU")
    return driver  # type: ignore[no-any-return, unused-ignore]  # typed where cuda-bindings is installed


def _explain_version() -> None:
    """Raise if the compiler is newer than the driver, which may not load what it compiled."""
    _, version = load_driver().cuDriverGetVersion()
    try:
        from py2cu.build import nvrtc

        major, minor = nvrtc.nvrtc_version()
    except EnvironmentLacks:
        return
    if 1000 * major + 10 * minor > version:
        raise EnvironmentLacks(
            f"the driver supports CUDA {_spelled(version)}, and NVRTC is of CUDA {major}.{minor}",
            f"update the driver, or install torch for CUDA {version // 1000}",
        )


def _spelled(version: int) -> str:
    """13000 is "13.0"."""
    return f"{version // 1000}.{version % 1000 // 10}"


def _value(answer: tuple[Any, ...]) -> Any:
    """The value of a call of the driver, which answers with a status and at most one value."""
    status, *values = answer
    if status != load_driver().CUresult.CUDA_SUCCESS:
        raise RuntimeError(error_text(status))
    return values[0] if values else None
