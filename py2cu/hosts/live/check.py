"""Compare the C++ of a host function with its Python: on given arguments, or on invented ones of many shapes.

Where only data moves, results are equal; elsewhere they agree within the tolerance of their dtype, since the operators
of both are the same. Where the Python raises, the C++ raises an exception of the same type.
"""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any, Final

import torch

from py2cu.hosts.model.signatures import HostParameter, HostSignature
from py2cu.hosts.model.values import Kind
from py2cu.ir.abi.signature import evaluate
from py2cu.ir.visit import names_in

_CASES: Final = 40
_SIZES: Final = (1, 2, 3, 5, 8, 16, 33, 0)
_NUMBERS: Final[Mapping[Kind, tuple[Any, ...]]] = {
    Kind.INT: (0, 1, 2, 3, 5, -1, 16), Kind.FLOAT: (0.0, 1.0, -0.5, 2.25), Kind.BOOL: (False, True)
}  # fmt: skip


@dataclass(slots=True)
class HostReport:
    """What a check compared, and what differs; `unchecked` says why nothing was compared. `ok`: nothing differs."""

    name: str
    cases: int = 0
    raised: int = 0  # cases in which Python raises, and the C++ the same
    differences: list[str] = field(default_factory=list)
    unchecked: str = ""

    @property
    def ok(self) -> bool:
        return not self.differences

    def __str__(self) -> str:
        if self.unchecked:
            return f"{self.name}: not checked: {self.unchecked}"
        if self.differences:
            return "\n".join([f"{self.name}: the C++ differs from its Python", *self.differences[:3]])
        raised = f", {self.raised} of them errors" if self.raised else ""
        return f"{self.name}: agrees with its Python in {self.cases} cases{raised}"


def check_host(
    compiled: Callable[..., Any],
    function: FunctionType,
    signature: HostSignature,
    args: Sequence[Any],
    kwargs: Mapping[str, Any],
) -> HostReport:
    """Compare the calls `compiled` with those of the Python, on these arguments or on invented ones."""
    report = HostReport(signature.name)
    if args or kwargs:
        bound = inspect.signature(function).bind(*args, **kwargs)
        bound.apply_defaults()
        cases: Iterator[dict[str, Any]] = iter([dict(bound.arguments)])
    elif bare := [p.name for p in signature.parameters if p.array is None and p.kind in (Kind.TENSOR, Kind.TENSORS)]:
        report.unchecked = (
            f'`{bare[0]}` is a bare Tensor: annotate it, `Float32[Tensor, "n"]`, or pass arguments to `check`'
        )
        return report
    else:
        cases = invented(signature)
    for case in cases:
        report.cases += 1
        compare(compiled, function, case, report)
        if len(report.differences) >= 3:
            break
    return report


def compare(compiled: Callable[..., Any], function: FunctionType, case: Mapping[str, Any], report: HostReport) -> None:
    """Run both on copies of the arguments."""
    ours, theirs = _copies(case), _copies(case)
    named = inspect.signature(function).parameters
    by_keyword = {name for name, p in named.items() if p.kind is inspect.Parameter.KEYWORD_ONLY}
    one, other = _outcome(compiled, ours, by_keyword), _outcome(function, theirs, by_keyword)
    shown = ", ".join(f"{name}={_shown(value)}" for name, value in case.items())
    if isinstance(one, Exception) or isinstance(other, Exception):
        if type(one) is type(other):
            report.raised += 1
            return
        report.differences.append(f"  ({shown}): Python gives {_result(other)}, the C++ {_result(one)}")
        return
    pairs = [*zip(_tensors(one), _tensors(other), strict=False)]
    if len(_tensors(one)) != len(_tensors(other)):
        report.differences.append(
            f"  ({shown}): Python returns {len(_tensors(other))} tensors, the C++ {len(_tensors(one))}"
        )
        return
    pairs += [(ours[name], theirs[name]) for name in case if isinstance(case[name], torch.Tensor)]
    for mine, theirs_ in pairs:
        try:
            torch.testing.assert_close(mine, theirs_, equal_nan=True)
        except AssertionError as difference:
            report.differences.append(f"  ({shown}): {str(difference).splitlines()[0]}")
            return


def _outcome(function: Callable[..., Any], arguments: Mapping[str, Any], by_keyword: Set[str]) -> Any:
    positional = [value for name, value in arguments.items() if name not in by_keyword]
    try:
        return function(*positional, **{name: arguments[name] for name in by_keyword})
    except Exception as error:
        return error


def _tensors(result: Any) -> list[torch.Tensor]:
    return [] if result is None else [result] if isinstance(result, torch.Tensor) else [*result]


def _copies(case: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _copy(value) for name, value in case.items()}


def _copy(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    return [_copy(item) for item in value] if isinstance(value, list | tuple) else value


def _shown(value: Any) -> str:
    if isinstance(value, torch.Tensor):
        return f"{str(value.dtype).removeprefix('torch.')}{[*value.shape]}"
    return repr(value)


def _result(outcome: Any) -> str:
    return f"{type(outcome).__name__}: {outcome}" if isinstance(outcome, Exception) else "a result"


def invented(signature: HostSignature) -> Iterator[dict[str, Any]]:
    """Arguments of many shapes, dtypes and values, always the same ones."""
    chance = random.Random(20261126)
    generator = torch.Generator().manual_seed(20261126)
    arrays = [p.array for p in signature.parameters if p.array is not None]
    dims = dict.fromkeys(name for array in arrays for dim in array.dims for name in names_in(dim))
    variables = dict.fromkeys(array.dtype.variable for array in arrays if array.dtype.variable is not None)
    for number in range(_CASES):
        few = chance.sample(
            _SIZES[: 7 if number % 5 else 8], 1 + number % 3
        )  # so that sizes of two names are often equal
        sizes = {name: chance.choice(few) for name in dims}
        dtypes = {variable.symbol: chance.choice(variable.admits) for variable in variables}
        yield {p.name: _invented(p, sizes, dtypes, chance, generator) for p in signature.parameters}


def _invented(
    parameter: HostParameter, sizes: Mapping[str, int], dtypes: Mapping[str, Any], chance: random.Random, generator: Any
) -> Any:
    array = parameter.array
    if array is None:
        values = _NUMBERS[parameter.kind]
        default = parameter.default
        return default.known if default is not None and chance.random() < 0.3 else chance.choice(values)
    leading = [2] if array.leading else []
    shape = leading + [max(evaluate(dim, sizes), 0) for dim in array.dims[len(leading) :]]
    variable = array.dtype.variable
    dtype = getattr(torch, (dtypes[variable.symbol] if variable is not None else array.dtype).name)
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(shape, generator=generator).to(dtype)
    return torch.randint(0, 2 if dtype is torch.bool else 100, shape, generator=generator).to(dtype)
