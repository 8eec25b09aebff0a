"""The tables of fields hold what the classes of nodes declare."""

from __future__ import annotations

import dataclasses
from typing import Any, get_args, get_origin

import pytest

from py2cu import ir
from py2cu.ir.fields import BLOCKS, OPERANDS

NODES = [get_origin(node) or node for node in (*get_args(ir.Expr), *get_args(ir.Stmt))]


@pytest.mark.parametrize("node", NODES)
def test_rows_are_the_annotated_fields_in_order(node: type[Any]) -> None:
    operands, blocks = [], []
    for field in dataclasses.fields(node):
        words = set(field.type.replace("[", " ").replace(",", " ").split())
        if words & {"Expr", "Operand_co", "DeviceCall", "Atomic", "Load"}:
            operands.append("*" * ("tuple" in words) + field.name)
        if "Block" in words:
            blocks.append(field.name)
    assert OPERANDS.get(node, ()) == tuple(operands)
    assert BLOCKS.get(node, ()) == tuple(blocks)


def test_rows_are_of_nodes() -> None:
    assert OPERANDS.keys() | BLOCKS.keys() <= set(NODES)
