"""Registers how DTensors shard a kernel's op over the devices of a mesh.

In: an overload of the op and the arguments of its first call with DTensors. Out: sharding strategies, registered with
torch. An index kernel is sharded along each of its independent dimensions (`Signature.independent_dims`): each device
computes its own elements, without communication. Torch redistributes arguments with other placements, replicates all
arguments of other kernels, and reduces partial tensors. Torch never drops the op of a registered strategy.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

import torch

from py2cu.ir.abi.parameters import Parameter, Role
from py2cu.ir.abi.schemas import ALLOCATES, ON_GRID
from py2cu.ir.abi.signature import Signature
from py2cu.ir.types import ArrayType, Name

_REGISTERED: Final[weakref.WeakSet[Any]] = weakref.WeakSet()


def have_dtensor(values: Iterable[object]) -> bool:
    """Whether one of `values` is a DTensor. Does not import DTensor's module, which takes half a second."""
    module = sys.modules.get("torch.distributed.tensor")
    return module is not None and any(isinstance(value, module.DTensor) for value in values)


def prepare(op: Any, signature: Signature, values: Mapping[str, Any], parameters: Mapping[str, Parameter]) -> None:
    """Register the strategies of `op` before its first call with DTensors.

    `values` are the arguments by parameter, `parameters` the array parameters by argument of the op.

    Raises:
        RuntimeError: a call that cannot be sharded; the message names the argument.
    """
    from torch.distributed.tensor import DTensor

    arrays = {name: value for name, value in values.items() if isinstance(value, torch.Tensor)}
    if op._overloadname != ALLOCATES:
        what = "an explicit grid" if op._overloadname == ON_GRID else "`out=`"
        raise RuntimeError(f"{signature.name}: DTensors cannot be passed with {what}; leave it out")
    sharded = next(name for name, value in arrays.items() if isinstance(value, DTensor))
    for name, value in arrays.items():
        if not isinstance(value, DTensor):
            what = f"`{name}` is a tensor, and `{sharded}` a DTensor"
            raise RuntimeError(f"{signature.name}: {what}; pass `distribute_tensor({name}, mesh, [Replicate()])`")
    sharding = _Sharding(op, signature, parameters)
    written: dict[str, Any] = {
        p.name: arrays[p.name] for p in signature.parameters if p.role is not Role.INPUT and p.name in arrays
    }
    for name, value in written.items():
        ranks = {each: array.ndim for each, array in arrays.items()}
        fitting = [strategy for strategy in sharding.by_name(ranks) if {*value.placements} == {strategy[name]}]
        if not fitting:
            along = " or ".join(f"`{dim}`" for dim in signature.independent_dims)
            can = f"replicated, or sharded along {along} on every dimension of the mesh" if along else "replicated"
            what = f"`{name}` is written in place and must be {can}, but its placements are {value.placements}"
            raise RuntimeError(f"{signature.name}: {what}; pass `{name}.redistribute(…)`")
    if op not in _REGISTERED:
        from torch.distributed.tensor.experimental import register_sharding

        register_sharding(op)(sharding.strategies)
        _REGISTERED.add(op)


@dataclass(frozen=True, slots=True)
class _Sharding:
    """The ways to shard the calls of one op. `parameters` are the array parameters by argument of the op."""

    op: Any
    signature: Signature
    parameters: Mapping[str, Parameter]

    def strategies(self, *args: Any, **kwargs: Any) -> list[tuple[list[Any], list[Any]]]:
        """For each way, the placements of what the op returns and of its arguments, as `register_sharding` asks."""
        names = [argument.name for argument in self.op._schema.arguments]
        given = {name: value for name, value in (*zip(names, args, strict=False), *kwargs.items()) if value is not None}
        arrays = {self.parameters[name].name: value for name, value in given.items() if name in self.parameters}
        written = [p.name for p in self.signature.parameters if p.role is not Role.INPUT and p.name in arrays]
        returned = [p.name for p in self.signature.outputs if p.name not in arrays]
        chosen = []
        for placements in self.by_name({name: value.ndim for name, value in arrays.items()}):
            if all({*arrays[name].placements} == {placements[name]} for name in written):
                inputs = [placements[self.parameters[name].name] if name in self.parameters and name in given else None
                          for name in names[: len(args)]]  # fmt: skip
                chosen.append(([placements[name] for name in returned], inputs))
        return chosen

    def by_name(self, ranks: Mapping[str, int]) -> Iterator[dict[str, Any]]:
        """The placement of each array, for each way: replicas, and shards along an axis of an independent dimension.

        `ranks` are the numbers of dimensions of the arguments.
        """
        from torch.distributed.tensor import Replicate, Shard

        arrays = {p.name: p.type for p in self.signature.parameters if isinstance(p.type, ArrayType)}
        written = {p.name for p in self.signature.written}
        yield dict.fromkeys(arrays, Replicate())
        leading = max((ranks[name] - type_.trailing for name, type_ in arrays.items() if name in ranks), default=0)
        for dim in self.signature.independent_dims:
            places = {name: at for name, type_ in arrays.items() if (at := _place(type_, dim)) is not None}
            if not places.keys() >= written:
                continue  # each device would hold a partial result
            spread = [name for name, at in places.items() if at == 0 and arrays[name].leading]
            if spread and len(spread) < len(places) and leading != 1:
                continue  # several leading axes of one array are a single axis of another
            for axis in range(leading) if spread else (0,):
                yield {
                    name: Shard(_axis(type_, places[name], leading, axis)) if name in places else Replicate()
                    for name, type_ in arrays.items()
                }


def _place(type_: ArrayType, dim: str) -> int | None:
    """The place of the extent that is `dim`."""
    return next((at for at, extent in enumerate(type_.dims) if isinstance(extent, Name) and extent.id == dim), None)


def _axis(type_: ArrayType, place: int, leading: int, axis: int) -> int:
    """The axis of a tensor that the extent at `place` describes; `axis`, if it is the product of leading axes."""
    if not type_.leading:
        return place
    return axis if place == 0 else leading + place - 1
