"""A live host function in autograd: its operator `py2cu::NAME_digest`, where it has a backward, and its call as one.

The operator runs what a call runs, the C++ or, until that is built, the Python. Gradients come from the functions under
`@f.backward`, as those of a kernel do. The operators inside are not recorded.
"""

from __future__ import annotations

import hashlib
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

import torch

from py2cu.call.argument_checks import refuse_tangents
from py2cu.call.definition import NAMESPACE, Operator, operator_of
from py2cu.call.gradients import BackwardCall, Gradients
from py2cu.call.torch_state import are_plain_types, is_plain
from py2cu.diagnostics import Diagnostic, Severity, TranslationError
from py2cu.function_text import source_file
from py2cu.hosts.gradients import facts, obstacles
from py2cu.hosts.live.translate import HostTranslation
from py2cu.hosts.model.signatures import HostSignature
from py2cu.source import SourceFile

_TAGS: Final = (torch.Tag.pt2_compliant_tag,)


class Runner(Protocol):
    """What is known here of a `Host`."""

    _function: Any

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any: ...


@dataclass(frozen=True, slots=True)
class Named:
    """In place of the operator, for a host function without a backward: a name that changes with what it does."""

    name: str


class HostCall:
    """What autograd knows of a host function.

    Raises:
        TranslationError: it has a backward, and cannot have one.
    """

    def __init__(self, host: Runner, translation: HostTranslation, backwards: Sequence[BackwardCall]) -> None:
        self.host, self.translation = host, translation
        self.signature = facts(translation.signature)
        self._arguments = {p.name: p.argument for p in translation.signature.parameters}
        self.operator: Operator | Named
        kernels = [f"{name} {each._prepare().operator.name}" for name, each in sorted(translation.kernels.items())]
        digest = hashlib.sha256("\n".join([*translation.text.code, *kernels]).encode()).hexdigest()
        if not backwards:
            self.operator = Named(f"{self.signature.op}_{digest[:16]}")
            return
        refuse_obstacles(translation.signature, self.source(), is_backward=False)
        self.operator = operator_of(
            self.signature.op, digest, backwards, lambda name: _Definition(name, self, backwards)
        )

    def as_backward(self) -> HostCall:
        """The same, checked as a backward.

        Raises:
            TranslationError: it is none.
        """
        refuse_obstacles(self.translation.signature, self.source(), is_backward=True)
        return self

    @property
    def op(self) -> Any:
        """The overload that is called."""
        return self.operator[""] if isinstance(self.operator, Operator) else None

    def source(self) -> SourceFile:
        """The file of the Python."""
        return source_file(self.host._function)

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the host function."""
        return self.host(*args, **kwargs)

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run it on checked arguments: through the operator where autograd, a mode or a transform has to see it."""
        values = (*args, *kwargs.values())
        if are_plain_types(tuple(map(type, values))) and is_plain(values):
            return self.host.run(args, kwargs)
        result = self.op(*args, **{self._arguments[name]: value for name, value in kwargs.items()})
        return tuple(result) if isinstance(result, list) else result


def refuse_obstacles(signature: HostSignature, source: SourceFile, *, is_backward: bool) -> None:
    """Refuse a host function that cannot have a backward, or be one.

    Raises:
        TranslationError: it cannot.
    """
    found = obstacles(signature, is_backward=is_backward)
    if errors := [Diagnostic(Severity.ERROR, "P412", each.message, each.span, source, each.hint) for each in found]:
        raise TranslationError(errors)


class _Definition:
    """The op `py2cu::name` of a host function with a backward, defined as long as this object lives."""

    def __init__(self, name: str, call: HostCall, backwards: Sequence[BackwardCall]) -> None:
        self.name, self.call = name, call
        self.gradients = Gradients(call.signature, backwards)
        signature = call.translation.signature
        library: Any = torch.library.Library(NAMESPACE, "FRAGMENT")  # type: ignore[no-untyped-call]
        self.library = library
        library.define(signature.schema.replace(signature.cpp_name, name, 1), tags=_TAGS)
        self.packet = getattr(torch.ops.py2cu, name)
        self.op = self.packet.default
        self.overloads = {"": self.op}
        self.op.definition = self
        arguments = self.op._schema.arguments
        self._defaults = {each.name: each.default_value for each in arguments if each.has_default_value()}
        self._names = {each.name: p.name for each, p in zip(arguments, signature.parameters, strict=True)}
        library.impl(name, _weakly(self._run), "CompositeExplicitAutograd")
        torch.library.register_fake(f"{NAMESPACE}::{name}", _weakly(self._fake), lib=library)
        library.impl(name, _weakly(self._autograd), "Autograd", with_keyset=True)

    def _read(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments by parameter; the dispatcher leaves out those that are equal to their defaults."""
        given = {**self._defaults, **dict(zip(self._names, args, strict=False)), **kwargs}
        return {parameter: given[name] for name, parameter in self._names.items()}

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        return _for_dispatcher(self.call.host.run((), self._read(args, kwargs)))

    def _fake(self, *args: Any, **kwargs: Any) -> Any:
        return _for_dispatcher(self.call.host._function(**self._read(args, kwargs)))

    def _autograd(self, keyset: Any, *args: Any, **kwargs: Any) -> Any:
        """Run the op below autograd; record the call if an argument requires grad."""

        def run() -> Any:
            with torch._C._AutoDispatchBelowAutograd():
                result = self.op.redispatch(keyset & torch._C._after_autograd_keyset, *args, **kwargs)
            return tuple(result) if isinstance(result, list) else result

        values = self._read(args, kwargs)
        refuse_tangents(self.call.signature.name, values)
        requires_grad = any(isinstance(value, torch.Tensor) and value.requires_grad for value in values.values())
        is_recorded = requires_grad and torch.is_grad_enabled()
        return _for_dispatcher(self.gradients.record(run, values) if is_recorded else run())


def _for_dispatcher(result: Any) -> Any:
    """The dispatcher takes several tensors as a list."""
    return list(result) if isinstance(result, tuple) else result


def _weakly(method: Callable[..., Any]) -> Callable[..., Any]:
    """`method` for the dispatcher, which never drops a function: it does not keep the object."""
    reference: Callable[[], Any] = weakref.WeakMethod(method)
    return lambda *args, **kwargs: reference()(*args, **kwargs)
