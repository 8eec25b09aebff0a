"""The compiled code of a translated kernel: the ops of its libraries, one library for each device.

In: the arguments of a call by name, bound and complete. Out: the outputs. Libraries are built or loaded at the first
use. The ops here know nothing of autograd, tracing and transforms: `definition.py` has the op that does.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import torch

from py2cu.build import load
from py2cu.call.argument_checks import check_arguments
from py2cu.call.bind import ArgumentBinder
from py2cu.ir.abi.parameters import Parameter
from py2cu.ir.abi.signature import Signature
from py2cu.ir.types import is_complex
from py2cu.source import SourceFile
from py2cu.translation import TargetName, Translation

Launch = tuple[list[int], list[int]] | tuple[()]
"""The grid and the block of an explicit launch; empty for a call."""


class Native:
    """The compiled code of one translation."""

    def __init__(self, translation: Translation, *, fma: bool = True) -> None:
        self.translation = translation
        self.fma = fma
        self.signature: Signature = translation.signatures[0]
        self.binder = ArgumentBinder(self.signature)
        self._packets: dict[str, Any] = {}

    def run(self, device: str, values: Mapping[str, Any], launch: Launch = ()) -> Any:
        """Run the code for `device`, and return the outputs that it allocates: all, or none where one is given.

        Raises:
            RuntimeError: an argument that the kernel does not accept.
        """
        allocates = self.signature.are_allocated(values)
        parameters = self.signature.inputs if allocates else self.signature.parameters
        op = self.overload(device, allocates=allocates, on_grid=bool(launch))
        try:
            return op(*(values.get(p.name) for p in parameters), *launch)
        except (RuntimeError, OverflowError):
            check_arguments(self.signature, values, on_grid=bool(launch))  # names the argument where the op does not
            raise

    def overload(self, device: str, *, allocates: bool, on_grid: bool) -> Callable[..., Any]:
        """The overload that allocates the outputs, the one that takes every array, or the one with a grid.

        As a function of one positional argument for each input or, unless it allocates, for each parameter.
        """
        packet = self._packet(device)
        if on_grid:
            return self._adapted(packet.grid, self.signature.parameters)
        if allocates:
            return self._adapted(packet.default, self.signature.inputs)
        op = packet.out if self.signature.outputs and self.signature.op_allocates else packet.default
        return self._adapted(op, self.signature.parameters)

    def same_overload(self, device: str, op: Any) -> Any:
        """The compiled overload that takes the arguments of `op` as they are; None where it takes others."""
        if type(self) is not Native or self.signature.asserts:
            return None
        overload = getattr(self._packet(device), op._overloadname, None)
        if overload is None or [*map(_spelled, overload._schema.arguments)] != [*map(_spelled, op._schema.arguments)]:
            return None
        return overload._op  # without the overload's own call

    @property
    def digest(self) -> str:
        """A hash of what the code does, equal in every process."""
        return hashlib.sha256(f"{self.translation.digest} {self.fma}".encode()).hexdigest()

    def _adapted(self, op: Any, parameters: Sequence[Parameter]) -> Callable[..., Any]:
        positional = take_positional(op, parameters)
        return raise_assertions(positional) if self.signature.asserts else positional  # rule: assert-raised

    def _packet(self, device: str) -> Any:
        if device not in self._packets:
            texts = self.translation.artifacts(TargetName(device))
            namespace = getattr(torch.ops, load(texts, fma=self.fma, source=self.source))
            self._packets[device] = getattr(namespace, self.signature.op)
        return self._packets[device]

    def source(self) -> SourceFile:
        """The Python, for a compiler's messages. A notebook cell has no file, but `linecache` has its lines."""
        import linecache

        name = self.translation.python_file
        return SourceFile(name, "".join(linecache.getlines(name)))


# --- the operator that compiled code registers ---------------------------------------------------------------------

_ASSERTION: Final = ": assertion failed at "
"""Part of the message with which a CPU launcher reports a failed `assert`: the kernel, this text, and the place."""


def _spelled(argument: Any) -> tuple[object, ...]:
    """What callers know of an argument of a schema."""
    default = argument.default_value if argument.has_default_value() else ()
    return argument.name, str(argument.type), argument.kwarg_only, default


def raise_assertions(op: Callable[..., Any]) -> Callable[..., Any]:
    """`op`, except that a failed `assert` of the kernel raises `AssertionError`, as in Python."""

    def call(*values: Any) -> Any:
        try:
            return op(*values)
        except RuntimeError as error:
            if _ASSERTION not in str(error):
                raise
            failure = AssertionError(str(error))
        raise failure

    return call


def take_positional(op: Any, parameters: Sequence[Parameter]) -> Callable[..., Any]:
    """`op` as a function of one positional argument for each of `parameters`, and then the grid and the block, if any.

    The op itself takes a complex number as two real ones. In its schema, arguments after a default are keyword-only.
    """
    names = [argument.name for argument in op._schema.arguments if argument.kwarg_only]
    if not names and not any(is_complex(parameter.type) for parameter in parameters):
        return op._op  # type: ignore[no-any-return]  # without the overload's own call: 0.2 microseconds
    count = len(op._schema.arguments) - len(names)

    def call(*values: Any) -> Any:
        flat: list[Any] = []
        for place, value in enumerate(values):
            has_parts = place < len(parameters) and is_complex(parameters[place].type)
            flat += (float(value.real), float(value.imag)) if has_parts else (value,)
        return op(*flat[:count], **dict(zip(names, flat[count:], strict=True)))

    return call
