"""Kernels in a real Jupyter kernel: after tracebacks, interrupts, reloads and redefinitions a call still answers.

One notebook for the whole module, as a person keeps one open: whatever a cell leaves behind is there for the next test.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("torch")
nbclient = pytest.importorskip("nbclient")
nbformat = pytest.importorskip("nbformat")
pytest.importorskip("ipykernel")

pytestmark = [pytest.mark.builds, pytest.mark.filterwarnings("ignore::DeprecationWarning")]

SECONDS = 60  # for one cell: a call that hangs is an error, not a test run that never ends

# Comparison, `and` and `not`: their AST nodes are the ones that CPython shares between all trees.
PRELUDE = """
    import os, signal, threading, time
    import torch
    from jaxtyping import Float32
    from torch import Tensor
    from py2cu import Index, kernel

    x = torch.tensor([-2.0, 0.5, 3.0])

    @kernel
    def clip(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
        out[i] = 0.0 if x[i] < 0.0 and not x[i] > 1.0 else min(x[i], 1.0)
    """

# Frames of a file are printed with `executing`, which leaves a `parent` on every AST node of that file.
FAILING = """
    def fail(x):
        if x is not None and not len(x) < 0 and -1 < +1:
            return 1 / 0
    """

# As the interrupt button does: SIGINT to the process group of the Jupyter kernel.
INTERRUPT = """
    def interrupt_soon(seconds):
        threading.Timer(seconds, lambda: os.killpg(os.getpgrp(), signal.SIGINT)).start()
    """


class Notebook:
    """A notebook in which cells are run one by one."""

    def __init__(self, client: nbclient.NotebookClient) -> None:
        self._client = client

    def run(self, source: str) -> str:
        """What the cell printed, but for steps that took a second, or the traceback that it ended with."""
        cell = nbformat.v4.new_code_cell(textwrap.dedent(source).strip())
        self._client.nb.cells.append(cell)
        self._client.execute_cell(cell, len(self._client.nb.cells) - 1)
        parts = []
        for output in cell.outputs:
            match output.output_type:
                case "stream":
                    parts.append(re.sub(r"^py2cu: .* …\n", "", output.text, flags=re.MULTILINE))
                case "error":
                    parts.append("\n".join(output.traceback))
                case _:
                    parts.append(output.data["text/plain"])
        return "".join(parts)


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Notebook]:
    folder = tmp_path_factory.mktemp("notebook")
    client = nbclient.NotebookClient(
        nbformat.v4.new_notebook(), timeout=SECONDS, kernel_name="python3", allow_errors=True,
        resources={"metadata": {"path": str(folder)}},
    )  # fmt: skip
    with client.setup_kernel():
        notebook = Notebook(client)
        root = Path(__file__).parents[1]
        assert notebook.run(f"import sys; sys.path.insert(0, {str(root)!r}); sys.path.insert(0, '')") == ""
        assert notebook.run(PRELUDE) == ""
        assert notebook.run(INTERRUPT) == ""
        (folder / "failing.py").write_text(textwrap.dedent(FAILING), encoding="utf-8")
        yield notebook


CALL = "print(clip(x).tolist())"
CLIPPED = "[0.0, 0.5, 1.0]\n"


def redefine(notebook: Notebook, number: int) -> None:
    """Another text for the kernel, so that its next call parses, translates and builds."""
    source = f"""
        @kernel
        def clip(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
            # definition {number}
            out[i] = 0.0 if x[i] < 0.0 and not x[i] > 1.0 else min(x[i], 1.0)
        """
    assert notebook.run(source) == ""


TRACEBACKS = {
    "in the cell": ("if x is not None and not len(x) < 0: 1 / 0", "ZeroDivisionError"),
    "in a module": ("import failing\nfailing.fail(x)", "ZeroDivisionError"),
    "in a module, verbose": ("%xmode Verbose\nimport failing\nfailing.fail(x)", "ZeroDivisionError"),
    "no tensor": ("clip(3) if x is None or -len(x) < 0 else None", "TypeError"),
    "dtype": ("assert clip(x.double()) is None or not len(x) > 3", "RuntimeError"),
    "exit": ("if 1 < 2 and not 2 < 1: raise SystemExit(3)", "SystemExit"),
    "syntax": ("def f(:", "SyntaxError"),
    "refused kernel": (
        '@kernel\ndef bad(i: Index["n"], x: Float32[Tensor, "n"]): x[i] = open(x[i]) < 1 and not 0\nbad(x)',
        "error[P105]",
    ),
}


@pytest.mark.parametrize("what", TRACEBACKS)
def test_a_kernel_answers_after_a_traceback(notebook: Notebook, what: str) -> None:
    cell, said = TRACEBACKS[what]
    assert said in notebook.run(cell)
    redefine(notebook, [*TRACEBACKS].index(what))
    assert notebook.run(CALL) == CLIPPED
    assert "clip_kernel" in notebook.run("print(clip.cuda_source)")


def test_an_interrupted_build_is_built_by_the_next_call(notebook: Notebook) -> None:
    redefine(notebook, 1001)
    assert "KeyboardInterrupt" in notebook.run("interrupt_soon(0.5)\nfor _ in range(10**9): clip(x)")
    assert notebook.run(CALL) == CLIPPED


def test_an_interrupted_simulation_leaves_nothing_behind(notebook: Notebook) -> None:
    assert "KeyboardInterrupt" in notebook.run(
        "interrupt_soon(0.5)\nfor _ in range(10**9): clip.simulate(x.repeat(1000))"
    )
    assert notebook.run("print(clip.simulate(x).tolist())") == CLIPPED
    assert notebook.run(CALL) == CLIPPED


def test_a_redefined_kernel_is_the_new_one(notebook: Notebook) -> None:
    source = """
        @kernel
        def scaled(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
            out[i] = {} * x[i]
        print(scaled(x).tolist(), scaled.simulate(x).tolist())
        """
    assert notebook.run(source.format(2)) == "[-4.0, 1.0, 6.0] [-4.0, 1.0, 6.0]\n"
    assert notebook.run(source.format(4)) == "[-8.0, 2.0, 12.0] [-8.0, 2.0, 12.0]\n"
    assert notebook.run("print(scaled.check().ok)") == "True\n"


def test_a_reloaded_module_has_the_new_kernel(notebook: Notebook) -> None:
    module = """
        from jaxtyping import Float32
        from torch import Tensor
        from py2cu import Index, kernel

        @kernel
        def shifted(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
            out[i] = x[i] + {}
        """
    write = "import pathlib; _ = pathlib.Path('reloaded.py').write_text({!r})"
    assert notebook.run("%reload_ext autoreload\n%autoreload 2") == ""
    assert notebook.run(write.format(textwrap.dedent(module.format(1)))) == ""
    assert notebook.run("import reloaded\nprint(reloaded.shifted(x).tolist())") == "[-1.0, 1.5, 4.0]\n"
    # A time of its own, whatever the file system's resolution is.
    later = "os.utime('reloaded.py', (time.time() + 2, time.time() + 2))"
    assert notebook.run(write.format(textwrap.dedent(module.format(10))) + "\n" + later) == ""
    assert notebook.run("print(reloaded.shifted(x).tolist())") == "[8.0, 10.5, 13.0]\n"


def test_magics_that_compile_the_cell_themselves(notebook: Notebook) -> None:
    cell = """
        %%time
        @kernel
        def halved(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
            out[i] = x[i] / 2
        print(halved(x).tolist())
        """
    said = notebook.run(cell)
    assert "[-1.0, 0.25, 1.5]\n" in said
    assert "Wall time" in said
    assert notebook.run("print(halved(x).tolist())") == "[-1.0, 0.25, 1.5]\n"
    assert "per loop" in notebook.run("%timeit -n 10 -r 1 halved(x)")
    assert "halved_kernel" in notebook.run("halved")


def test_a_timed_cell_is_never_taken_for_another(notebook: Notebook) -> None:
    cell = """
        {}%%time
        @kernel
        def added(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
            out[i] = x[i] + {}
        """
    assert "Wall time" in notebook.run(cell.format("", 1.0))
    assert notebook.run("print(added(x).tolist(), added.python is not None)") == "[-1.0, 1.5, 4.0] True\n"
    notebook.run("first = added")
    notebook.run(cell.format("%%capture\n        ", 7.0))
    said = notebook.run("print(added(x).tolist())")
    assert said == "[5.0, 7.5, 10.0]\n" or "error[P100]" in said
    assert notebook.run("print(kernel(first.python)(x).tolist())") == "[-1.0, 1.5, 4.0]\n"
    assert notebook.run("print(first(x).tolist())") == "[-1.0, 1.5, 4.0]\n"


def test_a_redefined_helper_or_constant_is_the_new_one(notebook: Notebook) -> None:
    kernel = """
        K = 2.0
        def moved(v):
            return v + K
        @kernel
        def uses(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
            out[i] = moved(x[i])
        """
    assert notebook.run(kernel) == ""
    show = """
        out = torch.empty(3)
        uses[1, 32](x, out)
        print(uses(x).tolist(), uses.simulate(x).tolist(), out.tolist(), uses.check().ok)
        """
    for cell, values in [
        ("pass", [0.0, 2.5, 5.0]),
        ("K = 5.0", [3.0, 5.5, 8.0]),
        ("def moved(v):\n    return v * K", [-10.0, 2.5, 15.0]),
    ]:
        assert notebook.run(cell) == ""
        assert notebook.run(show) == f"{values} {values} {values} True\n"


def test_a_redefined_class_has_the_new_constants(notebook: Notebook) -> None:
    kernel = """
        from enum import Enum, IntEnum, auto
        class Mode(IntEnum):
            SUM = auto()
            MEAN = auto()
        class Kind(Enum):
            A = 0.5
        class Base:
            STEP = 1.0
        class Config(Base):
            pass
        TWICE = Mode.MEAN * 2
        def moved(v, mode: int = Mode.MEAN):
            return v + mode
        @kernel
        def uses(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"], mode: int = Mode.SUM):
            out[i] = moved(x[i]) + Mode.MEAN * 10 + Kind.A.value + Config.STEP * 100 + TWICE * 1000 + mode * 10000
        """
    assert notebook.run(kernel) == ""
    show = """
        out = torch.empty(3)
        uses[1, 32](x, out)
        print(uses(x).tolist() == uses.simulate(x).tolist() == out.tolist(), (uses(x) - x)[0].item(), uses.check().ok)
        """
    for cell, value in [
        ("pass", 14122.5),
        ("class Mode(IntEnum):\n    MEAN = 7", 14172.5),
        ("class Kind(Enum):\n    A = 0.25", 14172.25),
        ("Config.STEP = 2.0", 14272.25),
        ("del Config.STEP\nBase.STEP = 3.0", 14372.25),
    ]:
        assert notebook.run(cell) == ""
        assert notebook.run(show) == f"True {value} True\n"


def test_autoreload_of_a_helpers_file(notebook: Notebook) -> None:
    """IPython puts the new code into the function that the notebook imported."""
    write = "import pathlib; _ = pathlib.Path('moving.py').write_text('def moved(v):\\n    return v + {}\\n')"
    later = "os.utime('moving.py', (time.time() + {0}, time.time() + {0}))"
    assert notebook.run("%reload_ext autoreload\n%autoreload 2") == ""
    assert notebook.run(write.format(1)) == ""
    cell = """
        from moving import moved
        @kernel
        def uses(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
            out[i] = moved(x[i])
        print(uses(x).tolist(), uses.simulate(x).tolist())
        """
    assert notebook.run(cell) == "[-1.0, 1.5, 4.0] [-1.0, 1.5, 4.0]\n"
    for number, values in enumerate(["[8.0, 10.5, 13.0]", "[98.0, 100.5, 103.0]"], start=1):
        assert notebook.run(write.format(10**number) + "\n" + later.format(2 * number)) == ""
        assert notebook.run("print(uses(x).tolist(), uses.simulate(x).tolist())") == f"{values} {values}\n"
