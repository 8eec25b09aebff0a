"""What a body asks of the device functions that it calls, and what a nested one captures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

import libcst as cst

from py2cu import ir
from py2cu.frontend.bodies.tuples.forms import Form
from py2cu.frontend.bodies.views import ArrayArgument
from py2cu.frontend.declarations.arguments import Argument
from py2cu.frontend.names.constants import Constants, Real
from py2cu.frontend.source.imports import DeviceFunction

ArgumentKind: TypeAlias = "ArrayArgument | Form"  # what distinguishes the instances of a device function


class DeviceFunctions(Protocol):
    """Reads the device functions that a kernel calls."""

    def named(self, node: cst.BaseExpression) -> DeviceFunction | None:
        """The device function that `node` names."""

    def missing(self, node: cst.BaseExpression) -> str | None:
        """A hint if `node` names a function of another file that does not have it; None otherwise."""

    def arguments(self, call: cst.Call, function: DeviceFunction) -> tuple[Argument, ...] | None:
        """The argument of each parameter of `function`; None, after a diagnostic, if the call does not fit."""

    def with_fixed(
        self, function: DeviceFunction, values: tuple[Argument, ...]
    ) -> tuple[DeviceFunction, tuple[Argument, ...]] | None:
        """`function` without the parameters that the call fixes, and the other arguments; None after a diagnostic."""

    def key(
        self, call: cst.Call, function: DeviceFunction, kinds: Sequence[ArgumentKind], captured: ClosureCapture
    ) -> str | None:
        """The key of `function` for these kinds of arguments; None, after a diagnostic, if calls nest too deep."""

    def form(self, key: str) -> Form:
        """The form of the result of the function `key`, as far as it is read."""

    def finished(self) -> Mapping[str, ir.Kernel]:
        """The functions that are read to their end, by their keys."""

    def constant(self, node: cst.BaseExpression) -> Constants | Real | None:
        """The number, or the tuple of numbers, that `node` names in another file; None for anything else."""


@dataclass(frozen=True, slots=True)
class ClosureCapture:
    """The free variables of a nested function: arrays, numbers and tuples, which a call passes, and names that the
    whole kernel shares.
    """

    arrays: dict[str, ir.ArrayType]
    values: dict[str, Form]
    launch: dict[str, str]
    barriers: frozenset[str]
    grids: frozenset[str]
    broken: frozenset[str]
