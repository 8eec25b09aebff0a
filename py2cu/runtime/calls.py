"""From a Python call to a torch op: which argument is which, on which device, through which compiled code.

The usual call, every required input by position, goes straight to the op; anything else is bound by name first. What a
tensor must be is checked in the op's C++, so that a call through `torch.ops` is as safe.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from py2cu.ir.extents import Parameter
from py2cu.ir.signature import Signature, evaluate
from py2cu.ir.types import ArrayType
from py2cu.runtime.build import load
from py2cu.source import SourceFile
from py2cu.translation import TargetName, Translation

Values = dict[str, Any]


class Call:
    """Calls of one kernel."""

    def __init__(self, translation: Translation) -> None:
        self.translation = translation
        self.signature: Signature = translation.signatures[0]
        self._packets: dict[str, Any] = {}
        self._plain: dict[str, Callable[..., Any]] = {}  # by device: the op for the usual call
        required = self.signature.required
        arrays = [place for place, parameter in enumerate(required) if parameter.is_array]
        # The usual call: every required input by position, with nothing to leave out before the last of them.
        is_plain = bool(self.signature.outputs and self.signature.size and arrays)
        self._count = len(required) if is_plain and self.signature.inputs[: len(required)] == required else -1
        self._place = arrays[0] if arrays else 0

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if not kwargs and len(args) == self._count:
            first = args[self._place]
            op = self._plain.get(first.device.type) if isinstance(first, torch.Tensor) else None
            if op is not None:
                try:
                    return op(*args)
                except NotImplementedError:
                    pass  # tensors on several devices: said below, by name
        values = self.bind(args, kwargs)
        device = self.device_of(values)
        if self.signature.size is None:
            name = self.signature.name
            raise TypeError(f"{name} has no size: launch it as {name}[grid, block](...), or say @kernel(size=…)")
        if self.signature.outputs and not any(p.name in values for p in self.signature.outputs):
            op = self._plain.setdefault(device, self.packet(device).default)
            return op(*(values.get(p.name) for p in self.signature.inputs))
        values = self.with_outputs(values)
        self.run(device, values)
        return self.result(values)

    def launch(self, grid: list[int], block: list[int], *args: Any, **kwargs: Any) -> None:
        """Run on an explicit grid; every array is given."""
        values = self.bind(args, kwargs)
        missing = [p.name for p in self.signature.outputs if p.name not in values]
        if missing:
            raise TypeError(f"{self.signature.name}[grid, block](...) needs every argument; missing {_list(missing)}")
        op = self.packet(self.device_of(values)).grid
        op(*(values.get(p.name) for p in self.signature.parameters), grid, block)

    def run(self, device: str, values: Mapping[str, Any]) -> None:
        """Run the code for `device` on arguments that include every array."""
        packet = self.packet(device)
        op = packet.out if self.signature.outputs else packet.default
        op(*(values.get(p.name) for p in self.signature.parameters))

    @property
    def op(self) -> Any:
        """The allocating overload, for the best device here."""
        packet = self.packet("cuda" if torch.cuda.is_available() else "cpu")
        return packet.default if self.signature.size is not None else packet.grid

    def packet(self, device: str) -> Any:
        """The op's overloads for a device; the first use builds or loads them."""
        if device not in self._packets:
            namespace = getattr(torch.ops, load(self.translation.artifacts(TargetName(device)), source=self._source))
            self._packets[device] = getattr(namespace, self.signature.op)
        return self._packets[device]

    def _source(self) -> SourceFile:
        """The Python, for a compiler's messages; a notebook cell has no file, but lines."""
        import linecache

        name = self.translation.python_file
        return SourceFile(name, "".join(linecache.getlines(name)))

    # --- arguments ---

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Values:
        """Arguments by name; outputs and extents that shapes tell may be absent.

        Raises:
            TypeError: too many, too few, unknown or doubled arguments, or a tensor where none belongs and the reverse.
        """
        problems = []
        for order in self._orders():
            if (problem := self._problem(order, args, kwargs)) is None:
                return {**{p.name: value for p, value in zip(order, args, strict=False)}, **kwargs}
            problems.append(problem)
        # Said of the inputs alone, unless there are more arguments than those.
        raise TypeError(f"{self.usage} {problems[0 if len(args) <= len(self.signature.inputs) else 2]}")

    def _orders(self) -> list[tuple[Parameter, ...]]:
        """What positional arguments may stand for: the inputs alone, or every parameter, with or without extents."""
        signature = self.signature
        shorter = tuple(p for p in signature.parameters if not signature.is_derived(p))
        return [signature.inputs, signature.required, signature.parameters, shorter]

    def _problem(self, order: tuple[Parameter, ...], args: Sequence[Any], kwargs: Mapping[str, Any]) -> str | None:
        """What keeps `args` from standing for `order`."""
        if len(args) > len(order):
            return f"takes {len(order)} arguments, got {len(args)}"
        names = [p.name for p in self.signature.parameters]
        placed = {p.name: value for p, value in zip(order, args, strict=False)}
        if unknown := [name for name in kwargs if name not in names]:
            return f"has no parameter {_list(unknown)}"
        if doubled := [name for name in kwargs if name in placed]:
            return f"got {_list(doubled)} twice"
        if missing := [p.name for p in self.signature.required if p.name not in placed and p.name not in kwargs]:
            return f"is missing {_list(missing)}"
        for name, value in {**placed, **kwargs}.items():
            is_array = self.signature.parameter(name).is_array
            if is_array is not isinstance(value, torch.Tensor):
                return f"takes a {'tensor' if is_array else 'number'} as `{name}`, got {type(value).__name__}"
        return None

    @property
    def usage(self) -> str:
        """`rgb2grey(x, out=None)`."""
        inputs = [f"{p.name}=None" if self.signature.is_derived(p) else p.name for p in self.signature.inputs]
        return f"{self.signature.name}({', '.join(inputs + [f'{p.name}=None' for p in self.signature.outputs])})"

    def device_of(self, values: Mapping[str, Any]) -> str:
        """The device that the tensors are on: "cuda" or "cpu".

        Raises:
            RuntimeError: they are on several, or on one that kernels do not run on.
        """
        tensors = {name: value for name, value in values.items() if isinstance(value, torch.Tensor)}
        first = next(iter(tensors))
        for name, tensor in tensors.items():
            if tensor.device.type not in ("cuda", "cpu"):
                raise RuntimeError(
                    f"{self.signature.name}: `{name}` is on {tensor.device}; kernels run on cuda and cpu"
                )
            if tensor.device.type != tensors[first].device.type:
                places = f"`{name}` is on {tensor.device} and `{first}` on {tensors[first].device}"
                raise RuntimeError(f"{self.signature.name}: {places}; all must be on one device")
        return tensors[first].device.type

    # --- outputs ---

    def with_outputs(self, values: Values) -> Values:
        """`values` with the outputs that it lacks allocated, on its tensors' device.

        Raises:
            ValueError: shapes that contradict each other.
        """
        from py2cu.runtime.simulate import bind_dims

        missing = [p for p in self.signature.outputs if p.name not in values]
        if not missing:
            return values
        dims = bind_dims(self.signature, values)
        device = next(value.device for value in values.values() if isinstance(value, torch.Tensor))
        inits = dict(self.signature.inits)
        made = dict(values)
        for parameter in missing:
            assert isinstance(parameter.type, ArrayType)
            shape = [evaluate(dim, dims) for dim in parameter.type.dims]
            array = torch.empty(shape, dtype=getattr(torch, parameter.type.dtype.name), device=device)
            made[parameter.name] = array.fill_(inits[parameter.name]) if parameter.name in inits else array
        return made

    def result(self, values: Mapping[str, Any]) -> Any:
        """What a call returns: its outputs in parameter order, one bare, none as None."""
        outputs = tuple(values[p.name] for p in self.signature.outputs)
        return outputs[0] if len(outputs) == 1 else outputs or None


def _list(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
