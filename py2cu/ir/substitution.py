"""Replaces names in expressions: by other names, or by the expressions that they stand for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from py2cu.ir.expressions import Expr
from py2cu.ir.rewrite import rebuild
from py2cu.ir.types import Name


def rename(expr: Expr, names: Mapping[str, str]) -> Expr:
    """`expr` with other names for the variables that are keys of `names`."""
    return rebuild(expr, lambda part: renamed(part, names))


def renamed(expr: Expr, names: Mapping[str, str]) -> Expr:
    """`expr` itself, unless it is a variable that has another name."""
    return replace(expr, id=names[expr.id]) if isinstance(expr, Name) and expr.id in names else expr


def substitute(expr: Expr, values: Mapping[str, Expr]) -> Expr:
    """`expr` with the expression that `values` holds in place of each variable."""
    return rebuild(expr, lambda part: values.get(part.id, part) if isinstance(part, Name) else part)
