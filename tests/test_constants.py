"""The constants of the examples' modules keep their names in the CUDA."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from py2cu.diagnostics import TranslationError
from py2cu.pipeline import translate_file
from py2cu.source import SourceFile

EXAMPLES = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))
TRANSLATED_AT_CALLS = "numba_kernels"  # its kernels have no types before


def constants(module: ast.Module) -> set[str]:
    """The names that a module assigns to numbers, to arithmetic with those, and to tuples of numbers."""
    plain = (ast.Constant, ast.BinOp, ast.UnaryOp, ast.Tuple, ast.Name, ast.operator, ast.unaryop, ast.expr_context)
    return {
        target.id
        for statement in module.body
        if isinstance(statement, ast.Assign) and all(isinstance(node, plain) for node in ast.walk(statement.value))
        for target in statement.targets
        if isinstance(target, ast.Name)
    }


def read_by_kernels(module: ast.Module, cuda: str) -> set[str]:
    """The names that kernels, their decorators and their device functions read."""
    functions = [node for node in module.body if isinstance(node, ast.FunctionDef)]
    emitted = [node for node in functions if re.search(rf"\b{node.name}(_kernel)?\(", cuda)]
    return {node.id for function in emitted for node in ast.walk(function) if isinstance(node, ast.Name)}


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_no_constant_is_lost(path: Path) -> None:
    if path.stem == TRANSLATED_AT_CALLS:
        with pytest.raises(TranslationError, match="types"):
            translate_file(SourceFile.read(path))
        return
    module, cuda = ast.parse(path.read_text(encoding="utf-8")), translate_file(SourceFile.read(path)).cuda.kernel.text
    named = constants(module) & read_by_kernels(module, cuda)
    declared = {*re.findall(r"^(?:constexpr|__constant__ const) \w+ (\w+)", cuda, flags=re.MULTILINE)}
    assert declared == named
    assert all(len(re.findall(rf"\b{name}\b", cuda)) > 1 for name in declared)


def test_the_examples_have_constants() -> None:
    named = [constants(ast.parse(path.read_text(encoding="utf-8"))) for path in EXAMPLES]
    assert sum(map(len, named)) > 25
