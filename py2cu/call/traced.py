"""What Dynamo traces in place of the methods of `Kernel` and `Host`, so that `torch.compile` sees one call of an op.

Dynamo reads two attributes of functions, and nothing else has to know that it is at work: a function is replaced by its
`_torchdynamo_inline`, and one that is `_dynamo_marked_constant` (`torch.compiler.assume_constant_result`) is called
while Dynamo traces. A compiled function is compiled again for another kernel, and once another backward is attached.
Importing this module does not import torch, which Dynamo's users have imported.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar

from py2cu.ir.abi.tuples import Tuples, flatten
from py2cu.options import Extent

if TYPE_CHECKING:
    from py2cu.call.native import Launch
    from py2cu.call.op_calls import PlainOpCall

Method = TypeVar("Method", bound=Callable[..., Any])
_NUMBERS: Final = itertools.count()


def _constant(method: Method) -> Method:
    """A decorator: Dynamo calls the method while it traces, and takes the result as a constant."""
    method._dynamo_marked_constant = True  # type: ignore[attr-defined]
    return method


class Traced:
    """The methods of a `Kernel` that Dynamo calls while it traces, and whose results are constants of the graph.

    They are methods since Dynamo of torch 2.11 cannot pass a user-defined object to a function with a constant result.
    It has no guard on the object that a method belongs to, but it guards the values of strings. So the methods take the
    identities of the kernel and of its backwards: for another kernel, or another backward, the guards fail.
    """

    __name__: str
    kind: ClassVar = "kernel"
    backwards: list[Any]  # of `Traced`

    def __init__(self) -> None:
        self.identity = str(next(_NUMBERS))

    def _prepare(self) -> Any:
        """A `KernelCall`, or a host function's `HostCall`."""
        raise NotImplementedError

    def _as_backward(self) -> Any:
        """The same of a backward."""
        return self._prepare()

    @_constant
    def op_call_in_trace(
        self, _: Sequence[str], types: tuple[type, ...], named: tuple[tuple[str, type], ...], on_grid: bool
    ) -> PlainOpCall:
        """How a call with arguments of these types reaches the op."""
        from py2cu.call.op_calls import op_call_of

        return op_call_of(self._prepare().operator, types, dict(named), on_grid=on_grid).plain()

    @_constant
    def tuples_in_trace(
        self, _: Sequence[str], types: tuple[type, ...], named: tuple[tuple[str, type], ...], on_grid: bool
    ) -> tuple[str, Tuples, tuple[str, ...]] | None:
        """For a kernel with tuple parameters: its usage, the tuples, and the names of the positional arguments."""
        binder = self._prepare().binder
        if not binder.signature.tuples:
            return None
        return binder.usage, binder.signature.tuples, binder.of_tuples.positional(types, dict(named), in_order=on_grid)

    @_constant
    def op_name_in_trace(self, _: Sequence[str]) -> tuple[str, str]:
        """The names of the op and of its overload."""
        op = self._prepare().op
        return op._opname, op._overloadname


def add_backward(forward: Traced, backward: Traced) -> None:
    """Attach a backward.

    Raises:
        TypeError: `forward` computes gradients of `backward`.
    """
    if forward.identity in _identities(backward):
        raise TypeError(f"`{forward.__name__}` cannot be its own backward")
    forward.backwards.append(backward)


def traced_as(traced: Callable[..., Any]) -> Callable[[Method], Method]:
    """A decorator: Dynamo traces the function `traced` in place of the method."""

    def mark(method: Method) -> Method:
        method._torchdynamo_inline = traced  # type: ignore[attr-defined]
        return method

    return mark


def traced_call(kernel: Traced, *args: Any, **kwargs: Any) -> Any:
    """`Kernel.__call__`."""
    return _call(kernel, args, kwargs, ())


def traced_launch(kernel: Traced, launch: tuple[Extent, Extent]) -> Callable[..., Any]:
    """`Kernel.__getitem__`."""
    grid, block = [[*each] if isinstance(each, tuple | list) else [each] for each in launch]
    shape = grid, block
    return lambda *args, **kwargs: _call(kernel, args, kwargs, shape)


def traced_op(kernel: Traced) -> Any:
    """The getter of `Kernel.op`."""
    import torch

    name, overload = kernel.op_name_in_trace(_identities(kernel))
    return getattr(getattr(torch.ops.py2cu, name), overload)


def _call(kernel: Traced, args: tuple[Any, ...], kwargs: dict[str, Any], launch: Launch) -> Any:
    from py2cu.call.op_calls import call_op

    identities, types = _identities(kernel), tuple([type(each) for each in args])
    named = tuple([(name, type(value)) for name, value in kwargs.items()])
    if (tuples := kernel.tuples_in_trace(identities, types, named, bool(launch))) is not None:
        usage, of_numbers, positional = tuples
        kwargs = flatten(usage, of_numbers, {**dict(zip(positional, args, strict=True)), **kwargs})
        args, types, named = (), (), tuple([(name, type(value)) for name, value in kwargs.items()])
    op_call = kernel.op_call_in_trace(identities, types, named, bool(launch))
    *_, missing = op_call
    if missing:
        names = ", ".join([f"`{name}`" for name in missing])
        raise TypeError(f"{kernel.__name__} cannot allocate {names} under `torch.compile`; pass all outputs, or none")
    return call_op(op_call, args, kwargs, launch)


def _identities(kernel: Traced) -> list[str]:
    """Those of the kernel, of its backwards, and of theirs."""
    identities = [kernel.identity]
    for backward in kernel.backwards:  # rule: gradient-identity
        identities += _identities(backward)
    return identities
