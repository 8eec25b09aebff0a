"""Define a kernel's torch operator `py2cu::<name>_<digest>`: schema, fake implementation, autograd, version counters.

In: the compiled `Instances` of a kernel. Out: an `Operator`, which holds the overloads. The name is the same in
every process for the same text, and another after an edit, since `torch.compile` caches results by names of operators.
Nothing is built here: the implementations for the devices build the library at their first call.

A definition lives as long as the kernel or one of its overloads: torch crashes where an overload without a definition
is called. Therefore `torch.ops.py2cu`, which caches overloads, drops those whose kernel is gone, and the functions that
torch's dispatcher holds refer to the overloads weakly.
"""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

import torch

from py2cu.call.argument_checks import check_arguments, check_launch_gradients, refuse_tangents, require_writable
from py2cu.call.batching import run_batched
from py2cu.call.gradients import BackwardCall, Gradients
from py2cu.call.instances import Instances
from py2cu.call.launchers.launcher import LaunchFunction, Order
from py2cu.call.layout import allocate_outputs, op_arguments, returned
from py2cu.call.sharding import prepare
from py2cu.call.torch_state import are_plain_types
from py2cu.ir.abi.launch import REFUSED, has_launched
from py2cu.ir.abi.parameters import Default, Parameter
from py2cu.ir.abi.schemas import ALLOCATES, ON_GRID, SchemaStyle, schemas
from py2cu.ir.abi.signature import Signature
from py2cu.ir.types import is_complex
from py2cu.options import require_extents
from py2cu.threads import ForkSafeLock
from py2cu.translation import TargetName

NAMESPACE: Final = "py2cu"
_DEVICES: Final = frozenset(TargetName)
_REFUSED: Final = object()


class Operator:
    """Keeps the op of a kernel or of a host function alive, and listed in `torch.ops.py2cu`."""

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
    if backwards:  # the op does what it does with its gradients, and theirs
        parts = [digest, *(backward.operator.name for backward in backwards)]
        digest = hashlib.sha256("\n".join(parts).encode()).hexdigest()
    name = f"{op}_{digest[:16]}"
    with _DEFINING:
        operator = _operators.get(name)
        if operator is None:
            definition = _definitions.get(name) or define(name)
            operator = Operator(definition)
            _operators[name], _definitions[name] = operator, definition
        return operator


class Definition:
    """The op `py2cu::name`, defined as long as this object lives."""

    def __init__(self, name: str, instances: Instances, gradients: Gradients) -> None:
        self.name = name
        self.instances = instances
        self.gradients = gradients
        self.launchers: dict[tuple[object, ...], LaunchFunction] = {}
        """By overload, device, `of_call`, and whether each argument that may be left out is."""
        library: Any = torch.library.Library(NAMESPACE, "FRAGMENT")  # type: ignore[no-untyped-call]
        self.library = library
        texts = schemas(name, instances.signature, style_of(instances.signature))
        for text in texts.values():
            library.define(text, tags=(torch.Tag.pt2_compliant_tag, torch.Tag.needs_exact_strides))
        self.packet = getattr(torch.ops.py2cu, name)
        self.overloads = {overload: getattr(self.packet, overload) for overload in texts}
        self.functions = {overload: _Overload(self, op) for overload, op in self.overloads.items()}
        for overload, functions in self.functions.items():
            self.overloads[overload].definition = self
            full_name = name if overload == ALLOCATES else f"{name}.{overload}"
            for device in TargetName:
                library.impl(full_name, partial(functions.run, device), device.upper())
            torch.library.register_fake(f"{NAMESPACE}::{full_name}", functions.fake, lib=library)
            library.impl(full_name, functions.batched, "FuncTorchBatched")
            library.impl(full_name, functions.autograd, "Autograd", with_keyset=True)
            if functions.written:
                library.impl(full_name, functions.bump_versions, "ADInplaceOrView", with_keyset=True)


class _Overload:
    """The functions of one overload, as torch's dispatcher calls them.

    The dispatcher never drops them, so that they hold the op and its definition weakly.
    """

    def __init__(self, definition: Definition, op: Any) -> None:
        signature = self.signature = definition.instances.signature
        self.is_launch = op._overloadname == ON_GRID
        self._definition: Callable[[], Any] = weakref.ref(definition)
        self.op: Callable[[], Any] = weakref.ref(op)
        self._name, self._returns = op._overloadname, bool(op._schema.returns)
        self._parameters = signature.inputs if self._returns else signature.parameters
        self.arguments = op_arguments(op, self._parameters)
        arrays, pairs = {p.name for p in signature.arrays}, zip(op._schema.arguments, self.arguments, strict=False)
        self.arrays = {each.name: name for each, (_, name, _) in pairs if name in arrays}  # by argument
        self.written = [(place, p.name) for place, p in enumerate(self._parameters) if p in signature.written]
        self._places = {each.name: place for place, each in enumerate(op._schema.arguments)}
        self._defaults = [each.default_value if each.has_default_value() else None for each in op._schema.arguments]
        self._complex = {place: p.default for place, p in enumerate(self._parameters) if is_complex(p.type)}
        self._omissible = [place for place, p in enumerate(self._parameters) if p.may_be_none or not p.is_array]
        # The array whose device is the call's; None if calls do not launch at once.
        always = (place for place, p in enumerate(self._parameters) if p.is_array and not p.may_be_none)
        self._first = None if definition.instances.files else next(always, None)

    def in_order(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Sequence[Any]:
        """The arguments by parameter, and then the grid and the block of a launch, as launchers take them.

        The dispatcher leaves out arguments that are equal to their defaults.
        """
        if not kwargs and not self._complex and len(args) == len(self._defaults):
            return args
        values = [*args, *self._defaults[len(args) :]]
        for name, value in kwargs.items():
            values[self._places[name]] = value
        for place, default in self._complex.items():
            real, imag = values[place : place + 2]
            values[place : place + 2] = [_complex(real, imag, default)]
        return values

    def values(self, in_order: Sequence[Any]) -> dict[str, Any]:
        """The values by parameter, complete, and without None."""
        passed = zip(self._parameters, in_order, strict=False)
        given = {p.name: value for p, value in passed if value is not None}  # `in` would compare elements
        complete: dict[str, Any] = self._definition().instances.layout.complete(given)
        return complete

    def prepare_sharding(self, values: Mapping[str, Any]) -> None:
        """Tell torch how to shard the op, before it first meets a DTensor."""
        prepare(self.op(), self.signature, values, self.arrays)

    def run(self, device: TargetName, /, *args: Any, **kwargs: Any) -> Any:
        in_order = self.in_order(args, kwargs)
        if (result := self._launched(device, in_order)) is not _REFUSED:
            return result
        launch = (in_order[-2], in_order[-1]) if self.is_launch else ()
        return self._definition().instances.run(device, self.values(in_order), launch)  # names the argument

    def _launched(self, device: str, in_order: Sequence[Any], *, of_call: bool = False) -> Any:
        """What the launcher of the op's arguments returns; `_REFUSED` if it has launched nothing.

        `of_call`: it also checks for modes and transforms, records the call for autograd, and bumps version counters.
        """
        definition = self._definition()
        key = (self._name, device, of_call, *[in_order[place] is None for place in self._omissible])
        if (launcher := definition.launchers.get(key)) is None:
            names = [p.name for p in self._parameters]
            values = in_order[: len(names)]
            order = Order.of(self.signature, names, values, on_grid=self.is_launch, of_call=of_call)
            gradients = definition.gradients
            launcher = definition.instances.launcher(device, order, (lambda: gradients) if of_call else None)
            definition.launchers[key] = launcher
        try:
            if self.is_launch:
                *in_order, grid, block = in_order
                in_order = (*require_extents(self.signature.name, grid, block), *in_order)
            return launcher(*in_order)
        except REFUSED as error:
            if has_launched(error):
                raise
            return _REFUSED

    def fake(self, *args: Any, **kwargs: Any) -> Any:
        """The outputs without their elements; checks all arguments but their memory."""
        values = self.values(self.in_order(args, kwargs))
        check_arguments(self.signature, values, has_memory=False)  # rule: traced-arguments
        missing = [p.name for p in self.signature.outputs if p.name not in values]
        complete = allocate_outputs(self.signature, values)
        return returned(tuple(complete[name] for name in missing))

    def batched(self, *args: Any, **kwargs: Any) -> Any:
        return run_batched(self.signature, self.arrays, self.op(), args, kwargs)

    def bump_versions(self, keyset: Any, *args: Any, **kwargs: Any) -> Any:
        """Tell autograd that the arrays which the kernel writes change."""
        in_order = self.in_order(args, kwargs)
        written = {name: array for place, name in self.written if (array := in_order[place]) is not None}
        require_writable(self.signature.name, written)
        torch.autograd.graph.increment_version(written.values())  # rule: version-written
        return self.op().redispatch(keyset & torch._C._after_ADInplaceOrView_keyset, *args, **kwargs)

    def autograd(self, keyset: Any, *args: Any, **kwargs: Any) -> Any:
        """Launch at once if nothing but autograd has to see the call; else run the op below autograd.

        The call is recorded if an argument requires grad.
        """
        given = (*args, *kwargs.values()) if kwargs else args
        in_order = self.in_order(args, kwargs)
        first = None if self._first is None else in_order[self._first]
        if first is not None and are_plain_types(tuple(map(type, given))):
            device = first.device.type
            result = self._launched(device, in_order, of_call=True) if device in _DEVICES else _REFUSED
            if result is not _REFUSED:
                return result if self._returns else None

        def run(keyset_below: Any) -> Any:
            with torch._C._AutoDispatchBelowAutograd():
                return self.op().redispatch(keyset & keyset_below, *args, **kwargs)

        values = self.values(in_order)
        self.prepare_sharding(values)
        refuse_tangents(self.signature.name, values)
        if not (torch.is_grad_enabled() and torch._C._any_requires_grad(*given)):
            return run(torch._C._after_autograd_keyset)
        if self.is_launch:
            check_launch_gradients(self.signature, values)  # rule: autograd-launch
        run_below = partial(run, torch._C._after_ADInplaceOrView_keyset)  # `mark_dirty` bumps the versions
        return self._definition().gradients.record(run_below, values)


def _complex(real: float | None, imag: float | None, default: Default | None) -> complex:
    """A complex number of two arguments; None stands for a part of the default that schemas cannot express."""
    constant = 0j if default is None else complex(default.value)
    return complex(constant.real if real is None else real, constant.imag if imag is None else imag)


def style_of(signature: Signature) -> SchemaStyle:
    """How the op's schemas are spelled; a name that schemas cannot have is replaced."""
    measured = {dim.name for dim in signature.measured}

    def spell(parameter: Parameter) -> str:
        return parameter.name if parameter.name.isascii() else f"argument_{signature.parameters.index(parameter)}"

    return SchemaStyle(spell, "SymInt", lambda p: signature.is_derived(p) or p.name in measured)
