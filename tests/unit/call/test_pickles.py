"""Kernels in pickles, copies and spawned workers: by module and name, or by source."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import linecache
import math
import multiprocessing
import pickle
import subprocess
import sys
import textwrap
import typing
from pathlib import Path

import numpy as np
import pytest
import torch
from jaxtyping import Float32
from torch import Tensor, exp

from py2cu import Constexpr, Kernel, atomic, kernel, syncthreads, threadIdx
from py2cu import Index as Element

X = torch.tensor([1.0, 2.0, 3.0])
SCALE = 2.0
TABLE = ((1.0, 0.5), (2.0, 0.25))
WIDTH = np.int32(3)


def lerp(a, b):
    return SCALE * a + b


@kernel
def scaled(i: Element[int, "n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"], by: Constexpr[int] = 2) -> None:  # noqa: UP037
    out[i] = lerp(x[i], by)


def plain(i: Element[int, "n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]) -> None:  # noqa: UP037
    out[i] = -x[i]


negated = kernel(plain)


class Layer(torch.nn.Module):
    """A module with kernels in its class and in its instance."""

    act = scaled

    @kernel
    def own(i: Element[int, "n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]) -> None:  # noqa: N805, UP037
        out[i] = x[i] + 1

    def __init__(self, function: Kernel) -> None:
        super().__init__()
        self.function = function
        self.bias = torch.nn.Parameter(torch.zeros(3))

    def forward(self, x: Tensor) -> Tensor:
        return self.function.simulate(x) + self.bias


def nested(shift: float):
    """A kernel in a closure, with a helper that calls another."""

    def cube(x):
        return x * x * x

    def both(x):
        return math.sqrt(cube(x)) + exp(x) + TABLE[1][0] + np.float32(WIDTH)

    @kernel
    def f(i: Element[int, "n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]) -> None:  # noqa: UP037
        out[i] = both(x[i]) + shift

    return f


def through(value):
    return pickle.loads(pickle.dumps(value))


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_by_name_it_is_the_same_kernel(protocol: int) -> None:
    assert pickle.loads(pickle.dumps(scaled, protocol)) is scaled


def test_a_kernel_of_a_class_goes_by_its_qualified_name() -> None:
    assert through(Layer.own) is Layer.own


def test_copies_are_the_kernel_itself() -> None:
    for each in (scaled, negated, nested(1.0)):
        assert copy.copy(each) is copy.deepcopy(each) is each


def test_kernels_of_a_function_under_its_own_name() -> None:
    assert through(negated).python is plain


def test_derived_kernels_keep_values_options_and_texts() -> None:
    variant = through(scaled.with_values(by=(4, 8)).without_fma())
    assert variant.python is scaled.python
    assert (variant._values, variant._fma) == ({"by": (4, 8)}, False)
    assert "scaled_launch<8>" in variant.cuda_source
    edited = dataclasses.replace(scaled.translation, name="edited")
    assert through(scaled.with_translation(edited)).translation == edited


def test_by_source_it_is_an_equal_kernel() -> None:
    one = nested(3.5)
    two = through(one)
    assert two is not one
    assert two.cuda_source == one.cuda_source
    assert torch.equal(two.simulate(X), one.simulate(X))
    assert through(two).cuda_source == one.cuda_source


def recursive():
    def power(x, n):
        return 1.0 if n <= 0 else x * power(x, n - 1)

    @kernel
    def f(i: Element[int, "n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]) -> None:  # noqa: UP037
        out[i] = power(x[i], 3)

    return f


def test_a_function_that_refers_to_itself() -> None:
    one = recursive()
    two = through(one)
    assert two.cuda_source == one.cuda_source
    (power,) = (cell.cell_contents for cell in two.python.__closure__)
    assert power.__closure__[0].cell_contents is power


def test_by_source_signature_and_hints_remain() -> None:
    two = through(nested(1.0))
    assert [*inspect.signature(two).parameters] == ["i", "x", "out"]
    assert typing.get_type_hints(two)["i"] is int
    assert two.__qualname__ == "nested.<locals>.f"


def test_a_name_that_was_bound_again() -> None:
    before = globals()["scaled"]
    try:
        globals()["scaled"] = nested(0.0)
        assert through(before).cuda_source == before.cuda_source
    finally:
        globals()["scaled"] = before


def reversed_in_block():
    @kernel(size="n", block=4)
    def f(x: Float32[Tensor, "n"], out: Float32[Tensor, "n"], n: int):  # noqa: UP037
        syncthreads()
        atomic.add(out, n - 1 - threadIdx.x, x[threadIdx.x])

    return f


def test_the_vocabulary_stays_what_the_simulator_knows() -> None:
    assert all(through(each) is each for each in (atomic, threadIdx, syncthreads))
    one = reversed_in_block()
    out = torch.zeros(4)
    through(one).simulate(torch.arange(4.0), out, 4)
    assert out.tolist() == [3, 2, 1, 0]


def test_without_a_source_the_error_says_so() -> None:
    names = {"Element": Element, "kernel": kernel}
    exec("@kernel\ndef f(i: Element['n']): pass", names)
    with pytest.raises(pickle.PicklingError, match="cannot pickle `f`"):
        pickle.dumps(names["f"])


CELLS = (
    "from jaxtyping import Float32\nfrom torch import Tensor\nfrom py2cu import Index, kernel\nSHIFT = 0.5",
    "def up(x: Tensor):\n    return x + SHIFT",
    '@kernel\ndef f(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):\n    out[i] = up(x[i])',
)


def test_a_kernel_of_a_notebook() -> None:
    """Each cell is a text of its own, and nothing can import their module."""
    names: dict[str, object] = {"__name__": "notebook"}
    for number, cell in enumerate(CELLS):
        file = f"<cell {number}>"
        linecache.cache[file] = len(cell), None, cell.splitlines(keepends=True), file
        exec(compile(cell, file, "exec", dont_inherit=True), names)
    one = names["f"]
    two = through(one)
    assert two.cuda_source == one.cuda_source
    assert two.simulate(X).tolist() == [1.5, 2.5, 3.5]
    assert through(two).cuda_source == one.cuda_source


def test_classes_of_a_notebook() -> None:
    cell = """
from enum import Enum, IntEnum
from jaxtyping import Float32
from torch import Tensor
from py2cu import Index, kernel
class Mode(IntEnum):
    MEAN = 2
class Kind(Enum):
    A = 0.5
class Base:
    STEP = 100
class Config(Base):
    class Inner:
        K = 1000
def f(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"], mode: int = Mode.MEAN, *, k: int = Mode.MEAN):
    out[i] = Mode.MEAN * 10 + Kind.A.value + Config.STEP + Config.Inner.K + mode + Mode.MEAN.value * 10000 + k
"""
    names: dict[str, object] = {"__name__": "notebook"}
    linecache.cache["<classes>"] = len(cell), None, cell.splitlines(keepends=True), "<classes>"
    exec(compile(cell, "<classes>", "exec", dont_inherit=True), names)
    one = kernel(names["f"])
    two = through(one)
    assert two.cuda_source == one.cuda_source == through(two).cuda_source
    assert two.simulate(X).tolist() == one.simulate(X).tolist() == [21124.5] * 3


# --- modules and workers ---


@pytest.mark.parametrize("make", [lambda: negated, lambda: nested(1.0)], ids=["name", "source"])
def test_a_module_that_holds_kernels_copies_and_pickles(make, tmp_path: Path) -> None:
    layer = Layer(make())
    torch.save(layer, tmp_path / "layer.pt")
    for other in (copy.deepcopy(layer), through(layer), torch.load(tmp_path / "layer.pt", weights_only=False)):
        assert torch.equal(other(X), layer(X))
        assert other.bias is not layer.bias
        assert other.act is scaled


def work(layer: Layer, results) -> None:
    results.put(layer(X).tolist())


@pytest.mark.slow
@pytest.mark.parametrize("make", [lambda: negated, lambda: nested(1.0)], ids=["name", "source"])
def test_a_spawned_worker_gets_it(make) -> None:
    layer, context = Layer(make()), multiprocessing.get_context("spawn")
    results = context.Queue()
    worker = context.Process(target=work, args=(layer, results))
    worker.start()
    assert results.get(timeout=60) == layer(X).tolist()
    worker.join(60)


@pytest.mark.slow
def test_a_kernel_of_another_process_whose_file_is_gone(tmp_path: Path) -> None:
    """As from a notebook: nothing can import its module."""
    file, pickled = tmp_path / "gone.py", tmp_path / "kernel.pickle"
    file.write_text(textwrap.dedent("""
        import sys, types, linecache, pickle
        from jaxtyping import Float32
        from torch import Tensor
        from py2cu import Index, kernel
        SHIFT = 0.5
        def up(x):
            return x + SHIFT
        @kernel
        def f(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
            out[i] = up(x[i])
        if __name__ == "__main__":
            del sys.modules["__main__"].__file__
            open(sys.argv[1], "wb").write(pickle.dumps(f))
    """), encoding="utf-8")  # fmt: skip
    subprocess.run([sys.executable, file, pickled], check=True)
    file.unlink()
    two = pickle.loads(pickled.read_bytes())
    assert two.simulate(X).tolist() == [1.5, 2.5, 3.5]
    assert "up(x[i])" in repr(two)
