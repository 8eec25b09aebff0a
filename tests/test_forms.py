"""Forms of Python's grammar: each is translated and has the effect that CPython gives it, or is refused with a caret.

Every kind of statement that binds or deletes is tried with every kind of target, and calls with arguments of every
kind, so that none is accepted and dropped.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from py2cu.diagnostics import TranslationError
from py2cu.pipeline import translate_file
from py2cu.source import SourceFile
from tests.support.modules import import_file

HEAD = """import math
import numpy as np
import torch
from jaxtyping import Float32
from torch import Tensor
from py2cu import Index, atomic, kernel, local, syncthreads

TABLE = (1.0, 2.0)
NUMBER = 3


def helper(v, w=2.0):
    return v + w


"""
SIGNATURE = 'i: Index["n"], x: Float32[Tensor, "n"], m: Float32[Tensor, "n 4"], k: int, out: Float32[Tensor, "n"]'

TARGETS = {
    "local": "v", "number": "k", "array": "x", "index": "i", "constant": "NUMBER", "table": "TABLE", "builtin": "abs",
    "element": "out[i]", "shape": "x.shape", "extent": "x.shape[0]", "attribute": "x.data", "of a number": "k.real",
    "of a local": "v.real", "item of a local": "v[0]", "item of a table": "TABLE[0]", "row": "m[i]",
    "item of a row": "m[i][0]", "slice": "out[i:i + 1]", "all": "out[...]", "call": "helper(v)", "module": "math.pi",
    "brackets": "(v)", "tuple": "v, w", "list": "[v, w]", "star": "v, *w", "lone star": "*v,", "one of a tuple": "v,",
    "tuple of elements": "out[i], v", "tuple of attributes": "v, x.data",
}  # fmt: skip
BINDINGS = {
    "assignment": "{} = 1.5", "two values": "{} = 1.5, 2.5", "chain": "w = {} = 1.5", "sum": "{} += 2",
    "matrix product": "{} @= 2", "annotated": "{}: float = 1.5", "annotation alone": "{}: float",
    "walrus": "w = ({} := 1.5)",
    "deletion": "del {}", "loop": "for {} in range(2): pass", "items": "for {} in TABLE: pass",
    "context": "with x as {}: pass", "import": "import {}", "global": "global {}", "nonlocal": "nonlocal {}",
}  # fmt: skip
OTHERS = [
    "print(k, sep='-')", "print(k, end='')", "print(k, file=None)", "print(k, flush=True)", "print(*TABLE)",
    "print(k, sep=atomic.add(out, i, 1.0))", "print(atomic.add(out, i, 1.0))", "print(f'{k!r:>5}')", "print(f'{k=}')",
    "'text'", "b'bytes'", "...", "f'{k}'", "f'{atomic.add(out, i, 1.0)}'", "1", "k", "x[i]", "-k", "not k", "k < 1",
    "(1, 2)", "[1]", "{1: 2}", "{1}", "lambda: 0", "helper(x[i])", "abs(k)", "None", "x", "x.shape", "yield",
    "yield k", "breakpoint()", "breakpoint(k)", "breakpoint(atomic.add(out, i, 1.0))", "breakpoint(header=k)", "pass",
    "assert k < 99, atomic.add(out, i, 1.0)", "assert k < 99, f'{k}'", "assert k < 99, 'text'",
    "assert (k < 99, 'text')", "raise ValueError", "return 1", "return x", "return", "return None", "import math",
    "from math import pi", "class A: pass", "try: pass\n    finally: pass", "with x: pass",
    "match k:\n        case 1: pass", "async with x: pass", "v = len(obj=x)", "v = len(*x)", "v = len(x, x)",
    "v = len()", "v = abs(x=k)", "v = abs(k, k)", "v = abs(*TABLE)", "v = min(k, 2, key=abs)",
    "v = min(k, default=3)", "v = max(*TABLE)", "v = round(k, ndigits=1)", "v = int(k, 10)", "v = int(x=k)",
    "v = float()", "v = bool(k, k)", "v = pow(k, 2, 5)", "v = math.log(x[i], base=2)", "v = math.sqrt(x=x[i])",
    "v = math.sqrt(*TABLE)", "v = torch.exp(x[i], out=out)", "v = torch.add(x[i], 2.0, alpha=3)",
    "v = torch.div(x[i], 2.0, rounding_mode='floor')", "v = np.exp(x[i], dtype=np.float64)", "v = np.exp(x[i], out)",
    "v = np.float32(x[i], 2)", "v = np.float32(x=x[i])", "v = atomic.add(out, i, 1.0, 2.0)", "v = atomic.add(out, i)",
    "v = atomic.add(out, index=i, value=1.0)", "v = atomic.add(*TABLE)", "syncthreads(1)", "syncthreads(x=1)",
    "v = syncthreads()", "v = helper()", "v = helper(1.0, 2.0, 3.0)", "v = helper(1.0, z=2.0)", "v = helper(*TABLE)",
    "v = helper(**{})", "v = helper(v=1.0, w=3.0)", "v = helper(1.0, v=3.0)", "v = local(4, np.float32, 1)",
    "v = local(shape=4, size=3, dtype=np.float32)", "v = print(k)", "v = breakpoint()", "v = None", "v = 's'",
    "v = []", "for v in range(2, step=1): pass", "for v in range(stop=2): pass", "for v in range(*TABLE): pass",
    "for v in range(): pass", "for v in range(1, 2, 3, 4): pass", "for v in range(0, 4, 0): pass",
    "for v in range(1.5): pass", "for v in enumerate(TABLE, 1): pass", "for v in x: pass", "for v in k: pass",
    "async def g(): pass", "def g(v): return v", "def g(v=out): return v", "def g(*v): return v",
    "@torch.no_grad()\n    def g(v): return v", "def g(v=atomic.add(out, i, 1.0)): return v",
    "def g(v: atomic.add(out, i, 1.0)): return v", "@helper\n    def g(v): return v", "x[i, 0] = 1.0",
    "v = x[i, ...]", "v = x[None, i]", "v = x[1.0]", "v = x[:]", "v = x[i:]", "v = m[i][0]", "v = x.T[i]",
    "v = x.shape[1]", "v = x.shape[i]", "v = k.foo", "v = x.foo", "v = TABLE[5]", "v = TABLE[0:1]", "v = k is 3",
    "v = k in TABLE", "v = x == out", "v = not x", "v = 1 if x else 2",
]  # fmt: skip
FORMS = {
    **{f"{b}, {t}": text.format(target) for b, text in BINDINGS.items() for t, target in TARGETS.items()},
    **{text: text for text in OTHERS},
}
NO_EFFECT = {
    "'text'", "b'bytes'", "...", "breakpoint()", "pass", "def g(v): return v", "def g(v=out): return v",
    "def g(*v): return v", "async def g(): pass", "@helper\n    def g(v): return v",
}  # fmt: skip
UNREAD = ("annotation alone, ", "two values, ")  # locals that nothing reads


def source(name: str, form: str) -> str:
    """A kernel with one form in it, behind which every name is read that the form may have bound."""
    body = ["v = 0.5", "w = 0.25", form, "out[i] += v + w + k"]
    return f"@kernel\ndef {name}({SIGNATURE}):\n    out[i] = x[i]\n" + "".join(f"    {line}\n" for line in body)


def text_of(form: str) -> str | None:
    """The CUDA of the kernel with a form in it; None where the form is refused, which has a place and a code."""
    file = SourceFile("forms.py", HEAD + source("f", form))
    try:
        return translate_file(file).cuda.kernel.text
    except TranslationError as error:
        found = error.diagnostics
    assert found, form
    assert all(each.span.line > 0 and each.code for each in found), form
    return None


def test_what_has_no_effect_in_the_text_has_none_in_python() -> None:
    plain = text_of("pass")
    silent = {name for name, form in FORMS.items() if text_of(form) == plain}
    assert not {name for name in silent if not name.startswith(UNREAD)} - NO_EFFECT


@pytest.mark.builds
@pytest.mark.slow
def test_what_is_translated_does_what_python_does(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    accepted = [form for form in dict.fromkeys(FORMS.values()) if text_of(form) is not None]
    path = tmp_path / "accepted_forms.py"
    path.write_text(HEAD + "\n\n".join(source(f"f{at}", form) for at, form in enumerate(accepted)), encoding="utf-8")
    module = import_file(path)
    reports = {form: getattr(module, f"f{at}").check() for at, form in enumerate(accepted)}
    assert not {form: str(report) for form, report in reports.items() if not report.ok}
