"""Methods of elements and arrays: `x[i].float()`, `v.to(torch.int64)`; `x.numel()`, `x.size(0)`; and `x.ndim`.

In: a LibCST call or attribute in a scope. Out: the number as IR; None for other calls and attributes.
"""

from __future__ import annotations

import functools
from typing import Final

import libcst as cst

from py2cu import builtins, ir
from py2cu.builtins.casts import ITEM, LIKE, METHODS, TO_DTYPE_OF, element_method
from py2cu.dtypes import DType
from py2cu.frontend.bodies.parts import is_array, read_extents, read_part
from py2cu.frontend.bodies.scope import Scope
from py2cu.frontend.bodies.tables import Read
from py2cu.frontend.names.syntax import source_text

_CASTS: Final = ("to", "astype")  # torch's and NumPy's
_OF_ARRAYS: Final = {"numel": "()", "dim": "()", "size": "(0)", "dtype": "(0)"}  # each with the arguments of an example
_CONJUGATE: Final = "complex.conjugate"


def read_method(node: cst.Call, scope: Scope, read: Read) -> ir.Expr | None:
    """A call of a method of an element or of an array; None for any other call."""
    match node.func:
        case cst.Attribute(value=base, attr=cst.Name(value=name)) if name in _OF_ARRAYS and is_array(base, scope):
            return _read_of_array(node, base, name, scope, read)
        case cst.Attribute(value=base, attr=cst.Name(value=name)) if not is_array(base, scope) and scope.is_number(
            base
        ):
            return _read_of_element(node, base, name, scope, read)
        case _:
            return None


def read_rank(node: cst.Attribute, scope: Scope, read: Read) -> ir.Expr | None:
    """`x.ndim` of an array; None for any other attribute."""
    extents = read_extents(node.value, scope, read) if node.attr.value == "ndim" else None
    return None if extents is None else ir.Constant(len(extents), scope.span_of(node))


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
        case _ if name in (*_CASTS, *METHODS, "item"):
            what, text = f"`.{name}` of an element does not take these arguments", source_text(base)
            hint = f"`{text}.{name}()`" if name not in _CASTS else f"`{text}.{name}(torch.float32)`, `{text}.float()`"
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
        case cst.Attribute(value=array, attr=cst.Name(value="dtype")) if is_array(array, scope):
            return ir.Call(TO_DTYPE_OF, (read(base), _array_name(array, scope, read)), span)
    row = builtins.lookup(scope.environment.qualify(target) or "")
    if row is None or not isinstance(row.result, DType) or row.rule is not builtins.Rule.CAST:
        scope.error(
            "P105", "this is not an element type", target, "`torch.float32`, `np.int64`, or `x.dtype` of an array"
        )
        return ir.Constant(0, span)
    return ir.Call(element_method(row.result), (read(base),), span)


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
            return ir.Call(LIKE, (read(value), _array_name(base, scope, read)), span)
        case [cst.Arg(value=value, keyword=None | cst.Name(value="dim"), star="")] if name == "size":
            axis = scope.environment.constant(value)
            if isinstance(axis, int) and -len(extents) <= axis < len(extents):
                return extents[axis]
    text = source_text(base)
    scope.error(
        "P105", f"`.{name}` of `{text}` does not take these arguments", node, f"`{text}.{name}{_OF_ARRAYS[name]}`"
    )
    return ir.Constant(0, span)


def _array_name(node: cst.BaseExpression, scope: Scope, read: Read) -> ir.ArrayName:
    """The array that `node` is, or is a part of."""
    part = read_part(node, scope, read)
    name = part.array if part is not None else source_text(node)
    return ir.ArrayName(name, scope.span_of(node), scope.arrays[name])
