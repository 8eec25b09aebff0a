"""Call a kernel: find the launcher of a call's form, or bind the arguments, choose the device and run the code.

In: the positional and keyword arguments of a call. Out: the outputs. The first call with arguments of certain types
binds and checks them and leaves a launcher; later calls with the same types go straight to it.

Compiled code takes plain tensors outside of autograd. Where a tensor requires grad or is of a subclass, and where a
mode, a tracer or a transform is active, the call goes through the op `py2cu::…` (`definition.py`) instead.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol

import torch
from torch.autograd.graph import increment_version

from py2cu.call.argument_checks import check_arguments
from py2cu.call.launchers.launcher import LaunchFunction, Misfit, Order, has_device
from py2cu.call.layout import Form, Launch, Values, allocate_outputs, call_op, passed
from py2cu.call.native import Native
from py2cu.call.torch_state import are_plain_types, is_plain, is_watched, require_writable
from py2cu.ir.abi.launch import REFUSED, has_launched, mark_launched
from py2cu.ir.abi.schemas import ALLOCATES, ON_GRID
from py2cu.ir.abi.signature import Signature
from py2cu.source import SourceFile

if TYPE_CHECKING:
    from py2cu.call.definition import Operator
    from py2cu.call.gradients import BackwardCall

Types = tuple[object, ...]
Key = Types | int


def argument_types(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Types:
    """The key of a launcher: types and names decide how a call is read."""
    return (*map(type, args), *kwargs, *map(type, kwargs.values())) if kwargs else tuple(map(type, args))


class Differentiated(Protocol):
    """What is known here of a backward `Kernel`."""

    def _as_backward(self) -> BackwardCall: ...


class KernelCall:
    """Calls of one translated kernel.

    `backwards` are the kernels and host functions attached as backwards. A launcher takes the arguments of its form of
    call by position, keywords last; that of an explicit launch takes the extents of grid and block before them. Where
    all parameters are arrays, the number of arguments and the keywords say how a call is read.
    """

    def __init__(self, native: Native, backwards: Sequence[Differentiated] = ()) -> None:
        self.native = native
        self._backwards = backwards
        self._operator: Operator | None = None
        self._operators: list[Any] = []  # of the backwards
        self._backward_kernels: list[KernelCall] = []  # the backwards without host functions
        self.signature: Signature = native.signature
        self.layout = native.layout
        self.is_of_arrays = all(p.is_array and not p.may_be_none for p in self.signature.parameters)
        self.launchers: dict[Key, LaunchFunction] = {}
        self.grid_launchers: dict[Key, LaunchFunction] = {}
        self._by_device: dict[tuple[bool, Key], dict[str, LaunchFunction]] = {}  # the same launchers
        recorder = weakref.WeakMethod(self._recorder)  # an op lives as long as its kernel: no cycle holds it
        native.recorder = lambda device, order: made(device, order) if (made := recorder()) is not None else None

    @property
    def operator(self) -> Operator:
        """The op `py2cu::…` of the kernel and its backwards, defined at its first use, and again once one of these has
        another op. It lives until another one replaces it here.
        """
        backwards = [each._as_backward() for each in self._backwards]
        are_simple = backwards == self._backward_kernels and not any(each._backwards for each in self._backward_kernels)
        if self._operator is not None and are_simple:
            return self._operator  # a kernel without backwards keeps its own
        operators = [each.operator for each in backwards]
        if self._operator is None or operators != self._operators:  # rule: operator-renewed
            from py2cu.call.definition import Definition, operator_of

            define = partial(Definition, native=self.native, backwards=backwards)
            self._operator = operator_of(self.signature.op, self.native.digest, backwards, define)
            self._operators = operators
        self._backward_kernels = [each for each in backwards if isinstance(each, KernelCall)]
        return self._operator

    def source(self) -> SourceFile:
        """The file of the Python."""
        return self.native.source()

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the kernel, and return the outputs.

        Raises:
            TypeError, RuntimeError: an argument that the kernel does not accept.
        """
        launcher = self.launchers.get(self._key(args, kwargs))
        if launcher is not None:
            try:
                return launcher(*args, *kwargs.values())
            except REFUSED as error:
                if has_launched(error):
                    raise  # if not, the checks below raise an error that names the argument
        return self.bind_and_run(args, kwargs, ())

    def launch(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], launch: Launch, extents: tuple[int, ...] | None
    ) -> None:
        """Launch the kernel on a grid; `extents` are those of grid and block, None if they are impossible.

        Raises:
            TypeError, RuntimeError: an argument that the kernel does not accept, or an impossible grid or block.
        """
        launcher = self.grid_launchers.get(argument_types(args, kwargs))
        if launcher is not None and extents is not None:
            try:
                launcher(*extents, *args, *kwargs.values())
            except REFUSED:
                pass  # nothing was launched, as above
            else:
                return
        self.bind_and_run(args, kwargs, launch, extents)

    def launcher_on_grid(self, values: Sequence[Any], *, of_call: bool) -> LaunchFunction | None:
        """What launches arguments of the types of `values`, one for each parameter, behind six extents.

        It raises an error of `REFUSED`, and launches nothing, where the arguments do not fit. A launch `of_call` does
        so too where a mode, a transform or autograd has to see it. None before the first launch with these types.
        """
        launcher = self.grid_launchers.get((*map(type, values),))
        if launcher is None or of_call:
            return launcher
        device = next(value.device.type for value in values if isinstance(value, torch.Tensor))
        names = tuple(p.name for p in self.signature.parameters)
        return self.native.launcher(device, Order(names, on_grid=True, of_call=False))

    def bind_and_run(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], launch: Launch, extents: tuple[int, ...] | None = ()
    ) -> Any:
        """Bind and check the arguments, and launch by a launcher that is kept for later calls with the same types.

        What that refuses although the checks accept it, such as an impossible grid, is told by the code below torch's
        dispatcher.
        """
        types = argument_types(args, kwargs)
        form, values = self.layout.bind(args, kwargs, on_grid=bool(launch))
        self.layout.require_launch(form)
        if not (are_plain_types(types) and is_plain(values.values())) or is_watched(values.values()):
            return self._through_op(form, (*args, *kwargs.values()), values, launch)
        device = check_arguments(self.signature, values, on_grid=bool(launch))
        key = types if launch else self._key(args, kwargs)
        launcher = self._kept(device, key, form.names, launch)
        if launcher is not None and extents is not None:
            try:
                return launcher(*extents, *args, *kwargs.values())
            except REFUSED as error:
                if has_launched(error):
                    raise
        if form.missing:
            values = allocate_outputs(self.signature, values)
        written = {p.name: values[p.name] for p in self.signature.written if p.name in values}
        require_writable(self.signature.name, written)
        increment_version(written.values())  # rule: version-written
        result = self.native.run(device, values, launch)
        return result if form.allocated or launch else self.result(values)

    def _key(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Key:
        """The key of the launcher of a call: types and names of arguments, of arrays alone their number and names."""
        if not self.is_of_arrays:
            return argument_types(args, kwargs)
        return (len(args), *kwargs) if kwargs else len(args)

    def _kept(self, device: str, key: Key, names: tuple[str, ...], launch: Launch) -> LaunchFunction | None:
        """The launcher of a form, kept for later calls; None if a device does not follow from its arguments."""
        if self.native.files or not has_device(self.signature, names):
            return None
        launchers = self.grid_launchers if launch else self.launchers
        order = Order(names, on_grid=bool(launch), of_call=True, records=True)
        by_device = self._by_device.setdefault((bool(launch), key), {})
        by_device[device] = self.native.launcher(device, order)
        launchers[key] = by_device[device] if len(by_device) == 1 else _either(*by_device.values())
        return by_device[device]

    def _recorder(self, device: str, order: Order) -> LaunchFunction | None:
        """The launcher of calls that autograd records; None for forms whose arguments the operator unpacks."""
        signature, names = self.signature, order.names
        given = [p for p in signature.outputs if p.name in names]
        if order.on_grid or not {*names} <= {p.name for p in signature.parameters}:
            return None
        if given and len(given) < len(signature.outputs):
            return None
        launch = self.native.launcher(device, replace(order, of_call=False, records=False))
        left_out = [source for source in self.layout.sources(names) if source[1] is None]
        defaults = {name: default for name, _, _, default, _ in left_out if default is not None}
        is_measured = any(array is not None for *_, array in left_out)
        may_write = [p.name for p in signature.written if p.name in names]
        is_optional = any(p.may_be_none or signature.is_optional(p) for p in signature.parameters if p.name in names)

        this = weakref.ref(self)

        def record(*values: Any) -> Any:
            if (call := this()) is None:
                raise Misfit  # another thread has redefined the kernel
            passed = dict(zip(names, values, strict=True))
            if is_optional:
                passed = {name: value for name, value in passed.items() if value is not None}
            if is_measured:
                passed = call.layout.complete(passed)
            elif defaults:
                passed = {**defaults, **passed}
            written = tuple([name for name in may_write if name in passed]) if may_write else ()
            is_launched = False

            def run() -> Any:
                nonlocal is_launched
                made = launch(*values)
                is_launched = True
                return made

            try:
                made = call.operator.definition.gradients.record(run, passed, written)
            except REFUSED as error:
                if is_launched:
                    mark_launched(error)
                raise
            return call.result(passed) if given else made

        return record

    def _through_op(self, form: Form, arguments: tuple[Any, ...], values: Values, launch: Launch) -> Any:
        """Call the op `py2cu::…`."""
        operator = self.operator
        overload = operator.definition.functions[form.overload]
        given = passed(form.sources, arguments)
        if form.missing:
            values = allocate_outputs(self.signature, values)
            given |= {name: values[name] for name in form.missing}
        overload.prepare_sharding(values)  # its autograd is off in inference mode
        result = call_op(operator[form.overload], overload.arguments, given, launch)
        return result if form.allocated or launch else self.result(values)

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


def _either(one: LaunchFunction, other: LaunchFunction) -> LaunchFunction:
    """The first of two launchers, for two devices, that takes the arguments."""

    def run(*values: Any) -> Any:
        try:
            return one(*values)
        except REFUSED as error:
            if has_launched(error):
                raise
            return other(*values)

    return run
