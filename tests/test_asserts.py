"""A failed `assert` on the CPU: the call raises, nobody waits for the block that failed, and the process goes on."""

from __future__ import annotations

import inspect
import signal
import subprocess
from collections.abc import Iterator

import pytest

torch = pytest.importorskip("torch")

from py2cu.pipeline import translate_file  # noqa: E402
from py2cu.simulator import SimulationError  # noqa: E402
from py2cu.source import SourceFile  # noqa: E402
from py2cu.translation import TargetName  # noqa: E402
from tests.support import kernels_that_assert as kernels  # noqa: E402
from tests.support.compilers import gxx  # noqa: E402

pytestmark = pytest.mark.builds

SECONDS = 60
ONE_DIMENSION = [
    "of_blocks",
    "of_pieces",
    "of_a_grid",
    "of_blocks_in_order",
    "of_threads_in_order",
    "of_a_grid_in_order",
]


@pytest.fixture(autouse=True)
def _on_the_cpu_and_in_time(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A launch that waits for ever ends the test run."""
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)


def line_of_assert(function) -> int:
    lines, first = inspect.getsourcelines(function)
    return first + next(place for place, line in enumerate(lines) if line.strip().startswith("assert "))


def call(kernel, x):
    """The first output; one that the kernel reads is given."""
    if kernel is kernels.of_a_grid:
        kernel(x, out := torch.empty_like(x))
        return out
    made = kernel(x)
    return made[0] if isinstance(made, tuple) else made


def numbers(n: int, *negative: int):
    x = torch.ones(n)
    x[list(negative)] = -1.0
    return x


@pytest.mark.parametrize("n", [300, 900])
@pytest.mark.parametrize("name", ONE_DIMENSION)
def test_the_failure_of_the_first_block_is_raised(name, n):
    kernel = getattr(kernels, name)
    line = line_of_assert(kernel.python)
    said = rf"{name}: assertion failed at line {line}, block \(1, 0, 0\), thread \({{}}, 0, 0\): positive$"
    thread = 31 - 13 if name == "of_pieces" else 13
    with pytest.raises(AssertionError, match=said.format(thread)):
        call(kernel, numbers(n, 45, n - 7, 280))
    right = call(kernel, numbers(n))
    assert torch.equal(right, torch.full((n,), 2.0 if name == "of_a_grid" else 1.0))


def test_built_files_raise_it_too():
    built = kernels.of_blocks.with_translation(kernels.of_blocks.translation)
    with pytest.raises(AssertionError, match=r"of_blocks: assertion failed at line"):
        call(built, numbers(300, 45))


def test_many_blocks_wait_for_one_that_failed():
    with pytest.raises(AssertionError, match=r"block \(1, 0, 0\), thread \(13, 0, 0\): positive"):
        kernels.of_blocks_in_order(numbers(70_000, 45, 69_000))


def test_elements_are_judged_block_by_block():
    x = torch.ones(10, 30)
    x[0, 20] = x[3, 4] = x[3, 5] = 0.0
    with pytest.raises(AssertionError, match=r"block \(0, 0, 0\), thread \(4, 3, 0\): x\[r, c\] != 0$") as caught:
        kernels.of_elements(x)
    with pytest.raises(SimulationError, match=r"block \(0, 0, 0\), thread \(4, 3, 0\)"):
        kernels.of_elements.simulate(x)
    with pytest.raises(AssertionError) as from_op:
        kernels.of_elements.op(x)
    assert str(from_op.value) == str(caught.value)
    with pytest.raises(AssertionError, match=r"block \(1, 0, 0\), thread \(4, 0, 0\)"):
        kernels.of_elements[(2, 1), (16, 3)](x, torch.empty(10, 30))


def test_a_function_says_its_own_line():
    line = line_of_assert(kernels.checked)
    with pytest.raises(AssertionError, match=rf'at line {line}, block .*, thread .*: above "-5"$'):
        kernels.of_elements(torch.full((1, 1), -6.0))


@pytest.mark.parametrize(
    ("x", "y"), [([9, 0], [1.0, 1.0]), ([3, 4], [0.5, -1.0]), ([0] * 6, [0.0] * 6), ([-9, 10], [0, 2])]
)
def test_a_message_with_values_is_pythons(x, y):
    arrays = torch.tensor(x, dtype=torch.int32), torch.tensor(y, dtype=torch.float32)
    with pytest.raises(AssertionError, match="at line ") as compiled:
        kernels.of_values(*arrays)
    with pytest.raises(SimulationError) as simulated:
        kernels.of_values.simulate(*arrays)
    assert str(compiled.value).rpartition("0): ")[2] == str(simulated.value).rpartition("AssertionError: ")[2] != ""
    assert kernels.of_values(torch.ones(5, dtype=torch.int32), torch.ones(5)).tolist() == [1.0] * 5


def test_templates_assert():
    assert kernels.of_a_template(torch.ones(3), 0).tolist() == [1.0, 1.0, 1.0]
    for _ in range(2):  # the second time by a plan
        with pytest.raises(AssertionError, match=r"of_a_template: .*thread .0, 0, 0.: above the limit"):
            kernels.of_a_template(torch.ones(3), 1)


def test_a_million_failures_take_no_time():
    with pytest.raises(AssertionError, match=r"block \(0, 0, 0\), thread \(0, 0, 0\)"):
        kernels.of_elements(torch.zeros(1000, 1000))


def test_what_a_call_wrote_before_it_failed_is_written_once():
    """The call is not tried again: a plan that raised is no plan that does not fit."""
    out = torch.zeros(300)
    kernels.of_blocks(numbers(300), out)
    out.zero_()
    with pytest.raises(AssertionError):
        kernels.of_blocks(numbers(300, 299), out)
    assert out[:32].tolist() == [1.0] * 32


def test_check_tells_a_compiled_assertion_from_the_pythons():
    assert kernels.of_blocks.check(torch.ones(100)).ok
    report = kernels.of_blocks.check()
    assert not report.failures, report


def test_a_function_of_another_file_says_which(tmp_path, monkeypatch):
    head = "from jaxtyping import Float32\nfrom torch import Tensor\nfrom py2cu import Index, kernel\n"
    (tmp_path / "asserting_helpers.py").write_text('def FirstFailure(v):\n    assert v > 0, "a\\0b"\n    return v\n')
    (tmp_path / "asserting_main.py").write_text(
        head + "from asserting_helpers import FirstFailure\n\n@kernel\ndef of_another_file(i: Index['n'], "
        "x: Float32[Tensor, 'n'], out: Float32[Tensor, 'n']):\n    out[i] = FirstFailure(x[i])\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    import asserting_main  # type: ignore[import-not-found]

    with pytest.raises(AssertionError, match=r"at asserting_helpers.py, line 2, block .*: a\\0b$"):
        asserting_main.of_another_file(torch.zeros(2))
    assert asserting_main.of_another_file(torch.ones(2)).tolist() == [1.0, 1.0]


SPINNING = """
from jaxtyping import Int32
from torch import Tensor
from py2cu import atomic, kernel

@kernel(size="n", block=32)
def {name}(blockIdx, threadIdx, x: Int32[Tensor, "n"], flag: Int32[Tensor, "m"]):
    if threadIdx.x == 0:
        while atomic.add(flag, 0, 0) < blockIdx.x:
            pass
        x[blockIdx.x] = blockIdx.x
        {check}
        atomic.add(flag, 0, 1)
"""
MAIN = """
#include <cstdint>
#include <vector>
void spin_a_launch(int32_t*, int32_t*, int64_t, int64_t);
void spin_b_launch(int32_t*, int32_t*, int64_t, int64_t);
int main()
{
    std::vector<int32_t> x(256), flag(1);
    spin_a_launch(x.data(), flag.data(), 256, 1);
    flag[0] = 0;
    spin_b_launch(x.data(), flag.data(), 256, 1);
    return x[7] == 7 ? 0 : 1;
}
"""


@pytest.mark.parametrize("order", ["ab", "ba"])
def test_texts_with_and_without_assertions_link_together(tmp_path, order):
    """What one text calls as another does is local to each, since its members differ."""
    for name, check in (("spin_a", "pass"), ("spin_b", 'assert x[blockIdx.x] < 1000, "small"')):
        source = SourceFile(f"{name}.py", SPINNING.format(name=name, check=check))
        for text in translate_file(source).texts[TargetName.CPU].files[:2]:
            (tmp_path / text.name).write_text(text.text, encoding="utf-8")
    (tmp_path / "main.cpp").write_text(MAIN, encoding="utf-8")
    files = ["main.cpp", *(f"spin_{name}_cpu.cpp" for name in order)]
    command = [gxx(), "-std=c++17", "-O1", "-fopenmp", *files, "-o", "main"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)
    subprocess.run([tmp_path / "main"], check=True, timeout=30)
