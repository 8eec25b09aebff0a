"""Whatever is fed to the command line, it answers in its own words: never a traceback, never half a result."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import py2cu
from py2cu.cli.app import app
from py2cu.pipeline import translate_file
from py2cu.source import SourceFile

HEAD = "from jaxtyping import Float32\nfrom torch import Tensor\nfrom py2cu import Index, kernel\n\n\n"
SIGNATURE = 'i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]'
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(py2cu.__file__).parents[1]), "PY2CU_DEBUG": ""}


def kernel(*body: str, name: str = "f", signature: str = SIGNATURE) -> str:
    """A kernel function; `body` are its lines."""
    return "\n".join([f"@kernel\ndef {name}({signature}):", *(f"    {line}" for line in body), ""])


def translate(path: Path, *options: str) -> Result:
    return CliRunner().invoke(app, ["translate", str(path), *options])


def refused(path: Path) -> str:
    """What is said about a file that must be refused."""
    result = translate(path)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert "Traceback" not in result.stderr and "internal error" not in result.stderr
    return result.stderr


def accepted(path: Path) -> str:
    """The texts of a file that must be translated."""
    result = translate(path)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.fixture
def source(tmp_path: Path):
    """Writes text or bytes into a file."""

    def write(content: str | bytes, name: str = "k.py") -> Path:
        path = tmp_path / name
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    return write


# --- files that cannot be read ---


def test_a_missing_file(tmp_path: Path) -> None:
    assert "No such file or directory" in refused(tmp_path / "none.py")


def test_a_directory(tmp_path: Path) -> None:
    assert "Is a directory" in refused(tmp_path)


def test_a_file_as_directory(source) -> None:
    assert "Not a directory" in refused(source("") / "k.py")


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read(source) -> None:
    path = source(HEAD)
    path.chmod(0)
    assert "Permission denied" in refused(path)


def test_a_name_too_long(tmp_path: Path) -> None:
    assert "File name too long" in refused(tmp_path / ("k" * 300))


def test_a_binary_file(source) -> None:
    assert "k.py:1:5: error[P100]: the file is binary" in refused(source(b"\x7fELF\x00\x01\x02"))
    assert "k.py:3:6: error[P100]: the file is binary" in refused(source(b"# 1\r\n# 2\rx = 1\0\n"))


def test_latin_1_without_a_coding_line(source) -> None:
    said = refused(source(HEAD.encode() + "# é\n".encode("latin-1") + kernel("out[i] = x[i]").encode()))
    assert "k.py:6:3: error[P100]" in said and "invalid continuation byte 0xe9 in utf-8" in said


def test_an_unknown_coding_line(source) -> None:
    assert "k.py:1:1: error[P100]" in refused(source(b"# coding: klingon\nx = 1\n"))


def test_a_coding_line_that_lies(source) -> None:
    assert "k.py:2:3: error[P100]" in refused(source(b"# coding: ascii\n# \xc3\xa9\n"))


# --- files that can ---


def test_latin_1_with_a_coding_line(source) -> None:
    text = "# coding: latin-1\n" + HEAD + kernel("# café", "out[i] = x[i]")
    assert "// café" in accepted(source(text.encode("latin-1")))


@pytest.mark.parametrize(
    "change",
    [
        lambda text: b"\xef\xbb\xbf" + text,
        lambda text: text.replace(b"\n", b"\r\n"),
        lambda text: text.replace(b"    ", b"\t"),
        lambda text: text.rstrip(b"\n"),
        lambda text: text + b"\n" * 50,
        lambda text: b"#!/usr/bin/env python\n# -*- coding: utf-8 -*-\n" + text,
    ],
    ids=["bom", "crlf", "tabs", "no last newline", "empty lines", "coding line"],
)
def test_the_look_of_a_file_does_not_matter(source, change) -> None:
    text = HEAD + kernel("if x[i] > 0:", "    out[i] = x[i]", "else:", "    out[i] = 0.")
    assert accepted(source(change(text.encode()))) == accepted(source(text))


@pytest.mark.parametrize("separator", ["\f", "\v", "\x1c", "\x85", "\u2028"])
def test_the_excerpt_is_the_line_that_python_counts(source, separator: str) -> None:
    said = refused(source(HEAD + f"# page{separator}break\n" + kernel("out[i] = y")))
    assert "  9 |     out[i] = y\n    |              ^\n" in said


# --- files that are no Python, or no kernels ---


@pytest.mark.parametrize("text", ["", "\n", "# nothing\n", '"""nothing"""\n', HEAD, HEAD + "def f(x): return x\n"])
def test_no_kernels(source, text: str) -> None:
    assert "error[P107]: there is no kernel in this file" in refused(source(text))


@pytest.mark.parametrize(
    "text",
    [
        "def f(:\n    pass\n",
        "x = (1,\n",
        "x = 'abc\n",
        '"""never closed\n',
        "if True:\npass\n",
        "if True:\n    x = 1\n  y = 2\n",
        "\tx = 1\n        y = 2\n",
        "x = 1 +\n",
        "print 'hello'\n",
        "x = 0777\n",
        "x = $\n",
        "x = 1 \\ \n",
        "é = = 2\n",
        "}\n",
        "<<<<<<< HEAD\nx = 1\n=======\nx = 2\n>>>>>>> other\n",
        "#include <cuda_runtime.h>\nint main() { return 0; }\n",
    ],
)
def test_broken_python(source, text: str) -> None:
    said = refused(source(text))
    assert "error[P101]: not valid Python: " in said
    assert said.splitlines()[-1] == "1 error"


def test_the_place_of_a_syntax_error(source) -> None:
    """An open bracket is what is wrong, not the end of the file where the parser noticed."""
    said = refused(source(HEAD + kernel("out[i] = (x[i]")))
    assert ":8:14: error[P101]" in said and "  8 |     out[i] = (x[i]\n    |              ^\n" in said


@pytest.mark.parametrize(
    "annotation", ["Flaot32[Tensor, 'n']", "list", "1", "'n'", "Float32", "x.y.z", "None", "[int]"]
)
def test_unknown_annotations(source, annotation: str) -> None:
    assert re.search(
        r"error\[P(201|3)", refused(source(HEAD + kernel("out[i] = x[i]", signature=SIGNATURE + f", a: {annotation}")))
    )


@pytest.mark.parametrize("expression", ["y", "x.y", "np.exp(x[i])", "torch.exp(x[i])", "self.x[i]", "__import__('os')"])
def test_unknown_names(source, expression: str) -> None:
    assert "error[P" in refused(source(HEAD + kernel(f"out[i] = {expression}")))


# --- names that C++ has taken, and text that C++ or the templates would read ---

WORDS = """
    auto char const default delete double enum explicit extern float int long new operator private register short signed
    sizeof static struct switch template this throw typedef union unsigned virtual void volatile
    NULL EOF NAN INFINITY INT_MAX M_PI errno isnan std main linux half float4 dim3 index_t int64_t stream grid
    blockIdx_ __global__ __x _X naïve ναός α 変数 ﬁ
""".split()  # noqa: SIM905


def hostile_file() -> str:
    """One file with every hostile name in every place, and hostile comments."""
    texts = [
        kernel(
            f'"""Doc of {word}: */ /* // {{{{ x }}}} {{% raw %}} {{# #}} ends in \\\\"""',
            f"# {word} */ /* // {{{{ {word} }}}} {{% for %}} {{# no #}} \\",
            f"{word}_local = a_{word} * {word}  # ??/ \" ' \\",
            f"out[{word}_i] = {word}_local + {word}_local  #",
            name=f"k_{word}",
            signature=f'{word}_i: Index["{word}_n"], {word}: float, a_{word}: float, '
            f'x: Float32[Tensor, "{word}_n"], out: Float32[Tensor, "{word}_n"]',
        )
        for word in WORDS
    ]
    texts += [
        kernel(
            f"{a}[{b}] = {c}[{b}] * {d}",
            name=f"{a}_" if a in ("float", "int") else a,  # or the annotations below would mean the kernel
            signature=f'{b}: Index["{e}"], {c}: Float32[Tensor, "{e}"], {d}: float, {a}: Float32[Tensor, "{e}"]',
        )
        for a, b, c, d, e in zip(WORDS, WORDS[1:], WORDS[2:], WORDS[3:], WORDS[4:], strict=False)
    ]
    texts += [kernel("out[i] = x[i]", name=name) for name in ("a_b", "a__b", "f_x", "fX", "F_X", "g_kernel", "g")]
    return HEAD + "\n".join(dict.fromkeys(texts))


@pytest.fixture(scope="module")
def hostile_texts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "hostile.py").write_text(hostile_file())
    for target in ("cuda", "cpu"):
        result = translate(folder / "hostile.py", "-o", str(folder), "--target", target)
        assert result.exit_code == 0, result.output
    return folder


def test_hostile_names_and_comments_make_ascii_c_plus_plus(hostile_texts: Path) -> None:
    for file in hostile_texts.glob("hostile*.[ch]*"):
        code = [re.sub('"[^"]*"', "", line).partition("//")[0] for line in file.read_text().split("\n")]
        assert all(line.isascii() for line in code), file


@pytest.mark.builds
@pytest.mark.slow
@pytest.mark.skipif(shutil.which("nvcc") is None, reason="needs nvcc")
@pytest.mark.proof
def test_hostile_names_and_comments_compile_with_nvcc(hostile_texts: Path) -> None:
    compile_with(["nvcc", "-c", "-arch=sm_90", "-o", "/dev/null", "hostile.cu"], hostile_texts)


@pytest.mark.builds
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_hostile_names_and_comments_compile_with_gcc(hostile_texts: Path) -> None:
    compile_with(["g++", "-std=c++17", "-fopenmp", "-fsyntax-only", "hostile_cpu.cpp"], hostile_texts)


@pytest.mark.builds
@pytest.mark.slow
@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_hostile_names_compile_in_the_binding(hostile_texts: Path) -> None:
    pytest.importorskip("torch")
    from torch.utils.cpp_extension import include_paths

    folders = [f"-I{folder}" for folder in include_paths()]
    defines = ["-std=c++17", "-DTORCH_TARGET_VERSION=0x020b000000000000"]
    compile_with(["g++", *defines, *folders, "-fsyntax-only", "hostile_cpu_binding.cpp"], hostile_texts)


def compile_with(command: list[str], folder: Path) -> None:
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[:3000]


def test_a_file_whose_own_name_is_hostile(source) -> None:
    for name in ("2 fast; rm -rf.py", "new.py", "ναός.py", "k", ".py", "a\nb.py", "{{ x }}.py"):
        text = accepted(source(HEAD + kernel("out[i] = x[i]"), name))
        assert "f_kernel" in text, name


# --- where it is written ---


def test_a_directory_that_cannot_be_made(source, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("mine")
    result = translate(source(HEAD + kernel("out[i] = x[i]")), "-o", str(tmp_path / "out" / "deeper"))
    assert result.exit_code == 2 and "error: cannot write to" in result.stderr
    assert (tmp_path / "out").read_text() == "mine"


def test_a_disk_that_fills_up_leaves_the_old_texts(source, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, out = source(HEAD + kernel("out[i] = x[i]")), tmp_path / "out"
    assert translate(path, "-o", str(out)).exit_code == 0
    before = {file: file.read_text() for file in out.iterdir()}
    source(HEAD + kernel("out[i] = 2 * x[i]"))
    write = Path.write_text

    def fails_for_the_last(self: Path, *args: object, **kwargs: object) -> int:
        if ".cpp." in self.name:
            raise OSError(28, "No space left on device")
        return write(self, *args, **kwargs)

    monkeypatch.setattr(Path, "write_text", fails_for_the_last)
    result = translate(path, "-o", str(out))
    assert result.exit_code == 2 and "No space left on device" in result.stderr
    assert {file: file.read_text() for file in out.iterdir()} == before


# --- the process itself ---


@pytest.mark.parametrize("encoding", ["ascii", "utf-8"])
def test_letters_that_the_terminal_does_not_have(source, encoding: str) -> None:
    for body in (["# ναός", "out[i] = x[i]"], ["out[i] = ναός"]):
        done = subprocess.run(
            [sys.executable, "-m", "py2cu", "translate", str(source(HEAD + kernel(*body)))], capture_output=True,
            check=False, env=ENVIRONMENT | {"PYTHONIOENCODING": encoding},
        )  # fmt: skip
        assert done.returncode in (0, 2) and b"Traceback" not in done.stderr, done.stderr


def test_a_file_name_that_is_no_text(tmp_path: Path) -> None:
    name = os.path.join(os.fsencode(tmp_path), b"\xff.py")
    for content in (HEAD + kernel("out[i] = x[i]"), HEAD + kernel("out[i] = y")):
        Path(os.fsdecode(name)).write_text(content)
        done = subprocess.run(
            [sys.executable, "-m", "py2cu", "translate", name], capture_output=True, check=False, env=ENVIRONMENT
        )
        assert done.returncode in (0, 2) and b"Traceback" not in done.stderr, done.stderr


def test_a_file_name_puts_no_line_into_a_text() -> None:
    file = SourceFile("a\nint evil;\r//\x85\u2028.py", HEAD + kernel("out[i] = x[i]"))
    for artifacts in translate_file(file).texts.values():
        for text in artifacts.files:
            assert not any(line.startswith("int evil") for line in re.split(r"[\n\r\x85\u2028]", text.text))
            assert all(char == "\n" or char.isprintable() for char in text.text)
