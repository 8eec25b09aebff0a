"""Record calls of a kernel for autograd.

In: a call whose arguments require grad. Out: outputs with a history. Nothing is differentiable yet: backward raises.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from py2cu.ir.abi.signature import Signature


class Gradients:
    """What autograd knows about one kernel."""

    def __init__(self, signature: Signature) -> None:
        self.signature = signature
        functions = {"forward": staticmethod(_forward), "backward": staticmethod(self._backward)}
        self._function: Any = type(signature.op, (torch.autograd.Function,), functions)

    def record(self, run: Callable[[], Any], values: Mapping[str, Any], written: Sequence[str]) -> Any:
        """Call `run`, which writes the arrays `written`, and return what it returns, with a history."""
        arguments = [values.get(p.name) for p in self.signature.parameters]
        places = [place for place, p in enumerate(self.signature.parameters) if p.name in written]
        outputs = self._function.apply(run, places, *arguments)
        returned = outputs[: len(outputs) - len(written)]
        return returned[0] if len(returned) == 1 else returned or None

    def _backward(self, *_: Any) -> Any:
        name = self.signature.name
        raise RuntimeError(f"{name} has no backward; attach one with `@{name}.backward`")


def _forward(ctx: Any, run: Callable[[], Any], written: Sequence[int], *arguments: Any) -> tuple[Any, ...]:
    result = run()
    dirty = [arguments[place] for place in written]
    ctx.mark_dirty(*dirty)
    outputs = () if result is None else result if isinstance(result, tuple) else (result,)
    return (*outputs, *dirty)
