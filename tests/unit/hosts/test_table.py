"""The table of operators: what the documents list, and what each row must have."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import pytest

from py2cu.hosts.model import table

DOCUMENT: Final = Path(__file__).parents[3] / "docs" / "host.md"


def test_the_documents_list_every_row() -> None:
    listed = re.findall(r"^\| (.+) \| `(.+)` \|$", DOCUMENT.read_text(encoding="utf-8"), re.MULTILINE)
    rows = []
    for row in table.OPERATORS:
        names = [*(f"`torch.{name}`" for name in row.functions), *([f"`.{row.method}`"] if row.method else [])]
        rows.append((", ".join([*names, *([f"`{row.sign}`"] if row.sign else [])]), row.schema))
    assert listed == rows


@pytest.mark.parametrize("row", table.OPERATORS, ids=lambda row: row.schema.partition("(")[0])
def test_a_row_has_a_name_in_python_and_types_that_are_known(row: table.Operator) -> None:
    assert row.functions or row.method
    known = {"Tensor", "Tensor[]", "int", "bool", "Scalar", "int[]", "int[1]", "ScalarType", "ScalarType?", "Device?"}
    assert {argument.type for argument in row.arguments} <= known
    assert row.schema.endswith(("-> Tensor", "-> Tensor[]"))
    assert bool(row.header) == bool(row.functions)
