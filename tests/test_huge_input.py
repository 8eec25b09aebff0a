"""Deep, long and large sources: translated or refused within a bound of time and memory, in a process of their own."""

from __future__ import annotations

import os
import re
import resource
import subprocess
import sys
from pathlib import Path

import pytest

import py2cu
from py2cu.diagnostics import TranslationError
from py2cu.frontend.source.nesting import MAX_DEPTH, MAX_TERMS
from py2cu.pipeline import translate_file
from py2cu.source import SourceFile
from tests.support.modules import import_file
from tests.support.samples import sampled

HEAD = "from jaxtyping import Float32\nfrom torch import Tensor\nfrom py2cu import Index, kernel\n\n\n"
_PATH = os.pathsep.join([str(Path(py2cu.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
ENVIRONMENT = {**os.environ, "PYTHONPATH": _PATH, "PY2CU_DEBUG": ""}
REFUSED, FINE = 2, 0


def kernel(body: str, name: str = "f") -> str:
    signature = f'{name}(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"])'
    return f"@kernel\ndef {signature}:\n" + "".join(f"    {line}\n" for line in body.split("\n"))


def nested(head: str, depth: int) -> str:
    """A block in a block in a block."""
    return "\n".join(" " * level + head for level in range(depth)) + "\n" + " " * depth + "out[i] = x[i]"


def elifs(count: int) -> str:
    return "if x[i] > 0: out[i] = 0.\n" + "\n".join(f"elif x[i] > {n}: out[i] = {n}" for n in range(count))


def calls(depth: int) -> str:
    """A call of a function that calls a function, three times each."""
    first = "def f0(v):\n    return v + 1.\n"
    more = (f"def f{k}(v):\n    w = f{k - 1}(v)\n    return w + f{k - 1}(f{k - 1}(w))\n" for k in range(1, depth))
    return first + "".join(more) + f"out[i] = f{depth - 1}(x[i])"


def chains() -> str:
    """A sum of many terms, whose first term is a product of as many factors."""
    return "out[i] = (" + " * ".join(["x[i]"] * (MAX_TERMS - 50)) + ")" + " + x[i]" * (MAX_TERMS - 50)


DEEP = {
    "parentheses": ("out[i] = " + "(" * 2000 + "x[i]" + ")" * 2000, REFUSED),
    "parentheses that Python reads": ("out[i] = " + "(" * 150 + "x[i]" + ")" * 150, FINE),
    "minuses": ("out[i] = " + "-" * 2000 + "x[i]", REFUSED),
    "minuses that are few": ("out[i] = " + "-" * 150 + "x[i]", FINE),
    "attributes": ("out[i] = x" + ".a" * 2000, REFUSED),
    "subscripts": ("out[i] = " + "x[" * 150 + "i" + "]" * 150, REFUSED),
    "conditional expressions": ("out[i] = " + "1 if x[i] > 0 else " * 2000 + "0", REFUSED),
    "conditional expressions that are few": ("out[i] = " + "1 if x[i] > 0 else " * 150 + "0", FINE),
    "calls": ("out[i] = " + "abs(" * 150 + "x[i]" + ")" * 150, FINE),
    "and": ("if " + " and ".join(["x[i] > 0"] * 5000) + ": out[i] = 1", REFUSED),
    "and of few": ("if " + " and ".join(["x[i] > 0"] * 150) + ": out[i] = 1", FINE),
    "terms": ("out[i] = " + " + ".join(["x[i]"] * 5000), REFUSED),
    "terms that are few": ("out[i] = " + " + ".join(["x[i]"] * 150), FINE),
    "comparisons": ("if " + " < ".join(["x[i]"] * MAX_TERMS) + ": out[i] = 1", FINE),
    "more comparisons": ("if " + " < ".join(["x[i]"] * (MAX_TERMS + 1)) + ": out[i] = 1", REFUSED),
    "a thousand terms": ("out[i] = " + " + ".join(["x[i] * 2"] * MAX_TERMS), FINE),
    "a thousand whole numbers": ("k = int(x[i])\nout[i] = " + " - ".join(["k"] * MAX_TERMS), FINE),
    "a thousand and one terms": ("out[i] = " + " - ".join(["x[i]"] * (MAX_TERMS + 1)), REFUSED),
    "a thousand conditions": ("if " + " and ".join(["x[i] > 0"] * MAX_TERMS) + ": out[i] = 1", FINE),
    "a thousand alternatives": ("if " + " or ".join(["x[i] > 0"] * MAX_TERMS) + ": out[i] = 1", FINE),
    "a thousand branches": (elifs(MAX_TERMS - 1), FINE),
    "chains in chains": (chains(), REFUSED),
    "floor divisions": ("k = int(x[i])\nout[i] = " + " // ".join(["k"] * 150), FINE),
    "more floor divisions": ("k = int(x[i])\nout[i] = " + " // ".join(["k"] * 1000), REFUSED),
    "arguments": ("out[i] = min(" + ", ".join(["x[i]"] * 1000) + ")", REFUSED),
    "elif": (elifs(3000), REFUSED),
    "elif of few": (elifs(150), FINE),
    "functions": (calls(500), REFUSED),
    "functions that are few": (calls(30), FINE),
    "if": (nested("if x[i] > 0:", 95), FINE),
    "for": (nested("for k in range(2):", 19), FINE),
    "while": (nested("while x[i] > 0:", 19), FINE),
    "more loops than Python nests": (nested("for k in range(2):", 45), REFUSED),
    "more blocks than Python indents": (nested("if x[i] > 0:", 300), REFUSED),
}
TABLE = ",\n".join(f'({k}, {k}.5, "a{k}")' for k in range(180_000))
LIBRARY = """
def g{k}(a, b):
    'Of a and b.'
    if a > b:
        return [a + {k}, "text", b]
    return a.method(b, key=3)
"""
HUGE = {
    "a kernel of 5000 locals": (kernel("\n".join(f"v{k} = x[i] + {k}." for k in range(5000)) + "\nout[i] = v7"), FINE),
    "3000 unknown names": (kernel("\n".join(f"v{k} = y{k}" for k in range(3000))), REFUSED),
    "5 MB of data": (f"DATA = [{TABLE}]\n{kernel('out[i] = x[i]')}", FINE),
    "5 MB of functions": ("".join(LIBRARY.format(k=k) for k in range(45_000)) + kernel("out[i] = x[i]"), FINE),
    "10000 kernels": ("\n".join(kernel(f"v = x[i] * {k}.\nout[i] = v + 1", f"f{k}") for k in range(10_000)), FINE),
}


def translated(source: str, folder: Path, seconds: int, gigabytes: float) -> tuple[int, str]:
    """Exit status and messages of the command line about `source`, within `seconds` of processor time."""
    path = folder / "k.py"
    path.write_text(HEAD + source, encoding="utf-8")

    def bound() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_AS, (int(gigabytes * 2**30),) * 2)

    done = subprocess.run(
        [sys.executable, "-m", "py2cu", "translate", str(path), "-o", str(folder)], capture_output=True, text=True,
        check=False, env=ENVIRONMENT, preexec_fn=bound,
    )  # fmt: skip
    return done.returncode, done.stderr


@pytest.mark.parametrize("what", sampled(DEEP, 4))
def test_deep_nesting(what: str, tmp_path: Path) -> None:
    body, expected = DEEP[what]
    status, said = translated(kernel(body), tmp_path, seconds=20, gigabytes=1)
    assert status == expected, said[-500:]
    assert "Traceback" not in said


@pytest.mark.slow
@pytest.mark.proof
@pytest.mark.parametrize("what", HUGE)
def test_huge_files(what: str, tmp_path: Path) -> None:
    source, expected = HUGE[what]
    status, said = translated(source, tmp_path, seconds=120, gigabytes=4)
    assert status == expected, said[-500:]
    assert "Traceback" not in said


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (
            "out[i] = " + " + ".join(["x[i]"] * (MAX_TERMS + 2)),
            f"k.py:8:{14 + 7 * MAX_TERMS}: error[P102]: a chain of {MAX_TERMS + 2} terms: at most {MAX_TERMS} are",
        ),
        (
            "if " + " or ".join(["x[i] > 0"] * (MAX_TERMS + 1)) + ": out[i] = 1",
            f": error[P102]: a chain of {MAX_TERMS + 1} terms: at most",
        ),
        (elifs(1200), f": error[P102]: a chain of 1201 branches: at most {MAX_TERMS} are translated"),
        (chains(), f": error[P102]: chains of more than {MAX_DEPTH + MAX_TERMS} terms in total are nested here"),
    ],
)
def test_long_chains_are_refused_by_count(body: str, said: str) -> None:
    with pytest.raises(TranslationError, match=re.escape(said)):
        translate_file(SourceFile("k.py", HEAD + kernel(body)))


def test_a_kernel_with_a_long_sum_is_simulated_as_it_is(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    path = tmp_path / "long_sum.py"
    path.write_text(HEAD + kernel("out[i] = " + " + ".join(["x[i]"] * MAX_TERMS)), encoding="utf-8")
    module = import_file(path)
    out = torch.zeros(3)
    module.f.simulate(torch.ones(3), out=out)
    assert out.tolist() == [float(MAX_TERMS)] * 3
