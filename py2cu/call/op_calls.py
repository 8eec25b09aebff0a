"""Call a kernel's op `py2cu::…`: from Python where autograd, a mode or a transform takes part, and under Dynamo.

In: a call's arguments. Out: the outputs. Dynamo traces the functions here in place of those of `Kernel`, and takes the
`OpCall` as a constant: the graph holds the op alone, and the guards are the identities of the kernel and its
backwards.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import torch

from py2cu.call.definition import Operator, style_of
from py2cu.call.native import Launch
from py2cu.ir.abi.schemas import ALLOCATES, FILLS, ON_GRID
from py2cu.ir.types import is_complex


class OpArgument(NamedTuple):
    """An argument of the op: a parameter's value, a part of it, or a constant if the call leaves out the parameter."""

    name: str
    parameter: str
    part: str  # of a complex number: "real" or "imag"; else empty
    default: Any
    by_keyword: bool


PlainOpCall = tuple[
    str, str, tuple[str, ...], tuple[tuple[str, str, str, Any, bool], ...], tuple[str, ...], tuple[str, ...]
]
"""An `OpCall` of plain tuples."""


class OpCall(NamedTuple):
    """How calls with arguments of certain types reach the op: constants only, as Dynamo requires."""

    op: str
    overload: str
    positional: tuple[str, ...]
    arguments: tuple[OpArgument, ...]
    outputs: tuple[str, ...]  # passed by the caller
    missing: tuple[str, ...]  # allocated before the op is called: it allocates all outputs or none

    def plain(self) -> PlainOpCall:
        """The same without named tuples, whose fields Dynamo (2.11) does not read."""
        op, overload, positional, arguments, outputs, missing = self
        return op, overload, positional, tuple(map(tuple, arguments)), outputs, missing


def op_call_of(operator: Operator, types: tuple[type, ...], named: Mapping[str, type], *, on_grid: bool) -> OpCall:
    """How calls with positional arguments of `types`, and others of `named` types, reach the op.

    Raises:
        TypeError: such arguments do not fit the parameters.
    """
    binder, signature = operator.definition.native.binder, operator.definition.native.signature
    positional = binder.positional(types, named, in_order=on_grid)
    passed = {*positional, *named}
    missing = tuple(p.name for p in signature.outputs if p.name not in passed)
    binder.require_launch(missing, on_grid=on_grid)
    allocates = signature.are_allocated(passed)
    parameters = signature.inputs if allocates else signature.parameters
    style = style_of(signature)
    overload = (
        ON_GRID if on_grid else FILLS if signature.outputs and signature.op_allocates and not allocates else ALLOCATES
    )
    by_keyword = {argument.name for argument in operator[overload]._schema.arguments if argument.kwarg_only}
    arguments = []
    for parameter in parameters:
        default = None if parameter.default is None or signature.is_derived(parameter) else parameter.default.value
        parts = ("real", "imag") if is_complex(parameter.type) else ("",)
        names = style.arguments(parameter)
        arguments += [
            OpArgument(name, parameter.name, part, default, name in by_keyword)
            for name, part in zip(names, parts, strict=True)
        ]
    outputs = () if on_grid or allocates else tuple(p.name for p in signature.outputs)
    return OpCall(operator.name, overload, positional, tuple(arguments), outputs, () if allocates else missing)


def call_op(op_call: PlainOpCall, args: tuple[Any, ...], kwargs: Mapping[str, Any], launch: Launch) -> Any:
    """Call the op as `op_call` says, with the arguments of the kernel's call.

    They are passed by position where the schema allows it: Dynamo refuses a keyword `out` that is not contiguous.
    """
    op, overload, positional, arguments, outputs, _ = op_call
    values = {**dict(zip(positional, args, strict=True)), **kwargs}
    in_order, named = [], {}
    for name, parameter, part, default, by_keyword in arguments:
        value: Any = values.get(parameter, default)
        value = value.real if part == "real" else value.imag if part == "imag" else value
        if by_keyword:
            named[name] = value
        else:
            in_order.append(value)
    if launch:
        named["grid"], named["block"] = launch
    result = getattr(getattr(torch.ops.py2cu, op), overload)(*in_order, **named)
    if not outputs:
        return result
    tensors = tuple([values[name] for name in outputs])
    return tensors[0] if len(tensors) == 1 else tensors
