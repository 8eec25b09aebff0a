"""Names around a kernel mean what they mean when it runs: what the text does not tell, a live kernel asks for."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from py2cu.diagnostics import TranslationError
from py2cu.pipeline import translate_file
from py2cu.source import SourceFile
from tests.support.constants import with_numbers

pytestmark = pytest.mark.usefixtures("one_element_a_thread")

HEAD = "from jaxtyping import Float32\nfrom torch import Tensor\nfrom py2cu import Index, device, kernel\n"
KERNEL = '@kernel\ndef f(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):\n    out[i] = '
SINES = "    from math import {} as t\n"
COS, SIN = SINES.format("cos"), SINES.format("sin")
EITHER = "    def g(v):\n        return v + {}\n"
FALSE, TRUE = "len('') == 1", "len('') == 0"
DECORATOR = "def deco(g):\n    def more(v):\n        return g(v) + 4\n    return more\n\n"


def joined(text: str) -> str:
    """The name of a case: its text without blanks."""
    return "_".join(text.split())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder to import `main` from, which is forgotten then."""
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("main", None)


def imported(folder: Path, text: str) -> ModuleType:
    pytest.importorskip("torch")
    (folder / "main.py").write_text(HEAD + text, encoding="utf-8")
    sys.modules.pop("main", None)
    importlib.invalidate_caches()
    return importlib.import_module("main")


def read(text: str, value: str) -> str:
    return translate_file(SourceFile("main.py", f"{HEAD}{text}\n{KERNEL}{value}\n")).cuda.kernel.text


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("K = 1\nK += 4\n", "K * x[i]", "5 * x[i]"),
        ("TAB = (1, 2)\nTAB += (3,)\n", "len(TAB) * x[i]", "3 * x[i]"),
        ("TAB = (1, 2)\nTAB += (3,)\n", "TAB[2] * x[i]", "3 * x[i]"),
        (f"K = 5\nif {FALSE}:\n    K = 6\n", "K * x[i]", "5 * x[i]"),
        (
            f"if {TRUE}:\n    def g(v):\n        return v + 1\nelse:\n    def g(v):\n        return v + 2\n",
            "g(x[i])",
            "v + 1;",
        ),
        (f"if {TRUE}:\n{COS}else:\n{SIN}", "t(x[i])", "cosf(x[i])"),
        ("K = 1\nfor K in range(5):\n    pass\n", "K * x[i]", "4 * x[i]"),
        ("K = 1\n[K, L] = 5, 6\n", "K * L * x[i]", "30 * x[i]"),
        ("K = 7\ndef tell():\n    global K\n    K = 8\ntell()\n", "K * x[i]", "8 * x[i]"),
        ("A = 1\nK = A + 1\nA = 5\n", "K * x[i]", "2 * x[i]"),
        (f"{DECORATOR}@deco\ndef g(v):\n    return v\n", "g(x[i])", "return g(v) + 4;"),
        ("def square(k):\n    return k * k\nK = tuple(square(k) for k in range(3))\n", "K[2] * x[i]", "4 * x[i]"),
        ('K = ord("=")\n', "K * x[i]", "61 * x[i]"),
        ("def square(k):\n    return k * k\nK = square(1.5)\n", "K * x[i]", "2.25f * x[i]"),
        ("K = [1, 2]\nK.append(7)\n", "K[2] * x[i]", "7 * x[i]"),
        ("K = [[1], [2]]\nfor row in K:\n    row.append(7)\n", "K[0][1] * x[i]", "7 * x[i]"),
        ("K = list(range(3, 6))\n", "K[2] * x[i]", "5 * x[i]"),
        # A function of the file reads a name that the kernel does not.
        (f"K = 5\nif {FALSE}:\n    K = 6\ndef g(v):\n    return K * v\n", "g(x[i])", "return 5 * v;"),
    ],
    ids=joined,
)
def test_a_live_kernel_asks_what_its_text_does_not_tell(folder: Path, text: str, value: str, expected: str) -> None:
    kernel = imported(folder, f"{text}\n{KERNEL}{value}\n").f
    assert expected in with_numbers(kernel.cuda_source).replace(".0f", "").replace("5 * 6", "30")


@pytest.mark.parametrize("value", ["K * x[i]", "K[0] * x[i]", "K(x[i])"])
def test_a_live_name_that_is_no_constant_is_refused(folder: Path, value: str) -> None:
    kernel = imported(folder, f"K = 5\nif {TRUE}:\n    K = {{6}}\n{KERNEL}{value}\n").f
    with pytest.raises(TranslationError, match="`K`"):
        _ = kernel.cuda_source


@pytest.mark.parametrize(("flag", "expected"), [(False, 4), (True, 8)])
def test_a_factory_tells_its_variables(folder: Path, flag: bool, expected: int) -> None:
    text = (
        "def factory(flag):\n    W = 4\n    if flag:\n        W = 8\n\n    def g(v):\n        return W * v\n\n    "
        + KERNEL.replace("\n", "\n    ")
        + "g(x[i])\n    return f\n"
    )
    assert f"return {expected} * v;" in with_numbers(imported(folder, text).factory(flag).cuda_source)


def test_a_name_bound_anew_is_what_it_is_at_the_first_call(folder: Path) -> None:
    module = imported(folder, f"K = 1\n{KERNEL}K * x[i]\nfirst = f.cuda_source\nK = 2\n")
    assert "constexpr int K = 1;" in module.first


def test_the_cache_knows_which_function_a_name_stands_for(folder: Path) -> None:
    text = f"import os\nif os.environ['WAY'] == '1':\n{COS}else:\n{SIN}\n{KERNEL}t(x[i])\n"
    with pytest.MonkeyPatch.context() as patch:
        for way, name in (("1", "cosf"), ("0", "sinf")):
            patch.setenv("WAY", way)
            assert f"{name}(x[i])" in imported(folder, text).f.cuda_source


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        ("K = 1\nK = 2\n", "K * x[i]", "2 * x[i]"),
        ("K = L = 3\n", "x[i] * K + L", "x[i] * 3 + 3"),
        ("try:\n    K = 3\nexcept Exception:\n    K = 4\n", "K * x[i]", "3 * x[i]"),
        ("try:\n    K = int('3')\nfinally:\n    K = 4\n", "K * x[i]", "4 * x[i]"),
        (
            "try:\n    from math import cos as t\nexcept ImportError:\n    from math import sin as t\n",
            "t(x[i])",
            "cosf",
        ),
        ("import math\nimport math\n", "math.sin(x[i])", "sinf"),
        (
            "try:\n    from jaxtyping import Float32\nexcept ImportError:\n    Float32 = None\n",
            "x[i]",
            "out[i] = x[i];",
        ),
        ("try:\n    import nowhere\nexcept ImportError:\n    nowhere = None\n", "x[i]", "out[i] = x[i];"),
        ("if TYPE_CHECKING:\n    K = 3\nelse:\n    K = 4\n", "K * x[i]", "4 * x[i]"),
        ("if TYPE_CHECKING:\n    K = 3\n", "K * x[i]", "3 * x[i]"),
        ("e = 5\nfrom math import *\n", "e * x[i]", "2.718281828459045f * x[i]"),
        ("A, (B, C) = 3, (4, 5)\n", "A * x[i] + C", "3 * x[i] + 5"),
        ("import numpy\nfrom nowhere import *\n", "numpy.exp(x[i])", "expf"),
        ("@device\ndef g(v):\n    return v + 1\n", "g(x[i])", "v + 1;"),
    ],
    ids=joined,
)
def test_what_the_text_tells(text: str, value: str, expected: str) -> None:
    assert expected in with_numbers(read(text, value))


def test_a_module_without_the_name_lets_the_handler_bind_it() -> None:
    text = f"try:\n{SINES.format('nothing')}except ImportError:\n{SIN}"
    with pytest.raises(TranslationError, match="the value of `t` is known only by running the file"):
        read(text, "t(x[i])")
