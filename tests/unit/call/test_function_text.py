"""The text that is translated is the one that Python runs: read when the decorator runs, compared before its use."""

import functools
import importlib
import linecache
import os
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from jaxtyping import Float32  # noqa: E402
from torch import Tensor  # noqa: E402

from py2cu import Index, kernel  # noqa: E402
from py2cu.diagnostics import TranslationError  # noqa: E402
from py2cu.function_text import is_text_of  # noqa: E402
from py2cu.source import SourceFile  # noqa: E402
from tests.support.edited_files import write  # noqa: E402
from tests.support.samples import proofs  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_element_a_thread")

HEAD = "from jaxtyping import Float32\nfrom torch import Tensor\nfrom py2cu import Index, kernel\n"
FUNCTION = 'def f(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):\n    out[i] = x[i] * 2\n'
KERNEL = f"@kernel(coarsen=1)\n{FUNCTION}"
X = torch.tensor([1.0, 3.0])


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield tmp_path
    for name in ("text_main", "text_helpers"):
        sys.modules.pop(name, None)


def refusal(use: object) -> str:
    with pytest.raises(TranslationError) as caught:
        _ = use.cuda_source  # type: ignore[attr-defined]
    return str(caught.value)


def test_an_edit_between_import_and_first_use_changes_nothing(folder: Path) -> None:
    text = f"{HEAD}{KERNEL}\n\n{KERNEL.replace('def f', 'def g')}"
    write(folder, "text_main", text)
    main = importlib.import_module("text_main")
    write(folder, "text_main", "# another first line\n" + text.replace("* 2", "* 3"))
    for each in (main.f, main.g):
        assert "x[i] * 2" in each.cuda_source
        assert "* 2" in repr(each)
        assert each.simulate(X).tolist() == [2.0, 6.0]
    importlib.reload(main)
    assert "x[i] * 3" in main.f.cuda_source


HELPERS = "def h(v):\n    return inner(v)\n\ndef inner(v):\n    return v + 1\n"
USER = f"{HEAD}import text_helpers\n{KERNEL.replace('x[i] * 2', 'text_helpers.h(x[i])')}"


def test_an_edit_of_a_helpers_file_between_import_and_first_use_changes_nothing(folder: Path) -> None:
    write(folder, "text_helpers", HELPERS)
    write(folder, "text_main", USER)
    main = importlib.import_module("text_main")
    write(folder, "text_helpers", "\n" + HELPERS.replace("v + 1", "v - 1"))
    assert "return v + 1" in main.f.cuda_source
    assert main.f.simulate(X).tolist() == [2.0, 4.0]


def test_an_edit_before_the_decorator_ran_is_refused_with_the_file(folder: Path) -> None:
    write(folder, "text_helpers", HELPERS)
    importlib.import_module("text_helpers")
    write(folder, "text_helpers", HELPERS.replace("v + 1", "v - 1"))
    write(folder, "text_main", USER)
    main = importlib.import_module("text_main")
    said = refusal(main.f)
    assert "text_main.py:5:1: error[P100]" in said
    assert "the text of `inner` in" in said
    assert "text_helpers.py` is not what Python runs" in said
    importlib.reload(sys.modules["text_helpers"])
    assert "return v - 1" in main.f.cuda_source


EDITS = ["* 3", "+ 2", "* 2 * i", "* 2.0", "if i else 2"]


@pytest.mark.parametrize("edit", EDITS)
def test_a_function_that_is_decorated_after_its_import(folder: Path, edit: str) -> None:
    write(folder, "text_main", HEAD + FUNCTION)
    main = importlib.import_module("text_main")
    assert "x[i] * 2" in kernel(main.f).cuda_source
    importlib.reload(main)
    write(folder, "text_main", HEAD + FUNCTION.replace("* 2", edit))
    said = refusal(kernel(main.f))
    assert "error[P100]: the text of `f` in" in said
    assert "text_main.py" in said


def test_names_of_no_file_are_compared(folder: Path) -> None:
    name = "<made by exec>"
    names: dict[str, object] = {"__name__": "__main__"}
    exec(compile(HEAD + KERNEL, name, "exec", dont_inherit=True), names)
    assert "the source of `f` is not available" in refusal(names["f"])
    text = HEAD + KERNEL.replace("* 2", "* 3")
    linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
    exec(compile(HEAD + KERNEL, name, "exec", dont_inherit=True), names)
    assert f"the text of `f` in `{name}` is not what Python runs" in refusal(names["f"])
    exec(compile(text, name, "exec", dont_inherit=True), names)
    assert "x[i] * 3" in kernel(names["f"].python).cuda_source  # type: ignore[attr-defined]
    del linecache.cache[name]


# --- code that is not quite its text ------------------------------------------------------------------------------


@kernel
def asserting(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    assert x[i] > 0, "positive"
    out[i] = x[i]


def test_pytests_rewriting() -> None:
    assert any(name.startswith("@py") for name in asserting.python.__code__.co_names), "pytest has rewritten this file"
    assert "assert" in asserting.cuda_source
    assert "assert" in kernel(asserting.python).cuda_source


@pytest.mark.slow
@pytest.mark.parametrize("flags", proofs(["-O", "-OO"], 2))
def test_without_asserts_the_compiled_kernel_keeps_them(folder: Path, flags: str) -> None:
    text = KERNEL.replace("out[i] =", '"""Doubles."""\n    assert x[i] > 0\n    out[i] =')
    late = f"{HEAD}{text}print(f.cuda_source.count('assert('), kernel(f.python).cuda_source.count('assert('))\n"
    write(folder, "text_main", late)
    paths = os.pathsep.join([str(Path(__file__).parents[3]), str(folder)])
    command = [sys.executable, flags, "-c", "import text_main"]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, "PYTHONPATH": paths})
    assert done.stdout == "1 1\n"


HOOK = """
import ast, os, sys
from importlib.machinery import FileFinder, SourceFileLoader


class Loader(SourceFileLoader):
    def source_to_code(self, data, path):
        tree = ast.parse(data)
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef):
                node.body.insert(0, ast.parse("hooked = None").body[0])
        return compile(ast.fix_missing_locations(tree), path, "exec", dont_inherit=True)


def hook(folder):
    if not os.path.exists(os.path.join(folder, "text_main.py")):
        raise ImportError(folder)
    return FileFinder(folder, (Loader, [".py"]))


sys.path_hooks.insert(0, hook)
sys.path_importer_cache.clear()
"""


def test_an_import_hook_may_add_to_the_code(folder: Path) -> None:
    write(folder, "text_main", f"{HEAD}{KERNEL}late = kernel(coarsen=1)(f.python)\n")
    program = HOOK + textwrap.dedent("""
        import text_main
        assert "hooked" in text_main.f.python.__code__.co_varnames
        print("x[i] * 2" in text_main.f.cuda_source, "x[i] * 2" in text_main.late.cuda_source)
        """)
    paths = os.pathsep.join([str(Path(__file__).parents[3]), str(folder)])
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True,
        env={**os.environ, "PYTHONPATH": paths, "PYTHONDONTWRITEBYTECODE": "1"},
    )  # fmt: skip
    assert done.stdout == "True True\n"


def test_a_text_that_does_not_compile_is_left_to_the_translator() -> None:
    assert is_text_of(SourceFile("text.py", "def f(:"), test_pytests_rewriting)


# --- other decorators ---------------------------------------------------------------------------------------------

DECORATORS = """
import functools

def kept(function):
    function.kept = True
    return function

def wrapped(function):
    @functools.wraps(function)
    def call(*args):
        return function(*args)
    return call

"""


def test_the_decorator_goes_on_top_of_those_that_return_the_function(folder: Path) -> None:
    write(folder, "text_main", f"{HEAD}{DECORATORS}@kernel\n@kept\n{FUNCTION}")
    main = importlib.import_module("text_main")
    assert main.f.python.kept
    assert "x[i] * 2" in main.f.cuda_source


def test_a_function_in_the_place_of_the_kernels_is_refused(folder: Path) -> None:
    write(folder, "text_main", f"{HEAD}{DECORATORS}@kernel\n@wrapped\n{FUNCTION}")
    said = refusal(importlib.import_module("text_main").f)
    assert "error[P107]: a decorator below `@kernel` replaces `f` with another function" in said
    assert "below `@kernel`, a decorator must return the function itself" in said


def test_a_decorator_above_gets_the_kernel(folder: Path) -> None:
    write(folder, "text_main", f"{HEAD}{DECORATORS}@wrapped\n@kernel\n{FUNCTION}")
    main = importlib.import_module("text_main")
    assert "x[i] * 2" in functools.reduce(getattr, ["__wrapped__", "cuda_source"], main.f)
