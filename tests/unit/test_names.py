"""The names that emitted texts take for themselves."""

from __future__ import annotations

import pytest

from py2cu.pipeline import translate_file
from py2cu.source import SourceFile
from py2cu.targets import cpu_helpers, cuda_helpers

TEXT = """
from jaxtyping import Float32
from torch import Tensor
from py2cu import Index, kernel

def {name}(v):
    return v + 1

@kernel
def f(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    out[i] = {name}(x[i])
"""


@pytest.mark.parametrize("name", sorted(cuda_helpers.HELPERS.keys() | cpu_helpers.HELPERS.keys()))
def test_no_function_of_the_user_is_called_like_what_threads_do_together(name):
    for artifacts in translate_file(SourceFile("names.py", TEXT.format(name=name))).texts.values():
        assert f"float {name}(" not in artifacts.kernel.text
        assert f"float {name}_(" in artifacts.kernel.text


def test_a_number_of_the_call_that_is_assigned_and_never_read_is_known_in_the_kernel():
    text = TEXT.format(name="g").replace("):\n    out", ", a: float):\n    a = 2.0\n    out")
    for artifacts in translate_file(SourceFile("names.py", text)).texts.values():
        head, assigned, _ = artifacts.kernel.text.partition("a = 2.0;")
        assert assigned
        assert "double a" in head
