"""The names that emitted texts take for themselves."""

from __future__ import annotations

import re

import pytest

from py2cu.pipeline import translate_file
from py2cu.source import SourceFile
from py2cu.targets.cpu import helpers as cpu_helpers
from py2cu.targets.cuda import helpers as cuda_helpers
from py2cu.targets.cxx.helpers.bits import BIT_HELPERS
from py2cu.targets.cxx.helpers.catalogue import HELPERS

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


# A file that calls a function of bits renames functions of the user, as with every common helper.
OF_THREADS = (cuda_helpers.HELPERS.keys() | cpu_helpers.HELPERS.keys()) - BIT_HELPERS.keys()


@pytest.mark.parametrize("name", sorted(OF_THREADS))
def test_no_function_of_the_user_is_called_like_what_threads_do_together(name):
    for artifacts in translate_file(SourceFile("names.py", TEXT.format(name=name))).texts.values():
        assert f"float {name}(" not in artifacts.kernel.text
        assert f"float {name}_(" in artifacts.kernel.text


def test_a_function_of_the_user_is_renamed_where_the_file_needs_a_helper_of_its_name():
    text = TEXT.format(name="reverse_bits").replace("import Index", "import brev, Index")
    text = text.replace("reverse_bits(x[i])", "reverse_bits(x[i]) + brev(np.int32(i))")
    for artifacts in translate_file(SourceFile("names.py", f"import numpy as np\n{text}")).texts.values():
        assert "float reverse_bits(" not in artifacts.kernel.text
        assert "T reverse_bits(T value)" in artifacts.kernel.text


def test_no_local_hides_what_stands_for_a_function_of_cuda():
    text = TEXT.format(name="mul_ru").replace("mul_ru(x[i])", "cuda.libdevice.fadd_rd(add_rd, mul_ru(add_rd))")
    text = f"from numba import cuda\n{text}".replace("    out[i]", "    add_rd = x[i] * 2\n    out[i]")
    cuda, cpu = (artifacts.kernel.text for artifacts in translate_file(SourceFile("names.py", text)).texts.values())
    assert "__fadd_rd(add_rd_, mul_ru(add_rd_))" in cuda
    assert "add_rd(add_rd_, mul_ru(add_rd_))" in cpu


def test_a_number_of_the_call_that_is_assigned_and_never_read_is_known_in_the_kernel():
    text = TEXT.format(name="g").replace("):\n    out", ", a: float):\n    a = 2.0\n    out")
    for artifacts in translate_file(SourceFile("names.py", text)).texts.values():
        head, assigned, _ = artifacts.kernel.text.partition("a = 2.0;")
        assert assigned
        assert "double a" in head


@pytest.mark.parametrize(
    "stem",
    [
        "a\nb", "a\rb", "a\x1f12", "a\x0bb", "a\x85b", "a\u2028b", "a\u202eb", "a\\", "a\"b", "a b", "-", "2d", "int",
        "??/", "gr\u00f6\u00dfe", "\u03b1", "\u2474", "\u2488", "\ufdfa", "\U0001f600",
        "\udce9", "{{ name }}", "%s",
    ],
    ids=ascii,
)  # fmt: skip
def test_the_name_of_a_file_puts_no_code_into_texts(stem):
    plain = translate_file(SourceFile("plain.py", TEXT.format(name="g")))
    named = translate_file(SourceFile(f"{stem}.py", TEXT.format(name="g")))
    assert re.fullmatch(r"\w+", named.name, re.ASCII)
    for target, artifacts in named.texts.items():
        for text, usual in zip(artifacts.files, plain.texts[target].files, strict=True):
            assert text.name == usual.name.replace("plain", named.name)
            assert all(line.isprintable() for line in text.text.split("\n"))
            lines, usual_lines = text.text.split("\n"), usual.text.split("\n")
            assert lines[1:] == [line.replace("plain", named.name) for line in usual_lines[1:]]
            assert lines[0].startswith(f"// {named.name}: ")
            assert not lines[0].endswith(("\\", "??/"))


STRINGS = """
from jaxtyping import Float32
from torch import Tensor
from py2cu import Index, kernel

def g(v):
    assert v < 9, {text}
    return v + 1

@kernel
def f(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    print({text}, x[i])
    assert x[i] > 0, {text}
    out[i] = g(x[i])
"""


@pytest.mark.parametrize(
    "text",
    [
        "a\nb", "a\rb", "\x1b[0m", "\x1f12", "\x0c1", "\x7f", "\x85", "\u2028", "\u202e", "a\\", "a\\\\n", "quote\"",
        "'", "??/", "??)", "%d %s %%", "*/ // /*", "gr\u00f6\u00dfe", "{{ x }}",
        "index_t INFINITY std::max( sqrt( __half",
    ],
    ids=ascii,
)  # fmt: skip
def test_strings_are_escaped_and_decide_nothing(text):
    plain = translate_file(SourceFile("plain.py", STRINGS.format(text=repr("usual"))))
    named = translate_file(SourceFile("plain.py", STRINGS.format(text=repr(text))))
    for target, artifacts in named.texts.items():
        for other, usual in zip(artifacts.files, plain.texts[target].files, strict=True):
            assert all(line.isprintable() for line in other.text.split("\n"))
            assert "??" not in other.text
            assert _without_strings(other.text) == _without_strings(usual.text)


def _without_strings(text: str) -> str:
    return re.sub(r"\s", "", re.sub(r'"(?:\\.|[^"\\\n])*"', '""', text))


MENTIONS = {
    "cuda_fp16.h": r"\b__half\b",
    "type_traits": r"std::(make_unsigned_t|conditional_t|is_\w+_v)",
    "cmath": r"\b(fmod|floor|ceil|copysign|sqrt|trunc|frexp|ldexp|fabs|fma|rint|remquo|erfc|[jy][01n])\(",
    "cfenv": r"\b(fesetround|FE_\w+)\b",
    "cstring": r"\bmemcpy\(",
    "algorithm": r"std::(min|max)\b",
}


@pytest.mark.parametrize("helpers", [cuda_helpers.HELPERS_OF_CUDA, cpu_helpers.HELPERS_OF_CPU], ids=["cuda", "cpu"])
def test_helpers_declare_the_headers_that_they_need(helpers):
    for name in HELPERS.keys() | helpers.own.keys():
        code = "\n".join(line for line in helpers.text(name).splitlines() if not line.startswith("//"))
        needed = {header for header, mention in MENTIONS.items() if re.search(mention, code)}
        assert set(helpers.headers(name)) == needed, name
