"""Call a kernel: bind the arguments, choose the device, and run the compiled code.

In: the positional and keyword arguments of a call. Out: the outputs. The first call with arguments of certain types
binds and checks them and leaves a `CallPlan`; later calls with the same types go straight to the compiled code, whose
C++ checks the tensors.

Compiled code takes plain tensors outside of autograd. Where a tensor requires grad or is of a subclass, and where a
mode, a tracer or a transform is active, the call goes through the op `py2cu::…` (`definition.py`) instead.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from py2cu.call.bind import BoundArguments
from py2cu.call.definition import Operator
from py2cu.call.native import REFUSED, Launch, Native
from py2cu.call.op_calls import OpCall, call_op, op_call_of
from py2cu.call.outputs import allocate_outputs
from py2cu.call.torch_state import are_plain_types, has_legacy_batch, increment_versions, is_plain, require_writable
from py2cu.ir.abi.parameters import Parameter, Role
from py2cu.ir.abi.schemas import ALLOCATES, ON_GRID
from py2cu.ir.abi.signature import Dim, Signature
from py2cu.ir.types import ArrayType
from py2cu.source import SourceFile
from py2cu.translation import TargetName


@dataclass(slots=True)
class CallPlan:
    """How calls with arguments of certain types reach the compiled code.

    `sources` is, for each argument of the op, the position or the keyword of the call's argument. If the positional
    arguments come first and in order, `trailing` names the rest, else it is None; `is_complete` is true if the call's
    arguments are those of the op, in order. `defaults` are those of numbers that such calls leave out, `measured` are
    integers with the position or the keyword of the array that they are taken from. `device_argument` is the position
    of an array, whose device picks the op of `ops`: that for the CPU, and that for CUDA. `pick_written` returns the
    arrays that the kernel writes and the caller passed. `pick_outputs` returns the outputs that the caller passed, if
    the op allocates none.
    """

    sources: tuple[int | str, ...]
    trailing: tuple[str, ...] | None
    defaults: dict[str, Any]
    measured: tuple[tuple[Dim, ArrayType, int | str], ...]
    device_argument: int
    pick_written: Callable[[Sequence[Any]], Sequence[torch.Tensor]] | None
    pick_outputs: Callable[[Sequence[Any]], Any] | None
    is_complete: bool
    ops: list[Callable[..., Any] | None] = field(default_factory=lambda: [None, None])

    def gather(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, ...]:
        """The arguments of the op, for a call that does not pass all of them in order."""
        named = {**self.defaults, **kwargs} if self.defaults else kwargs
        if self.measured:  # rule: extent-measured
            named = {**named, **self.measure(args, kwargs)}
        if self.trailing is not None:
            return (*args, *map(named.get, self.trailing))
        return tuple(args[at] if isinstance(at, int) else named.get(at) for at in self.sources)

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
    """Calls of one translated kernel.

    `operator` returns the op `py2cu::…`, which the instances of a kernel with template arguments share.
    """

    def __init__(self, native: Native, operator: Callable[[], Operator]) -> None:
        self.native = native
        self.signature: Signature = native.signature
        self.binder = native.binder
        self._find_operator = operator
        self._plans: dict[tuple[object, ...], CallPlan] = {}
        self._launch_plans: dict[tuple[object, ...], CallPlan] = {}
        self._op_calls: dict[tuple[object, ...], OpCall] = {}

    @property
    def operator(self) -> Operator:
        """The op `py2cu::…` of the kernel and its backward kernels, defined at its first use."""
        return self._find_operator()

    def source(self) -> SourceFile:
        """The file of the Python."""
        return self.native.source()

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any], launch: Launch = ()) -> Any:
        """Call the kernel, or launch it on `launch`; returns the outputs of a call.

        Raises:
            TypeError, RuntimeError: an argument that the kernel does not accept.
        """
        # `argument_types`, inlined: calling it takes as long as its work.
        # rule: plan-by-types
        key = (*map(type, args), *kwargs, *map(type, kwargs.values())) if kwargs else tuple(map(type, args))
        plan = self._launch_plans.get(key) if launch else self._plans.get(key)
        if plan is not None:
            values = ((*args, *kwargs.values()) if kwargs else args) if plan.is_complete else plan.gather(args, kwargs)
            op = plan.ops[values[plan.device_argument].is_cuda]
            if (
                op is not None
                and is_plain(values)
                and (plan.pick_written is None or increment_versions(plan.pick_written(values)))  # rule: version-counts
            ):
                try:
                    result = op(*values, *launch) if launch else op(*values)
                except REFUSED:
                    pass  # nothing was launched: the checks below raise an error that names the argument
                else:
                    return result if plan.pick_outputs is None else plan.pick_outputs(values)
        return self._run_bound(args, kwargs, launch)

    def prepared(self, types: tuple[object, ...], launch: Launch) -> Callable[[Sequence[Any]], bool] | None:
        """A function that launches plain arguments of these types, in the order of the parameters, on `launch`.

        It returns False, and launches nothing, where a mode, a transform or autograd has to see the call. The result is
        None before the first launch with these types, and where a launch leaves arguments out.
        """
        plan = self._launch_plans.get(types)
        if plan is None or not plan.is_complete:
            return None
        ops, device_argument, pick_written = plan.ops, plan.device_argument, plan.pick_written

        def run(values: Sequence[Any]) -> bool:
            op = ops[values[device_argument].is_cuda]
            if (
                op is None
                or not is_plain(values)
                or not (pick_written is None or increment_versions(pick_written(values)))
            ):
                return False
            op(*values, *launch)
            return True

        return run

    def _run_bound(self, args: tuple[Any, ...], kwargs: dict[str, Any], launch: Launch) -> Any:
        """Bind and check the arguments, run the code, and keep a plan for later calls with the same types."""
        if self.binder.may_pass_tuples(args, kwargs):
            return self.call((), self.binder.flatten(args, kwargs, in_order=bool(launch)), launch)
        bound = self.binder.bind_in_order(args, kwargs) if launch else self.binder.bind(args, kwargs)
        values = bound.values
        missing = [p.name for p in self.signature.outputs if p.name not in values]
        self.binder.require_launch(missing, on_grid=bool(launch))
        key = argument_types(args, kwargs)
        if not (are_plain_types(key) and is_plain(values.values())) or has_legacy_batch(values.values()):
            return self._through_op(bound, args, kwargs, launch)
        device = self.binder.accept(values, on_grid=bool(launch))
        allocates = self.signature.are_allocated(values)
        if allocates or not missing:
            plans = self._launch_plans if launch else self._plans
            if key not in plans:
                parameters = self.signature.inputs if allocates else self.signature.parameters
                plans[key] = self._plan(bound, args, kwargs, parameters, returns=not (allocates or launch))
            overload = self.native.overload(device, allocates=allocates, on_grid=bool(launch))
            plans[key].ops[device == TargetName.CUDA] = overload
        else:
            values = allocate_outputs(self.signature, values)
        written = {p.name: values[p.name] for p in self.signature.written if p.name in values}
        require_writable(self.signature.name, written)
        increment_versions(written.values())  # rule: version-written
        result = self.native.run(device, values, launch)
        return result if allocates or launch else self.result(values)

    def _through_op(self, bound: BoundArguments, args: tuple[Any, ...], kwargs: dict[str, Any], launch: Launch) -> Any:
        """Call the op `py2cu::…`."""
        op = self.operator
        key = (
            op.name,
            tuple(map(type, args)),
            tuple((name, type(value)) for name, value in kwargs.items()),
            bool(launch),
        )
        if (op_call := self._op_calls.get(key)) is None:
            op_call = self._op_calls[key] = op_call_of(op, key[1], dict(key[2]), on_grid=bool(launch))
        if op_call.missing:
            values = allocate_outputs(self.signature, bound.values)
            kwargs = kwargs | {name: values[name] for name in op_call.missing}
        op.definition.functions[op_call.overload].prepare_sharding(
            bound.values
        )  # its autograd is off in inference mode
        return call_op(op_call, args, kwargs, launch)

    def _plan(
        self,
        bound: BoundArguments,
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
        written = [
            place for place, p in enumerate(op_parameters) if p.role is not Role.INPUT and p.name in bound.values
        ]
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
            pick_written=_sequence_getter(written) if written else None,
            pick_outputs=operator.itemgetter(*outputs) if outputs and returns else None,
            is_complete=in_order and sources[len(args) :] == tuple(kwargs),
        )

    def run(self, device: str, values: Mapping[str, Any]) -> None:
        """Run the code for `device` on arguments that include every array."""
        self.native.run(device, values)

    @property
    def op(self) -> Any:
        """The allocating overload; the explicit launch, if the number of threads is unknown."""
        return self.operator[ALLOCATES if self.signature.size is not None else ON_GRID]

    def result(self, values: Mapping[str, Any]) -> Any:
        """What a call returns: None without outputs, a single output itself, else a tuple in parameter order."""
        outputs = tuple(values[p.name] for p in self.signature.outputs)
        return outputs[0] if len(outputs) == 1 else outputs or None


def _sequence_getter(places: Sequence[int]) -> Callable[[Sequence[Any]], Sequence[Any]]:
    """A function that picks the items at `places`, as a sequence even if there is one."""
    first, *others = places
    return operator.itemgetter(*places) if others else operator.itemgetter(slice(first, first + 1))
