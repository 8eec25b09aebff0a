"""Calls of a kernel: find the launcher of a call's form, or bind and check the arguments and leave a launcher.

In: the positional and keyword arguments of a call. Out: the outputs. The first call with arguments of certain types
binds and checks them; later calls with the same types go straight to the launcher.

Launchers take plain tensors, and hand calls that require grad over to autograd. Where a tensor is of a subclass, and
where a mode, a tracer or a transform is active, the call goes through the op `py2cu::…` (`definition.py`) instead.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import torch

from py2cu.call.argument_checks import check_call
from py2cu.call.instances import Instances
from py2cu.call.launchers.launcher import LaunchFunction, Misfit, Order
from py2cu.call.layout import Form, Launch, Values, allocate_outputs, call_op, outputs_of, passed
from py2cu.call.torch_state import needs_dispatcher
from py2cu.ir.abi.launch import REFUSED, has_launched
from py2cu.ir.abi.schemas import ALLOCATES, ON_GRID
from py2cu.ir.abi.signature import Signature
from py2cu.options import require_extents
from py2cu.translation import TargetName

if TYPE_CHECKING:
    from py2cu.call.definition import Operator
    from py2cu.call.gradients import Gradients
    from py2cu.call.traced import Traced

Key = tuple[object, ...] | int


class KernelCall:
    """Calls of one translated kernel.

    `backwards` are the kernels and host functions attached as backwards. A launcher takes the arguments of its form of
    call by position, keywords last; that of an explicit launch takes the extents of grid and block before them. Where
    all parameters are arrays, the number of arguments and the keywords say how a call is read.
    """

    def __init__(self, instances: Instances, backwards: Sequence[Traced] = ()) -> None:
        self.instances = instances
        self._backwards = backwards
        self._gradients: Gradients | None = None
        self._operator: Operator | None = None
        self._operators: list[Any] = []  # of the backwards
        self.signature: Signature = instances.signature
        self.layout = instances.layout
        self.source = instances.source
        self.launchers: dict[Key, LaunchFunction] = {}
        self._launchers: dict[tuple[str, Order], LaunchFunction] = {}  # the same launchers, by device

    @property
    def gradients(self) -> Gradients:
        """What records calls for autograd, with the backwards as they are now."""
        calls = [each._as_backward() for each in self._backwards]
        if self._gradients is None or calls != self._gradients.calls:  # rule: backward-renewed
            from py2cu.call.gradients import Gradients

            self._gradients = Gradients(self.signature, calls)
        return self._gradients

    @property
    def operator(self) -> Operator:
        """The op `py2cu::…` of the kernel and its backwards, defined at its first use, and again once one of these has
        another op. It lives until another one replaces it here.
        """
        gradients = self.gradients
        operators = [each.operator for each in gradients.calls]
        if self._operator is None or operators != self._operators:  # rule: operator-renewed
            from py2cu.call.definition import Definition, operator_of

            define = partial(Definition, instances=self.instances, gradients=gradients)
            self._operator = operator_of(self.signature.op, self.instances.digest, gradients.calls, define)
            self._operators = operators
        return self._operator

    @property
    def op(self) -> Any:
        """The allocating overload; the explicit launch, if the number of threads is unknown."""
        return self.operator[ALLOCATES if self.signature.size is not None else ON_GRID]

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the kernel, and return the outputs.

        Raises:
            TypeError, RuntimeError: an argument that the kernel does not accept.
        """
        if (launcher := self.launchers.get(self._key(args, kwargs))) is not None:
            try:
                return launcher(*args, *kwargs.values())
            except REFUSED as error:
                if has_launched(error):
                    raise  # if not, the checks below raise an error that names the argument
        return self.bind_and_run(args, kwargs, ())

    def launcher_on_grid(self, values: Sequence[Any], *, of_call: bool) -> LaunchFunction | None:
        """What launches arguments of the types of `values`, one for each parameter, behind six extents.

        It raises an error of `REFUSED`, and launches nothing, where the arguments do not fit. A launch `of_call` does
        so too where a mode, a transform or autograd has to see it. None before the first launch with these types.
        """
        launcher = self.launchers.get(self._key(values, {}, on_grid=True))
        if launcher is None or of_call:
            return launcher
        device = next(value.device.type for value in values if isinstance(value, torch.Tensor))
        names = tuple(p.name for p in self.signature.parameters)
        return self.instances.launcher(device, Order.of(self.signature, names, values, on_grid=True, of_call=False))

    def bind_and_run(self, args: tuple[Any, ...], kwargs: dict[str, Any], launch: Launch) -> Any:
        """Bind and check the arguments, and launch by a launcher that is kept for later calls with the same types."""
        form, values = self.layout.bind(args, kwargs, on_grid=bool(launch))
        self.layout.require_launch(form)
        names, arguments = form.names, (*args, *kwargs.values())
        through_op = partial(self._through_op, form, arguments, values, launch)
        has_arrays = bool(self.signature.arrays)  # an operator needs one, and torch has nothing to see without
        if has_arrays and (self.instances.files or needs_dispatcher(arguments)):
            return through_op()
        device = check_call(self.signature, values, on_grid=bool(launch))
        extents = require_extents(self.signature.name, *launch) if launch else ()
        names_device = any(isinstance(value, torch.Tensor) for value in arguments)
        if names_device:  # NumPy's integers become Python's
            pairs = zip(names, arguments, strict=True)
            arguments = tuple([each if each is None else values.get(name, each) for name, each in pairs])
        else:  # torch's default device
            values = allocate_outputs(self.signature, values)
            names, arguments = tuple(values), tuple(values.values())
        order = Order.of(self.signature, names, arguments, on_grid=bool(launch), of_call=has_arrays)
        if (device, order) not in self._launchers:
            gradients = partial(_gradients_of, weakref.ref(self))
            self._launchers[device, order] = self.instances.launcher(device, order, gradients)
        if names_device:
            kept = [self._launchers[each, order] for each in TargetName if (each, order) in self._launchers]
            key = self._key(args, kwargs, on_grid=bool(launch))
            self.launchers[key] = kept[0] if len(kept) == 1 else partial(_run_either, *kept)
        try:
            return self._launchers[device, order](*extents, *arguments)
        except Misfit:  # a mode or a profiler began since: the checks accepted the call
            return through_op()

    def _key(self, args: Sequence[Any], kwargs: Mapping[str, Any], *, on_grid: bool = False) -> Key:
        """The key of a launcher: types and names decide how a call is read, of arrays alone their number and names.

        That of an explicit launch begins with None.
        """
        if self.layout.is_of_arrays and not on_grid:
            return (len(args), *kwargs) if kwargs else len(args)
        return (*[None] * on_grid, *map(type, args), *kwargs, *map(type, kwargs.values()))

    def _through_op(self, form: Form, arguments: tuple[Any, ...], values: Values, launch: Launch) -> Any:
        operator = self.operator
        overload = operator.definition.functions[form.overload]
        given = passed(form.sources, arguments)
        if form.missing:
            values = allocate_outputs(self.signature, values)
            given |= {name: values[name] for name in form.missing}
        overload.prepare_sharding(values)  # its autograd is off in inference mode
        result = call_op(operator[form.overload], overload.arguments, given, launch)
        return result if form.allocated or launch else outputs_of(self.signature, values)


def _gradients_of(reference: weakref.ref[KernelCall]) -> Gradients:
    """What records calls. Launchers do not hold the kernel's call, so that it is freed with its last reference."""
    if (call := reference()) is None:
        raise Misfit  # another thread has redefined the kernel
    return call.gradients


def _run_either(one: LaunchFunction, other: LaunchFunction, *values: Any) -> Any:
    """Run the first of two launchers, for two devices, that takes the arguments."""
    try:
        return one(*values)
    except REFUSED as error:
        if has_launched(error):
            raise
        return other(*values)
