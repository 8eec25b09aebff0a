"""Whether a call may go to compiled code directly: plain tensors outside of modes, tracers and transforms.

Else the dispatcher has to see the call as one of the op `py2cu::…`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Any

import torch
from torch.autograd import forward_ad, profiler

from py2cu.call.launchers.likeness import PLAIN_TENSORS

_dispatch_modes = torch._C._len_torch_dispatch_stack  # fake tensors, `make_fx`, profilers of operators
_function_modes = torch._C._len_torch_function_stack
_transforms = torch._C._functorch.peek_interpreter_stack  # `vmap`, `grad`, `functionalize`
_tracer = torch._C._get_tracing_state  # `torch.jit.trace`


def is_plain(values: Iterable[Any]) -> bool:
    """Whether no mode, tracer or transform has to see a call with these arguments, and autograd does not record it."""
    return not (_has_mode() or (torch._C._any_requires_grad(*values) and torch.is_grad_enabled()))


def needs_dispatcher(values: Sequence[Any]) -> bool:
    """Whether torch's dispatcher has to see a call with these arguments, beside autograd."""
    if _has_mode() or profiler._is_profiler_enabled or not are_plain_types(tuple(map(type, values))):
        return True
    return any(_is_wrapper(value) for value in values if isinstance(value, torch.Tensor))


def _has_mode() -> bool:
    has_tangents = forward_ad._current_level >= 0
    return has_tangents or has_python_mode() or _dispatch_modes() > 0 or _tracer() is not None  # rule: plain-call


def has_python_mode() -> bool:
    """Whether a mode of Python functions, such as `with torch.device(…)`, or a transform of functorch is active."""
    return bool(_function_modes()) or _transforms() is not None


def _is_wrapper(tensor: torch.Tensor) -> bool:
    """Whether a tensor is around another one, and has no memory.

    Those are tensors of `torch.autograd.grad(is_grads_batched=True)`, functional ones, and those that outlived their
    transform.
    """
    functorch: Any = torch._C._functorch
    is_of_transform = functorch.is_legacy_batchedtensor(tensor) or functorch.is_functorch_wrapped_tensor(tensor)
    return is_of_transform or torch._is_functional_tensor(tensor)


@lru_cache(maxsize=256)
def are_plain_types(types: tuple[object, ...]) -> bool:
    """Whether arguments of these types are no tensors of a subclass, which may dispatch on its own."""
    return all(each in PLAIN_TENSORS for each in types if isinstance(each, type) and issubclass(each, torch.Tensor))
