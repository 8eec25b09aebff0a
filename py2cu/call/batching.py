"""Run a kernel's op under `torch.func.vmap`: once for each element of the batch.

In: the arguments of a call, some of them batched. Out: batched outputs. Errors: `RuntimeError` for an array that the
kernel writes and that has no batch dimension, as for torch's own in-place operations.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import torch
from torch._C import _functorch
from torch._functorch.pyfunctorch import retrieve_current_functorch_interpreter

_BATCHED: Final = torch._C.DispatchKeySet(torch._C.DispatchKey.FuncTorchBatched)


class _Argument(NamedTuple):
    """An argument of the op; `axis` is its batch dimension, None for a number and for an array that all calls share."""

    value: Any
    axis: int | None
    is_written: bool

    def slice(self, number: int) -> Any:
        return self.value if self.axis is None else self.value.select(self.axis, number).contiguous()

    def put_back(self, number: int, updated: torch.Tensor) -> None:
        """Store what a call wrote into the copy of a slice that is not contiguous."""
        original = self.value.select(self.axis, number)
        if not original.is_contiguous():
            original.copy_(updated)


def run_batched(name: str, op: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
    """Call `op`, of the kernel `name`, for each element of the batch of the innermost `vmap`."""
    level = retrieve_current_functorch_interpreter().level()
    written = {argument.name for argument in op._schema.arguments if argument.alias_info is not None}
    given = {**dict(zip((each.name for each in op._schema.arguments), args, strict=False)), **kwargs}
    arguments = {key: _argument(value, level, key in written) for key, value in given.items()}
    sizes = [each.value.shape[each.axis] for each in arguments.values() if each.axis is not None]
    with torch._C._ExcludeDispatchKeyGuard(_BATCHED):  # the calls below are those of the next transform
        if not sizes:
            return op(*args, **kwargs)
        for key, argument in arguments.items():
            if argument.is_written and argument.axis is None:
                what = f"under `vmap`, {name} writes `{key}`, which has no batch dimension"
                raise RuntimeError(f"{what}; pass an array with one")
        results = [_call(op, arguments, number) for number in range(sizes[0])]
        if results[0] is None:
            return None
        if isinstance(results[0], torch.Tensor):
            return _functorch._add_batch_dim(torch.stack(results), 0, level)
        return tuple(_functorch._add_batch_dim(torch.stack(each), 0, level) for each in zip(*results, strict=True))


def _argument(value: Any, level: int, is_written: bool) -> _Argument:
    if not isinstance(value, torch.Tensor):
        return _Argument(value, None, False)
    plain, axis = _functorch._unwrap_batched(value, level)
    return _Argument(plain, axis, is_written)


def _call(op: Callable[..., Any], arguments: Mapping[str, _Argument], number: int) -> Any:
    slices = {name: argument.slice(number) for name, argument in arguments.items()}
    result = op(**slices)
    for name, argument in arguments.items():
        if argument.is_written:
            argument.put_back(number, slices[name])
    return result
