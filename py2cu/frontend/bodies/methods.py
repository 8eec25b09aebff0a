"""Methods of elements and arrays, `x[i].float()`, `x.numel()`, `x.size(0)`; and `x.shape[0]`, `x.ndim`, `len(x)`.

In: a LibCST call or attribute in a scope. Out: the number as IR; None for other calls and attributes.
"""

from __future__ import annotations

import functools
from dataclasses import replace
from typing import Final

import libcst as cst

from py2cu import builtins, ir
from py2cu.builtins.casts import ITEM, LIKE, METHODS, TO_DTYPE_OF, element_method, element_view
from py2cu.builtins.methods import BIT_COUNT, RECEIVER, function_behind
from py2cu.dtypes import DType
from py2cu.frontend.bodies.lists.uses import refuse_method
from py2cu.frontend.bodies.parts import is_array, is_list_part, is_part, is_tensor, read_extents, read_part
from py2cu.frontend.bodies.scope import Scope
from py2cu.frontend.bodies.tables import Read, read_table
from py2cu.frontend.bodies.views import ZERO, larger
from py2cu.frontend.hints.annotations import array_type
from py2cu.frontend.names.syntax import source_text
from py2cu.suggestions import did_you_mean

_CASTS: Final = ("to", "astype")  # torch's and NumPy's
_VIEW: Final = "view"
_OF_ARRAYS: Final = {"numel": "()", "dim": "()", "size": "(0)", "dtype": "(0)"}  # each with the arguments of an example
_CONJUGATE: Final = "complex.conjugate"


def read_method(node: cst.Call, scope: Scope, read: Read) -> ir.Expr | None:
    """A call of a method of an element or of an array; None for any other call."""
    match node.func:
        case cst.Attribute(value=base, attr=cst.Name(value=name)) if is_list_part(base, scope):
            refuse_method(node, name, scope)
            return ir.Constant(0, scope.span_of(node))
        case cst.Attribute(value=base, attr=cst.Name(value=name)) if name in _OF_ARRAYS and is_tensor(base, scope):
            return _read_of_array(node, base, name, scope, read)
        case cst.Attribute(value=base, attr=cst.Name(value=name)) if not is_array(base, scope) and scope.is_number(
            base
        ):
            return _read_of_element(node, base, name, scope, read)
        case _:
            return None


def read_receiver(node: cst.Call, scope: Scope, read: Read) -> tuple[str, ir.Expr] | None:
    """The function that `node` calls as a method, and its first argument: `torch.exp` and `x[i]` in `x[i].exp()`."""
    match node.func:
        case cst.Attribute(value=base, attr=cst.Name(value=name)) if not is_array(base, scope) and scope.is_number(
            base
        ):
            if name == BIT_COUNT.rpartition(".")[2]:
                return BIT_COUNT, read(base)
            function = function_behind(name)
            return None if function is None else (function, ir.Call(RECEIVER, (read(base),), scope.span_of(node)))
        case _:
            return None


def read_len(node: cst.Call, scope: Scope, read: Read) -> ir.Expr:
    """`len(x)` of an array, a list or a tuple."""
    span = scope.span_of(node)
    match node.args[0].value:
        case other if node.args[0].keyword is not None or node.args[0].star:  # rule: refused-keyword
            scope.error("P105", "`len` takes one argument, by position", node, f"`len({source_text(other)})`")
        case other if is_array(other, scope):
            if extents := read_extents(other, scope, read):
                return replace(extents[0], span=span)
            if not is_part(other, scope):
                _refuse_len(other, scope)
        case cst.Name(value=name) if name in scope.ranges and name not in scope.bindings:
            return replace(larger(scope.ranges[name].rounds, ZERO), span=span)
        case other if (table := read_table(other, scope)) is not None:
            return ir.Constant(len(table), span)
        case other if (form := scope.form_of(other)) is not None:
            return ir.Constant(len(form), span)
        case other if not (scope.is_unknown(other) and scope.reports_ambiguous(other)):
            _refuse_len(other, scope)
    return ir.Constant(0, span)


def _refuse_len(node: cst.BaseExpression, scope: Scope) -> None:
    what, hint = "`len` takes an array parameter with dimensions", "`len(x)`, or `x.shape[1]` for another extent"
    scope.error("P303", what, node, hint)


def read_rank(node: cst.Attribute, scope: Scope, read: Read) -> ir.Expr | None:
    """`x.ndim` of an array, and where Numba is imported `x.size`, a method of tensors; None for any other attribute."""
    name, span = node.attr.value, scope.span_of(node)
    is_read = name == "ndim" or (name == "size" and scope.environment.imports_numba)
    extents = read_extents(node.value, scope, read) if is_read else None
    if extents is None:
        return None
    numbers = [replace(extent, span=span) for extent in extents]
    product = functools.reduce(lambda a, b: ir.Binary("*", a, b, span), numbers) if numbers else ir.Constant(1, span)
    return product if name == "size" else ir.Constant(len(extents), span)


def read_shape(node: cst.Subscript, base: cst.BaseExpression, scope: Scope, read: Read) -> ir.Expr:
    """`x.shape[k]`, or the tuple `x.shape[k:]`."""
    span, extents = scope.span_of(node), read_extents(base, scope, read)
    if extents is None:
        return ir.Constant(0, span)
    rank, name = len(extents), source_text(base)
    match [element.slice for element in node.slice]:
        case [cst.Index(value=value)]:
            axis = scope.environment.constant(value)
            if isinstance(axis, int) and -rank <= axis < rank:
                return replace(extents[axis], span=span)
        case [cst.Slice(step=None) as part] if (bounds := scope.constant_bounds(part)) is not None:
            return ir.Tuple(extents[bounds], span)
    takes = f"takes a constant from {-rank} to {rank - 1}" if rank else "is empty: it has no dimensions"
    hint = f"`{name}.shape[0]`" if rank else f"give it one: {array_type(1, scope.environment)}"
    scope.error("P401", f"`.shape` of `{name}` {takes}", node, hint)
    return ir.Constant(0, span)


def refuse_attribute(node: cst.Attribute, scope: Scope) -> None:
    attribute = node.attr.value
    hint = did_you_mean(attribute, ["shape", "ndim"], "an array has `.shape`, `.ndim` and `len()`")
    hint = f"`{source_text(node)}[0]` is its first extent" if attribute == "shape" else hint
    if attribute == "itemsize":
        array = source_text(node.value)
        owner = "the kernel, which passes it to functions" if scope.returns else "the kernel that is assigned once"
        hint = f"the length of rows of 16 bytes is a local of {owner}: `W = 16 // {array}.itemsize`"
    scope.error("P202", f"`.{attribute}` of an array is not a number", node, hint)


def _read_of_element(node: cst.Call, base: cst.BaseExpression, name: str, scope: Scope, read: Read) -> ir.Expr | None:
    span = scope.span_of(node)
    match node.args:
        case [] if name == "conjugate":
            return ir.Call(_CONJUGATE, (read(base),), span)
        case [] if name == "item":
            return ir.Call(ITEM, (read(base),), span)
        case [] if name in METHODS:
            return ir.Call(element_method(METHODS[name]), (read(base),), span)
        case [cst.Arg(value=target, keyword=None | cst.Name(value="dtype"), star="")] if name in _CASTS:
            return _read_cast(node, base, target, scope, read)
        case [cst.Arg(value=target, keyword=None | cst.Name(value="dtype"), star="")] if name == _VIEW:
            dtype = read_dtype(target, scope)
            return ir.Constant(0, span) if dtype is None else ir.Call(element_view(dtype), (read(base),), span)
        case _ if name in (*_CASTS, *METHODS, "item", _VIEW):
            what, text = f"`.{name}` of an element does not take these arguments", source_text(base)
            if name == _VIEW:
                hint = f"`{text}.view(torch.int32)` gives the bits of a float32"
            elif name in _CASTS:
                hint = f"`{text}.{name}(torch.float32)`, `{text}.float()`"
            else:
                hint = f"`{text}.{name}()`"
            scope.error("P105", what, node, hint)
            return ir.Constant(0, span)
        case _:
            return None


def _read_cast(
    node: cst.Call, base: cst.BaseExpression, target: cst.BaseExpression, scope: Scope, read: Read
) -> ir.Expr:
    """`v.to(torch.int64)`, `v.to(x.dtype)`."""
    span = scope.span_of(node)
    match target:
        case cst.Attribute(value=array, attr=cst.Name(value="dtype")) if is_tensor(array, scope):
            return ir.Call(TO_DTYPE_OF, (read(base), array_name(array, scope, read)), span)
    dtype = read_dtype(target, scope)
    return ir.Constant(0, span) if dtype is None else ir.Call(element_method(dtype), (read(base),), span)


def read_dtype(node: cst.BaseExpression, scope: Scope) -> DType | None:
    """The dtype that `node` names; any other node is reported."""
    row = builtins.lookup(scope.environment.qualify(node) or "")
    if row is not None and isinstance(row.result, DType) and row.rule is builtins.Rule.CAST:
        return row.result
    scope.error("P105", "this is not an element type", node, "`torch.float32`, `np.int64`, or `x.dtype` of an array")
    return None


def _read_of_array(node: cst.Call, base: cst.BaseExpression, name: str, scope: Scope, read: Read) -> ir.Expr:
    span = scope.span_of(node)
    extents = read_extents(base, scope, read)
    if extents is None:
        return ir.Constant(0, span)
    match node.args:
        case [] if name == "dim":
            return ir.Constant(len(extents), span)
        case [] if name == "numel":
            one: ir.Expr = ir.Constant(1, span)
            return functools.reduce(lambda a, b: ir.Binary("*", a, b, span), extents) if extents else one
        case [cst.Arg(value=value, keyword=None, star="")] if name == "dtype":
            return ir.Call(LIKE, (read(value), array_name(base, scope, read)), span)
        case [cst.Arg(value=value, keyword=None | cst.Name(value="dim"), star="")] if name == "size":
            axis = scope.environment.constant(value)
            if isinstance(axis, int) and -len(extents) <= axis < len(extents):
                return extents[axis]
    text = source_text(base)
    hint = f"`{text}.{name}{_OF_ARRAYS[name]}`"
    scope.error("P105", f"`.{name}` of `{text}` does not take these arguments", node, hint)
    return ir.Constant(0, span)


def array_name(node: cst.BaseExpression, scope: Scope, read: Read) -> ir.ArrayName:
    """The array that `node` is, or is a part of."""
    part = read_part(node, scope, read)
    name = part.array if part is not None else source_text(node)
    return ir.ArrayName(name, scope.span_of(node), scope.arrays[name])
