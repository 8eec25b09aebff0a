"""Hand a call whose arguments require grad over to autograd: what the launcher of a call does in place of a launch.

In: the arguments of a call by position, the launcher below the dispatcher. Out: the outputs with a history. Errors: as
of a launcher; one of `REFUSED` is marked if the kernel has run.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

from py2cu.call.launchers.launcher import LaunchFunction
from py2cu.call.layout import Layout, outputs_of
from py2cu.ir.abi.launch import REFUSED, mark_launched


class Recorder(Protocol):
    """What is known here of `Gradients`."""

    def record(self, run: Callable[[], Any], values: dict[str, Any], written: tuple[str, ...]) -> Any: ...


def recorder(
    layout: Layout, names: tuple[str, ...], launcher: Callable[[], LaunchFunction], gradients: Callable[[], Recorder]
) -> LaunchFunction:
    """A function of the arguments `names` that records a launch; its first call gets the launcher from `launcher()`."""
    signature = layout.signature
    may_write = [p.name for p in signature.written if p.name in names]
    outputs = [p.name for p in signature.outputs]
    allocated = [name for name in outputs if name not in names]
    returns_given = len(allocated) < len(outputs)
    is_of_arrays = all(p.is_array and not p.may_be_none for p in signature.parameters)

    def record(*values: Any) -> Any:
        passed = dict(zip(names, values, strict=True))
        if not is_of_arrays:
            passed = layout.complete({name: value for name, value in passed.items() if value is not None})
        written = tuple([name for name in may_write if name in passed]) if may_write else ()
        is_launched = False

        def run() -> Any:
            nonlocal is_launched
            result = launcher()(*values)
            is_launched = True
            return result

        try:
            result = gradients().record(run, passed, written)
        except REFUSED as error:
            if is_launched:
                mark_launched(error)
            raise
        if not returns_given:
            return result
        arrays = passed | dict(zip(allocated, result if isinstance(result, tuple) else (result,), strict=False))
        return outputs_of(signature, arrays)

    return record
