"""Record calls of a kernel for autograd, and run its backward kernels.

In: a call whose arguments require grad. Out: outputs with a history. Backward calls each kernel attached by
`@k.backward` that computes a gradient which is asked for. These are ordinary calls of ordinary kernels: with
`create_graph=True` they are recorded, too, and under a tracer the graph holds their ops.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple, Protocol

import torch
from torch._functorch.utils import enable_single_level_autograd_function
from torch.autograd import forward_ad

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


class _Plan(NamedTuple):
    """What is saved where certain arguments require grad: values and dimensions of a call, shapes of `accumulated`."""

    names: tuple[str, ...]
    dims: tuple[str, ...]
    accumulated: tuple[str, ...]


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
        # Those that may be written come first: autograd takes a view that is written for the first tensor.
        self._names = [p.name for p in sorted(signature.parameters, key=lambda p: p.role is Role.INPUT)]
        self.missing = {p.name for p in signature.arrays} - computed
        self._outputs = tuple(p.name for p in signature.outputs)
        self._dims = {dim.name for dim in signature.dims}
        self._plans: dict[tuple[bool, ...], _Plan] = {}
        functions = {"forward": staticmethod(self._forward), "backward": staticmethod(self._backward)}
        self._function: Any = type(signature.op, (torch.autograd.Function,), functions)
        of_level = torch.autograd.function._SingleLevelFunction
        self._function_of_level: Any = type(signature.op, (of_level,), functions)

    def record(self, run: Callable[[], Any], values: Mapping[str, Any], written: Sequence[str]) -> Any:
        """Call `run`, which writes the arrays `written`, and return what it returns, with a history.

        Raises:
            RuntimeError: autograd cannot record that these arrays are written.
        """
        if written:
            self._check_written({name: values[name] for name in written}, values)
        arguments = [values.get(name) for name in self._names]
        if torch._C._are_functorch_transforms_active():
            # The dispatcher calls the op once for each transform, and each of these calls has a graph of its own.
            with enable_single_level_autograd_function():
                # rule: gradient-level
                outputs = self._function_of_level.apply(_with_gradients(run), values, written, *arguments)
        else:
            outputs = self._function.apply(run, values, written, *arguments)
        returned = outputs[: len(outputs) - len(written)]
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

    def _forward(
        self, ctx: Any, run: Callable[[], Any], values: Mapping[str, Any], written: Sequence[str], *arguments: Any
    ) -> tuple[Any, ...]:
        """Return the allocated outputs, then the arrays `written`."""
        result = run()
        allocated = () if result is None else result if isinstance(result, tuple) else (result,)
        outputs = dict(zip(self._outputs if allocated else (), allocated, strict=True))
        ctx.written_views = frozenset[str]()
        if written:
            outputs.update((name, values[name]) for name in written)
            ctx.mark_dirty(*(values[name] for name in written))
            ctx.written_views = frozenset(name for name in written if values[name]._is_view())
        if self.backwards and not self.differentiable.issuperset(outputs):
            ctx.mark_non_differentiable(*(each for name, each in outputs.items() if name not in self.differentiable))
        ctx.outputs = tuple(outputs)
        ctx.arrays = [name for name, each in zip(self._names, arguments, strict=True) if isinstance(each, torch.Tensor)]
        self._save(ctx, {**values, **outputs})
        return tuple(outputs.values())

    def _save(self, ctx: Any, values: dict[str, Any]) -> None:
        """Save what the backward kernels name whose gradients are needed."""
        plan = self._plan(ctx.needs_input_grad[-len(self._names) :])
        if any(name not in values for name in plan.dims):
            values = bind_dims(self.signature, values) | values
        saved = [(name, values[name]) for name in plan.names if name in values]
        ctx.tensors = [name for name, value in saved if isinstance(value, torch.Tensor)]
        ctx.save_for_backward(*(value for _, value in saved if isinstance(value, torch.Tensor)))
        ctx.numbers = {name: value for name, value in saved if not isinstance(value, torch.Tensor)}
        ctx.shapes = {name: (values[name].shape, values[name].dtype) for name in plan.accumulated if name in values}

    def _plan(self, needs_grad: tuple[bool, ...]) -> _Plan:
        if needs_grad not in self._plans:
            needed = {name for name, is_needed in zip(self._names, needs_grad, strict=True) if is_needed}
            backwards = [each for each in self.backwards if not needed.isdisjoint(each.targets)]
            names = dict.fromkeys(name for each in backwards for name in (*each.roles.values, *each.roles.dims))
            dims = tuple(name for name in names if name in self._dims)
            accumulated = tuple(name for each in backwards for name in each.accumulated)
            self._plans[needs_grad] = _Plan(tuple(names), dims, accumulated)
        return self._plans[needs_grad]

    def _needed(self, ctx: Any) -> set[str]:
        """The arguments that require grad."""
        needs_grad = ctx.needs_input_grad[-len(self._names) :]
        return {name for name, needed in zip(self._names, needs_grad, strict=True) if needed}

    def _backward(self, ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        needed = self._needed(ctx)
        if len(self.backwards) != 1 or not needed <= self.backwards[0].targets:  # else this one runs in any case
            nodes = zip(ctx.arrays, ctx.next_functions, strict=True)
            # Autograd asks for the gradient of a view that was written by the node of its base.
            needed &= ctx.written_views.union(name for name, (node, _) in nodes if _is_asked_for(node))
            self._require(needed)
        values = dict(zip(ctx.tensors, ctx.saved_tensors, strict=True)) | ctx.numbers
        incoming = dict(zip(ctx.outputs, grads, strict=True))
        gradients: dict[str, torch.Tensor] = {}
        for backward in self.backwards:
            if not needed.isdisjoint(backward.targets):
                gradients |= backward.run(values, incoming, ctx.shapes)
        in_order = (gradients[name] if name in needed else None for name in self._names)
        return (None, None, None, *in_order)

    def _require(self, needed: set[str]) -> None:
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


def _is_asked_for(node: Any) -> bool:
    """Whether the running backward pass executes this node of the graph. A constant has no node: None."""
    try:
        return node is not None and torch._C._will_engine_execute_node(node)
    except RuntimeError:  # a leaf that `torch.autograd.grad` was called for  # rule: gradient-of-leaf
        return True


class _Backward:
    """A backward kernel and the roles of its parameters."""

    def __init__(self, call: BackwardCall, roles: BackwardRoles) -> None:
        self.call = call
        self.roles = roles
        self.targets = {target for _, target in roles.results}
        self.accumulated = [target for name, target in roles.results if name in roles.accumulated]
        self._results = dict(roles.results)
        self._in_order = dict.fromkeys(p.name for p in call.signature.inputs if not p.by_keyword)
        self._outputs = tuple(p.name for p in call.signature.outputs)

    def run(
        self, values: Mapping[str, Any], incoming: Mapping[str, torch.Tensor], shapes: Mapping[str, Any]
    ) -> dict[str, torch.Tensor]:
        """The gradients that the kernel computes, by the name of the input.

        An incoming gradient that the kernel overwrites is copied, since autograd may use it elsewhere. The gradient of
        an optional array that is None is left out.
        """
        results = self._results
        arguments = {name: values[name] for name in (*self.roles.values, *self.roles.dims) if name in values}
        for name, output in self.roles.incoming:
            gradient = incoming[output]
            if name in results:
                plain = gradient.resolve_conj().resolve_neg()
                arguments[name] = plain.clone(memory_format=torch.contiguous_format)  # rule: gradient-copied
            else:
                # rule: gradient-strides
                arguments[name] = gradient if name in self.call.signature.strided else gradient.contiguous()
        for name in self.roles.accumulated:
            if results[name] not in shapes:
                continue
            shape, dtype = shapes[results[name]]
            arguments[name] = next(iter(incoming.values())).new_zeros(shape, dtype=dtype)
        self._refuse_batches([name for name in results if name in arguments], incoming.values())
        is_in_order = arguments.keys() == self._in_order.keys() and not self.call.signature.tuples  # needs no binding
        args = tuple(arguments[name] for name in self._in_order) if is_in_order else ()
        returned = self.call.call(args, {} if is_in_order else arguments)
        allocated = returned if isinstance(returned, tuple) else (returned,)
        arguments |= zip(self._outputs, allocated if self._outputs else (), strict=True)
        return {target: arguments[name] for name, target in results.items() if name in arguments}

    def _refuse_batches(self, updated: Sequence[str], incoming: Iterable[torch.Tensor]) -> None:
        """Refuse gradients of torch's former `vmap` for a kernel that updates arrays, which it cannot slice."""
        if updated and any(torch._C._dispatch_keys(gradient).has(_LEGACY_BATCHED) for gradient in incoming):
            what = f"{self.call.signature.name} updates `{updated[0]}`, which it cannot for batched gradients of"
            how = "use `torch.func.vjp` under `torch.func.vmap`, or `torch.func.jacrev`"
            raise RuntimeError(f"{what} `is_grads_batched=True` or `vectorize=True`; {how}")


def _matched(signature: Signature, calls: Sequence[BackwardCall]) -> list[_Backward]:
    """The backward kernels with the roles of their parameters.

    Raises:
        TranslationError: a kernel is no backward of the one with this signature.
    """
    all_roles, misfits = match_backwards(signature, [call.signature for call in calls])
    if misfits:
        raise TranslationError([_diagnostic(calls[misfit.place], misfit) for misfit in misfits])
    return [_Backward(call, roles) for call, roles in zip(calls, all_roles, strict=True)]


def _diagnostic(call: BackwardCall, misfit: Misfit) -> Diagnostic:
    source = call.source()
    return Diagnostic(Severity.ERROR, "P412", misfit.message, misfit.parameter.span, source, misfit.hint)
