"""Call a kernel's torch operator: bind the arguments, choose the device, and run the compiled code.

In: the positional and keyword arguments of a call. Out: the op's result. The first call with arguments of certain types
binds and checks them and leaves a `CallPlan`; later calls with the same types go straight to the op. The op's C++
checks the tensors, so a call through `torch.ops` is as safe.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from py2cu import devices
from py2cu.build import load
from py2cu.call.argument_checks import needs_grad
from py2cu.call.bind import ArgumentBinder, Bound
from py2cu.call.operators import raise_assertions, take_positional
from py2cu.call.outputs import allocate_outputs
from py2cu.ir.abi.parameters import Parameter, Role
from py2cu.ir.abi.signature import Dim, Signature
from py2cu.ir.types import ArrayType
from py2cu.source import SourceFile
from py2cu.translation import TargetName, Translation

Launch = tuple[list[int], list[int]] | tuple[()]
"""The grid and the block of an explicit launch; empty for a call."""


@dataclass(slots=True)
class CallPlan:
    """How calls with arguments of certain types reach the op.

    `sources` is, for each argument of the op, the position or the keyword of the call's argument. If the positional
    arguments come first and in order, `trailing` names the rest, else it is None. `defaults` are those of numbers that
    such calls leave out, `measured` are integers with the position or the keyword of the array that they are taken
    from. `device_argument` is the position of an array, whose device picks the op. `written` are the
    positions of arrays that the kernel writes. `pick_outputs` returns the outputs that the caller passed, if the op
    allocates none.
    """

    sources: tuple[int | str, ...]
    trailing: tuple[str, ...] | None
    defaults: dict[str, Any]
    measured: tuple[tuple[Dim, ArrayType, int | str], ...]
    device_argument: int
    written: tuple[int, ...]
    pick_outputs: Callable[[Sequence[Any]], Any] | None
    ops: dict[str, Callable[..., Any]] = field(default_factory=dict)  # by device

    def measure(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, int | None]:
        """The integers that such calls leave out; None, which the op refuses, where an array has no such dimension."""
        shapes = [(args[at] if isinstance(at, int) else kwargs[at]).shape for _, _, at in self.measured]
        return {
            dim.name: dim.measure(type_, shape, {})
            for (dim, type_, _), shape in zip(self.measured, shapes, strict=True)
        }


def argument_types(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[object, ...]:
    """The key of a plan: types and names decide how a call is read."""
    return (*map(type, args), *kwargs, *map(type, kwargs.values())) if kwargs else tuple(map(type, args))


class KernelCall:
    """Calls of one translated kernel."""

    def __init__(self, translation: Translation, *, fma: bool = True) -> None:
        self.translation = translation
        self.fma = fma
        self.signature: Signature = translation.signatures[0]
        self.binder = ArgumentBinder(self.signature)
        self._packets: dict[str, Any] = {}
        self._plans: dict[tuple[object, ...], CallPlan] = {}
        self._launch_plans: dict[tuple[object, ...], CallPlan] = {}

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any], launch: Launch = ()) -> Any:
        # `argument_types`, inlined: calling it takes as long as its work.
        key = (*map(type, args), *kwargs, *map(type, kwargs.values())) if kwargs else tuple(map(type, args))
        plan = self._launch_plans.get(key) if launch else self._plans.get(key)
        if plan is not None:
            named = plan.defaults | kwargs if plan.defaults else kwargs
            if plan.measured:
                named = named | plan.measure(args, kwargs)
            values = (*args, *map(named.get, plan.trailing)) if plan.trailing else args
            if plan.trailing is None:
                values = tuple(args[at] if isinstance(at, int) else named.get(at) for at in plan.sources)
            op = plan.ops.get(values[plan.device_argument].device.type)
            for place in plan.written:
                if values[place].requires_grad and needs_grad(values[place]):
                    op = None
            if op is not None:
                try:
                    result = op(*values, *launch) if launch else op(*values)
                except (RuntimeError, OverflowError):
                    pass  # nothing was launched: the checks below raise an error that names the argument
                else:
                    return result if plan.pick_outputs is None else plan.pick_outputs(values)
        return self._run_bound(args, kwargs, launch)

    def _run_bound(self, args: tuple[Any, ...], kwargs: dict[str, Any], launch: Launch) -> Any:
        """Bind and check the arguments, run the op, and keep a plan for later calls with the same types."""
        bound = self.binder.bind_in_order(args, kwargs) if launch else self.binder.bind(args, kwargs)
        values, name = bound.values, self.signature.name
        missing = [p.name for p in self.signature.outputs if p.name not in values]
        if missing and launch:
            raise TypeError(f"{name}[grid, block](...) needs every argument; missing {_list(missing)}")
        device = self.binder.accept(values)
        if self.signature.size is None and not launch:
            how = f"launch it as {name}[grid, block](...), or decorate it with @kernel(size=…)"
            raise TypeError(f"the number of threads of {name} is unknown: {how}")
        op_allocates = self.signature.op_allocates and bool(missing) and len(missing) == len(self.signature.outputs)
        if op_allocates or not missing:
            op_parameters = self.signature.inputs if op_allocates else self.signature.parameters
            op = self._op(device, op_allocates, launch)
            plans = self._launch_plans if launch else self._plans
            key = argument_types(args, kwargs)
            if key not in plans:
                plans[key] = self._plan(bound, args, kwargs, op_parameters, returns=not (op_allocates or launch))
            plans[key].ops[device] = op
            result = op(*(values.get(p.name) for p in op_parameters), *launch)
            return result if op_allocates or launch else self.result(values)
        values = allocate_outputs(self.signature, values)
        self.run(device, values)
        return self.result(values)

    def _plan(
        self,
        bound: Bound,
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        op_parameters: Sequence[Parameter],
        *,
        returns: bool,
    ) -> CallPlan:
        """The plan of calls like this one, for an op that takes `op_parameters`.

        `returns`: the call returns outputs that the op does not.
        """
        places: dict[str, int | str] = {name: place for place, name in enumerate(bound.positional)}
        sources = tuple(places.get(p.name, p.name) for p in op_parameters)
        outputs = [place for place, p in enumerate(op_parameters) if p.role is Role.OUTPUT]
        left_out = [p for p in op_parameters if p.name not in {*bound.positional, *kwargs}]
        measured = [dim for p in left_out if (dim := self.binder.source(p.name, bound.values)) is not None]
        in_order = sources[: len(args)] == tuple(range(len(args)))
        return CallPlan(
            sources,
            trailing=tuple(map(str, sources[len(args) :])) if in_order else None,
            defaults={p.name: bound.values[p.name] for p in left_out if p.default is not None},
            measured=tuple(
                (dim, self.signature.array_type(array), places.get(array, array))
                for dim, array in ((dim, str(dim.array)) for dim in measured)
            ),
            device_argument=next(place for place, p in enumerate(op_parameters) if p.is_array and not p.may_be_none),
            written=tuple(
                place for place, p in enumerate(op_parameters) if p.role is not Role.INPUT and p.name in bound.values
            ),
            pick_outputs=operator.itemgetter(*outputs) if outputs and returns else None,
        )

    def run(self, device: str, values: Mapping[str, Any]) -> None:
        """Run the code for `device` on arguments that include every array."""
        op = self._op(device, allocates=False)
        op(*(values.get(p.name) for p in self.signature.parameters))

    def _op(self, device: str, allocates: bool, launch: Launch = ()) -> Callable[..., Any]:
        """The overload that allocates the outputs, the one that takes every array, or the one with a grid."""
        packet = self.packet(device)
        if launch:
            return self._adapted(packet.grid, self.signature.parameters)
        if allocates:
            return self._adapted(packet.default, self.signature.inputs)
        op = packet.out if self.signature.outputs and self.signature.op_allocates else packet.default
        return self._adapted(op, self.signature.parameters)

    def _adapted(self, op: Any, parameters: Sequence[Parameter]) -> Callable[..., Any]:
        """An overload as a function of one positional argument for each of `parameters`."""
        positional = take_positional(op, parameters)
        return raise_assertions(positional) if self.signature.asserts else positional

    @property
    def op(self) -> Any:
        """The allocating overload, for the best device here."""
        packet = self.packet(devices.best().value)
        return packet.default if self.signature.size is not None else packet.grid

    def packet(self, device: str) -> Any:
        """The op's overloads for a device, built or loaded at the first use."""
        if device not in self._packets:
            texts = self.translation.artifacts(TargetName(device))
            namespace = getattr(torch.ops, load(texts, fma=self.fma, source=self._source))
            self._packets[device] = getattr(namespace, self.signature.op)
        return self._packets[device]

    def _source(self) -> SourceFile:
        """The Python, for a compiler's messages. A notebook cell has no file, but `linecache` has its lines."""
        import linecache

        name = self.translation.python_file
        return SourceFile(name, "".join(linecache.getlines(name)))

    def result(self, values: Mapping[str, Any]) -> Any:
        """What a call returns: None without outputs, a single output itself, else a tuple in parameter order."""
        outputs = tuple(values[p.name] for p in self.signature.outputs)
        return outputs[0] if len(outputs) == 1 else outputs or None


def _list(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
