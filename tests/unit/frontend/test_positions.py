"""Positions are LibCST's own, which take longer."""

from __future__ import annotations

from pathlib import Path

import libcst as cst
import pytest
from libcst.metadata import MetadataWrapper, PositionProvider

from py2cu.frontend.source.positions import Positions

ROOT = Path(__file__).parents[2].parent
FILES = [*(ROOT / "examples").rglob("*.py"), *(ROOT / "py2cu" / "passes").glob("*.py")]
ODD = [
    "",
    "\n",
    "# only a comment",
    "x = 1  # no newline at the end",
    'x = 1\r\ny = """two\r\nlines"""\r\n',
    "if a:\r\tb\r\tc  # old newlines and tabs\r",
    "\ufeffx = 1\n\x0cy = 2\n",
    "é = 'ü\t'\nдва = (1 +\\\n 2)\nif é: pass",
]


@pytest.mark.parametrize("text", [*(file.read_text(encoding="utf-8") for file in FILES), *ODD])
def test_every_node_stands_where_libcst_says(text: str) -> None:
    tree = cst.parse_module(text)
    positions = Positions(tree)
    for node, place in MetadataWrapper(tree, unsafe_skip_copy=True).resolve(PositionProvider).items():
        if isinstance(node, cst.SimpleWhitespace):
            continue
        span = positions.span(node)
        assert (span.line, span.column) == (place.start.line, place.start.column)
        assert (span.end_line, span.end_column) == (place.end.line, place.end.column)
