"""Record calls of a kernel for autograd, and run its backward kernels.

In: a call whose arguments require grad. Out: outputs with a history. Backward calls each kernel attached by
`@k.backward` that computes a gradient which is asked for. These are ordinary calls of ordinary kernels: with
`create_graph=True` they are recorded, too, and under a tracer the graph holds their ops. Errors: `RuntimeError` for
arrays that may not be written, for what autograd cannot record, and for gradients that no kernel computes.

Recording should cost little more than a hand-written `autograd.Function`. So the saved tensors, the outputs and the
calls of the backward kernels are planned once for each set of parameters that require grad, by places of values.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence, Set
from typing import Any, Final, NamedTuple, Protocol

import torch
from torch._functorch.utils import enable_single_level_autograd_function
from torch.autograd import forward_ad
from torch.autograd.function import _SingleLevelFunction

from py2cu.call.argument_checks import check_recorded, leaf_problem, require_writable
from py2cu.call.layout import returned, unpacked_outputs
from py2cu.diagnostics import Diagnostic, Severity, TranslationError
from py2cu.ir.abi.dims import bind_dims
from py2cu.ir.abi.gradients import PREFIX, BackwardRoles, match_backwards
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


class Backward(NamedTuple):
    """A backward kernel, the roles of its parameters, and the inputs whose gradients it computes."""

    call: BackwardCall
    roles: BackwardRoles
    targets: Set[str]


class Gradients:
    """What autograd knows about one kernel.

    Raises:
        TranslationError: an attached kernel is no backward of this one.
    """

    def __init__(self, signature: Signature, backwards: Sequence[BackwardCall]) -> None:
        self.signature = signature
        self.calls = backwards
        all_roles, misfits = match_backwards(signature, [call.signature for call in backwards])
        if misfits:
            found = ((each.message, each.parameter.span, backwards[each.place].source(), each.hint) for each in misfits)
            raise TranslationError([Diagnostic(Severity.ERROR, "P412", *each) for each in found])
        targets = ({target for _, target in roles.results} for roles in all_roles)
        self.backwards = [*map(Backward, backwards, all_roles, targets)]
        computed = {target for each in self.backwards for target in each.targets}
        self.differentiable = {output for each in self.backwards for _, output in each.roles.incoming}
        self.arrays = {p.name for p in signature.arrays}
        self.missing = self.arrays - computed
        self._recordings: dict[tuple[str, ...], Recording] = {}

    def record(self, run: Callable[[], Any], values: Mapping[str, Any]) -> Any:
        """Call `run`, the kernel with arguments `values`, and return what it returns, with a history."""
        return self.recording(tuple(values)).record(run, tuple(values.values()))

    def recording(self, passed: tuple[str, ...]) -> Recording:
        """What records calls with these arguments."""
        recording = self._recordings.get(passed)
        if recording is None:
            recording = self._recordings[passed] = Recording(self, passed)
        return recording

    def check_written(self, written: Mapping[str, torch.Tensor], values: Mapping[str, Any]) -> None:
        """Refuse arrays that may not be written, and those whose history autograd would drop or could not record."""
        name = self.signature.name
        for array, tensor in written.items():
            if problem := leaf_problem(array, tensor):
                raise RuntimeError(f"{name}: {problem}")
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
                what = f"`{array}` is a view, and the kernel writes other arrays, too: autograd cannot record that"
                raise RuntimeError(f"{name}: {what}; {how}")
            if _AUTOGRAD._get_creation_meta(tensor) != _AUTOGRAD.CreationMeta.DEFAULT:
                what = f"{name}: `{array}` is a view that may not be changed in place, such as a result of `unbind`"
                raise RuntimeError(f"{what}; {how}")

    def require(self, needed: Set[str]) -> None:
        """Refuse gradients that no kernel computes."""
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


class _Step:
    """How `backward` is called where the parameters `passed` were.

    Values have places: that of each saved one is in `saved`, and the gradients of `outputs` follow.
    """

    def __init__(
        self, backward: Backward, saved: Mapping[str, int], outputs: Sequence[str], passed: Collection[str]
    ) -> None:
        signature, roles = backward.call.signature, backward.roles
        places = {name: saved[name] for name in (*roles.values, *roles.dims) if name in saved}
        given = [(name, output) for name, output in roles.incoming if output in outputs]  # others were left out
        incoming = [name for name, _ in given]
        places |= {name: len(saved) + outputs.index(output) for name, output in given}
        results = dict(roles.results)
        zeros = [name for name in roles.accumulated if results[name] in passed]
        places |= dict.fromkeys(zeros, len(saved))
        in_order = [p.name for p in signature.inputs if not p.by_keyword]
        self.backward = backward
        self.is_in_order = places.keys() == {*in_order} and not signature.tuples  # passed by position: binds faster
        self.names = names = tuple(in_order if self.is_in_order else places)
        self.places = [places[name] for name in names]
        self.incoming = len(saved)  # the place of the first incoming gradient
        # Arguments that the kernel overwrites: autograd may use an incoming gradient elsewhere.
        self.copied = [names.index(name) for name in incoming if name in results]
        # Those that it does not take with any strides.
        # rule: gradient-dense
        self.dense = [names.index(name) for name in incoming if name not in results and name not in signature.strided]
        # Those that start as zeros, each shaped like an argument of the forward.
        self.zeros = [(names.index(name), results[name]) for name in zeros]
        # Where the gradients are among the arguments, which the outputs follow.
        found = {name: place for place, name in enumerate((*names, *(p.name for p in signature.outputs)))}
        self.results = [(target, found[name]) for name, target in roles.results if name in found]

    def run(self, known: Sequence[Any], shapes: Mapping[str, Any]) -> dict[str, torch.Tensor]:
        """The gradients that the kernel computes, by the name of the input."""
        args = [known[place] for place in self.places]
        if self.copied or self.zeros:
            self._refuse_batches(known[self.incoming :])
        for place in self.copied:
            plain = args[place].resolve_conj().resolve_neg()
            args[place] = plain.clone(memory_format=torch.contiguous_format)  # rule: gradient-copied
        for place in self.dense:
            args[place] = args[place].contiguous()  # rule: gradient-strides
        for place, name in self.zeros:
            shape, dtype = shapes[name]
            args[place] = args[place].new_zeros(shape, dtype=dtype)
        call = self.backward.call
        in_order, named = (args, {}) if self.is_in_order else ((), dict(zip(self.names, args, strict=True)))
        found = (*args, *unpacked_outputs(call.call(tuple(in_order), named)))
        return {target: found[place] for target, place in self.results}

    def _refuse_batches(self, incoming: Sequence[torch.Tensor]) -> None:
        """Refuse gradients of torch's former `vmap` for a kernel that updates arrays, which it cannot slice."""
        if any(torch._C._dispatch_keys(gradient).has(_LEGACY_BATCHED) for gradient in incoming):
            updated = self.names[(*self.copied, *(place for place, _ in self.zeros))[0]]
            what = f"{self.backward.call.signature.name} updates `{updated}`, which it cannot for batched gradients of"
            how = "use `torch.func.vjp` under `torch.func.vmap`, or `torch.func.jacrev`"
            raise RuntimeError(f"{what} `is_grads_batched=True` or `vectorize=True`; {how}")


class _Plan:
    """What a forward saves and its backward computes if the arguments `needed` require grad; it modifies `written`."""

    def __init__(self, kernel: Gradients, names: Sequence[str], written: Sequence[str], needed: Set[str]) -> None:
        signature = kernel.signature
        backwards = [each for each in kernel.backwards if not needed.isdisjoint(each.targets)]
        outputs = (*(p.name for p in signature.outputs if p.name not in names), *written)
        known = self.known = (*names, *outputs)
        present = {*known, *(dim.name for dim in signature.dims)}
        saved = [n for each in backwards for n in (*each.roles.values, *each.roles.dims) if n in present]
        arrays = [*dict.fromkeys(name for name in saved if name in kernel.arrays)]
        self.needed = needed
        self.numbers = [*dict.fromkeys(name for name in saved if name not in kernel.arrays)]  # and dimensions
        self.tensors = [len(known) - 1 - known[::-1].index(name) for name in arrays]  # places: the last value of each
        places = {name: place for place, name in enumerate((*arrays, *self.numbers))}
        self.steps = [_Step(each, places, outputs, names) for each in backwards]
        self.shapes = [name for step in self.steps for _, name in step.zeros]  # arguments whose shape is saved
        constant = [place for place, name in enumerate(outputs) if name not in kernel.differentiable]
        self.constant = constant if kernel.backwards else []  # places of the outputs that have no gradient
        # Whether autograd may ask for a part of what the steps compute.
        self.asks = len(kernel.backwards) != 1 or not needed <= kernel.backwards[0].targets


class Recording:
    """The `autograd.Function` of calls with the arguments `passed`; the kernel writes the arrays `written` among them.

    It takes the function that runs the call, then the arguments in the order `names`. Those that are written come
    first: autograd takes a view that is written for the first tensor.
    """

    def __init__(self, kernel: Gradients, passed: Sequence[str]) -> None:
        self.written = [p.name for p in kernel.signature.written if p.name in passed]
        self.names = (*self.written, *(name for name in passed if name not in self.written))
        self._passed = passed
        self._kernel = kernel
        self._plans: dict[tuple[bool, ...], _Plan] = {}
        functions = {"forward": staticmethod(self._forward), "backward": staticmethod(self._backward)}
        function: Any = type(kernel.signature.op, (_SingleLevelFunction,), functions)
        self._apply: Callable[..., tuple[Any, ...]] = function.apply

    def record(self, run: Callable[[], Any], arguments: Sequence[Any]) -> Any:
        """Call `run`, the kernel with these arguments, and return what it returns, with a history."""
        if written := self.written:
            values = dict(zip(self._passed, arguments, strict=True))
            self._kernel.check_written({name: values[name] for name in written}, values)
            arguments = [values[name] for name in self.names]
        if torch._C._are_functorch_transforms_active():
            # The dispatcher calls the op once for each transform, and each of these calls has a graph of its own.
            with enable_single_level_autograd_function():
                outputs = self._apply(_with_gradients(run), *arguments)  # rule: gradient-level
        else:
            outputs = self._apply(run, *arguments)
        return returned(outputs[: len(outputs) - len(written)] if written else outputs)

    def _forward(self, ctx: Any, run: Callable[[], Any], *arguments: Any) -> tuple[Any, ...]:
        """Return the allocated outputs, then the arrays that are written."""
        outputs = unpacked_outputs(run())
        if self.written:
            changed = arguments[: len(self.written)]
            ctx.mark_dirty(*changed)
            ctx.views = {name for name, array in zip(self.written, changed, strict=True) if array._is_view()}
            outputs = (*outputs, *changed)
        plan = self._plans.get(ctx.needs_input_grad)
        if plan is None:
            _, *needs_grad = ctx.needs_input_grad
            needed = {name for name, is_needed in zip(self.names, needs_grad, strict=True) if is_needed}
            plan = self._plans[ctx.needs_input_grad] = _Plan(self._kernel, self.names, self.written, needed)
        ctx.plan = plan
        if plan.constant:
            ctx.mark_non_differentiable(*[outputs[place] for place in plan.constant])
        known = (*arguments, *outputs)
        ctx.save_for_backward(*[known[place] for place in plan.tensors])
        ctx.numbers = ()
        if plan.numbers or plan.shapes:
            named = dict(zip(plan.known, known, strict=True))
            ctx.shapes = {name: (named[name].shape, named[name].dtype) for name in plan.shapes}
            if not named.keys() >= {*plan.numbers}:
                named = bind_dims(self._kernel.signature, named) | named
            ctx.numbers = tuple([named[name] for name in plan.numbers])
        return outputs

    def _backward(self, ctx: Any, *grads: torch.Tensor) -> tuple[torch.Tensor | None, ...]:
        plan: _Plan = ctx.plan
        needed = plan.needed
        if plan.asks:
            arrays = (name for name in self.names if name in self._kernel.arrays)
            asked = {name for name, (node, _) in zip(arrays, ctx.next_functions, strict=True) if _is_asked_for(node)}
            # Autograd asks for the gradient of a view that was written by the node of its base.
            needed = needed & (asked | ctx.views if self.written else asked)
            self._kernel.require(needed)
        known = (*ctx.saved_tensors, *ctx.numbers, *grads)
        gradients: dict[str, torch.Tensor] = {}
        for step in plan.steps:
            if not plan.asks or not needed.isdisjoint(step.backward.targets):
                gradients |= step.run(known, ctx.shapes if step.zeros else {})
        return (None, *[gradients[name] if name in needed else None for name in self.names])


def _is_asked_for(node: Any) -> bool:
    """Whether the running backward pass executes this node of the graph. A constant has no node: None."""
    try:
        return node is not None and torch._C._will_engine_execute_node(node)
    except RuntimeError:  # a leaf that `torch.autograd.grad` was called for  # rule: gradient-of-leaf
        return True
