"""Check the tensors of a call of a host function against their annotations, in the words of its C++."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from py2cu import ir
from py2cu.hosts.model.signatures import HostSignature
from py2cu.ir.abi.signature import evaluate
from py2cu.ir.printer import print_expr


def check_tensors(signature: HostSignature, arguments: Mapping[str, Any]) -> None:
    """Check dtypes, numbers of dimensions and extents.

    Raises:
        RuntimeError: a tensor does not fit; the message names it.
    """
    arrays = [(p, p.array, arguments[p.name]) for p in signature.parameters if p.array is not None]
    first: dict[str, str] = {}
    for parameter, array, tensor in arrays:
        dtype, variable = str(tensor.dtype).removeprefix("torch."), array.dtype.variable
        admitted = [each.name for each in array.dtype.admitted]
        if variable is not None:
            admitted = [first[variable.symbol]] if variable.symbol in first else admitted
            first.setdefault(variable.symbol, dtype)
        if dtype not in admitted:
            one_of = "one of " if len(admitted) > 1 else ""
            what = f"{signature.name}: `{parameter.name}` must be {one_of}{', '.join(admitted)}, got {dtype}"
            raise RuntimeError(what)
        least = "at least " if array.leading else ""
        count = array.trailing if array.leading else len(array.dims)
        if tensor.dim() < count or (tensor.dim() != count and not array.leading):
            what = f"{signature.name}: `{parameter.name}` must have {least}{count} dimensions, got {tensor.dim()}"
            raise RuntimeError(what)
    extents: dict[str, int] = {}
    pending = []
    for parameter, array, tensor in arrays:
        for axis, extent in [*enumerate(array.dims)][1 if array.leading else 0 :]:
            place = tensor.dim() - len(array.dims) + axis
            if isinstance(extent, ir.Name) and extent.id not in extents:
                extents[extent.id] = tensor.size(place)
            else:
                pending.append((parameter, place, extent, tensor.size(place)))
    for parameter, place, extent, found in pending:
        if set(ir.visit.names_in(extent)) <= extents.keys() and (wanted := evaluate(extent, extents)) != found:
            what = f"dimension {place} of `{parameter.name}` is `{print_expr(extent)}` = {wanted}, got {found}"
            raise RuntimeError(f"{signature.name}: {what}")
