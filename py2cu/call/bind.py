"""Bind the arguments of a call to parameters: one rule for calls, explicit launches, `simulate` and `check`.

In: positional and keyword arguments. Out: `BoundArguments`, the values by parameter. Errors: `TypeError`, with the
usage.

A reading assigns parameters to positional arguments. It fits if the number, names and kinds (tensor, number) of the
arguments do and no required input is missing. The first reading that fits wins:

    def scaled(blockIdx, x: Float32[Tensor, "h w"], out: Float32[Tensor, "h w"], h: int, by: float = 2.0): …

    scaled(x, 4, 3.0)         the inputs in order
    scaled(x)                 the inputs without those that a shape determines or a default supplies
    scaled(x, y, 4, 3.0)      all parameters in order
    scaled(x, y, 3.0)         all parameters without those that a shape determines

Each reading may end early: a call may omit trailing outputs and numbers with defaults. If the numbers of the first
reading that fits have the wrong types, a later reading whose types match is taken instead. An explicit launch reads all
parameters in order, and tries no other reading.
"""

from __future__ import annotations

import functools
import numbers
import operator
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from types import NoneType
from typing import Any, Final, NamedTuple

import torch

from py2cu.call.argument_checks import check_arguments
from py2cu.dtypes import DType, Kind
from py2cu.ir.abi.parameters import CONSTEXPR_MAX, Parameter, Role, TupleParameter, is_constexpr_value
from py2cu.ir.abi.signature import Dim, Signature
from py2cu.ir.abi.tuples import flatten, tuple_of
from py2cu.ir.types import ElementType, PythonType

Values = dict[str, Any]
Reading = tuple[Parameter, ...]

_SYMBOLS: Final = (torch.SymInt, torch.SymFloat)  # numbers while a call is traced
_NUMBERS: Final[Mapping[Kind, tuple[str, tuple[type, ...]]]] = {
    Kind.BOOL: ("a bool", (bool, torch.SymBool)),
    Kind.INT: ("a whole number", (numbers.Integral, torch.SymInt)),
    Kind.FLOAT: ("a number", (numbers.Real, *_SYMBOLS)),
    Kind.COMPLEX: ("a complex number", (numbers.Complex, *_SYMBOLS)),
}


class BoundArguments(NamedTuple):
    """The arguments of a call by name, defaults included, and the names of the positional ones."""

    values: Values
    positional: tuple[str, ...]


class ArgumentBinder:
    """Binds the arguments of one kernel's calls; the only place that accepts or refuses an argument in Python."""

    def __init__(self, signature: Signature) -> None:
        self.signature = signature
        positional = [p for p in signature.parameters if not p.by_keyword]  # rule: default-by-keyword
        not_derived = tuple(p for p in positional if not signature.is_derived(p))
        self._inputs = _among(positional, signature.inputs)
        self._all: Reading = tuple(positional)
        self._required = _among(positional, signature.required)
        self._readings = (self._inputs, self._required, self._all, not_derived)  # rule: output-readings
        has_tuples = any(isinstance(p, TupleParameter) for p in signature.parameters)
        # The binder of calls that pass tuples.
        self.of_tuples = ArgumentBinder(signature.with_tuples()) if signature.tuples and not has_tuples else self
        self._positional: dict[tuple[object, ...], tuple[str, ...]] = {}  # by the types of calls with tuples
        self._names_in_tuples = {
            number: (name, f"{name}[{place}]")
            for name, numbers in signature.tuples
            for place, number in enumerate(numbers)
        }

    def bind(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> BoundArguments:
        """Bind the arguments of a call; outputs, and numbers that a shape determines, may be absent.

        Raises:
            TypeError: too many, too few, unknown or repeated arguments, or one of the wrong type.
        """
        if self.may_pass_tuples(args, kwargs):
            args, kwargs = (), self.flatten(args, kwargs, in_order=False)
        return self._bound(self._readings, args, kwargs)

    def bind_in_order(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> BoundArguments:
        """Bind the arguments of an explicit launch: all parameters, in order.

        Raises:
            TypeError: as `bind`.
        """
        if self.may_pass_tuples(args, kwargs):
            args, kwargs = (), self.flatten(args, kwargs, in_order=True)
        return self._bound((self._all,), args, kwargs)  # rule: default-binder

    def may_pass_tuples(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> bool:
        """Whether some of these arguments may be tuples; false for calls that `flatten` has changed."""
        tuples = self.signature.tuples
        return bool(tuples) and (bool(args) or any(name in kwargs for name, _ in tuples))

    def flatten(self, args: Sequence[Any], kwargs: Mapping[str, Any], *, in_order: bool) -> Values:
        """The arguments by name, with each tuple replaced by its numbers; `in_order` for an explicit launch.

        Raises:
            TypeError: as `bind`, or as `bind_in_order`.
        """
        key = in_order, *map(type, args), *kwargs, *map(type, kwargs.values())  # rule: tuple-by-types
        if (names := self._positional.get(key)) is None:
            types = {name: type(value) for name, value in kwargs.items()}
            names = self._positional[key] = self.of_tuples.positional([*map(type, args)], types, in_order=in_order)
        return flatten(self.usage, self.signature.tuples, {**dict(zip(names, args, strict=True)), **kwargs})

    def positional(self, types: Sequence[type], named: Mapping[str, type], *, in_order: bool) -> tuple[str, ...]:
        """The parameters that positional arguments of these types are bound to, beside those of `named` types.

        Raises:
            TypeError: as `bind`, or as `bind_in_order`.
        """
        return self._first_fit((self._all,) if in_order else self._readings, types, named)

    def _bound(self, readings: Sequence[Reading], args: Sequence[Any], kwargs: Mapping[str, Any]) -> BoundArguments:
        types = {name: type(value) for name, value in kwargs.items()}
        names = self._first_fit(readings, [*map(type, args)], types)
        return BoundArguments(self.complete({**dict(zip(names, args, strict=True)), **kwargs}), names)

    def _first_fit(
        self, readings: Sequence[Reading], types: Sequence[type], named: Mapping[str, type]
    ) -> tuple[str, ...]:
        problems, wrong_type = [], None
        for reading in readings:
            positional = {p.name: each for p, each in zip(reading, types, strict=False)}
            problem = self._misfit(reading, positional, len(types), named)
            if problem is None and (mismatch := self._type_mismatch({**positional, **named}, _types_of)) is None:
                return tuple(positional)
            if problem is None and wrong_type is None:
                wrong_type = mismatch
            problems.append(problem or "")
        if wrong_type is not None:
            raise TypeError(f"{self.usage} {wrong_type}")
        if len(readings) == 1:
            order = ", ".join(p.name for p in self._all)
            raise TypeError(f"{self.usage} {problems[0]}; an explicit launch reads its arguments in order: {order}")
        # Report the problem of the first reading or, for more arguments than inputs, of all parameters in order.
        problem = problems[0 if len(types) <= len(self._inputs) else 2]
        raise TypeError(f"{self.usage} {problem}{self._advice(len(types))}")

    def _misfit(
        self, reading: Reading, positional: Mapping[str, type], count: int, named: Mapping[str, type]
    ) -> str | None:
        """The reason why the arguments do not fit a reading (number, names or kinds), or None if they do."""
        if count > len(reading):
            return f"takes {len(reading)} positional argument{'s' * (len(reading) != 1)}, got {count}"
        names = {p.name for p in self.signature.parameters}
        if unknown := [name for name in named if name not in names]:
            return f"has no parameter {_list(unknown)}"
        if repeated := [name for name in named if name in positional]:
            return f"got {_list(repeated)} twice"
        types = {**positional, **named}
        missing = [p.name for p in self.signature.required if p.name not in types]
        if missing := [name for name in missing if self.source(name, types) is None]:
            shown = dict.fromkeys(self._names_in_tuples.get(name, (name,))[0] for name in missing)
            return f"is missing {_list([*shown])}{self._way_to_fill(missing[0])}"
        return self._type_mismatch(types, _kinds_of)

    def _way_to_fill(self, name: str) -> str:
        """How a call allocates the array `name`, which the kernel reads and writes; nothing for other parameters."""
        if self.signature.parameter(name).role is not Role.INOUT:
            return ""
        return f'; the kernel reads it, too: give it, or let calls allocate and fill it, `init={{"{name}": 0}}`'

    def _type_mismatch(
        self, types: Mapping[str, type], accepted: Callable[[Parameter], tuple[type, ...]]
    ) -> str | None:
        """A message about the first argument that is not of the types that `accepted` gives for its parameter."""
        for name, each in types.items():
            parameter = self.signature.parameter(name)
            if not issubclass(each, accepted(parameter)) and not (each is NoneType and parameter.may_be_none):
                _, name = self._names_in_tuples.get(name, (name, name))
                return f"takes {_described(parameter)} as `{name}`, got {_type_name(each)}"
        return None

    def _advice(self, count: int) -> str:
        """The parameters to pass by name, for a call with more positional arguments than required inputs."""
        if count <= len(self._required):
            return ""
        outputs = [f"{p.name}=" for p in self.signature.outputs if not p.by_keyword]
        by_keyword = [f"{p.name}=" for p in self.signature.parameters if p.by_keyword]
        advice = f"; pass outputs by name: {', '.join(outputs)}" if outputs else ""
        return advice + (f"; keyword-only: {', '.join(by_keyword)}" if by_keyword else "")

    def accept(self, values: Mapping[str, Any], *, on_grid: bool = False) -> str:
        """Check bound arguments, and return the device to run on, "cuda" or "cpu"; `on_grid`: of an explicit launch.

        Raises:
            RuntimeError: a tensor of the wrong device, dtype, shape or layout, or a number out of range.
        """
        return check_arguments(self.signature, values, on_grid=on_grid)

    def require_launch(self, missing: Sequence[str], *, on_grid: bool) -> None:
        """Refuse a call whose number of threads is unknown, and a launch with outputs `missing`.

        Raises:
            TypeError: as said.
        """
        name = self.signature.name
        if on_grid and missing:
            raise TypeError(f"{name}[grid, block](...) needs every argument; missing {_list(missing)}")
        if self.signature.size is None and not on_grid:
            how = f"launch it as {name}[grid, block](...), or decorate it with @kernel(size=…)"
            raise TypeError(f"the number of threads of {name} is unknown: {how}")

    def complete(self, values: Values) -> Values:
        """Add the defaults of missing numbers, and the integers that a shape determines and the op does not find.

        An optional parameter that is None counts as missing.

        Raises:
            TypeError: an integer that is no valid template argument.
        """
        complete = dict(values)
        if self._takes_all:
            return complete
        for parameter in self.signature.parameters:
            name = parameter.name
            if parameter.may_be_none and complete.get(name) is None:
                complete.pop(name, None)
            if name not in complete and (value := self._omitted(parameter, complete)) is not None:
                complete[name] = value
            if name in complete and name in self.signature.constexpr_ints:
                complete[name] = self._number(name, complete[name])
            is_symbol = isinstance(complete.get(name), torch.SymInt)
            if name in complete and not parameter.is_array and _kind(parameter) is Kind.INT and not is_symbol:
                complete[name] = int(complete[name])  # NumPy's integers become Python's
        return complete

    @functools.cached_property
    def _takes_all(self) -> bool:
        """Whether every parameter is an array that a call cannot leave out."""
        return all(p.is_array and not p.may_be_none for p in self.signature.parameters)

    def source(self, name: str, values: Container[str]) -> Dim | None:
        """The array argument whose extent supplies an omitted integer of the op; None if no array does."""
        return next((dim for dim in self.signature.measured if dim.name == name and dim.array in values), None)

    def _omitted(self, parameter: Parameter, values: Mapping[str, Any]) -> Any:
        """The value of a number that a call omits; None if the op finds it, or its array has too few dimensions."""
        dims = self.signature.dims if parameter.constexpr is not None else ()
        derived = (dim for dim in dims if dim.name == parameter.name and dim.array in values)
        dim = next(derived, None) or self.source(parameter.name, values)
        if dim is None:
            return parameter.default.value if parameter.default is not None else None  # rule: default-omitted
        return dim.measure(self.signature.array_type(str(dim.array)), values[str(dim.array)].shape, values)

    def _number(self, name: str, value: Any) -> Any:
        if isinstance(value, torch.SymInt):
            return value  # the op gets the number
        number = value if isinstance(value, bool) else operator.index(value)
        if not is_constexpr_value(number):
            what = f"a whole number from 0 to {CONSTEXPR_MAX}"
            raise TypeError(f"{self.usage} takes {what} as `{name}`, got {number}")
        return number

    @functools.cached_property
    def usage(self) -> str:
        """The call as messages show it: `rgb2grey(x, out=None)`."""
        if self.of_tuples is not self:
            return self.of_tuples.usage
        parameters = (*self.signature.inputs, *self.signature.outputs)
        positional = [self._shown(p) for p in parameters if not p.by_keyword]
        named = [self._shown(p) for p in parameters if p.by_keyword]
        return f"{self.signature.name}({', '.join([*positional, *(['*'] if named else []), *named])})"

    def _shown(self, parameter: Parameter) -> str:
        if parameter.default is not None:
            return f"{parameter.name}={parameter.default.text or parameter.default.value}"
        is_required = parameter in self.signature.required
        return parameter.name if is_required else f"{parameter.name}=None"


def _among(parameters: Iterable[Parameter], selected: Sequence[Parameter]) -> Reading:
    return tuple(p for p in parameters if p in selected)


def _list(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _type_name(kind: type) -> str:
    """The name of a type, for NumPy's with the library: its `bool` is not Python's."""
    return f"numpy.{kind.__name__}" if kind.__module__ == "numpy" else kind.__name__


def _kinds_of(parameter: Parameter) -> tuple[type, ...]:
    if isinstance(parameter, TupleParameter):
        return (tuple, list)  # rule: tuple-or-list
    return (torch.Tensor,) if parameter.is_array else (numbers.Number, *_SYMBOLS, torch.SymBool)


def _types_of(parameter: Parameter) -> tuple[type, ...]:
    if isinstance(parameter, TupleParameter) or parameter.is_array:
        return _kinds_of(parameter)
    return _NUMBERS[_kind(parameter)][1]


def _described(parameter: Parameter) -> str:
    if isinstance(parameter, TupleParameter):
        return tuple_of(len(parameter.numbers))
    return "a tensor" if parameter.is_array else _NUMBERS[_kind(parameter)][0]


def _kind(parameter: Parameter) -> Kind:
    match parameter.type:
        case ElementType(dtype=DType(kind=kind)) | PythonType(kind=kind):
            return kind
        case _:
            raise AssertionError(parameter)
