"""Engines: the part of a launcher that packs parameters and runs a compiled instance, on the CPU or a GPU.

In: a `LaunchProgram` and compiled instances, for one set of dtypes and template arguments. Out: the `lines` of a
launcher that launch with `values`, expressions of what a block packs, and the names in these lines. On a GPU, earlier
lines look the `instance` up in `instances`. An engine's `launch` is the format, as `struct` spells it, of the launch
numbers before the values in a block.
Promises: a block serves one call at a time, also on an error; an instance is compiled once, outside any block.
"""

from __future__ import annotations

import ctypes
import math
import os
import struct
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any, ClassVar, Final

import torch

from py2cu.build import driver
from py2cu.ir.abi.launch import DEFAULT_SHARED_LIMIT, INT32_MAX, LaunchProgram

ASSERTION: Final = ": assertion failed at "
"""Part of the message with which code for the CPU reports a failed `assert`: the kernel, this text, and the place."""
_MESSAGE_BYTES: Final = 1024
_SLOT: Final = 8
_OS_THREADS: Final = [0]
"""How many OS threads a launch on the CPU may use: 0 for OpenMP's number, 1 in a forked child, which has no others."""

os.register_at_fork(after_in_child=lambda: _OS_THREADS.__setitem__(0, 1))


class Block:
    """The parameters of one launch: their values, the addresses of these, and a message from the CPU.

    The launch itself stands before the values: on the CPU grid, block and number of OS threads, on a GPU a
    `CUlaunchConfig`. Addresses and launch are references, made once: ctypes takes longer to pass an array.
    """

    __slots__ = ("addresses", "launch", "memory", "message")

    def __init__(self, size: int, offsets: Sequence[int]) -> None:
        self.memory = ctypes.create_string_buffer(max(size, 1))
        start = ctypes.addressof(self.memory)
        self.launch = ctypes.byref(self.memory)
        self.addresses = ctypes.byref((ctypes.c_void_p * len(offsets))(*(start + offset for offset in offsets)))
        self.message = ctypes.create_string_buffer(_MESSAGE_BYTES)


def pool_of_blocks(launch: str, codes: Sequence[str]) -> dict[str, Any]:
    """The names by which a launcher uses its pool of blocks: a list `free`, `new` and `pack`.

    A block holds the launch and the values of one call, in the formats of `struct`.
    """
    form, offsets = f"<{launch}", []
    for code in codes:
        offsets.append(struct.calcsize(form))
        form += f"{code}{-struct.calcsize(f'<{code}') % _SLOT}x"
    layout = struct.Struct(form)
    return {"free": [], "new": partial(Block, layout.size, offsets), "pack": layout.pack_into}


def _with_block(packed: Sequence[str], *launch: str) -> Iterator[str]:
    """Lines that take a block, pack these expressions, launch, and give the block back."""
    yield "try: block = free.pop()"
    yield "except IndexError: block = new()"
    yield "try:"
    yield f"    pack(block.memory, 0, {', '.join(packed)})"
    yield from (f"    {line}" for line in launch)
    yield "finally:"
    yield "    free.append(block)"


class CpuEngine:
    """Launches by a C function in a library of the instance."""

    is_cuda: ClassVar = False
    launch: ClassVar = "7q"

    def __init__(self, entry: Callable[..., int]) -> None:
        self._entry = entry

    def lines(self, names: dict[str, Any], program: LaunchProgram, values: Sequence[str]) -> Iterator[str]:  # noqa: ARG002
        names |= {"entry": self._entry, "os_threads": _OS_THREADS, "failed": _failed_on_cpu}
        run = "if entry(block.addresses, block.launch, block.message): raise failed(block)"
        return _with_block(["gx", "gy", "gz", "bx", "by", "bz", "os_threads[0]", *values], run)


def _failed_on_cpu(block: Block) -> Exception:
    message = block.message.value.decode(errors="replace")
    return AssertionError(message) if ASSERTION in message else RuntimeError(message)


class DeviceInstance:
    """An instance on one device: its `kernel`, as ctypes passes it, and the shared memory that its blocks may have.

    The key: the device, then whether indices are narrow, or width and count of packs, then for each optional array
    whether the call gives it.
    """

    __slots__ = ("allowed", "device", "handle", "kernel", "key")

    def __init__(self, key: tuple[Any, ...]) -> None:
        self.key = key
        self.device: int = key[0]
        self.handle = 0
        self.kernel: Any = None  # not loaded yet
        self.allowed = 0


class _DeviceInstances(dict[tuple[Any, ...], DeviceInstance]):
    def __missing__(self, key: tuple[Any, ...]) -> DeviceInstance:
        return self.setdefault(key, DeviceInstance(key))


class CudaEngine:
    """Launches by the driver: `load` returns the handle of an instance for a device; it compiles each once."""

    is_cuda: ClassVar = True
    launch: ClassVar = driver.LAUNCH_CONFIG

    def __init__(self, name: str, load: Callable[..., int]) -> None:
        self._name = name
        self._load = load
        self._instances = _DeviceInstances()

    def lines(self, names: dict[str, Any], program: LaunchProgram, values: Sequence[str]) -> Iterator[str]:
        names |= {
            "instances": self._instances, "load": self._loaded, "allow": self._allow, "failed": self._failed,
            "stream_of": torch._C._cuda_getCurrentRawStream, "launch": driver.launch_function(),
        }  # fmt: skip
        yield "kernel = instance.kernel or load(instance)"
        if program.shared:
            limit = -1 if program.has_static_shared else DEFAULT_SHARED_LIMIT
            yield f"if shared > {limit} and shared > instance.allowed: allow(instance, shared)"
        attribute = f"{ctypes.addressof(driver.COOPERATIVE)}, 1" if program.cooperative else "0, 0"
        yield from _with_block(
            ["gx", "gy", "gz", "bx", "by", "bz", "shared", "stream_of(device)", attribute, *values],
            "error = launch(block.launch, kernel, block.addresses, None)",
            "if error: failed(instance, block, error)",
        )

    def _loaded(self, instance: DeviceInstance) -> Any:
        device, form, *given = instance.key
        packs, is_wide = (form, True) if isinstance(form, tuple) else ((), not form)
        instance.handle = self._load(device, tuple(given), packs, is_wide=is_wide)
        instance.kernel = ctypes.c_void_p.from_param(instance.handle)
        return instance.kernel

    def _allow(self, instance: DeviceInstance, shared: int) -> None:
        """Let a block have more dynamic shared memory than the default."""
        try:
            driver.allow_shared_bytes(instance.handle, min(shared, INT32_MAX), instance.device)
        except RuntimeError as error:
            raise self._failure(f"the launch failed: {str(error).partition(': ')[2]}") from None
        instance.allowed = shared

    def _failed(self, instance: DeviceInstance, block: Block, error: int) -> None:
        """Launch once more where the thread had no context; raise an error for everything else."""
        if error == driver.INVALID_CONTEXT:
            torch.cuda.set_device(instance.device)
            error = driver.launch_function()(block.launch, instance.kernel, block.addresses, None)
        if not error:
            return
        *shape, shared = struct.unpack_from("<7I", block.memory)
        if error == driver.COOPERATIVE_LAUNCH_TOO_LARGE:
            most = driver.resident_blocks(instance.handle, math.prod(shape[3:]), shared, instance.device)
            what = f"{math.prod(shape[:3])} blocks wait for each other, and at most {most} run at once on this device"
        elif error == driver.INVALID_VALUE:
            what = "the launch failed: invalid configuration argument"
        else:
            what = f"the launch failed: {driver.error_text(error).partition(': ')[2]}"
        raise self._failure(what)

    def _failure(self, what: str) -> RuntimeError:
        return RuntimeError(f"{self._name}: {what}")


Engine = CpuEngine | CudaEngine
