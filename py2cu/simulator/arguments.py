"""Convert a call's arguments for the simulated kernel, and its results back.

In: a `Signature` and the arguments by name: tensors and numbers. Out: `make_views`, an array of elements for every
tensor; `bind_arguments`, the value of each parameter in the simulated kernel; `write_back`, which copies the stored
elements to the tensor. Errors: a missing argument, an integer that its parameter's dtype does not hold.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Final

from py2cu.dtypes import Kind
from py2cu.ir.abi.parameters import Role
from py2cu.ir.abi.signature import Signature
from py2cu.ir.types import ArrayType, ElementType
from py2cu.simulator.memory.arrays import ArrayView, UnwrittenArray
from py2cu.simulator.memory.races import RaceCheckedArray, RaceCheckedUnwritten
from py2cu.simulator.state import THREAD
from py2cu.simulator.values.checked_int import truth
from py2cu.simulator.values.family import PyComplex, PyFloat, element_class
from py2cu.simulator.values.integer_elements import IntElement
from py2cu.simulator.values.uncertain_bits import raw_value

if TYPE_CHECKING:
    import torch


def make_views(signature: Signature, arguments: Mapping[str, Any], *, race_checked: bool) -> dict[str, ArrayView]:
    plain, unwritten = (RaceCheckedArray, RaceCheckedUnwritten) if race_checked else (ArrayView, UnwrittenArray)
    initialised = {name for name, _ in signature.inits}
    views: dict[str, ArrayView] = {}
    for parameter in signature.parameters:
        name, type_ = parameter.name, parameter.type
        if isinstance(type_, ArrayType) and name in arguments:
            is_unwritten = parameter.role is Role.OUTPUT and name not in initialised
            view = unwritten if is_unwritten else plain
            tensor = arguments[name]
            views[name] = view(name, type_.flattened(tensor.shape), type_.dtype, tensor.flatten().tolist())
    return views


_PYTHON_NUMBERS: Final[dict[Kind, Callable[[Any], object]]] = {
    Kind.BOOL: lambda value: truth(bool(value)),
    Kind.INT: lambda value: THREAD.integer(value),
    Kind.FLOAT: PyFloat.convert,
    Kind.COMPLEX: PyComplex.convert,
}


def bind_arguments(
    signature: Signature, arguments: Mapping[str, Any], dims: Mapping[str, int], views: Mapping[str, ArrayView]
) -> dict[str, object]:
    """The value of each parameter of the Python function: a view, an element or a Python number."""
    bound: dict[str, object] = {}
    for parameter in signature.parameters:
        name, type_ = parameter.name, parameter.type
        if parameter.may_be_none and name not in arguments:
            bound[name] = None
            continue
        if isinstance(type_, ArrayType):
            bound[name] = views[name]
            continue
        if name not in arguments and name not in dims:
            raise ValueError(f"`{signature.name}` needs the argument `{name}`")
        value: Any = arguments[name] if name in arguments else dims[name]
        if type(value).__module__ == "numpy":
            value = value.item()
        if isinstance(type_, ElementType):
            if type_.dtype.kind is Kind.INT and not type_.dtype.holds(value):  # the message of a compiled kernel
                raise ValueError(f"{signature.name}: `{name}` = {value} does not fit {type_.dtype}")
            bound[name] = element_class(type_.dtype).convert(value)
        else:
            bound[name] = _PYTHON_NUMBERS[type_.kind](value)
    for name, numbers in signature.tuples:
        bound[name] = tuple([bound.pop(number) for number in numbers])  # rule: tuple-order
    return bound


def write_back(view: ArrayView, tensor: torch.Tensor) -> None:
    """Write the elements that the kernel stored to `tensor`; all other elements keep their bits."""
    import torch

    from py2cu.simulator.tensor_bits import as_bits

    if not view.writes:
        return
    positions = list(view.writes)
    convert = {Kind.FLOAT: float, Kind.COMPLEX: complex}.get(view.dtype.dtype.kind, int)
    elements = (view.elements[position] for position in positions)
    numbers = [raw_value(value) if isinstance(value, IntElement) else convert(value) for value in elements]
    stored = torch.tensor(numbers, dtype=tensor.dtype, device="cpu")
    flat = tensor.detach().cpu().flatten().clone()
    as_bits(flat)[torch.tensor(positions, device="cpu")] = as_bits(stored)
    tensor.copy_(flat.reshape(tensor.shape))
