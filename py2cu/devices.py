"""Find the GPUs here, choose the device that a kernel runs on, and ask what torch does with tensors of that device.

In: this machine, or the tensors of a call. Out: capabilities of GPUs, or a `TargetName`. Promises: the import of this
module does not import torch.
"""

from __future__ import annotations

import contextlib
import functools
import re
import subprocess
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from py2cu.translation import TargetName

if TYPE_CHECKING:
    import torch


def best() -> TargetName:
    """The device to prefer here: the GPU if torch can use one, else the CPU.

    Raises:
        ImportError: torch is not installed.
    """
    import torch

    return TargetName.CUDA if torch.cuda.is_available() else TargetName.CPU


@functools.cache
def capabilities() -> tuple[tuple[int, int], ...]:
    """The compute capability of each GPU here.

    Asks torch if it has initialised CUDA already, else nvidia-smi, which takes 0.02 s. Torch's answer is the only one
    where there is no nvidia-smi (Jetson).
    """
    cuda = sys.modules["torch"].cuda if "torch" in sys.modules else None
    if cuda is None or not cuda.is_initialized():
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            query = ["nvidia-smi", "--query-gpu=compute_cap", "--format=csv,noheader"]
            found = subprocess.run(query, capture_output=True, text=True, timeout=20, check=True).stdout
            return tuple((int(major), int(minor)) for major, minor in re.findall(r"(\d+)\.(\d+)", found))
    if cuda is None or not cuda.is_available():
        return ()
    return tuple(cuda.get_device_capability(index) for index in range(cuda.device_count()))


def of_tensors(tensors: Mapping[str, torch.Tensor]) -> TargetName:
    """The device that holds all of `tensors`, which are named as in messages; torch's default device if there are none.

    Raises:
        ValueError: a tensor is on another device than the first, or on neither a GPU nor the CPU.
    """
    if not tensors:
        return _of_default()
    first, *_ = tensors
    expected = tensors[first].device
    for name, tensor in tensors.items():
        if tensor.device.type not in tuple(TargetName):
            raise ValueError(f"`{name}` is on {tensor.device}; kernels run on cuda and cpu")
        if tensor.device.type != expected.type:
            places = f"`{name}` is on {tensor.device} and `{first}` on {expected}"
            raise ValueError(f"{places}; all must be on one device")
        if tensor.device != expected:
            places = f"`{name}` is on device {tensor.device.index} and `{first}` on device {expected.index}"
            raise ValueError(places)
    return TargetName(expected.type)


def _of_default() -> TargetName:
    import torch

    device = torch.get_default_device()
    if device.type not in tuple(TargetName):
        raise ValueError(f"torch's default device is {device}; kernels run on cuda and cpu")
    return TargetName(device.type)


def autocast_advice(name: str, tensor: torch.Tensor, admitted: str) -> str:
    """What a message about the dtype of the argument `name` adds where `torch.autocast` may have chosen the dtype."""
    import torch

    device = tensor.device.type
    if device not in tuple(TargetName) or not torch.is_autocast_enabled(device):
        return ""
    chosen = torch.get_autocast_dtype(device)
    if chosen not in (tensor.dtype, getattr(torch, admitted)):
        return ""
    what = "may have cast it" if tensor.dtype == chosen else "casts other arguments"
    return f"; `torch.autocast` {what}: pass `{name}.to(torch.{admitted})`"
