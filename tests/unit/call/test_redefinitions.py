"""What a kernel mentions may be redefined: the next use of any kind sees the same as Python does."""

from __future__ import annotations

import importlib
import linecache
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from py2cu.diagnostics import TranslationError  # noqa: E402
from py2cu.kernels import Kernel  # noqa: E402
from py2cu.live.dependencies import Dependencies  # noqa: E402
from tests.support.constants import with_numbers  # noqa: E402
from tests.support.edited_files import write  # noqa: E402

pytestmark = pytest.mark.usefixtures("one_element_a_thread")

HEAD = """
import math
from jaxtyping import Float32
from torch import Tensor
from py2cu import Constexpr, Index, kernel
"""
KERNEL = """
@kernel
def f(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    out[i] = """
X = torch.tensor([0.5, 3.0])


class Cells:
    """Notebook cells: each a text of its own, all with the same globals."""

    def __init__(self) -> None:
        self.globals: dict[str, object] = {"__name__": "__main__"}
        self.count = 0

    def run(self, text: str) -> None:
        self.count += 1
        name = f"<cell {id(self)} {self.count}>"
        linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
        exec(compile(text, name, "exec", dont_inherit=True), self.globals)

    @property
    def kernel(self) -> Kernel:
        kernel = self.globals["f"]
        assert isinstance(kernel, Kernel)
        return kernel


@pytest.fixture
def cells() -> Iterator[Cells]:
    cells = Cells()
    cells.run(HEAD)
    yield cells
    for name in [name for name in linecache.cache if name.startswith(f"<cell {id(cells)} ")]:
        del linecache.cache[name]


# The first cell, beside the kernel; the value that the kernel stores; later cells, and what the CUDA says after each.


def plain(text: str) -> str:
    """The text with `2` for `2.0f`, and for a constant of that value."""
    return with_numbers(text).replace(".0f", "")


REDEFINITIONS: list[tuple[str, str, list[tuple[str, str]]]] = [
    ("K = 2.0", "K * x[i]", [("K = 5.0", "5 * x[i]"), ("K = 2.0", "2 * x[i]")]),
    ("K = 2.0\nL = K + 1", "L * x[i]", [("K = 5.0", "3 * x[i]"), ("L = 9.0", "9 * x[i]")]),
    ("T = (1.0, 2.0)", "T[1] * x[i]", [("T = (1.0, 4.0)", "4")]),
    ("def h(v):\n    return v + 1", "h(x[i])", [("def h(v):\n    return v + 4", "v + 4")]),
    (
        "def h(v):\n    return v + 1",
        "h(x[i])",
        [("from math import sin as h", "sinf(x[i])"), ("h = abs", "fabsf(x[i])")],
    ),
    ("def h(v):\n    return K * v\nK = 2.0", "h(x[i])", [("K = 6.0", "6 * v")]),
    (
        "def g(v):\n    return v + 1\ndef h(v):\n    return 2 * g(v)",
        "h(x[i])",
        [("def g(v):\n    return v + 8", "v + 8"), ("def h(v):\n    return 3 * g(v)", "3 * g(v)")],
    ),
    ("h = lambda v: v + 1", "h(x[i])", [("h = lambda v: v + 4", "v + 4"), ("def h(v):\n    return v - 1", "v - 1")]),
    ("def h(v, k=2.0):\n    return k * v", "h(x[i])", [("h.__defaults__ = (7.0,)", "h(x[i], 7)")]),
    ("from math import sin as t", "t(x[i])", [("from math import cos as t", "cosf(x[i])")]),
    ("t = math.sin", "t(x[i])", [("t = math.cos", "cosf(x[i])")]),
    ("", "min(x[i], 1.0)", [("def min(a, b):\n    return a - b", "return a - b;")]),
    ("def h(v):\n    return v + 1", "h(x[i])", [("def g(v):\n    return v + 6\nh.__code__ = g.__code__", "v + 6")]),
]


@pytest.mark.parametrize(("first", "value", "later"), REDEFINITIONS, ids=[f"{a}; {b}" for a, b, _ in REDEFINITIONS])
@pytest.mark.parametrize("is_used_before", [True, False], ids=["used", "unused"])
def test_the_text_follows(
    cells: Cells, first: str, value: str, later: list[tuple[str, str]], is_used_before: bool
) -> None:
    cells.run(f"{HEAD}{first}\n{KERNEL}{value}\n")
    for text, expected in later:
        if is_used_before:
            _ = cells.kernel.cuda_source
        cells.run(text)
        assert expected in plain(cells.kernel.cuda_source)
        python = [float(cells.kernel.simulate(X)[1])]
        assert python == [pytest.approx(_by_hand(cells, value), rel=1e-6)]


def _by_hand(cells: Cells, value: str) -> float:
    return float(eval(value, cells.globals | {"x": [3.0], "i": 0}))


def test_every_use_sees_a_redefinition_and_a_handle_keeps_the_old_code(cells: Cells) -> None:
    cells.run(f"{HEAD}K = 2.0\n{KERNEL}K * x[i]\n")
    kernel = cells.kernel
    texts: list[Callable[[Kernel], str]] = [
        lambda k: k.cuda_source, lambda k: k.translation.cuda.kernel.text, lambda k: k.without_fma().cuda_source, repr
    ]  # fmt: skip
    unfused, translation = kernel.without_fma(), kernel.translation
    edited = kernel.with_translation(translation)
    for number, use in enumerate(texts, start=3):
        cells.run(f"K = {number}.0")
        assert f"{number} * x[i]" in plain(use(kernel))
    assert f"{number} * x[i]" in plain(unfused.cuda_source)
    assert "2 * x[i]" in plain(edited.cuda_source)


def test_a_variant_sees_a_redefinition(cells: Cells) -> None:
    template = KERNEL.replace('"n"]):', '"n"], t: Constexpr[int]):')
    cells.run(f"{HEAD}K = 2.0\n{template}K * x[i] + t\n")
    variant = cells.kernel.with_values(t=4)
    assert "2 * x[i]" in plain(variant.cuda_source)
    cells.run("K = 3.0")
    assert "3 * x[i]" in plain(variant.cuda_source)


def test_what_is_bound_anew_to_what_it_was_is_not_translated_anew(cells: Cells) -> None:
    cells.run(f"{HEAD}K = 2.0\n{KERNEL}K * x[i]\n")
    before = cells.kernel.translation
    cells.run("K = 4.0 / 2.0\nunrelated = 3")
    assert cells.kernel.translation is before


def test_a_variable_of_a_function_around(cells: Cells) -> None:
    inner = KERNEL.replace("\n", "\n    ")
    change = "def change(v):\n        nonlocal K\n        K = v\n"
    text = f"def factory(K):\n    {change}{inner}K * x[i]\n    return f, change\n"
    cells.run(f"{HEAD}{text}f, change = factory(2.0)\n")
    assert "2 * x[i]" in plain(cells.kernel.cuda_source)
    cells.run("change(5.0)")
    assert "5 * x[i]" in plain(cells.kernel.cuda_source)


@pytest.mark.parametrize("change", ["K[1] = 7", "K.append(7)", "K += [7]", "K = [2, 7, 7]"])
def test_a_list_that_is_changed_in_place(cells: Cells, change: str) -> None:
    cells.run(f"{HEAD}K = [2, 3]\n{KERNEL}K[-1] * x[i]\n")
    assert "3 * x[i]" in plain(cells.kernel.cuda_source)
    torch.testing.assert_close(cells.kernel.simulate(X), 3 * X)
    cells.run(change)
    assert "7 * x[i]" in plain(cells.kernel.cuda_source)
    torch.testing.assert_close(cells.kernel.simulate(X), 7 * X)


def test_a_list_in_a_tuple(cells: Cells) -> None:
    cells.run(f"{HEAD}K = (1, [2, 3])\n{KERNEL}K[1][0] * x[i]\n")
    assert "2 * x[i]" in plain(cells.kernel.cuda_source)
    cells.run("K[1][0] = 7")
    assert "7 * x[i]" in plain(cells.kernel.cuda_source)


def test_two_functions_of_one_name_in_one_cell(cells: Cells) -> None:
    first, second = (f"def g(v):\n    return v + {number}\n" for number in (1, 9))
    cells.run(f"{HEAD}{first}old = g\n{second}{KERNEL}old(x[i]) * 100 + g(x[i])\n")
    text = plain(cells.kernel.cuda_source)
    assert "v + 1;" in text and "v + 9;" in text
    torch.testing.assert_close(cells.kernel.simulate(X), (X + 1) * 100 + X + 9)


def test_a_number_that_only_an_option_names(cells: Cells) -> None:
    cells.run(f"{HEAD}from py2cu import blockIdx, threadIdx\nWIDTH = 64")
    head = "@kernel(size='blocks * WIDTH', block='WIDTH')\ndef f(out: Float32[Tensor, 'n'], blocks: int):\n"
    cells.run(f"{head}    if threadIdx.x < 2:\n        out[threadIdx.x] = blockIdx.x\n")
    assert "const dim3 block(64)" in plain(cells.kernel.cuda_source)
    cells.run("WIDTH = 32")
    cells.run(f"{head}    if threadIdx.x < 3:\n        out[threadIdx.x] = blockIdx.x\n")
    assert "const dim3 block(32)" in plain(cells.kernel.cuda_source)


def test_a_list_in_a_function_around(cells: Cells) -> None:
    inner = KERNEL.replace("\n", "\n    ")
    cells.run(f"{HEAD}def factory():\n    K = [2, 3]\n{inner}K[1] * x[i]\n    return f, K\nf, K = factory()\n")
    assert "3 * x[i]" in plain(cells.kernel.cuda_source)
    cells.run("K[1] = 5")
    assert "5 * x[i]" in plain(cells.kernel.cuda_source)


def test_names_that_a_kernel_does_not_read_are_no_dependencies(cells: Cells) -> None:
    """In a notebook, attributes share names with variables, which change all the time."""
    cells.run(f"{HEAD}shape = x = i = 3\n{KERNEL}x[i] * x.shape[0] + math.pi\n")
    dependencies = Dependencies(cells.kernel.python)
    cells.run("shape = x = i = 4")
    assert dependencies.unchanged()
    cells.run("math = None")
    assert not dependencies.unchanged()


# --- modules ------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    yield tmp_path
    for name in ("redefined_main", "redefined_helpers"):
        sys.modules.pop(name, None)


HELPERS = "K = 2.0\n\ndef h(v):\n    return v + 1\n"
IMPORTS = [("import redefined_helpers as m", "m."), ("from redefined_helpers import *", "")]


@pytest.mark.parametrize(("head", "prefix"), IMPORTS, ids=["module", "names"])
def test_members_of_modules(folder: Path, head: str, prefix: str) -> None:
    write(folder, "redefined_helpers", HELPERS)
    write(folder, "redefined_main", f"{HEAD}{head}\n{KERNEL}{prefix}h(x[i]) * {prefix}K\n")
    main = importlib.import_module("redefined_main")
    helpers = sys.modules["redefined_helpers"]
    owner = helpers if prefix else main
    assert "* 2" in plain(main.f.cuda_source)
    owner.K = 3.0
    assert "* 3" in plain(main.f.cuda_source)
    exec("def h(v):\n    return v + 1", owner.__dict__)
    with pytest.raises(TranslationError, match="is not available"):
        _ = main.f.cuda_source
    write(folder, "redefined_helpers", HELPERS.replace("v + 1", "v + 9"))
    importlib.reload(helpers)
    main.h = helpers.h
    assert "v + 9" in plain(main.f.cuda_source)


def test_a_function_that_was_imported_before_a_reload(folder: Path) -> None:
    write(folder, "redefined_helpers", HELPERS)
    head = f"{HEAD}import redefined_helpers as m\nfrom redefined_helpers import h\n"
    write(folder, "redefined_main", f"{head}{KERNEL}h(x[i]) * 100 + m.h(x[i])\n")
    main = importlib.import_module("redefined_main")
    assert "v + 9" not in plain(main.f.cuda_source)
    write(folder, "redefined_helpers", HELPERS.replace("v + 1", "v + 9"))
    importlib.reload(sys.modules["redefined_helpers"])
    text = plain(main.f.cuda_source)
    assert "v + 1;" in text and "v + 9;" in text
    torch.testing.assert_close(main.f.simulate(X), (X + 1) * 100 + X + 9)


def test_a_reload_of_the_kernels_own_file(folder: Path) -> None:
    """Of two kernels one is edited; the one that somebody kept finds the new helper, as its Python does."""
    text = f"{HEAD}def h(v):\n    return v + 1\n{KERNEL}h(x[i])\n{KERNEL.replace('def f', 'def other')}x[i]\n"
    write(folder, "redefined_main", text)
    main = importlib.import_module("redefined_main")
    kept, other = main.f, main.other
    assert "v + 1" in plain(kept.cuda_source)
    write(folder, "redefined_main", text.replace("v + 1", "v + 5").replace("out[i] = x[i]", "out[i] = 4 * x[i]"))
    importlib.reload(main)
    assert "v + 5" in plain(main.f.cuda_source)
    assert "4 * x[i]" in plain(main.other.cuda_source)
    assert "v + 5" in plain(kept.cuda_source)
    assert float(kept.simulate(X)[1]) == 8.0
    assert "out[i] = x[i];" in plain(other.cuda_source)
