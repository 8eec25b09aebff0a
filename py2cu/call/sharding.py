"""Registers how DTensors shard a kernel's op over the devices of a mesh.

In: an overload of the op and the arguments of its first call with DTensors. Out: sharding strategies, registered with
torch. An index kernel is sharded along each of its independent dimensions (`Signature.independent_dims`): each device
computes its own elements, without communication. Torch redistributes arguments with other placements, replicates all
arguments of other kernels, and reduces partial tensors. Torch never drops the op of a registered strategy.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

import torch

from py2cu.ir.abi.schemas import ALLOCATES, ON_GRID
from py2cu.ir.abi.signature import Signature
from py2cu.ir.types import ArrayType

_REGISTERED: Final[weakref.WeakSet[Any]] = weakref.WeakSet()


def prepare(op: Any, signature: Signature, values: Mapping[str, Any], names: Mapping[str, str]) -> None:
    """Register the strategies of `op` before its first call with DTensors; other calls need none.

    `values` are the arguments by parameter, `names` the arrays by argument of the op.

    Raises:
        RuntimeError: a call that cannot be sharded; the message names the argument.
    """
    if (module := sys.modules.get("torch.distributed.tensor")) is None:  # importing it takes half a second
        return
    sharded = [name for name, value in values.items() if isinstance(value, module.DTensor)]
    if not sharded:
        return
    arrays: dict[str, Any] = {name: value for name, value in values.items() if isinstance(value, torch.Tensor)}
    if op._overloadname != ALLOCATES:
        what = "an explicit grid" if op._overloadname == ON_GRID else "`out=`"
        raise RuntimeError(f"{signature.name}: DTensors cannot be passed with {what}; leave it out")
    for name in arrays:
        if name not in sharded:
            what = f"`{name}` is a tensor, and `{sharded[0]}` a DTensor"
            raise RuntimeError(f"{signature.name}: {what}; pass `distribute_tensor({name}, mesh, [Replicate()])`")
    ranks = {name: array.ndim for name, array in arrays.items()}
    for name in (p.name for p in signature.written if p.name in arrays):
        placements = arrays[name].placements
        if not any({*placements} == {way[name]} for way in _ways(signature, ranks)):
            along = " or ".join(f"`{dim}`" for dim in signature.independent_dims)
            can = f"replicated, or sharded along {along} on every dimension of the mesh" if along else "replicated"
            what = f"`{name}` is written in place and must be {can}, but its placements are {placements}"
            raise RuntimeError(f"{signature.name}: {what}; pass `{name}.redistribute(…)`")
    if op not in _REGISTERED:
        from torch.distributed.tensor.experimental import register_sharding

        register_sharding(op)(_strategies(op, signature, names))
        _REGISTERED.add(op)


def _strategies(op: Any, signature: Signature, names: Mapping[str, str]) -> Callable[..., Any]:
    """A function that `register_sharding` takes: of the arguments of the op, the ways to shard a call."""
    in_order = [argument.name for argument in op._schema.arguments]

    def strategies(*args: Any, **kwargs: Any) -> list[tuple[list[Any], list[Any]]]:
        """For each way, the placements of what the op returns and of its arguments."""
        passed = {**dict(zip(in_order, args, strict=False)), **kwargs}
        given = {argument: name for argument, name in names.items() if passed.get(argument) is not None}
        arrays = {name: passed[argument] for argument, name in given.items()}
        written = [p.name for p in signature.written if p.name in arrays]
        returned = [p.name for p in signature.outputs if p.name not in arrays]
        chosen = []
        for way in _ways(signature, {name: value.ndim for name, value in arrays.items()}):
            if all({*arrays[name].placements} == {way[name]} for name in written):
                inputs = [way[given[each]] if each in given else None for each in in_order[: len(args)]]
                chosen.append(([way[name] for name in returned], inputs))
        return chosen

    return strategies


def _ways(signature: Signature, ranks: Mapping[str, int]) -> Iterator[dict[str, Any]]:
    """The placement of each array, for each way: replicas, and shards along an axis of an independent dimension.

    `ranks` are the numbers of dimensions of the arguments.
    """
    from torch.distributed.tensor import Replicate, Shard

    types = {p.name: signature.array_type(p.name) for p in signature.arrays}
    replicas = dict.fromkeys(types, Replicate())
    yield replicas
    leading = max((ranks[name] - type_.trailing for name, type_ in types.items() if name in ranks), default=0)
    for dim in signature.independent_dims:
        places = signature.places_of(dim)
        if not places.keys() >= {p.name for p in signature.written}:
            continue  # each device would hold a partial result
        spread = [name for name, place in places.items() if place == 0 and types[name].leading]
        if spread and len(spread) < len(places) and leading != 1:
            continue  # several leading axes of one array are a single axis of another
        for axis in range(leading) if spread else (0,):
            yield {**replicas, **{name: Shard(_axis(types[name], places[name], leading, axis)) for name in places}}


def _axis(type_: ArrayType, place: int, leading: int, axis: int) -> int:
    """The axis of a tensor that the extent at `place` describes; `axis`, if it is the product of leading axes."""
    if not type_.leading:
        return place
    return axis if place == 0 else leading + place - 1
