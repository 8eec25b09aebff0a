"""Record calls of a kernel for autograd, and run its backward kernels.

In: a call whose arguments require grad. Out: outputs with a history. Backward calls each kernel attached by
`@k.backward` that computes a gradient which is asked for. These are ordinary calls of ordinary kernels: with
`create_graph=True` they are recorded, too, and under a tracer the graph holds their ops.

Recording should cost little more than a hand-written `autograd.Function`. So what is saved and which backward kernels
run are planned once for each set of parameters that require grad.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from typing import Any, Final, NamedTuple, Protocol

import torch
from torch._functorch.utils import enable_single_level_autograd_function
from torch.autograd import forward_ad
from torch.autograd.function import _SingleLevelFunction

from py2cu.call.argument_checks import check_recorded, leaf_message, needs_grad, require_writable
from py2cu.call.layout import returned
from py2cu.diagnostics import Diagnostic, Severity, TranslationError
from py2cu.ir.abi.dims import bind_dims
from py2cu.ir.abi.gradients import PREFIX, BackwardRoles, Misfit, match_backwards
from py2cu.ir.abi.parameters import Role
from py2cu.ir.abi.signature import Signature
from py2cu.source import SourceFile

_AUTOGRAD: Final[Any] = torch._C._autograd
_LEGACY_BATCHED: Final[Any] = torch._C._parse_dispatch_key("Batched")
"""The key of tensors under torch's former `vmap`, which slices the arguments of functional operators alone."""


class BackwardCall(Protocol):
    """What is known here of a backward kernel's `KernelCall`."""

    signature: Signature

    @property
    def operator(self) -> Any: ...

    def source(self) -> SourceFile: ...

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any: ...


class Backward:
    """A backward kernel and the roles of its parameters."""

    def __init__(self, call: BackwardCall, roles: BackwardRoles) -> None:
        self.call = call
        self.results = roles.results
        self.targets = {target for _, target in roles.results}
        self.saved = (*roles.values, *roles.dims)
        self.incoming = roles.incoming
        self.accumulated = {name: target for name, target in roles.results if name in roles.accumulated}
        self._outputs = [p.name for p in call.signature.outputs]
        own, incoming = dict(roles.results), [name for name, _ in roles.incoming]
        # The kernel overwrites these, and autograd may use an incoming gradient elsewhere.
        self._copied = [name for name in incoming if name in own]
        # rule: gradient-dense
        self._dense = [name for name in incoming if name not in own and name not in call.signature.strided]
        in_order = () if call.signature.tuples else [p.name for p in call.signature.inputs if not p.by_keyword]
        self._in_order = tuple(in_order)  # if a call passes these, it needs no binding

    def run(
        self, saved: Mapping[str, Any], grads: Mapping[str, torch.Tensor], shapes: Mapping[str, Any]
    ) -> dict[str, torch.Tensor]:
        """The gradients that the kernel computes, by the array of the forward.

        `saved` are values of the forward, `grads` its incoming gradients; `shapes` has the shapes and dtypes of the
        arrays whose gradients are accumulated.
        """
        args = {name: saved[name] for name in self.saved if name in saved}
        args |= {name: grads[output] for name, output in self.incoming}
        zeros = [(name, target) for name, target in self.accumulated.items() if target in shapes]
        if self._copied or zeros:
            self._refuse_batches(grads.values(), (self._copied or [zeros[0][0]])[0])
        for name in self._copied:
            plain = args[name].resolve_conj().resolve_neg()
            args[name] = plain.clone(memory_format=torch.contiguous_format)  # rule: gradient-copied
        for name in self._dense:
            args[name] = args[name].contiguous()  # rule: gradient-strides
        for name, target in zeros:
            shape, dtype = shapes[target]
            args[name] = next(iter(grads.values())).new_zeros(shape, dtype=dtype)
        if args.keys() == {*self._in_order}:
            result = self.call.call(tuple([args[name] for name in self._in_order]), {})
        else:
            result = self.call.call((), args)
        args |= zip(self._outputs, result if isinstance(result, tuple) else (result,), strict=False)
        return {target: args[name] for name, target in self.results if name in args}

    def _refuse_batches(self, grads: Iterable[torch.Tensor], updated: str) -> None:
        """Refuse gradients of torch's former `vmap` for a kernel that updates arrays, which it cannot slice."""
        if any(torch._C._dispatch_keys(gradient).has(_LEGACY_BATCHED) for gradient in grads):
            what = f"{self.call.signature.name} updates `{updated}`, which it cannot for batched gradients of"
            how = "use `torch.func.vjp` under `torch.func.vmap`, or `torch.func.jacrev`"
            raise RuntimeError(f"{what} `is_grads_batched=True` or `vectorize=True`; {how}")


class Gradients:
    """What autograd knows about one kernel.

    Raises:
        TranslationError: an attached kernel is no backward of this one.
    """

    def __init__(self, signature: Signature, backwards: Sequence[BackwardCall]) -> None:
        self.signature = signature
        self.backwards = [*_matched(signature, backwards)]
        computed = {target for each in self.backwards for target in each.targets}
        self.differentiable = {output for each in self.backwards for _, output in each.incoming}
        self.missing = {p.name for p in signature.arrays} - computed
        self._recordings: dict[tuple[tuple[str, ...], tuple[str, ...]], Recording] = {}

    def record(self, run: Callable[[], Any], values: Mapping[str, Any], written: tuple[str, ...]) -> Any:
        """Call `run`, which writes the arrays `written`, and return what it returns, with a history.

        Raises:
            RuntimeError: these arrays may not be written, or autograd cannot record that they are.
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
        return returned(outputs[: len(outputs) - len(written)] if written else outputs)

    def _check_written(self, written: Mapping[str, torch.Tensor], values: Mapping[str, Any]) -> None:
        """Refuse arrays that may not be written, and those whose history autograd would drop or could not record.

        Raises:
            RuntimeError: there is one; the message names it.
        """
        name = self.signature.name
        for array, tensor in written.items():
            if needs_grad(tensor):
                raise RuntimeError(f"{name}: {leaf_message(array)}")
        require_writable(name, written)
        check_recorded(self.signature, values)  # rule: in-place-recorded
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


class _Plan(NamedTuple):
    """What is saved and computed where certain arguments require grad."""

    needed: Set[str]  # the arguments that require grad
    backwards: tuple[Backward, ...]  # that compute their gradients
    known: tuple[str, ...]  # arguments and outputs
    outputs: tuple[str, ...]  # the last of them
    constant: tuple[int, ...]  # places of the outputs that have no gradient
    arrays: Mapping[str, int]  # that are saved, and their places in `known`
    numbers: tuple[str, ...]  # that are saved: arguments and dimensions
    shapes: tuple[str, ...]  # arguments whose shapes and dtypes are saved
    asks: bool  # autograd may ask for a part of what the backwards compute


class Recording:
    """The `autograd.Function` of calls that pass the parameters `passed`, and write those of them in `written`.

    `apply` takes the function that runs the call, then the arguments in the order `names`. Those that are written come
    first: autograd takes a view that is written for the first tensor.
    """

    def __init__(self, kernel: Gradients, passed: Sequence[str], written: tuple[str, ...]) -> None:
        self.names = (*written, *(name for name in passed if name not in written))
        self._kernel = kernel
        self._written = written
        self._arrays = {parameter.name for parameter in kernel.signature.arrays}
        self._plans: dict[tuple[bool, ...], _Plan] = {}
        functions = {"forward": staticmethod(self._forward), "backward": staticmethod(self._backward)}
        function: Any = type(kernel.signature.op, (_SingleLevelFunction,), functions)
        self.apply: Callable[..., tuple[Any, ...]] = function.apply

    def _forward(self, ctx: Any, run: Callable[[], Any], *arguments: Any) -> tuple[Any, ...]:
        """Return the allocated outputs, then the arrays that are written."""
        result = run()
        outputs: tuple[Any, ...] = result if isinstance(result, tuple) else () if result is None else (result,)
        if self._written:
            changed = arguments[: len(self._written)]
            ctx.mark_dirty(*changed)
            ctx.views = {name for name, array in zip(self._written, changed, strict=True) if array._is_view()}
            outputs = (*outputs, *changed)
        plan = ctx.plan = self._plans.get(ctx.needs_input_grad) or self._plan(ctx.needs_input_grad)
        if plan.constant:
            ctx.mark_non_differentiable(*[outputs[place] for place in plan.constant])
        known = (*arguments, *outputs)
        ctx.save_for_backward(*[known[place] for place in plan.arrays.values()])
        ctx.numbers, ctx.shapes = (), {}
        if plan.numbers or plan.shapes:
            named = dict(zip(plan.known, known, strict=True))
            ctx.shapes = {name: (named[name].shape, named[name].dtype) for name in plan.shapes}
            if not named.keys() >= {*plan.numbers}:
                named = bind_dims(self._kernel.signature, named) | named
            ctx.numbers = tuple([named[name] for name in plan.numbers])
        return outputs

    def _plan(self, needs_grad: tuple[bool, ...]) -> _Plan:
        kernel = self._kernel
        needed = {name for name, is_needed in zip(self.names, needs_grad[1:], strict=True) if is_needed}
        backwards = tuple(each for each in kernel.backwards if not needed.isdisjoint(each.targets))
        outputs = (*(p.name for p in kernel.signature.outputs if p.name not in self.names), *self._written)
        known = (*self.names, *outputs)
        places = {name: place for place, name in enumerate(known)}  # of an array that is written, the later one
        dims = {dim.name for dim in kernel.signature.dims}
        saved = dict.fromkeys(name for each in backwards for name in each.saved)
        constant = [place for place, name in enumerate(outputs) if name not in kernel.differentiable]
        plan = self._plans[needs_grad] = _Plan(
            needed,
            backwards,
            known,
            outputs,
            tuple(constant) if kernel.backwards else (),
            {name: places[name] for name in saved if name in self._arrays and name in places},
            tuple(name for name in saved if name not in self._arrays and (name in places or name in dims)),
            tuple(name for each in backwards for name in each.accumulated.values() if name in self.names),
            len(kernel.backwards) != 1 or not needed <= kernel.backwards[0].targets,
        )
        return plan

    def _backward(self, ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        plan: _Plan = ctx.plan
        needed = plan.needed
        if plan.asks:
            arrays = (name for name in self.names if name in self._arrays)
            asked = {name for name, (node, _) in zip(arrays, ctx.next_functions, strict=True) if _is_asked_for(node)}
            # Autograd asks for the gradient of a view that was written by the node of its base.
            needed = needed & (asked | ctx.views if self._written else asked)
            self._kernel.require(needed)
        saved = dict(zip((*plan.arrays, *plan.numbers), (*ctx.saved_tensors, *ctx.numbers), strict=True))
        incoming = dict(zip(plan.outputs, grads, strict=True))
        gradients: dict[str, torch.Tensor] = {}
        for backward in plan.backwards:
            if not plan.asks or not needed.isdisjoint(backward.targets):
                gradients |= backward.run(saved, incoming, ctx.shapes)
        return (None, *[gradients[name] if name in needed else None for name in self.names])


def _is_asked_for(node: Any) -> bool:
    """Whether the running backward pass executes this node of the graph. A constant has no node: None."""
    try:
        return node is not None and torch._C._will_engine_execute_node(node)
    except RuntimeError:  # a leaf that `torch.autograd.grad` was called for  # rule: gradient-of-leaf
        return True
