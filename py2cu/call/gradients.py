"""Record calls of a kernel for autograd, and run its backward kernels.

In: a call whose arguments require grad. Out: outputs with a history. The backwards are matched with the kernel here;
`recording.py` has the `autograd.Function`. Backward calls each kernel attached by `@k.backward` that computes a
gradient which is asked for. These are ordinary calls of ordinary kernels: with `create_graph=True` they are recorded,
too, and under a tracer the graph holds their ops.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence, Set
from typing import Any, Final

import torch
from torch._functorch.utils import enable_single_level_autograd_function
from torch.autograd import forward_ad

from py2cu.call.recording import Backward, BackwardCall, Recording
from py2cu.diagnostics import Diagnostic, Severity, TranslationError
from py2cu.ir.abi.gradients import PREFIX, Misfit, match_backwards
from py2cu.ir.abi.parameters import Role
from py2cu.ir.abi.signature import Signature

_AUTOGRAD: Final[Any] = torch._C._autograd


class Gradients:
    """What autograd knows about one kernel.

    Raises:
        TranslationError: an attached kernel is no backward of this one.
    """

    def __init__(self, signature: Signature, backwards: Sequence[BackwardCall]) -> None:
        self.signature = signature
        self.backwards = [*_matched(signature, backwards)]
        computed = {target for each in self.backwards for target in each.targets}
        self.differentiable = {output for each in self.backwards for _, output in each.roles.incoming}
        self.missing = {p.name for p in signature.arrays} - computed
        self._recordings: dict[tuple[tuple[str, ...], tuple[str, ...]], Recording] = {}

    def record(self, run: Callable[[], Any], values: Mapping[str, Any], written: tuple[str, ...]) -> Any:
        """Call `run`, which writes the arrays `written`, and return what it returns, with a history.

        Raises:
            RuntimeError: autograd cannot record that these arrays are written.
        """
        if written:
            self._check_written({name: values[name] for name in written}, values)
        key = tuple(values), written
        recorded = self._recordings.get(key)
        if recorded is None:
            recorded = self._recordings[key] = Recording(self, *key)
        arguments = [values[name] for name in recorded.names] if written else values.values()
        if torch._C._are_functorch_transforms_active():
            # The dispatcher calls the op once for each transform, and each of these calls has a graph of its own.
            with enable_single_level_autograd_function():
                outputs = recorded.apply(_with_gradients(run), *arguments)  # rule: gradient-level
        else:
            outputs = recorded.apply(run, *arguments)
        returned = outputs[: len(outputs) - len(written)] if written else outputs
        return returned[0] if len(returned) == 1 else returned or None

    def _check_written(self, written: Mapping[str, torch.Tensor], values: Mapping[str, Any]) -> None:
        """Refuse written arrays whose history autograd would drop or could not record.

        Raises:
            RuntimeError: there is one; the message names it.
        """
        name = self.signature.name
        allocated = sum(p.name not in values for p in self.signature.outputs)
        for array, tensor in written.items():
            if self.backwards and tensor.requires_grad and array not in self.differentiable:
                what = f"{name}: `{array}` requires grad and is written, and no backward of {name} takes"
                raise RuntimeError(f"{what} `{PREFIX}{array}`; pass `{array}.detach()`")
            if not tensor._is_view():
                continue
            how = f"pass `{array}.clone()`, and copy it back"
            if len(written) + allocated > 1:
                what = (
                    f"{name}: `{array}` is a view, and the kernel writes other arrays, too: autograd cannot record that"
                )
                raise RuntimeError(f"{what}; {how}")
            if _AUTOGRAD._get_creation_meta(tensor) != _AUTOGRAD.CreationMeta.DEFAULT:
                what = f"{name}: `{array}` is a view that may not be changed in place, such as a result of `unbind`"
                raise RuntimeError(f"{what}; {how}")

    def require(self, needed: Set[str]) -> None:
        """Refuse gradients that no kernel computes.

        Raises:
            RuntimeError: there is one; the message names this kernel.
        """
        name = self.signature.name
        missing = sorted(needed & self.missing)
        if not missing:
            return
        if not self.backwards:
            raise RuntimeError(f"{name} has no backward; attach one with `@{name}.backward`")
        if self.signature.parameter(missing[0]).role is Role.OUTPUT:
            what = f"the gradient of what `{missing[0]}` held before the call is unknown"
            raise RuntimeError(f"{name}: {what}; pass `{missing[0]}.detach()`")
        what = f"no backward of {name} computes `{PREFIX}{missing[0]}`"
        raise RuntimeError(f"{what}; attach one with `@{name}.backward`, or pass `{missing[0]}.detach()`")


def _with_gradients(run: Callable[[], Any]) -> Callable[[], Any]:
    """`run` with gradients enabled for the outer transforms: the forward of a `Function` disables them."""

    def run_outer() -> Any:
        with torch.enable_grad(), forward_ad._set_fwd_grad_enabled(True):
            return run()

    return run_outer


def _matched(signature: Signature, calls: Sequence[BackwardCall]) -> list[Backward]:
    """The backward kernels with the roles of their parameters.

    Raises:
        TranslationError: a kernel is no backward of the one with this signature.
    """
    all_roles, misfits = match_backwards(signature, [call.signature for call in calls])
    if misfits:
        raise TranslationError([_diagnostic(calls[misfit.place], misfit) for misfit in misfits])
    return [Backward(call, roles) for call, roles in zip(calls, all_roles, strict=True)]


def _diagnostic(call: BackwardCall, misfit: Misfit) -> Diagnostic:
    source = call.source()
    return Diagnostic(Severity.ERROR, "P412", misfit.message, misfit.parameter.span, source, misfit.hint)
