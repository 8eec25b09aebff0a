"""Names that a file beside the kernel's passes on mean the same to `translate`, which reads, and to whoever runs it."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Final

import pytest

from py2cu.diagnostics import TranslationError
from py2cu.kernels import Kernel
from py2cu.loading import load_all
from py2cu.pipeline import translate_file
from py2cu.source import SourceFile

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


@pytest.mark.parametrize("layout", LAYOUTS)
def test_one_answer_from_the_text_and_from_the_decorator(folder: Path, layout: str) -> None:
    path = write(folder, LAYOUTS[layout])
    read = translate_file(SourceFile.read(path)).cuda.kernel.text
    pytest.importorskip("torch")
    kernel = importlib.import_module(".".join(path.relative_to(folder).with_suffix("").parts)).f
    assert isinstance(kernel, Kernel)
    assert kernel.cuda_source.splitlines()[1:] == read.splitlines()[1:], "all but the line that names the file"
    if path.parent == folder:
        (loaded,) = load_all([path], None)
        assert [each.__name__ for each in loaded.kernels] == ["f"]


NO_KERNEL: Final = {
    "another kernel": "def kernel(f):\n    return f\n",
    "either": "try:\n    from py2cu import kernel\nexcept ImportError:\n    kernel = print\n",
    "not in __all__": IMPORTS + '__all__ = ["Index"]\n',
    "underscore": "from py2cu import kernel as _kernel\n",
    "itself": "from common import kernel\n",
    "no Python": "def (",
}


@pytest.mark.parametrize("common", NO_KERNEL)
def test_what_no_file_says_is_no_kernel(folder: Path, common: str) -> None:
    path = write(folder, {"common": NO_KERNEL[common], "main": f"from common import *\n{PLAIN}"})
    with pytest.raises(TranslationError, match="there is no kernel in this file"):
        translate_file(SourceFile.read(path))
