"""Functions of other files and of other notebook cells become device functions, with the names around them there."""

from __future__ import annotations

import importlib
import linecache
import os
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from py2cu.cli.loading import load_files
from py2cu.diagnostics import TranslationError, render
from py2cu.kernels import Kernel
from py2cu.pipeline import translate_file
from py2cu.source import SourceFile
from tests.support.constants import with_numbers

pytestmark = pytest.mark.usefixtures("one_element_a_thread")

HEAD = "from jaxtyping import Float32, Int32\nfrom torch import Tensor\nfrom py2cu import Index, device, kernel\n"
KERNEL = '@kernel\ndef f(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):\n    out[i] = '

CLAMP = """\
import math as m
LOW, UNUSED = 0, print("imported")
HIGH = 4.0

def limited(v):
    return min(v, HIGH)

def clamp(v):
    return limited(m.sqrt(abs(v)))

def halves(v):
    return v / 2, v - v / 2

bounded = clamp
squared = (
    lambda v: v * v
)
"""


def write(folder: Path, **files: str) -> Path:
    """Files by stem, `main` with the usual imports before it; the path of `main`."""
    for stem, text in files.items():
        path = folder / f"{stem.replace('__in__', '/')}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(HEAD + text if stem.endswith("main") else text, encoding="utf-8")
    return folder / "main.py"


def cuda(path: Path) -> str:
    return translate_file(SourceFile.read(path)).cuda.kernel.text


def refusal(path: Path) -> str:
    """What is said about a file, with paths relative to its folder."""
    with pytest.raises(TranslationError) as caught:
        translate_file(SourceFile.read(path))
    return render(caught.value.diagnostics).replace(f"{path.parent}{os.sep}", "")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder to import from; what was imported is forgotten."""
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    for name in ("helpers", "main", "sizes", "pack", "pack.helpers"):
        sys.modules.pop(name, None)


def imported(name: str = "main") -> ModuleType:
    pytest.importorskip("torch")
    for other in ("helpers", "sizes", "main"):
        sys.modules.pop(other, None)
    importlib.invalidate_caches()
    return importlib.import_module(name)


def checked(kernel: Kernel) -> None:
    pytest.importorskip("torch")
    report = kernel.check()
    assert report.ok, str(report)


# --- found and read ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("line", "call"),
    [
        ("from helpers import clamp", "clamp"),
        ("from helpers import clamp as limit", "limit"),
        ("from .helpers import clamp", "clamp"),
        ("from . import helpers", "helpers.clamp"),
        ("import helpers", "helpers.clamp"),
        ("import helpers as h", "h.clamp"),
        ("import helpers\nlimit = helpers.clamp", "limit"),
        ("from helpers import bounded\nlimit = bounded", "limit"),
    ],
)
def test_every_way_to_import(tmp_path: Path, line: str, call: str, capsys: pytest.CaptureFixture[str]) -> None:
    text = cuda(write(tmp_path, helpers=CLAMP, main=f"{line}\n\n{KERNEL}{call}(x[i])\n"))
    assert "__device__ float clamp(float v)\n{\n    return limited(sqrtf(fabsf(v)));\n}" in text
    assert "__device__ float limited(float v)\n{\n    return python_min(v, 4.0f);\n}" in with_numbers(text)
    assert "out[i] = clamp(x[i]);" in text
    assert capsys.readouterr().out == ""  # nothing was run


def test_packages_and_names_that_are_passed_on(tmp_path: Path) -> None:
    main = write(
        tmp_path,
        helpers__in____init__="from .numbers import clamp\nfrom . import numbers\n",
        helpers__in__numbers=f"from ..outer import twice\n{CLAMP}\n\ndef both(v):\n    return twice(clamp(v))\n",
        outer="def twice(v):\n    return 2 * v\n",
        main=f"import helpers.numbers\nfrom helpers import clamp\n\n{KERNEL}clamp(x[i]) + helpers.numbers.both(x[i])\n",
    )
    assert "out[i] = clamp(x[i]) + both(x[i]);" in cuda(main)


def test_functions_of_one_name(tmp_path: Path) -> None:
    main = write(
        tmp_path,
        helpers="def g(v):\n    return v + 1\n",
        others="def g(v):\n    return v + 2\n",
        main=f"import helpers, others\n\ndef g(v):\n    return v + 3\n\n{KERNEL}helpers.g(others.g(g(x[i])))\n",
    )
    assert "out[i] = g__(g_(g(x[i])));" in cuda(main)


def test_functions_of_one_name_and_other_parameters(tmp_path: Path) -> None:
    main = write(
        tmp_path,
        helpers="def g(v):\n    return v + 1\n\ndef put(x, i):\n    x[i] = 7\n",
        main=f"import helpers\n\ndef g(w):\n    return w + 2\n\ndef put(y, j):\n    return y[j]\n\n"
        f"{KERNEL}helpers.g(g(put(x, i)))\n    helpers.put(out, i)\n    out[i] += put(out, i)\n",
    )
    text = cuda(main)
    assert "out[i] = g_(g(put<index_t>(x, i)));" in text
    assert "put_<index_t>(out, i);" in text and "out[i] += put<index_t>(out, i);" in text


def test_names_mean_what_they_mean_in_their_file(tmp_path: Path) -> None:
    main = write(
        tmp_path,
        helpers="K = 2\n\ndef g(v):\n    return K * v\n",
        main=f"from helpers import g\nK = 5\n\n{KERNEL}K + g(x[i])\n",
    )
    text = cuda(main)
    assert "return 2 * v;" in with_numbers(text)
    assert {"constexpr int K = 2;", "constexpr int K_ = 5;"} <= {*text.splitlines()}  # two numbers, two names


@pytest.mark.builds
def test_defaults_are_what_they_are_in_their_file(folder: Path) -> None:
    main = write(
        folder,
        helpers="K = L = 2\nL += 1\ndef g(v, k=K, at=1 << K):\n    return k * v + at\ndef h(v, l=L):\n    return v\n",
        main=f"from helpers import g\nK = 5\n\n{KERNEL}K * g(x[i])\n",
    )
    assert "5 * g(x[i], 2, 4)" in with_numbers(cuda(main))
    checked(imported().f)
    main = write(folder, main=f"from helpers import h\n\n{KERNEL}h(x[i])\n")
    assert refusal(main).startswith("helpers.py:5:12: error[P205]: the value of `L` is known only by running the file")


def test_files_may_import_each_other(tmp_path: Path) -> None:
    main = write(
        tmp_path,
        helpers="import main\n\ndef g(v):\n    return main.h(v) + 1\n",
        main=f"from helpers import g\n\ndef h(v):\n    return v * 2\n\n{KERNEL}g(x[i]) + h(x[i])\n",
    )
    text = cuda(main)
    assert "return h(v) + 1;" in text
    assert text.count("float h(float v)") == 1


@pytest.mark.builds
@pytest.mark.parametrize(
    ("line", "text"), [("from helpers import WIDTH", "WIDTH"), ("import helpers", "helpers.WIDTH")]
)
def test_numbers_of_other_files(folder: Path, line: str, text: str) -> None:
    main = write(
        folder,
        helpers="from sizes import WIDTH\nSCALE = 0.5\n",
        sizes="HALF = 8\nWIDTH = HALF\n",
        main=f"{line}\nfrom helpers import SCALE as scale\n\n{KERNEL}x[i] % {text} * scale + i // {text}\n",
    )
    assert "floor_mod(x[i], 8f) * 0.5f + " in with_numbers(cuda(main))
    assert "floor_mod(x[i], 8f) * 0.5f + " in with_numbers(imported().f.cuda_source)
    checked(imported().f)
    write(folder, sizes="WIDTH = 16\n")
    assert "floor_mod(x[i], 16f) * 0.5f + " in with_numbers(imported().f.cuda_source)


@pytest.mark.builds
@pytest.mark.parametrize(
    ("line", "owner"),
    [("from helpers import Mode, Config", ""), ("import helpers", "helpers."), ("import sizes", "sizes.")],
)
def test_classes_of_other_files(folder: Path, line: str, owner: str) -> None:
    value = f"x[i] * {owner}Config.Inner.SCALE + {owner}Mode.LAST.value + i // {owner}Mode.LAST"
    main = write(
        folder,
        helpers="from sizes import Config, Mode\n",
        sizes="from enum import IntEnum\nSCALE = 0.5\n\nclass Mode(IntEnum):\n    LAST = 8\n\n"
        "class Config:\n    class Inner:\n        SCALE = SCALE\n",
        main=f"{line}\n\n{KERNEL}{value}\n",
    )
    assert "x[i] * 0.5f + 8 + " in with_numbers(cuda(main))
    assert "x[i] * 0.5f + 8 + " in with_numbers(imported().f.cuda_source)
    checked(imported().f)


# --- refused ----------------------------------------------------------------------------------------------------------


@pytest.mark.builds
@pytest.mark.parametrize("line", ["from helpers import T, G", "from helpers import T as T, G as G"])
def test_tables_of_other_files(folder: Path, line: str) -> None:
    value = "T[-1] * x[i] + T[i % 3] + G[1][0] + len(G[0])\n    a, b, c = T\n    out[i] += a * g(b) + c"
    main = write(
        folder,
        helpers="from sizes import T\nG = ((1, 2), (3, 4))\nP = (1, 2)\nP += (3,)\n",
        sizes="T = (1.0, 2.5, 4.0)\n",
        main=f"{line}\n\ndef g(v):\n    return T[1] + v\n\n{KERNEL}{value}\n",
    )
    text = cuda(main)
    assert "__constant__ const float T[3] = {1.0f, 2.5f, 4.0f};" in text
    assert "out[i] = 4.0f * x[i] + T[i % 3] + 3.0f + 2.0f;" in text
    checked(imported().f)
    main = write(folder, main=f"from helpers import P\n\n{KERNEL}P[0]\n")
    assert "error[P401]" in refusal(main)


def test_lists_of_other_files_are_tables_only_where_python_has_run(folder: Path) -> None:
    """Any file that imports a list may change it."""
    line = "from helpers import L\nL.append(7)\n"
    main = write(folder, helpers="L = [1, 2]\n", main=f"{line}\n{KERNEL}L[2] * x[i]\n")
    assert "error[P401]" in refusal(main)
    assert "7.0f * x[i]" in imported().f.cuda_source


def test_errors_point_at_the_file_where_they_are(tmp_path: Path) -> None:
    helpers = "\n\ndef shifted(v):\n    return v << 1\n\ndef lost(v):\n    return v + nothing\n"
    main = write(tmp_path, helpers=helpers, main=f"import helpers\n\n{KERNEL}helpers.lost(x[i])\n")
    assert (
        refusal(main)
        == """\
helpers.py:7:16: error[P201]: unknown name `nothing`
  7 |     return v + nothing
    |                ^^^^^^^
main.py:8:14: note: `lost` is called here
  8 |     out[i] = helpers.lost(x[i])
    |              ^^^^^^^^^^^^^^^^^^
  hint: assign to it first, import it, or make it a parameter"""
    )
    write(tmp_path, main=f"import helpers\n\n{KERNEL}helpers.shifted(x[i])\n")
    assert refusal(main).startswith("helpers.py:4:12: error[P307]: `<<` works on whole numbers, not on float32")
    write(tmp_path, helpers="def shifted(v):\n    if v > 0:\n        t = v\n    return t\n")
    assert refusal(main).startswith("helpers.py:4:12: error[P204]: `t` may be read here before it is assigned")
    write(tmp_path, helpers="def shifted(v):\n    if v > 0:\n        return v\n")
    assert refusal(main).startswith("helpers.py:1:5: error[P106]: `shifted` may end without a value")
    write(tmp_path, helpers="def shifted(v:\n    return v\n")
    what = "main.py:8:14: error[P105]: `helpers.shifted` is not a function that kernels can call"
    assert refusal(main).startswith(what)
    assert "helpers.py:1:12: error[P101]: not valid Python: '(' was never closed" in refusal(main)


@pytest.mark.parametrize(
    ("line", "call", "hint"),
    [
        ("from helpers import clmp", "clmp", "did you mean `clamp`?"),
        ("import helpers", "helpers.nothing_like_it", "has no function `nothing_like_it`"),
        ("from .nowhere import g", "g", "functions are read from files beside this one, and there is no `nowhere.py`"),
        (
            "import nowhere.deep",
            "nowhere.deep.g",
            "functions are read from files beside this one, and there is no `deep.py`",
        ),
        ("from binary import g", "g", "it holds a null byte"),
        ("from helpers import HIGH", "HIGH", "is not a function defined by `def`"),
    ],
)
def test_missing_files_and_functions(tmp_path: Path, line: str, call: str, hint: str) -> None:
    (tmp_path / "binary.py").write_bytes(b"def g(v):\0")
    said = refusal(write(tmp_path, helpers=CLAMP, main=f"{line}\n\n{KERNEL}{call}(x[i])\n"))
    assert said.startswith("main.py:8:14: error[P105]")
    assert f"\n    |              {'^' * len(call)}\n" in said
    assert hint in said


def test_a_kernel_of_another_file_is_not_called(tmp_path: Path) -> None:
    helpers = HEAD + KERNEL.replace("def f", "def g") + "x[i]\n"
    main = write(tmp_path, helpers=helpers, main=f"import helpers\n\n{KERNEL}helpers.g(i, x, out)\n")
    assert "error[P105]: `g` is a kernel: the host launches kernels" in refusal(main)


# --- live -------------------------------------------------------------------------------------------------------------


@pytest.mark.builds
def test_the_oracle_runs_them_on_elements(folder: Path) -> None:
    call = "clamp(x[i]) + helpers.halves(x[i])[1] * helpers.limited(x[i])"
    write(folder, helpers=CLAMP, main=f"import helpers\nfrom helpers import clamp\n\n{KERNEL}{call}\n")
    checked(imported().f)


@pytest.mark.parametrize(
    ("line", "call"), [("from helpers import squared as other", "other"), ("import helpers", "helpers.squared")]
)
def test_lambdas_of_other_files(folder: Path, line: str, call: str) -> None:
    main = write(folder, helpers=CLAMP, main=f"{line}\n\n{KERNEL}{call}(x[i])\n")
    for text in (cuda(main), imported().f.cuda_source):
        assert "__device__ float squared(float v)\n{\n    return v * v;\n}" in text


def test_findings_say_in_which_file_they_are(folder: Path) -> None:
    torch = pytest.importorskip("torch")
    helpers = "def element(x, k):\n    return x[k]\n"
    main = write(folder, helpers=helpers, main=f"import helpers\n\n{KERNEL}helpers.element(x, i - 1)\n")
    kernel = imported().f
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        kernel.simulate(torch.ones(3))
    assert {(os.path.basename(w.filename), w.lineno) for w in caught} == {("helpers.py", 2)}
    assert main.parent == folder
    assert "helpers.py, line 2: " in str(caught[0].message)


def test_an_edited_sibling_is_translated_again(folder: Path) -> None:
    write(folder, helpers=CLAMP, main=f"import helpers\n\n{KERNEL}helpers.clamp(x[i])\n")
    assert "python_min(v, 4.0f)" in with_numbers(imported().f.cuda_source)
    write(folder, helpers=CLAMP.replace("HIGH = 4.0", "HIGH = 12.5"))
    assert "python_min(v, 12.5f)" in with_numbers(imported().f.cuda_source)


@pytest.mark.builds
def test_functions_that_another_makes_differ_by_what_is_around_them(folder: Path) -> None:
    write(
        folder,
        main="def times(n):\n    def inner(v):\n        return v * n\n    return inner\n\n"
        "def after(g):\n    def inner(v):\n        return g(v) + 1\n    return inner\n\n"
        "def made(g, h):\n    " + KERNEL.replace("\n", "\n    ") + "10 * g(x[i]) + h(x[i])\n    return f\n",
    )
    torch, module = pytest.importorskip("torch"), imported()
    two, three = module.times(2), module.times(3)
    results = {
        module.made(g, h)(torch.ones(1)).item()
        for g, h in [(two, two), (two, three), (three, two), (module.after(two), three), (module.after(three), three)]
    }
    assert results == {22, 23, 32, 33, 43}


@pytest.mark.builds
def test_functions_of_other_notebook_cells() -> None:
    pytest.importorskip("torch")
    cells = [
        "def inner(v):\n    return v * SCALE\n",
        "SCALE = 3\ndef outer(v):\n    return inner(v) + 1\n",
        f"{HEAD}{KERNEL}outer(x[i])\n",
    ]
    space = {"__name__": "__main__"}

    def run(place: int, text: str) -> None:
        name = f"<cell {place}>"
        linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
        exec(compile(text, name, "exec"), space)

    for place, text in enumerate(cells):
        run(place, text)
    kernel = space["f"]
    assert isinstance(kernel, Kernel)
    assert "return inner(v) + 1;" in kernel.cuda_source
    assert "return v * 3;" in with_numbers(kernel.cuda_source)
    checked(kernel)
    run(10, cells[0].replace("*", "-"))  # another inner, then the kernel's cell again
    run(2, cells[2])
    again = space["f"]
    assert isinstance(again, Kernel)
    assert "return v - 3;" in with_numbers(again.cuda_source)


def test_commands_that_run_a_file_of_a_package(folder: Path) -> None:
    pytest.importorskip("torch")
    main = write(
        folder,
        pack__in____init__="",
        pack__in__helpers=CLAMP,
        pack__in__main=f"from .helpers import clamp\n\n{KERNEL}clamp(x[i])\n",
    )
    (loaded,) = load_files([main.parent / "pack" / "main.py"], None)
    assert "out[i] = clamp(x[i]);" in loaded.kernels[0].cuda_source
