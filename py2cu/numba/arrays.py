"""Arrays of a launch: NumPy's, torch's and those of other libraries as tensors, and Numba's device arrays.

In: the arguments of a launch, or an array. Out: tensors that share memory where they can, on one device; `DeviceArray`.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch


@contextlib.contextmanager
def as_tensors(args: Sequence[Any]) -> Iterator[tuple[list[Any], set[int]]]:
    """Arguments as tensors, and an empty set: arrays of NumPy are copied back, unless the caller adds their ids."""
    import numpy as np
    import torch

    values = [_adopted(value) for value in args]
    device = next((value.device for value in values if isinstance(value, torch.Tensor)), None) or _default_device()
    copied: dict[int, tuple[Any, torch.Tensor]] = {}
    only_read: set[int] = set()
    for place, value in enumerate(values):
        if isinstance(value, np.bool_):
            values[place] = bool(value)
        elif isinstance(value, np.ndarray):
            _, values[place] = copied.setdefault(id(value), (value, _from_numpy(value).to(device)))
    is_placed = any(isinstance(value, torch.Tensor) for value in values)
    with contextlib.nullcontext() if is_placed else device:  # where a kernel without arrays runs
        yield values, only_read
    for array, tensor in (pair for key, pair in copied.items() if key not in only_read):
        if tensor.device.type == "cpu" and tensor.data_ptr() == array.__array_interface__["data"][0]:
            continue  # the kernel wrote to the array itself
        if array.flags.writeable:
            array[...] = tensor.cpu().numpy()


def _from_numpy(array: Any) -> torch.Tensor:
    """A tensor with the elements of an array: its own memory where torch can have it."""
    import torch

    is_plain = array.flags.writeable and all(stride >= 0 for stride in array.strides) and array.dtype.isnative
    return torch.from_numpy(array if is_plain else array.astype(array.dtype.newbyteorder("="), copy=True))


def _adopted(value: Any) -> Any:
    """A tensor that shares the memory of a device array, or `value` itself."""
    import torch

    if isinstance(value, torch.Tensor):
        return value
    if isinstance(value, DeviceArray):
        return value.memory
    if hasattr(value, "__cuda_array_interface__"):
        return torch.as_tensor(value, device="cuda")
    if hasattr(value, "__dlpack__") and type(value).__module__ != "numpy":
        return torch.utils.dlpack.from_dlpack(value)
    return value


def _default_device() -> torch.device:
    """Where arrays of NumPy are copied to: the GPU, if there is one and nothing asks for the simulator."""
    import torch

    is_simulated = os.environ.get("NUMBA_ENABLE_CUDASIM") == "1"
    return torch.device("cuda" if torch.cuda.is_available() and not is_simulated else "cpu")


def on_stream(stream: Any) -> contextlib.AbstractContextManager[Any]:
    """The context in which a launch goes to a stream of torch; 0 is the current one."""
    import torch

    is_torchs = isinstance(stream, torch.cuda.Stream)
    if not is_torchs and stream not in (0, None):
        raise TypeError(f"a stream is one of torch, or 0, not {stream!r}")
    return torch.cuda.stream(stream) if is_torchs else contextlib.nullcontext()


class DeviceArray:
    """An array on the device of kernels, with the methods of Numba's device arrays.

    Only kernels touch its memory. Once `tensor`, a view or another library shares it, it is a `SharedArray`.
    """

    def __init__(self, memory: torch.Tensor) -> None:
        self.memory = memory

    @property
    def tensor(self) -> torch.Tensor:
        """The same memory as a tensor, which torch may share from now on."""
        self.__class__ = SharedArray
        return self.memory

    shape = property(lambda self: tuple(self.memory.shape))
    size = property(lambda self: self.memory.numel())
    ndim = property(lambda self: self.memory.ndim)
    nbytes = property(lambda self: self.memory.nbytes)

    @property
    def dtype(self) -> Any:
        return self.memory.new_empty(0, device="cpu").numpy().dtype

    @property
    def __cuda_array_interface__(self) -> Any:
        return self.tensor.__cuda_array_interface__

    def __len__(self) -> int:
        return len(self.memory)

    def __getitem__(self, key: Any) -> Any:
        part = self.tensor[key]
        return SharedArray(part) if part.ndim else part.item()

    def __setitem__(self, key: Any, value: Any) -> None:
        self.memory[key] = value if isinstance(value, int | float) else to_device(value).memory

    def copy_to_host(self, ary: Any = None, stream: Any = 0) -> Any:
        """The elements as an array of NumPy, `ary` if given."""
        with on_stream(stream):
            array = self.memory.cpu().numpy()
        if ary is None:
            return array.copy() if self.memory.device.type == "cpu" else array
        ary[...] = array
        return ary

    def copy_to_device(self, ary: Any, stream: Any = 0) -> None:
        """Take the elements of `ary`, an array of NumPy or on the device."""
        with on_stream(stream):
            self.memory.copy_(to_device(ary).memory)

    def reshape(self, *shape: Any) -> DeviceArray:
        return SharedArray(self.tensor.reshape(*shape))


class SharedArray(DeviceArray):
    """A device array whose memory a tensor shares: autograd and torch's modes see launches on it."""


def to_device(obj: Any, stream: Any = 0, copy: bool = True, to: DeviceArray | None = None) -> DeviceArray:
    """A copy of an array on the device of kernels: the GPU, or without one the CPU."""
    import numpy as np
    import torch

    with on_stream(stream):
        adopted = obj.tensor if isinstance(obj, DeviceArray) and not copy else _adopted(obj)
        source = adopted if isinstance(adopted, torch.Tensor) else _from_numpy(np.asarray(adopted))
        if to is not None:
            to.memory.copy_(source)
            return to
        device = _default_device() if source.device.type == "cpu" else source.device
        moved = source.to(device, copy=copy)
        is_shared = moved.is_nested or moved.requires_grad or moved.data_ptr() == source.data_ptr()
        return (SharedArray if is_shared else DeviceArray)(moved)


def device_array(shape: Any, dtype: Any = "float64", strides: Any = None, order: str = "C", stream: Any = 0) -> Any:
    """An array on the device of kernels, whose elements are not set."""
    import numpy as np

    if strides is not None or order != "C":
        raise TypeError("a device array is contiguous in rows: make another layout with torch")
    return DeviceArray(_from_numpy(np.empty(shape, dtype)).to(_default_device()))


def device_array_like(ary: Any, stream: Any = 0) -> Any:
    """An array on the device of kernels with the shape and the dtype of `ary`."""
    return device_array(ary.shape, str(ary.dtype).removeprefix("torch."))


def as_cuda_array(obj: Any, sync: bool = True) -> DeviceArray:
    """An object with `__cuda_array_interface__` as a device array, without a copy."""
    return SharedArray(obj.tensor if isinstance(obj, DeviceArray) else _adopted(obj))


def is_cuda_array(obj: Any) -> bool:
    """Whether an object has `__cuda_array_interface__`."""
    return hasattr(obj, "__cuda_array_interface__")


def synchronize() -> None:
    """Wait for the kernels on the current GPU; nothing without one."""
    import torch

    if torch.cuda.is_available():
        torch.cuda.synchronize()


def is_available() -> bool:
    """Whether kernels run on a GPU here."""
    import torch

    return torch.cuda.is_available()
