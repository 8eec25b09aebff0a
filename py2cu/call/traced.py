"""What Dynamo traces in place of the methods of `Kernel`, so that `torch.compile` sees one call of the kernel's op.

Dynamo reads two attributes of functions, and nothing else has to know that it is at work: a function is replaced by its
`_torchdynamo_inline`, and one that is `_dynamo_marked_constant` (`torch.compiler.assume_constant_result`) is called
while Dynamo traces. A compiled function is compiled again once another backward is attached. Importing this module does
not import torch, which Dynamo's users have imported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from py2cu.options import Extent

if TYPE_CHECKING:
    from py2cu.call.forms import CallForm
    from py2cu.call.native import Launch
    from py2cu.call.plan import KernelCall

Method = TypeVar("Method", bound=Callable[..., Any])


class Traced(Protocol):
    """What is known here of a `Kernel`."""

    __name__: str
    backwards: Sequence[Traced]

    def _prepare(self) -> KernelCall: ...


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

    _guard_backwards(kernel)
    name, overload = _op_name(kernel)
    return getattr(getattr(torch.ops.py2cu, name), overload)


def _call(kernel: Traced, args: tuple[Any, ...], kwargs: dict[str, Any], launch: Launch) -> Any:
    from py2cu.call.forms import call_op

    _guard_backwards(kernel)
    named = tuple([(name, type(value)) for name, value in kwargs.items()])
    form = _form(kernel, tuple([type(each) for each in args]), named, bool(launch))
    if form.missing:
        names = ", ".join([f"`{name}`" for name in form.missing])
        raise TypeError(f"{kernel.__name__} cannot allocate {names} under `torch.compile`; pass all outputs, or none")
    return call_op(form, args, kwargs, launch)


def _form(kernel: Traced, types: tuple[type, ...], named: tuple[tuple[str, type], ...], on_grid: bool) -> CallForm:
    from py2cu.call.forms import form_of

    return form_of(kernel._prepare().operator, types, dict(named), on_grid=on_grid)


def _guard_backwards(kernel: Traced) -> None:
    """Make Dynamo trace again once a backward is attached to the kernel or to one of its backwards.

    Iterating over a list guards its length, and the call of a constant function the identity of its argument.
    """
    for backward in kernel.backwards:
        _guard_identity(backward)
        _guard_backwards(backward)


def _guard_identity(_: Traced) -> None:
    pass


def _op_name(kernel: Traced) -> tuple[str, str]:
    op = kernel._prepare().op
    return op._opname, op._overloadname


_guard_identity._dynamo_marked_constant = True  # type: ignore[attr-defined]
_form._dynamo_marked_constant = True  # type: ignore[attr-defined]
_op_name._dynamo_marked_constant = True  # type: ignore[attr-defined]
