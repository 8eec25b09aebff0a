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

from py2cu.options import Extent

if TYPE_CHECKING:
    from py2cu.call.layout import ArgumentType, Launch

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
    def form_in_trace(
        self,
        _: Sequence[str],
        types: tuple[ArgumentType, ...],
        named: tuple[tuple[str, ArgumentType], ...],
        on_grid: bool,
    ) -> tuple[Any, ...] | str:
        """The op's name, the arguments of its overload, and the form of a call with arguments of these types.

        All are plain tuples: Dynamo of torch 2.11 does not read the fields of named ones. Of a call that is refused,
        the message: Dynamo passes on an error that it traces, but takes one that is raised here for its own.
        """
        call = self._prepare()
        try:
            form = call.layout.form(types, named, on_grid=on_grid)
            call.layout.require_launch(form)
        except TypeError as error:
            return str(error)
        if form.missing:
            names = ", ".join(f"`{name}`" for name in form.missing)
            return f"{self.__name__} cannot allocate {names} under `torch.compile`; pass all outputs, or none"
        return call.operator.name, call.operator.definition.functions[form.overload].arguments, tuple(form)

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


def traced_call(kernel: Traced, /, *args: Any, **kwargs: Any) -> Any:
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
    import torch

    from py2cu.call.layout import call_op, passed, returned, type_of

    types = tuple([type_of(each) for each in args])
    named = tuple([(name, type_of(value)) for name, value in kwargs.items()])
    found = kernel.form_in_trace(_identities(kernel), types, named, bool(launch))
    if isinstance(found, str):
        raise TypeError(found)
    name, arguments, form = found
    overload, _, sources, outputs, _, _ = form
    values = passed(sources, (*args, *kwargs.values()))
    result = call_op(getattr(getattr(torch.ops.py2cu, name), overload), arguments, values, launch)
    return result if launch or not outputs else returned(tuple([values[name] for name in outputs]))


def _identities(kernel: Traced) -> list[str]:
    """Those of the kernel, of its backwards, and of theirs."""
    identities = [kernel.identity]
    for backward in kernel.backwards:  # rule: gradient-identity
        identities += _identities(backward)
    return identities
