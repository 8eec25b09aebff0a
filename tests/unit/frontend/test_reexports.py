"""Names that a file beside the kernel's passes on mean the same to `translate`, which reads, and to whoever runs it."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Final

import pytest

from py2cu.cli.loading import load_files
from py2cu.diagnostics import TranslationError
from py2cu.kernels import Kernel
from py2cu.pipeline import translate_file
from py2cu.source import SourceFile

pytestmark = pytest.mark.usefixtures("one_element_a_thread")

KERNEL: Final = """
@{at}kernel
def f(i: {at}Index["n"], x: {at}Float32[{at}Tensor, "n"], out: {at}Float32[{at}Tensor, "n"]):
    out[i] = {value}
"""
PLAIN: Final = KERNEL.format(at="", value="2 * x[i]")
IMPORTS: Final = "from py2cu import Index, kernel\nfrom jaxtyping import Float32\nfrom torch import Tensor\n"
HELPERS: Final = "import math as m\nLIMIT = 2.5\n_HIDDEN = 3\ndef clamp(v):\n    return min(m.fabs(v), LIMIT)\n"

LAYOUTS: Final = {
    "a star": {"common": IMPORTS, "main": f"from common import *\n{PLAIN}"},
    "a star of stars": {
        "common": "from py2cu import *\nfrom jaxtyping import *\nfrom torch import Tensor\n",
        "main": f"from common import *\n{PLAIN}",
    },
    "a file between": {
        "base": IMPORTS, "common": "from base import *\nfrom base import kernel\n",
        "main": f"from common import *\n{PLAIN}",
    },
    "__all__": {
        "common": IMPORTS + '__all__ = ["kernel", "Index", "Float32", "Tensor"]\n',
        "main": f"from common import *\n{PLAIN}",
    },
    "other names": {
        "common": IMPORTS,
        "main": "from common import Float32, Tensor, Index as Place, kernel as cuda_kernel\n"
        + PLAIN.replace("@kernel", "@cuda_kernel").replace("i: Index", "i: Place"),
    },
    "the module": {"common": IMPORTS, "main": "import common\n" + KERNEL.format(at="common.", value="2 * x[i]")},
    "functions and numbers": {
        "common": IMPORTS + HELPERS,
        "main": "from common import *\n" + KERNEL.format(at="", value="clamp(x[i]) + LIMIT"),
    },
    "a library behind": {
        "common": IMPORTS + "import math as m\n",
        "main": "from common import *\nimport common\n"
        + KERNEL.format(at="", value="m.sqrt(x[i]) + common.m.exp(x[i])"),
    },
    "a package": {
        "pack/__init__": "", "pack/common": IMPORTS + HELPERS, "pack/deep/__init__": "from ..common import *\n",
        "pack/main": "from .common import *\nfrom .deep import clamp as limited\n"
        + KERNEL.format(at="", value="clamp(x[i]) - limited(x[i] + 1)"),
    },
    "other names there": {
        "common": "import py2cu\nkernel = py2cu.kernel\nIndex = py2cu.Index\nfrom jaxtyping import Float32\n"
        "from torch import Tensor\n",
        "main": f"from common import *\n{PLAIN}",
    },
    "beside the first file": {
        "common": IMPORTS, "a/__init__": "", "a/x": "from common import *\n", "main": f"from a.x import *\n{PLAIN}",
    },
    "a default": {
        "common": IMPORTS + "EPS = 0.25\n",
        "main": "from common import *\n" + PLAIN.replace('"n"]):', '"n"], by: float = EPS):').replace("2 *", "by *"),
    },
    "a package's own": {
        "pack/__init__": IMPORTS, "pack/main": f"from . import Index, Float32, Tensor\nfrom . import kernel\n{PLAIN}",
    },
}  # fmt: skip


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    before = {*sys.modules}
    yield tmp_path
    for name in {*sys.modules} - before:
        if str(getattr(sys.modules[name], "__file__", None)).startswith(str(tmp_path)):
            del sys.modules[name]


def write(folder: Path, layout: dict[str, str]) -> Path:
    """The files of a layout; the path of the last one."""
    for name, text in layout.items():
        path = folder / f"{name}.py"
        path.parent.mkdir(exist_ok=True, parents=True)
        path.write_text(text, encoding="utf-8")
    return path


def test_kernels_of_classes_are_found_by_all(folder: Path) -> None:
    path = write(folder, {"main": f"{IMPORTS}\nclass Ops:" + PLAIN.replace("\n", "\n    ") + "\n"})
    assert "f_kernel" in translate_file(SourceFile.read(path)).cuda.kernel.text
    pytest.importorskip("torch")
    (loaded,) = load_files([path], None)
    assert [each.__name__ for each in loaded.kernels] == ["f"]


@pytest.mark.parametrize("layout", LAYOUTS)
def test_one_answer_from_the_text_and_from_the_decorator(folder: Path, layout: str) -> None:
    path = write(folder, LAYOUTS[layout])
    read = translate_file(SourceFile.read(path)).cuda.kernel
    pytest.importorskip("torch")
    kernel = importlib.import_module(".".join(path.relative_to(folder).with_suffix("").parts)).f
    assert isinstance(kernel, Kernel)
    assert kernel.translation.cuda.kernel.code == read.code, "all but the lines that name the file"
    if path.parent == folder:
        (loaded,) = load_files([path], None)
        assert [each.__name__ for each in loaded.kernels] == ["f"]


NO_KERNEL: Final = {
    "another kernel": "def kernel(f):\n    return f\n",
    "either": "try:\n    from py2cu import kernel\nexcept ImportError:\n    kernel = print\n",
    "not in __all__": IMPORTS + '__all__ = ["Index"]\n',
    "underscore": "from py2cu import kernel as _kernel\n",
    "itself": "from common import kernel\n",
    "no Python": "def (",
}


def test_a_star_passes_on_no_name_with_an_underscore(folder: Path) -> None:
    main = f"from common import *\n{PLAIN}".replace("@kernel", "@_kernel")
    path = write(folder, {"common": f"{IMPORTS}from py2cu import kernel as _kernel\n", "main": main})
    with pytest.raises(TranslationError, match="there is no kernel in this file"):
        translate_file(SourceFile.read(path))


@pytest.mark.parametrize("common", NO_KERNEL)
def test_what_no_file_says_is_no_kernel(folder: Path, common: str) -> None:
    path = write(folder, {"common": NO_KERNEL[common], "main": f"from common import *\n{PLAIN}"})
    with pytest.raises(TranslationError, match="there is no kernel in this file"):
        translate_file(SourceFile.read(path))


EXP: Final = (
    "from py2cu import Index, kernel\nfrom jaxtyping import Float32\nfrom torch import Tensor\n{}"
    + KERNEL.format(at="", value="{}")
)
# A name of which the text beside tells something else than an approximation of Python would: what is translated.
REBOUND: Final = {
    "a star after an import": (
        {"fast": "def exp(x):\n    return x + 100.0\n", "common": "from math import exp\nfrom fast import *\n"},
        "from common import exp\n", "exp(x[i])", "100.0f",
    ),
    "a library's star after a definition": (
        {"common": "def exp(x):\n    return x + 100.0\nfrom math import *\n"},
        "from common import *\n", "exp(x[i])", "expf",
    ),
    "a library's star passed on": (
        {"common": "from math import *\n"},
        "def exp(x):\n    return x + 100.0\nfrom common import *\n", "exp(x[i])", "expf",
    ),
    "a package before a module": (
        {"common": "from math import exp\n", "common/__init__": "from math import log as exp\n"},
        "from common import exp\n", "exp(x[i])", "logf",
    ),
    "an empty __all__": (
        {"common": "__all__ = []\ndef abs(x):\n    return x + 100.0\n"}, "from common import *\n", "abs(x[i])", "fabsf",
    ),
    "an annotated __all__": (
        {"common": "__all__: list[str] = ['abs']\ndef abs(x):\n    return x + 100.0\ndef exp(x):\n    return x\n"},
        "from common import *\nfrom math import exp\n", "abs(exp(x[i]))", "100.0f",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", REBOUND)
def test_the_last_binding_counts_in_the_text_and_under_the_decorator(folder: Path, case: str) -> None:
    files, imports, value, expected = REBOUND[case]
    path = write(folder, {**files, "main": EXP.format(imports, value)})
    assert expected in translate_file(SourceFile.read(path)).cuda.kernel.text
    pytest.importorskip("torch")
    assert expected in importlib.import_module("main").f.cuda_source


UNTOLD: Final = {
    "global": "from math import exp, log\ndef g():\n    global exp\n    exp = log\ng()\n",
    "a star under try": "from math import exp\ntry:\n    from fast import *\nexcept ImportError:\n    pass\n",
    "either": "if len('a') == 1:\n    def exp(x):\n        return x\nelse:\n    from math import exp\n",
    "defined twice": "def exp(x):\n    return x\ndef exp(x):\n    return x + 1\n",
}


@pytest.mark.parametrize("case", UNTOLD)
def test_what_the_text_beside_does_not_tell_is_refused_and_known_under_the_decorator(folder: Path, case: str) -> None:
    files = {"fast": "def exp(x):\n    return x + 100.0\n", "common": UNTOLD[case]}
    path = write(folder, {**files, "main": EXP.format("from common import *\n", "exp(x[i])")})
    with pytest.raises(TranslationError, match="the value of `exp` is known only by running the file"):
        translate_file(SourceFile.read(path))
    pytest.importorskip("torch")
    module = importlib.import_module("main")
    expected = {"global": "logf", "a star under try": "100.0f", "either": "return x;", "defined twice": "return x + 1;"}
    assert expected[case] in module.f.cuda_source


def test_a_live_kernel_does_not_ask_the_files_beside(folder: Path) -> None:
    pytest.importorskip("torch")
    write(folder, {"common": "from math import exp\n", "main": EXP.format("from common import *\n", "exp(x[i])")})
    kernel = importlib.import_module("main").f
    write(folder, {"common": "from math import log as exp\n"})
    assert "expf" in kernel.cuda_source


def test_files_that_import_each_other_are_read_once(folder: Path) -> None:
    names = "abcdefgh"
    stars = {n: "".join(f"from .{m} import *\n" for m in names if m != n) for n in names}
    files = {f"ring/{n}": f"{stars[n]}def {n}_1(x):\n    return x\nfrom py2cu import kernel, Index\n" for n in names}
    main = f"from jaxtyping import Float32\nfrom torch import Tensor\nfrom .a import *\n{PLAIN}"
    path = write(folder, {"ring/__init__": "", **files, "ring/main": main})
    assert "f_kernel" in translate_file(SourceFile.read(path)).cuda.kernel.text
