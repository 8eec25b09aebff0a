"""A kernel whose narrow integers may wrap around warns at its first translation, each line at its place."""

from __future__ import annotations

import itertools
import linecache
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

import py2cu
from py2cu.kernels import Kernel
from py2cu.pipeline import translate_file
from py2cu.source import SourceFile
from tests.support.samples import proofs

ROOT = Path(__file__).parents[3]
TEXT = """from jaxtyping import Int, UInt8
from torch import Tensor
from py2cu import Constexpr, Index, kernel

@kernel
def f(i: Index["n"], x: UInt8[Tensor, "n"], out: UInt8[Tensor, "n"], k: Constexpr[int] = 1):
    out[i] = x[i] + x[i] + x[0]
    out[i] = {value}
"""
COUNTER = itertools.count()


def f_of(value: str, **names: object) -> tuple[str, Kernel]:
    """The file's name and the kernel."""
    pytest.importorskip("torch")
    text, name = TEXT.format(value=value), f"<narrow {next(COUNTER)}>"
    linecache.cache[name] = len(text), None, text.splitlines(keepends=True), name
    module: dict[str, object] = {"__name__": "__main__", **names}
    exec(compile(text, name, "exec", dont_inherit=True), module)
    kernel = module["f"]
    assert isinstance(kernel, Kernel)
    return name, kernel


@pytest.fixture(autouse=True)
def _clean() -> Iterator[None]:
    yield
    for name in [name for name in linecache.cache if name.startswith("<narrow ")]:
        del linecache.cache[name]


def places(caught: list[warnings.WarningMessage]) -> Mapping[tuple[str, int], str]:
    assert all(each.category is py2cu.NarrowIntegerWarning for each in caught)
    return {(each.filename, each.lineno): str(each.message) for each in caught}


def test_each_line_warns_once_at_the_first_use() -> None:
    file, kernel = f_of("x[i] - x[0]")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        _ = kernel.cuda_source, kernel.header, kernel.signature
        _ = kernel.with_values(k=(1, 2)).cuda_source
    assert len(caught) == 2
    assert list(places(caught)) == [(file, 7), (file, 8)]
    assert "`int(x[i]) + int(x[i]) + int(x[0])`" in places(caught)[file, 7]


def test_a_translation_from_the_cache_warns_too() -> None:
    _, kernel = f_of("x[i] * 3")
    for again in (kernel, py2cu.kernel(kernel.python)):
        with pytest.warns(py2cu.NarrowIntegerWarning, match=r"uint8 arithmetic can leave 0 to 255"):
            assert again.cuda_source


def test_as_an_error_it_is_raised_once() -> None:
    _, kernel = f_of("0")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(py2cu.NarrowIntegerWarning):
            _ = kernel.cuda_source
        assert "f_kernel" in kernel.cuda_source


def warned(path: Path) -> list[str]:
    try:
        notes = translate_file(SourceFile.read(path)).notes
    except py2cu.TranslationError as refused:  # what only the running file shows
        notes = refused.diagnostics
    return [item.headline for item in notes if item.code == "P313"]


@pytest.mark.slow
@pytest.mark.parametrize("start", proofs(range(4), 4))
def test_no_example_and_no_first_attempt_warns(start: int) -> None:
    files = [*sorted(ROOT.glob("examples/**/*.py")), *sorted(ROOT.glob("tests/first_attempts/*.py"))]
    assert len(files) > 40
    assert [line for path in files[start::4] for line in warned(path)] == []


def test_a_generic_kernel_has_the_dtype_of_its_caller() -> None:
    text = """from jaxtyping import Int
from torch import Tensor
from py2cu import Index, kernel

@kernel
def f(i: Index["n"], x: Int[Tensor, "n"], out: Int[Tensor, "n"]):
    out[i] = x[i] + x[i]
"""
    assert translate_file(SourceFile("generic.py", text)).notes == ()
