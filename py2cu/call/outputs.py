"""Allocate the outputs that a call, a simulation or a check omits.

In: a `Signature` and arguments by name. Out: the arguments with every output. Errors: shapes that contradict each
other.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from py2cu.ir.abi.dims import bind_dims
from py2cu.ir.abi.signature import Signature, evaluate
from py2cu.ir.types import ArrayType


def allocate_outputs(signature: Signature, values: Mapping[str, Any]) -> dict[str, Any]:
    """A copy of `values` with the missing outputs allocated on the device of its first tensor, or the default device.

    An output with an `init=` value is filled with it; others are left uninitialised.

    Raises:
        ValueError: shapes that contradict each other.
        RuntimeError: no instance of a generic kernel takes these dtypes.
    """
    complete = dict(values)
    missing = [p for p in signature.instance(values).outputs if p.name not in values]
    if not missing:
        return complete
    dims, inits = bind_dims(signature, values), dict(signature.inits)
    devices = (value.device for value in values.values() if isinstance(value, torch.Tensor))
    device = next(devices, torch.get_default_device())
    for parameter in missing:
        assert isinstance(parameter.type, ArrayType)
        shape = [evaluate(dim, dims) for dim in parameter.type.dims]
        if (source := signature.leading_source(parameter.type)) is not None:
            leading, _ = signature.array_type(source).split(values[source].shape)
            shape[:1] = leading  # rule: leading-shape
        array = torch.empty(shape, dtype=getattr(torch, parameter.type.dtype.name), device=device)
        complete[parameter.name] = array.fill_(inits[parameter.name]) if parameter.name in inits else array
    return complete
