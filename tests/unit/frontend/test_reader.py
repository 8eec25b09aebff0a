"""A file is read once, however many of its kernels are asked for one by one, and again when its text is another."""

from __future__ import annotations

import ast

import libcst as cst
import pytest

from py2cu.frontend.source import nesting, reader
from py2cu.options import KernelOptions
from py2cu.pipeline import lower_function
from py2cu.source import SourceFile

pytestmark = pytest.mark.usefixtures("one_element_a_thread")

HEAD = """\
from jaxtyping import Float32
from torch import Tensor
from py2cu import Index, kernel
"""
KERNEL = """
@kernel
def {name}(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    out[i] = {times} * x[i]
"""


@pytest.fixture
def read(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The texts that LibCST has parsed."""
    reader._parse.cache_clear()
    texts: list[str] = []
    parse = cst.parse_module

    def recording(text: str) -> cst.Module:
        texts.append(text)
        return parse(text)

    monkeypatch.setattr(cst, "parse_module", recording)
    return texts


def emitted(file: SourceFile, line: int, name: str) -> str:
    return lower_function(file, line, name, KernelOptions(), {}).files().cuda.kernel.text


def test_the_kernels_of_a_file_share_its_reading(read: list[str]) -> None:
    file = SourceFile("two.py", HEAD + KERNEL.format(name="f", times=2) + KERNEL.format(name="g", times=3))
    assert "2 * x[i]" in emitted(file, 5, "f")
    assert "3 * x[i]" in emitted(file, 9, "g")
    assert len(read) == 1


def test_a_file_that_changed_is_read_again(read: list[str]) -> None:
    for times in (2, 3):
        file = SourceFile("changed.py", HEAD + KERNEL.format(name="f", times=times))
        assert f"{times} * x[i]" in emitted(file, 5, "f")
    assert len(read) == 2


def test_attributes_that_others_leave_on_shared_nodes_are_not_walked() -> None:
    """All trees share the nodes of operators; what a traceback printer leaves there leads in circles."""
    for node in ast.walk(foreign := ast.parse("a < b and not c")):
        for child in ast.iter_child_nodes(node):
            child.parent = node
    shared = foreign.body[0].value.values[0].ops[0]
    try:
        assert ast.parse("a < b").body[0].value.ops[0] is shared
        text = HEAD + KERNEL.format(name="f", times="(x[i] < 1 and not i)")
        assert not nesting.is_deep(ast.parse(text))
        assert nesting.is_deep(ast.parse("-" * 201 + "x"))
    finally:
        for node in {id(node): node for node in ast.walk(foreign)}.values():
            vars(node).pop("parent", None)
