"""Define a kernel's torch operator `py2cu::<name>_<digest>`: schema, fake implementation, autograd, version counters.

In: the compiled code of a kernel (`Native`). Out: an `Operator`, which holds the overloads. The name is the same in
every process for the same text, and another after an edit, since `torch.compile` caches results by names of operators.
Nothing is built here: the implementations for the devices build the library at their first call.

A definition lives as long as the kernel or one of its overloads: torch crashes where an overload without a definition
is called. Therefore `torch.ops.py2cu`, which caches overloads, drops those whose kernel is gone, and the functions that
torch's dispatcher holds refer to the overloads weakly.
"""

from __future__ import annotations

import functools
import hashlib
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

import torch
from torch.autograd import forward_ad

from py2cu.call.argument_checks import (
    check_launch_gradients,
    check_recorded,
    check_traced_arguments,
    leaf_message,
    needs_grad,
)
from py2cu.call.batching import run_batched
from py2cu.call.gradients import BackwardCall, Gradients
from py2cu.call.native import Launch, Native
from py2cu.call.outputs import allocate_outputs
from py2cu.call.sharding import have_dtensor, prepare
from py2cu.call.torch_state import are_plain_types, is_plain, require_writable
from py2cu.ir.abi.launch import REFUSED
from py2cu.ir.abi.parameters import Parameter, Role
from py2cu.ir.abi.schemas import ALLOCATES, ON_GRID, SchemaStyle, schemas
from py2cu.ir.abi.signature import Signature
from py2cu.threads import ForkSafeLock
from py2cu.translation import TargetName

NAMESPACE: Final = "py2cu"
_KEYS: Final = {TargetName.CPU: "CPU", TargetName.CUDA: "CUDA"}
_DEVICES: Final = {target.value for target in _KEYS}


class Differentiated(Protocol):
    """What is known here of a backward `Kernel`."""

    def _as_backward(self) -> BackwardCall: ...


class Operator:
    """A kernel's, or a host function's, hold on the definition of its op."""

    def __init__(self, definition: Any) -> None:
        self.definition = definition
        self.name = definition.name
        setattr(torch.ops.py2cu, self.name, definition.packet)
        weakref.finalize(self, _forget, self.name).atexit = False

    def __getitem__(self, overload: str) -> Any:
        return self.definition.overloads[overload]


def _forget(name: str) -> None:
    """Remove an op from `torch.ops.py2cu` and its list of names, each of which `torch.export` looks up."""
    namespace = torch.ops.py2cu
    vars(namespace).pop(name, None)
    namespace._dir[:] = [each for each in namespace._dir if each != name]


_operators: Final[weakref.WeakValueDictionary[str, Operator]] = weakref.WeakValueDictionary()
_definitions: Final[weakref.WeakValueDictionary[str, Any]] = weakref.WeakValueDictionary()
_DEFINING: Final = ForkSafeLock()


def operator_of(op: str, digest: str, backwards: Sequence[BackwardCall], define: Callable[[str], Any]) -> Operator:
    """The op of what is called `op` and has this digest, with its backwards; defined unless an equal one is.

    Raises:
        TranslationError: a backward does not fit.
    """
    name = f"{op}_{_digest(digest, backwards)[:16]}"
    with _DEFINING:
        operator = _operators.get(name)
        if operator is None:
            definition = _definitions.get(name) or define(name)
            operator = Operator(definition)
            _operators[name], _definitions[name] = operator, definition
        return operator


def _digest(digest: str, backwards: Sequence[BackwardCall]) -> str:
    """A hash of what the op does, its gradients and their gradients included."""
    if not backwards:
        return digest
    parts = [digest, *(backward.operator.name for backward in backwards)]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


class OperatorSource:
    """Defines the op of a kernel at its first use, and again once a backward kernel has another op."""

    def __init__(self, native: Native, backwards: Sequence[Differentiated] = ()) -> None:
        self._native = native
        self._backwards = backwards
        self._operators: list[Any] = []  # of the backwards
        self._operator: Operator | None = None

    def __call__(self) -> Operator:
        """The op; it lives until another one replaces it here."""
        # rule: operator-renewed
        if self._operator is not None and [*map(_operator_of, self._backwards)] == self._operators:
            return self._operator
        calls = [each._as_backward() for each in self._backwards]
        native = self._native
        define = functools.partial(Definition, native=native, backwards=calls)
        self._operator = operator_of(native.signature.op, native.digest, calls, define)
        self._operators = [call.operator for call in calls]
        return self._operator


def _operator_of(backward: Differentiated) -> Any:
    return backward._as_backward().operator


class Definition:
    """The op `py2cu::name`, defined as long as this object lives."""

    def __init__(self, name: str, native: Native, backwards: Sequence[BackwardCall]) -> None:
        self.name = name
        self.native = native
        self.compiled: dict[tuple[str, str, bool], Any] = {}  # launchers by overload, device and `of_call`
        self.gradients = Gradients(native.signature, backwards)
        library: Any = torch.library.Library(NAMESPACE, "FRAGMENT")  # type: ignore[no-untyped-call]
        self.library = library
        texts = schemas(name, native.signature, style_of(native.signature))
        for text in texts.values():
            self.library.define(text, tags=(torch.Tag.pt2_compliant_tag, torch.Tag.needs_exact_strides))
        self.packet = getattr(torch.ops.py2cu, name)
        self.overloads = {overload: getattr(self.packet, overload) for overload in texts}
        self.functions = {overload: _Overload(self, op) for overload, op in self.overloads.items()}
        for overload, op in self.overloads.items():
            op.definition = self
            self._implement(name if overload == ALLOCATES else f"{name}.{overload}", self.functions[overload])

    def _implement(self, name: str, overload: _Overload) -> None:
        for device, key in _KEYS.items():
            self.library.impl(name, overload.implementation(device), key)
        torch.library.register_fake(f"{NAMESPACE}::{name}", overload.fake, lib=self.library)
        self.library.impl(name, overload.batched, "FuncTorchBatched")
        self.library.impl(name, overload.autograd, "Autograd", with_keyset=True)
        if overload.written:
            self.library.impl(name, overload.bump_versions, "ADInplaceOrView", with_keyset=True)


class _Overload:
    """The functions of one overload, as torch's dispatcher calls them.

    The dispatcher never drops them, so that they hold the op and its definition weakly.
    """

    def __init__(self, definition: Definition, op: Any) -> None:
        self.signature = definition.native.signature
        self.is_launch = op._overloadname == ON_GRID
        self._definition: Callable[[], Any] = weakref.ref(definition)
        self.op: Callable[[], Any] = weakref.ref(op)
        schema = [*op._schema.arguments]
        self.names = [argument.name for argument in schema]
        self.defaults = {each.name: each.default_value for each in schema if each.has_default_value()}
        names = {*self.names}
        style = style_of(self.signature)
        spelled = ((p, style.arguments(p)) for p in self.signature.parameters)
        self.parameters = [(p, arguments) for p, arguments in spelled if names.issuperset(arguments)]
        self.arrays = {names[0]: parameter for parameter, names in self.parameters if parameter.is_array}
        self.written = [p for p in self.arrays.values() if p.role is not Role.INPUT]
        # The arguments are the arrays, by their names, none of which may be left out.
        spellings = [(name, p.name) for p, (name, *_) in self.parameters]
        self.is_simple = (
            not self.is_launch
            and spellings == [(name, name) for name in self.names]
            and all(p.is_array and not p.may_be_none for p in self.signature.parameters)
        )
        self._name = op._overloadname
        self._first = next(place for place, name in enumerate(self.names) if name in self.arrays)
        self._returns = bool(op._schema.returns)

    @property
    def native(self) -> Native:
        native: Native = self._definition().native
        return native

    def read(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> tuple[dict[str, Any], Launch]:
        """The arguments by parameter, None left out, and the grid and the block of a launch.

        The dispatcher leaves out arguments that are equal to their defaults.
        """
        if self.is_simple and not kwargs:
            return dict(zip(self.names, args, strict=True)), ()
        given = {**self.defaults, **dict(zip(self.names, args, strict=False)), **kwargs}
        values = {}
        for parameter, (name, *imaginary) in self.parameters:
            value = given[name]
            if value is not None:  # `in` would compare elements
                values[parameter.name] = complex(value, given[imaginary[0]]) if imaginary else value
        return self.native.binder.complete(values), (given["grid"], given["block"]) if self.is_launch else ()

    def prepare_sharding(self, values: Mapping[str, Any]) -> None:
        """Tell torch how to shard the op, before it first meets a DTensor."""
        if have_dtensor(values.values()):
            prepare(self.op(), self.signature, values, self.arrays)

    def implementation(self, device: TargetName) -> Callable[..., Any]:
        def run(*args: Any, **kwargs: Any) -> Any:
            if (compiled := self.compiled(device.value)) is not None:
                try:
                    return compiled(*args, **kwargs)
                except REFUSED:
                    pass  # nothing was launched: the checks below raise an error that names the argument
            values, launch = self.read(args, kwargs)
            return self.native.run(device.value, values, launch)

        return run

    def compiled(self, device: str, *, of_call: bool = False) -> Any:
        """The launcher with the same arguments, compiled if necessary; None if there is none."""
        definition, key = self._definition(), (self._name, device, of_call)
        if key not in definition.compiled:
            is_known = device in _DEVICES
            launcher = definition.native.same_overload(device, self.op(), of_call=of_call) if is_known else None
            definition.compiled[key] = launcher
        return definition.compiled[key]

    def fake(self, *args: Any, **kwargs: Any) -> Any:
        """The outputs without their elements; checks all arguments but their memory."""
        values, _ = self.read(args, kwargs)
        check_traced_arguments(self.signature, values)  # rule: traced-arguments
        missing = [p.name for p in self.signature.outputs if p.name not in values]
        complete = allocate_outputs(self.signature, values)
        outputs = tuple(complete[name] for name in missing)
        return outputs[0] if len(outputs) == 1 else outputs or None

    def batched(self, *args: Any, **kwargs: Any) -> Any:
        return run_batched(self.signature, self.arrays, self.op(), args, kwargs)

    def bump_versions(self, keyset: Any, *args: Any, **kwargs: Any) -> Any:
        """Tell autograd that the arrays which the kernel writes change."""
        written = self._written_arrays(*self.read(args, kwargs))
        require_writable(self.signature.name, written)
        torch.autograd.graph.increment_version(list(written.values()))
        return self.op().redispatch(keyset & torch._C._after_ADInplaceOrView_keyset, *args, **kwargs)

    def _written_arrays(self, values: Mapping[str, Any], _: Launch) -> dict[str, torch.Tensor]:
        return {p.name: values[p.name] for p in self.written if p.name in values}

    def autograd(self, keyset: Any, *args: Any, **kwargs: Any) -> Any:
        """Run the op below autograd, the compiled code at once if nothing else has to see the call.

        The call is recorded if an argument requires grad.
        """
        if not kwargs and are_plain_types(tuple(map(type, args))):
            array = args[self._first]
            launcher = None if array is None else self.compiled(array.device.type, of_call=True)
            if launcher is not None:
                try:
                    result = launcher(*args)
                except REFUSED:
                    pass  # nothing was launched: a mode, a transform or autograd has to see the call, or it is refused
                else:
                    return result if self._returns else None

        def run(keyset_below: Any) -> Any:
            with torch._C._AutoDispatchBelowAutograd():
                return self.op().redispatch(keyset & keyset_below, *args, **kwargs)

        def launch_or_run() -> Any:
            if is_of_plain_types and is_plain(given):
                array = next(value for value in given if isinstance(value, torch.Tensor))
                if (compiled := self.compiled(array.device.type)) is not None:
                    try:
                        return compiled(*args, **kwargs)
                    except REFUSED:
                        pass  # nothing was launched: the op raises an error that names the argument
            return run(torch._C._after_ADInplaceOrView_keyset)  # `mark_dirty` bumps the versions

        given = (*args, *kwargs.values()) if kwargs else args
        is_of_plain_types = are_plain_types(tuple(map(type, given)))
        is_recorded = torch.is_grad_enabled() and torch._C._any_requires_grad(*given)
        is_sharded = not is_of_plain_types and have_dtensor(given)
        if not is_recorded and forward_ad._current_level < 0 and not is_sharded:
            return run(torch._C._after_autograd_keyset) if self.written else launch_or_run()
        values, launch = self.read(args, kwargs)
        if is_sharded:
            self.prepare_sharding(values)
        refuse_tangents(self.signature.name, values)
        if not is_recorded:
            return run(torch._C._after_autograd_keyset)
        if self.is_launch:
            check_launch_gradients(self.signature, values)  # rule: autograd-launch
        written = tuple(self._written_arrays(values, launch)) if self.written else ()
        if written:
            check_written(self.signature, values, written)
        return self._definition().gradients.record(launch_or_run, values, written)


def check_written(signature: Signature, values: Mapping[str, Any], written: Sequence[str]) -> None:
    """Refuse arrays that a recorded call may not write.

    Raises:
        RuntimeError: there is one; the message names it.
    """
    for name in written:
        if needs_grad(values[name]):
            raise RuntimeError(f"{signature.name}: {leaf_message(name)}")
    require_writable(signature.name, {name: values[name] for name in written})
    check_recorded(signature, values)  # rule: in-place-recorded


def refuse_tangents(op: str, values: Mapping[str, Any]) -> None:
    """Refuse arrays with a tangent, which `op` would drop.

    Raises:
        RuntimeError: there is one; the message names it.
    """
    if forward_ad._current_level < 0:  # rule: gradient-forward
        return
    unpack_dual: Any = forward_ad.unpack_dual
    for name, value in values.items():
        if isinstance(value, torch.Tensor) and unpack_dual(value).tangent is not None:
            what = f"{op} has no forward-mode derivative, and `{name}` has a tangent"
            raise RuntimeError(f"{what}; use reverse mode, such as `torch.func.vjp`")


def style_of(signature: Signature) -> SchemaStyle:
    """How the op's schemas are spelled; a name that schemas cannot have is replaced."""
    places = {p.name: place for place, p in enumerate(signature.parameters)}
    measured = {dim.name for dim in signature.measured}

    def spell(parameter: Parameter) -> str:
        return parameter.name if parameter.name.isascii() else f"argument_{places[parameter.name]}"

    return SchemaStyle(spell, "SymInt", lambda p: signature.is_derived(p) or p.name in measured)
