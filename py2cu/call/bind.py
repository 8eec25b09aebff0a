"""Bind the arguments of a call to parameters: one rule for calls, explicit launches, `simulate` and `check`.

In: the types of positional and keyword arguments. Out: the parameters that the positional ones are. Errors:
`TypeError`, with the usage.

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
from collections.abc import Container, Mapping, Sequence
from types import NoneType
from typing import Any

import torch

from py2cu.call.launchers.values import NUMBERS, SYMBOLS, kind_of
from py2cu.ir.abi.parameters import CONSTEXPR_MAX, Parameter, Role, TupleParameter, is_constexpr_value
from py2cu.ir.abi.signature import Signature

Reading = tuple[Parameter, ...]


class Readings:
    """The readings of one kernel's calls; with those of `check_arguments`, all that refuses an argument in Python."""

    def __init__(self, signature: Signature) -> None:
        self.signature = signature
        positional = [p for p in signature.parameters if not p.by_keyword]  # rule: default-by-keyword
        not_derived = tuple(p for p in positional if not signature.is_derived(p))
        self._all: Reading = tuple(positional)
        self._inputs = tuple(p for p in positional if p in signature.inputs)
        self._required = tuple(p for p in positional if p in signature.required)
        self._readings = (self._inputs, self._required, self._all, not_derived)  # rule: output-readings
        self._names_in_tuples = {
            number: (name, f"{name}[{place}]")
            for name, numbers in signature.tuples
            for place, number in enumerate(numbers)
        }

    def fit(self, types: Sequence[type], named: Mapping[str, type], *, on_grid: bool) -> tuple[str, ...]:
        """The parameters that positional arguments of these types are, beside those of `named` types."""
        readings = (self._all,) if on_grid else self._readings  # rule: default-binder
        problems, wrong_type = [], ""
        for reading in readings:
            positional = {p.name: each for p, each in zip(reading, types, strict=False)}
            problem = self._misfit(reading, positional, len(types), named)
            mismatch = problem or self._type_mismatch({**positional, **named}, exactly=True)
            if not mismatch:
                return tuple(positional)
            if not problem:
                wrong_type = wrong_type or mismatch
            problems.append(problem)
        if wrong_type:
            raise TypeError(f"{self.usage} {wrong_type}")
        if len(readings) == 1:
            order = ", ".join(p.name for p in self._all)
            raise TypeError(f"{self.usage} {problems[0]}; an explicit launch reads its arguments in order: {order}")
        # Report the problem of the first reading or, for more arguments than inputs, of all parameters in order.
        problem = problems[0 if len(types) <= len(self._inputs) else 2]
        raise TypeError(f"{self.usage} {problem}{self._advice(len(types))}")

    def _misfit(self, reading: Reading, positional: Mapping[str, type], count: int, named: Mapping[str, type]) -> str:
        """The reason why the arguments do not fit a reading (number, names or kinds); empty if they do."""
        if count > len(reading):
            return f"takes {len(reading)} positional argument{'s' * (len(reading) != 1)}, got {count}"
        names = {p.name for p in self.signature.parameters}
        if unknown := [name for name in named if name not in names]:
            return f"has no parameter {list_of(unknown)}"
        if repeated := [name for name in named if name in positional]:
            return f"got {list_of(repeated)} twice"
        types = {**positional, **named}
        missing = [p.name for p in self.signature.required if p.name not in types]
        if missing := [name for name in missing if self.signature.measured_by(name, types) is None]:
            shown = dict.fromkeys(self._names_in_tuples.get(name, (name,))[0] for name in missing)
            return f"is missing {list_of([*shown])}{self._way_to_fill(missing[0])}"
        return self._type_mismatch(types, exactly=False)

    def _way_to_fill(self, name: str) -> str:
        """How a call allocates the array `name`, which the kernel reads and writes; nothing for other parameters."""
        if self.signature.parameter(name).role is not Role.INOUT:
            return ""
        return f'; the kernel reads it, too: give it, or let calls allocate and fill it, `init={{"{name}": 0}}`'

    def _type_mismatch(self, types: Mapping[str, type], *, exactly: bool) -> str:
        """A message about the first argument that is not of its parameter's kind or, `exactly`, its types."""
        for name, each in types.items():
            parameter = self.signature.parameter(name)
            description, kinds, accepted = _accepted(parameter)
            is_left_out = each is NoneType and parameter.may_be_none
            if not is_left_out and not issubclass(each, accepted if exactly else kinds):
                _, name = self._names_in_tuples.get(name, (name, name))
                library = "numpy." * (each.__module__ == "numpy")  # its `bool` is not Python's
                return f"takes {description} as `{name}`, got {library}{each.__name__}"
        return ""

    def _advice(self, count: int) -> str:
        """The parameters to pass by name, for a call with more positional arguments than required inputs."""
        if count <= len(self._required):
            return ""
        outputs = [f"{p.name}=" for p in self.signature.outputs if not p.by_keyword]
        by_keyword = [f"{p.name}=" for p in self.signature.parameters if p.by_keyword]
        advice = f"; pass outputs by name: {', '.join(outputs)}" if outputs else ""
        return advice + (f"; keyword-only: {', '.join(by_keyword)}" if by_keyword else "")

    def integer(self, name: str, value: Any) -> int:
        """A whole number, also NumPy's, as Python's own.

        Raises:
            TypeError: it is no valid template argument, and the parameter is one.
        """
        if name in self.signature.constexpr_ints:
            number = value if isinstance(value, bool) else operator.index(value)
            if not is_constexpr_value(number):
                what = f"a whole number from 0 to {CONSTEXPR_MAX}"
                raise TypeError(f"{self.usage} takes {what} as `{name}`, got {number}")
        return int(value)

    @functools.cached_property
    def usage(self) -> str:
        """The call as messages show it: `rgb2grey(x, out=None)`."""
        signature = self.signature.with_tuples()
        required = signature.required
        parameters = (*signature.inputs, *signature.outputs)
        positional = [_shown(p, required) for p in parameters if not p.by_keyword]
        named = [_shown(p, required) for p in parameters if p.by_keyword]
        return f"{signature.name}({', '.join([*positional, *(['*'] if named else []), *named])})"


def _shown(parameter: Parameter, required: Container[Parameter]) -> str:
    if parameter.default is not None:
        return f"{parameter.name}={parameter.default.text or parameter.default.value}"
    return parameter.name if parameter in required else f"{parameter.name}=None"


def list_of(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def tuple_of(count: int) -> str:
    return f"a tuple of {count} number{'s' * (count != 1)}"


def _accepted(parameter: Parameter) -> tuple[str, tuple[type, ...], tuple[type, ...]]:
    """What a parameter takes: in words, the types of its kind (tensor, tuple, number), and the right ones of these."""
    if isinstance(parameter, TupleParameter):
        types = (tuple, list)  # rule: tuple-or-list
        return tuple_of(len(parameter.numbers)), types, types
    if parameter.is_array:
        return "a tensor", (torch.Tensor,), (torch.Tensor,)
    description, accepted = NUMBERS[kind_of(parameter)]
    return description, (numbers.Number, *SYMBOLS, torch.SymBool), accepted
