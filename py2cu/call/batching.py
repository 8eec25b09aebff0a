"""Run a kernel's op under `torch.func.vmap`: once where this is exact, else once for each element of the batch.

In: the arguments of a call, some of them batched. Out: batched outputs. Errors: `RuntimeError` for an array that the
kernel writes and that has no batch dimension, as for torch's own in-place operations.

    x of n elements, out of n elements, a batch of b        one call with b * n elements

The kernel has to compute independently along a dimension (`Signature.independent_dims`) that every batched array has:
the batch is merged into this dimension.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

import torch
from torch._C import _functorch
from torch._functorch.pyfunctorch import retrieve_current_functorch_interpreter

from py2cu.call.layout import returned, unpacked_outputs
from py2cu.ir.abi.schemas import ON_GRID
from py2cu.ir.abi.signature import Signature
from py2cu.ir.types import ArrayType, Constant, Name

_BATCHED: Final = torch._C.DispatchKeySet(torch._C.DispatchKey.FuncTorchBatched)
_AXES: Final = "xyz"
_MAX_BLOCKS: Final = 65_535  # of a grid in y and in z


class _Argument(NamedTuple):
    """An argument of the op; `axis` is its batch dimension, None for a number and for an array that all calls share."""

    value: Any
    array: str = ""  # the parameter, if it is an array
    axis: int | None = None
    is_written: bool = False

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape in each call."""
        return tuple(size for axis, size in enumerate(self.value.shape) if axis != self.axis)

    def slice(self, number: int) -> Any:
        return self.value if self.axis is None else self.value.select(self.axis, number)


class _Place(NamedTuple):
    """The dimension of an array into which the batch is merged."""

    type: ArrayType
    axis: int

    @property
    def is_leading(self) -> bool:
        """True for the product of leading extents: the batch is one extent more."""
        return bool(self.type.leading) and self.axis == 0

    def extents(self, shape: Sequence[int]) -> tuple[int, ...] | None:
        """The extents of the dimension in an array of this shape; None if it has too few or too many."""
        leading, others = self.type.split(shape)
        if len(others) != self.type.trailing:
            return None
        return leading if self.is_leading else (others[self.axis - bool(self.type.leading)],)

    def batch_axis(self, rank: int) -> int:
        """The batch dimension, before the dimension that it is merged into, in an array of one dimension more."""
        return 0 if self.is_leading else rank - len(self.type.dims) + self.axis

    def separate(self, argument: _Argument, size: int) -> torch.Tensor:
        """The array with the batch dimension in its place."""
        value: torch.Tensor = argument.value
        axis = self.batch_axis(len(argument.shape))
        if argument.axis is not None:
            return value.movedim(argument.axis, axis)
        return value.unsqueeze(axis).expand(*value.shape[:axis], size, *value.shape[axis:])

    def merge(self, separate: torch.Tensor) -> torch.Tensor:
        """The array that one launch takes: a view where memory has this order, else a copy."""
        axis = self.batch_axis(separate.ndim - 1)
        contiguous = separate.contiguous()
        return contiguous if self.is_leading else contiguous.flatten(axis, axis + 1)

    def split(self, merged: torch.Tensor, size: int, extent: int) -> torch.Tensor:
        if self.is_leading:
            return merged
        axis = self.batch_axis(merged.ndim)
        return merged.reshape(*merged.shape[:axis], size, extent, *merged.shape[axis + 1 :])


def run_batched(
    signature: Signature, arrays: Mapping[str, str], op: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Any:
    """Call `op` for each element of the batch of the innermost `vmap`; `arrays` are named by argument."""
    level = retrieve_current_functorch_interpreter().level()
    written = {argument.name for argument in op._schema.arguments if argument.alias_info is not None}
    passed = {**dict(zip((each.name for each in op._schema.arguments), args, strict=False)), **kwargs}
    arguments = {key: _Argument(value) for key, value in passed.items()}
    for key, value in passed.items():
        if isinstance(value, torch.Tensor):
            plain, axis = _functorch._unwrap_batched(value, level)
            arguments[key] = _Argument(plain, arrays[key], axis, key in written)
    sizes = [each.value.shape[each.axis] for each in arguments.values() if each.axis is not None]
    with torch._C._ExcludeDispatchKeyGuard(_BATCHED):  # the calls below are those of the next transform
        if not sizes:
            return op(*args, **kwargs)
        for key, argument in arguments.items():
            if argument.is_written and argument.axis is None:
                what = f"under `vmap`, {signature.name} writes `{key}`, which has no batch dimension"
                raise RuntimeError(f"{what}; pass an array with one")
        batch = _Batch(signature, op, arguments, sizes[0])
        merged = None if op._overloadname == ON_GRID else batch.find_merged_dimension()
        outputs = batch.call_each() if merged is None else batch.call_once(*merged)
    return returned(tuple(_functorch._add_batch_dim(array, axis, level) for array, axis in outputs))


class _Batch(NamedTuple):
    """A call of `op` for a batch of `size` elements."""

    signature: Signature
    op: Any
    arguments: Mapping[str, _Argument]
    size: int

    def find_merged_dimension(self) -> tuple[int, Mapping[str, _Place]] | None:
        """The extent of an independent dimension, and its places in the arrays that have it, the outputs included.

        The batch is merged into it. None where one launch cannot compute the whole batch. Arrays whose extents
        contradict each other are left to `call_each`, which refuses them with their shapes.
        """
        signature = self.signature
        arrays = [each for each in self.arguments.values() if each.array]
        batched = {each.array for each in arrays if each.axis is not None}
        for dim in signature.independent_dims:
            axes = signature.places_of(dim).items()
            places = {name: _Place(signature.array_type(name), axis) for name, axis in axes}
            if not places.keys() >= batched.union(p.name for p in signature.outputs):
                continue
            first, *others = [places[each.array].extents(each.shape) for each in arrays if each.array in places]
            if first is not None and all(each == first for each in others):
                extent = math.prod(first)
                if self._fits_grid(dim, extent * self.size):  # rule: vmap-grid
                    return extent, places
        return None

    def _fits_grid(self, dim: str, extent: int) -> bool:
        """Whether a launch may have so many threads along `dim`: a grid has fewer blocks in y and z than in x."""
        along = (index for index in self.signature.indices if isinstance(index.extent, Name) and index.extent.id == dim)
        axis = next((_AXES.index(index.axis) for index in along), 0)
        block = self.signature.block[axis : axis + 1]
        threads = int(block[0].value) if block and isinstance(block[0], Constant) else 1
        return axis == 0 or extent <= _MAX_BLOCKS * threads

    def call_once(self, extent: int, of_arrays: Mapping[str, _Place]) -> list[tuple[torch.Tensor, int]]:
        """The outputs with their batch dimensions, computed by one call with longer arrays."""
        places = {key: of_arrays[each.array] for key, each in self.arguments.items() if each.array in of_arrays}
        values = {
            key: places[key].separate(argument, self.size) if key in places else argument.value
            for key, argument in self.arguments.items()
        }
        given = {key: places[key].merge(value) if key in places else value for key, value in values.items()}
        results = self._call(values, given, lambda key, value: places[key].split(value, self.size, extent))
        of_outputs = [of_arrays[p.name] for p in self.signature.outputs][: len(results)]
        return [
            (place.split(result, self.size, extent), place.batch_axis(result.ndim - place.is_leading))
            for place, result in zip(of_outputs, results, strict=True)
        ]

    def call_each(self) -> list[tuple[torch.Tensor, int]]:
        """The outputs with their batch dimensions, computed by a call for each element."""
        if self.size == 0:
            what = f"under `vmap`, {self.signature.name} is called once for each element, and the batch has none"
            raise RuntimeError(f"{what}; pass a batch of at least one")
        calls = []
        for number in range(self.size):
            slices = {key: argument.slice(number) for key, argument in self.arguments.items()}
            dense = {key: value.contiguous() if self.arguments[key].array else value for key, value in slices.items()}
            calls.append(self._call(slices, dense, lambda _, value: value))
        return [(torch.stack(each), 0) for each in zip(*calls, strict=True)]

    def _call(
        self, values: Mapping[str, Any], given: dict[str, Any], back: Callable[[str, Any], Any]
    ) -> tuple[torch.Tensor, ...]:
        """Call the op with `given`, what it takes of the values; what it writes to copies comes `back` into these."""
        written = [key for key, each in self.arguments.items() if each.is_written and each.axis is not None]
        copied = [key for key in written if self._is_recorded or not values[key].is_contiguous()]
        given |= {key: given[key].clone() for key in copied if self._is_recorded}
        result = self.op(**given)
        for key in copied:
            values[key].copy_(back(key, given[key]))  # rule: vmap-written
        return unpacked_outputs(result)

    @property
    def _is_recorded(self) -> bool:
        """Whether autograd records the calls: then they update copies, since views may not be among several results."""
        arrays = (each.value for each in self.arguments.values() if each.array)
        return torch.is_grad_enabled() and any(array.requires_grad for array in arrays)  # rule: vmap-recorded
