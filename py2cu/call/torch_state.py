"""Whether a call may go to compiled code directly: plain tensors outside of autograd, modes, tracers and transforms.

The tests cost 0.2 microseconds. Where one fails, the dispatcher has to see the call as one of the op `py2cu::…`. And
whether a call may write to its tensors: inference tensors have no version counter, so that torch writes to them in
inference mode alone.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import torch
from torch import is_grad_enabled, is_inference_mode_enabled
from torch.autograd import forward_ad, profiler

from py2cu.call.launchers.likeness import PLAIN_TENSORS

_dispatch_modes = torch._C._len_torch_dispatch_stack  # fake tensors, `make_fx`, profilers of operators
_function_modes = torch._C._len_torch_function_stack
_transforms = torch._C._functorch.peek_interpreter_stack  # `vmap`, `grad`, `functionalize`
_tracer = torch._C._get_tracing_state  # `torch.jit.trace`
_is_legacy_batch = torch._C._functorch.is_legacy_batchedtensor
_is_of_functorch = torch._C._functorch.is_functorch_wrapped_tensor
_is_functional: Any = torch._is_functional_tensor
_any_requires_grad = torch._C._any_requires_grad


def is_plain(values: Iterable[Any]) -> bool:
    """Whether nothing but the compiled code has to see a call with these arguments."""
    if forward_ad._current_level >= 0:
        return False  # a tensor may have a tangent
    if _dispatch_modes() or _function_modes() or _transforms() is not None or _tracer() is not None:  # rule: plain-call
        return False
    return not (_any_requires_grad(*values) and is_grad_enabled())  # rule: plan-plain


def is_watched(values: Iterable[Any]) -> bool:
    """Whether a profiler, or a tensor around another one, has the dispatcher see a plain call.

    Tensors around others have no memory: those of `torch.autograd.grad(is_grads_batched=True)`, functional tensors, and
    those that outlived their transform.
    """
    if profiler._is_profiler_enabled:
        return True
    tensors = (value for value in values if isinstance(value, torch.Tensor))
    return any(_is_legacy_batch(each) or _is_functional(each) or _is_of_functorch(each) for each in tensors)


def has_python_mode() -> bool:
    """Whether a mode of Python functions, such as `with torch.device(…)`, or a transform of functorch is active."""
    return bool(_function_modes()) or _transforms() is not None


@lru_cache(maxsize=256)
def are_plain_types(types: tuple[object, ...]) -> bool:
    """Whether arguments of these types are no tensors of a subclass, which may dispatch on its own."""
    return all(each in PLAIN_TENSORS for each in types if isinstance(each, type) and issubclass(each, torch.Tensor))


def require_writable(kernel: str, written: Mapping[str, torch.Tensor]) -> None:
    """Refuse to write to inference tensors outside of inference mode, as torch's own operators do.

    Raises:
        RuntimeError: `written` has one; the message names the kernel and the argument.
    """
    for name, tensor in written.items():
        if tensor.is_inference() and not is_inference_mode_enabled():  # rule: inference-tensor
            what = f"{kernel}: `{name}` is written, and is an inference tensor outside of inference mode"
            raise RuntimeError(f"{what}; pass `{name}.clone()`, or call it under `torch.inference_mode()`")
