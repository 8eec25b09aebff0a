"""How a call is read: which argument, item of a tuple, default or extent supplies each parameter, and which overload.

In: a `Signature`, the types of a call's arguments. Out: a `Form` of plain tuples, which calls, their traces, the
operator, simulations and checks read their arguments by; the values by parameter. Errors: `TypeError`, with the usage.
The functions here are also traced by Dynamo, which takes a form as a constant.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from types import NoneType
from typing import Any, NamedTuple

import torch

from py2cu.call.bind import Readings, list_of, tuple_of
from py2cu.call.launchers.values import kind_of
from py2cu.dtypes import Kind
from py2cu.ir.abi.dims import bind_dims
from py2cu.ir.abi.parameters import Parameter
from py2cu.ir.abi.schemas import ALLOCATES, FILLS, ON_GRID
from py2cu.ir.abi.signature import Signature, evaluate
from py2cu.ir.types import ArrayType, is_complex

Values = dict[str, Any]
Launch = tuple[list[int], list[int]] | tuple[()]
"""The grid and the block of an explicit launch; empty for a call."""
ArgumentType = type | tuple[type, ...]
"""The type of an argument; of a tuple or a list, this type and then those of its items."""
Source = tuple[str, int | None, int | None, Any, str | None]
"""A parameter, and what supplies it: the place of an argument and, if that is a tuple, of a number in it; a constant;
or the array with an extent that determines it. All are None for a parameter that has no value, or that the op finds."""


class Form(NamedTuple):
    """How calls with arguments of certain types are read. Arguments have places: keywords follow positional ones."""

    overload: str  # of the op
    names: tuple[str, ...]  # what the arguments are, by place: parameters and tuple parameters
    sources: tuple[Source, ...]  # of every parameter, in order
    given: tuple[str, ...]  # outputs that the call passes
    allocated: tuple[str, ...]  # outputs that the op allocates: all or none
    missing: tuple[str, ...]  # outputs that are allocated before


class Layout:
    """The forms of one kernel's calls."""

    def __init__(self, signature: Signature) -> None:
        self.signature = signature
        self.readings = Readings(signature)
        self._of_tuples = Readings(signature.with_tuples()) if signature.tuples else self.readings
        self._forms: dict[tuple[object, ...], Form] = {}
        self._sources: dict[tuple[str, ...], tuple[Source, ...]] = {}
        self._integers = {p.name for p in signature.parameters if not p.is_array and kind_of(p) is Kind.INT}
        self.is_of_arrays = all(p.is_array and not p.may_be_none for p in signature.parameters)
        derived = (dim for dim in signature.dims if dim.name in signature.constexprs)
        self.extents = {(dim.name, dim.array): dim for dim in (*derived, *signature.measured)}

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any], *, on_grid: bool = False) -> tuple[Form, Values]:
        """The form of a call, or of an explicit launch, and the values by parameter."""
        named = tuple([(name, type_of(value)) for name, value in kwargs.items()])
        form = self.form(tuple(map(type_of, args)), named, on_grid=on_grid)
        return form, self.values(form.sources, (*args, *kwargs.values()))

    def form(
        self, types: tuple[ArgumentType, ...], named: tuple[tuple[str, ArgumentType], ...], *, on_grid: bool
    ) -> Form:
        """The form of calls with positional arguments of `types`, and keywords of `named` types.

        An explicit launch reads all parameters in order. Outputs, and numbers that a shape determines, may be absent.

        Raises:
            TypeError: too many, too few, unknown or repeated arguments, or one of the wrong type.
        """
        key = types, named, on_grid  # rule: tuple-by-types
        if key not in self._forms:
            names = self._names(types, dict(named), on_grid)
            of_arguments = (*types, *(each for _, each in named))
            present = tuple([n if each is not NoneType else "" for n, each in zip(names, of_arguments, strict=True)])
            outputs = [p.name for p in self.signature.outputs]
            given = tuple(name for name in outputs if name in present)
            others = tuple(name for name in outputs if name not in present)
            allocated, missing = (others, ()) if self.signature.are_allocated(given) else ((), others)
            overload = self.overload(given, on_grid=on_grid)
            self._forms[key] = Form(overload, names, self.sources(present), given, allocated, missing)
        return self._forms[key]

    def overload(self, passed: Container[str], *, on_grid: bool) -> str:
        """The overload of calls that pass these parameters."""
        signature = self.signature
        fills = bool(signature.outputs) and signature.op_allocates and not signature.are_allocated(passed)
        return ON_GRID if on_grid else FILLS if fills else ALLOCATES

    def _names(
        self, types: Sequence[ArgumentType], named: Mapping[str, ArgumentType], on_grid: bool
    ) -> tuple[str, ...]:
        """The parameter, or the tuple parameter, that each argument is."""
        tuples = self.signature.tuples
        outer, outer_named = [*map(_outer, types)], {name: _outer(each) for name, each in named.items()}
        if not tuples or not (types or any(name in named for name, _ in tuples)):
            return (*self.readings.fit(outer, outer_named, on_grid=on_grid), *named)  # also the numbers of tuples
        names = (*self._of_tuples.fit(outer, outer_named, on_grid=on_grid), *named)
        every: dict[str, Any] = dict(zip(names, (*types, *named.values()), strict=True))
        for name, numbers in tuples:
            if name in every:
                _, *items = every.pop(name)
                if len(items) != len(numbers):  # rule: tuple-length
                    what = f"takes {tuple_of(len(numbers))} as `{name}`, got one of {len(items)}"
                    raise TypeError(f"{self.readings.usage} {what}")
                every.update(zip(numbers, items, strict=True))
        self.readings.fit((), {name: _outer(each) for name, each in every.items()}, on_grid=on_grid)
        return names

    def sources(self, names: tuple[str, ...]) -> tuple[Source, ...]:
        """What supplies each parameter where these parameters and tuple parameters are passed, by place."""
        if names not in self._sources:
            tuples = dict(self.signature.tuples)
            places: dict[str, tuple[int, int | None]] = {}
            for place, name in enumerate(names):
                places[name] = place, None
                places |= {number: (place, item) for item, number in enumerate(tuples.get(name, ()))}
            self._sources[names] = tuple(self._source(p, places) for p in self.signature.parameters)
        return self._sources[names]

    def _source(self, parameter: Parameter, places: Mapping[str, tuple[int, int | None]]) -> Source:
        name, default = parameter.name, parameter.default
        if name in places:
            return name, *places[name], None, None
        array = next((array for each, array in self.extents if each == name and array in places), None)
        constant = default.value if default is not None and array is None else None  # rule: default-omitted
        return name, None, None, constant, array

    def require_launch(self, form: Form) -> None:
        """Refuse a call whose number of threads is unknown, and a launch with outputs that it does not pass."""
        name, missing = self.signature.name, (*form.allocated, *form.missing)
        on_grid = form.overload == ON_GRID
        if on_grid and missing:
            raise TypeError(f"{name}[grid, block](...) needs every argument; missing {list_of(missing)}")
        if self.signature.size is None and not on_grid:
            how = f"launch it as {name}[grid, block](...), or decorate it with @kernel(size=…)"
            raise TypeError(f"the number of threads of {name} is unknown: {how}")

    def values(self, sources: Sequence[Source], arguments: Sequence[Any]) -> Values:
        """The values by parameter, without outputs that are allocated and integers that the op finds.

        Raises:
            TypeError: an integer that is no valid template argument.
        """
        values = {name: value for name, value in passed(sources, arguments).items() if value is not None}
        for name, _, _, _, array in sources:
            if array is not None:
                type_, shape = self.signature.array_type(array), values[array].shape
                if (value := self.extents[name, array].measure(type_, shape, values)) is not None:
                    values[name] = value
            if name in self._integers and name in values and not isinstance(values[name], torch.SymInt):
                values[name] = self.readings.integer(name, values[name])
        return values

    def complete(self, values: Values) -> Values:
        """`values`, arguments by parameter, with defaults, and the integers that a shape determines."""
        if self.is_of_arrays:
            return values
        return self.values(self.sources(tuple(values)), tuple(values.values()))


# --- the op -------------------------------------------------------------------------------------------------------

OpArgument = tuple[str, str, str]
"""An argument of an overload: its name if it goes by keyword, its parameter, and the part of a complex number."""


def op_arguments(op: Any, parameters: Sequence[Parameter]) -> tuple[OpArgument, ...]:
    """The arguments of `op` for these parameters; a complex number is two."""
    parts = [(p.name, part) for p in parameters for part in (("real", "imag") if is_complex(p.type) else ("",))]
    arguments = zip(op._schema.arguments, parts, strict=False)
    return tuple((each.name if each.kwarg_only else "", name, part) for each, (name, part) in arguments)


def call_op(op: Any, arguments: Sequence[OpArgument], values: Mapping[str, Any], launch: Launch) -> Any:
    """Call an overload with values by parameter.

    They are passed by position where the schema allows it: Dynamo refuses a keyword `out` that is not contiguous.
    """
    in_order, named = [], {}
    for keyword, parameter, part in arguments:
        value = values[parameter]
        value = value.real if part == "real" else value.imag if part == "imag" else value
        if keyword:
            named[keyword] = value
        else:
            in_order.append(value)
    if launch:
        named["grid"], named["block"] = launch
    return op(*in_order, **named)


def passed(sources: Sequence[Source], arguments: Sequence[Any]) -> Values:
    """The values that a call passes to the op, by parameter: None for what the op finds."""
    return {
        name: constant if place is None else arguments[place] if item is None else arguments[place][item]
        for name, place, item, constant, _ in sources
    }


def type_of(value: Any) -> ArgumentType:
    """The type of an argument, and those of the items of a tuple or a list."""
    return (type(value), *[type(item) for item in value]) if isinstance(value, (tuple, list)) else type(value)


def _outer(type_: ArgumentType) -> type:
    return type_[0] if isinstance(type_, tuple) else type_


# --- outputs ------------------------------------------------------------------------------------------------------


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


def outputs_of(signature: Signature, values: Mapping[str, Any]) -> Any:
    """What a call returns: None without outputs, a single output itself, else a tuple in parameter order."""
    return returned(tuple(values[p.name] for p in signature.outputs))


def returned(outputs: tuple[Any, ...]) -> Any:
    """What a call or an op returns for these outputs."""
    return outputs[0] if len(outputs) == 1 else outputs or None


def unpacked_outputs(result: Any) -> tuple[Any, ...]:
    """The opposite of `returned`."""
    return result if isinstance(result, tuple) else () if result is None else (result,)
