"""Whether a call may go to compiled code directly: plain tensors outside of autograd, modes, tracers and transforms.

The tests cost 0.2 microseconds. Where one fails, the dispatcher has to see the call as one of the op `py2cu::…`.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

import torch
from torch import is_grad_enabled
from torch.autograd import forward_ad

_PLAIN_TENSORS: Final = frozenset({torch.Tensor, torch.nn.Parameter})

_dispatch_modes = torch._C._len_torch_dispatch_stack  # fake tensors, `make_fx`, profilers of operators
_function_modes = torch._C._len_torch_function_stack
_transforms = torch._C._functorch.peek_interpreter_stack  # `vmap`, `grad`, `functionalize`
_tracer = torch._C._get_tracing_state  # `torch.jit.trace`
_any_requires_grad = torch._C._any_requires_grad
increment_version = torch._C._increment_version


def is_plain(values: Iterable[Any]) -> bool:
    """Whether nothing but the compiled code has to see a call with these arguments."""
    if forward_ad._current_level >= 0:
        return False  # a tensor may have a tangent
    if _dispatch_modes() or _function_modes() or _transforms() is not None or _tracer() is not None:
        return False
    return not (_any_requires_grad(*values) and is_grad_enabled())


def are_plain_types(types: Iterable[object]) -> bool:
    """Whether arguments of these types are no tensors of a subclass, which may dispatch on its own."""
    return all(each in _PLAIN_TENSORS for each in types if isinstance(each, type) and issubclass(each, torch.Tensor))
