"""The constants of the examples' modules keep their names in the CUDA: in kernels, device functions and launchers."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from py2cu.diagnostics import TranslationError
from py2cu.pipeline import translate_file
from py2cu.source import SourceFile

FOLDER = Path(__file__).parents[1] / "examples"
EXAMPLES = [*sorted(FOLDER.glob("*.py")), FOLDER / "gpt2" / "kernels.py"]
TRANSLATED_AT_CALLS = "numba_kernels"  # its kernels have no types before
ARITHMETIC = (
    ast.Constant, ast.BinOp, ast.UnaryOp, ast.Tuple, ast.Name, ast.operator, ast.unaryop, ast.expr_context,
)  # fmt: skip


DECLARATION = re.compile(r"^(?:constexpr|__constant__ const) \w+ (\w+)", re.MULTILINE)


def constants(module: ast.Module) -> set[str]:
    """The names that a module assigns to numbers, to arithmetic with those, and to tuples of numbers."""
    return {
        target.id
        for statement in module.body
        if isinstance(statement, ast.Assign) and is_arithmetic(statement.value)
        for target in statement.targets
        if isinstance(target, ast.Name)
    }


def is_arithmetic(value: ast.expr) -> bool:
    match value:
        case ast.Attribute(value=ast.Name(id="math")):
            return True
        case ast.Call(func=ast.Attribute() as function, args=args):
            return all(map(is_arithmetic, (function, *args)))
        case _:
            return isinstance(value, ARITHMETIC) and all(map(is_arithmetic, ast.iter_child_nodes(value)))


def functions_of(cuda: str) -> dict[str, str]:
    """The CUDA of each function of a module: what is defined under its name, as a kernel, and as a launcher."""
    texts: dict[str, str] = {}
    for definition in DECLARATION.sub("", cuda).split("\n}\n"):
        head, _, _ = definition.partition("\n{")
        for name in {*re.findall(r"\b(?:launch_)?(\w+?)(?:_kernel|_launch|_given)?\(", head)}:
            texts[name] = texts.get(name, "") + definition
    return texts


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_no_constant_is_lost(path: Path) -> None:
    if path.stem == TRANSLATED_AT_CALLS:
        with pytest.raises(TranslationError, match="types"):
            translate_file(SourceFile.read(path))
        return
    module, cuda = ast.parse(path.read_text(encoding="utf-8")), translate_file(SourceFile.read(path)).cuda.kernel.text
    emitted, known, read = functions_of(cuda), constants(module), set()
    for function in module.body:
        if isinstance(function, ast.FunctionDef) and function.name in emitted:
            names = known & {node.id for node in ast.walk(function) if isinstance(node, ast.Name)}
            assert [name for name in names if not re.search(rf"\b{name}\b", emitted[function.name])] == []
            read |= names
    assert {*DECLARATION.findall(cuda)} == read


def test_functions_are_told_apart() -> None:
    functions = "void f_launch(int n)\n{\n}\n\nvoid g_launch(int n)\n{\n    const int m = N * n;\n}\n"
    assert {name: "N" in text for name, text in functions_of(f"constexpr int N = 2;\n\n{functions}").items()} == {
        "f": False,
        "g": True,
    }


def test_the_examples_have_constants() -> None:
    named = [constants(ast.parse(path.read_text(encoding="utf-8"))) for path in EXAMPLES]
    assert sum(map(len, named)) > 35
