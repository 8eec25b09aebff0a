"""`check` catches what people get wrong when they write CUDA: each bug is planted in the emitted text.

On the CPU the CPU text is edited, under `-m gpu` the CUDA text.
"""

import dataclasses
import linecache
from dataclasses import dataclass

import pytest

torch = pytest.importorskip("torch")

pytestmark = [pytest.mark.builds, pytest.mark.filterwarnings("ignore::py2cu.NarrowIntegerWarning")]

from jaxtyping import Float32, Float64, Int32, UInt8  # noqa: E402
from torch import Tensor  # noqa: E402

from py2cu import Index, Kernel, blockDim, blockIdx, kernel, threadIdx  # noqa: E402
from py2cu.check import Fault, Mismatch  # noqa: E402
from py2cu.translation import Artifacts, TargetName  # noqa: E402


def add(i: Index["n"], a: Float32[Tensor, "n"], b: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    out[i] = a[i] + b[i]


def add_in_blocks(a: Float32[Tensor, "n"], b: Float32[Tensor, "n"], out: Float32[Tensor, "n"], n: int):
    i = blockIdx.x * blockDim.x + threadIdx.x
    if i >= n:
        return
    out[i] = a[i] + b[i]


def matmul(m: Float32[Tensor, "h k"], n: Float32[Tensor, "k w"], out: Float32[Tensor, "h w"], h: int, w: int, k: int):
    r = blockIdx.y * blockDim.y + threadIdx.y
    c = blockIdx.x * blockDim.x + threadIdx.x
    if r >= h or c >= w:
        return
    o = 0.0
    for i in range(k):
        o += m[r, i] * n[i, c]
    out[r, c] = o


def tenth(i: Index["n"], x: Float64[Tensor, "n"], out: Float64[Tensor, "n"]):
    out[i] = x[i] * 0.1


def bytes_added(i: Index["n"], x: UInt8[Tensor, "n"], y: UInt8[Tensor, "n"], out: Int32[Tensor, "n"]):
    out[i] = x[i] + y[i]


def positive(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    if x[i] > 0:
        out[i] = x[i]


MAKERS = {
    add: kernel(coarsen=1),  # one element a thread: a bug is a change of what the user wrote
    add_in_blocks: kernel(size="n"),
    matmul: kernel(size=("w", "h"), block=(16, 16)),
    tenth: kernel(coarsen=1),
    bytes_added: kernel(coarsen=1),
    positive: kernel(init={"out": 0}, coarsen=1),
}


@dataclass(frozen=True)
class Bug:
    """`old` becomes `new` in the emitted text; a fault of `kind` in `array` must be found, at `line` of the Python."""

    name: str
    function: object
    old: str
    new: str
    kind: Fault
    array: str | None = "out"
    line: str | None = None
    element: str | None = None  # an expression of the array's extents
    targets: tuple[str, ...] = ("cpu", "cuda")


BUGS = [
    Bug("wrong_operator", add, "a[i] + b[i]", "a[i] - b[i]", Fault.VALUE, line="out[i] = a[i] + b[i]", element="(0,)"),
    Bug("wrong_input", add, "a[i] + b[i]", "a[i] + a[i]", Fault.VALUE, line="out[i] = a[i] + b[i]", element="(0,)"),
    Bug("guard_one_too_far", add_in_blocks, "if (i >= n) return;", "if (i > n) return;", Fault.OUTSIDE),
    Bug("guard_missing", add_in_blocks, "if (i >= n) return;", "", Fault.OUTSIDE),
    Bug("guard_of_an_index_kernel_missing", add, "if (i >= n) return;", "", Fault.OUTSIDE, targets=("cuda",)),
    Bug(
        "guard_one_too_near", add_in_blocks, "if (i >= n) return;", "if (i >= n - 1) return;", Fault.UNWRITTEN,
        line="out[i] = a[i] + b[i]", element="(n - 1,)",
    ),
    Bug("written_outside", add, "out[i] = ", "out[n + i] = ", Fault.OUTSIDE, targets=("cuda",)),
    Bug("written_before", add, "out[i] = ", "out[i - 1] = ", Fault.OUTSIDE),
    Bug("shifted", add, "out[i] = ", "out[i + 1] = ", Fault.UNWRITTEN, element="(0,)"),
    Bug("never_written", add, "out[i] = a[i] + b[i];", "if (i < 0) out[i] = a[i] + b[i];", Fault.UNWRITTEN),
    Bug("input_written", add, "out[i] = ", "const_cast<float*>(b)[i] += 1; out[i] = ", Fault.INPUT, array="b"),
    Bug("loop_one_short", matmul, "i < k;", "i < k - 1;", Fault.VALUE, line="out[r, c] = o"),
    Bug("loop_one_too_long", matmul, "i < k;", "i <= k;", Fault.VALUE, line="out[r, c] = o"),
    Bug("stride_of_the_other_array", matmul, "m[r * k + i]", "m[r * w + i]", Fault.VALUE, line="out[r, c] = o"),
    Bug("rows_and_columns_swapped", matmul, "out[r * w + c]", "out[c * h + r]", Fault.VALUE, line="out[r, c] = o"),
    Bug("wrong_axis", matmul, "threadIdx.x;", "threadIdx.y;", Fault.UNWRITTEN, line="out[r, c] = o"),
    Bug("and_for_or", matmul, "r >= h || c >= w", "r >= h && c >= w", Fault.OUTSIDE),
    Bug("float_for_double", tenth, "0.1", "0.1f", Fault.VALUE, line="out[i] = x[i] * 0.1"),
    Bug(
        "int_for_byte", bytes_added, "static_cast<uint8_t>(x[i] + y[i])", "x[i] + y[i]", Fault.VALUE,
        line="out[i] = x[i] + y[i]",
    ),
    Bug("condition_dropped", positive, "if (x[i] > 0)", "", Fault.UNEXPECTED_WRITE),
    Bug("block_too_large", add, "block(256)", "block(2048)", Fault.RAISED, array=None, targets=("cuda",)),
]  # fmt: skip


def plant(bug: Bug, target: TargetName) -> Kernel:
    """A kernel with `bug` in the text for `target`."""
    sound: Kernel = MAKERS[bug.function](bug.function)
    translation = sound.translation
    artifacts = edit(translation.texts[target], bug)
    return sound.with_translation(translation.with_texts(artifacts))


def edit(artifacts: Artifacts, bug: Bug) -> Artifacts:
    text = artifacts.kernel.text
    assert bug.old in text, f"`{bug.old}` is not in\n{text}"
    return dataclasses.replace(
        artifacts, kernel=dataclasses.replace(artifacts.kernel, text=text.replace(bug.old, bug.new))
    )


def assert_caught(bug: Bug, target: str) -> None:
    report = plant(bug, TargetName(target)).check()
    assert report.device == target
    assert not report.ok
    found = next((failure for failure in report.failures if failure.kind is bug.kind), None)
    assert found is not None, f"another fault was found: {report}"
    assert found.array == bug.array
    if bug.line is not None:
        assert found.line is not None
        assert linecache.getline(__file__, found.line).strip() == bug.line
        assert_place(found, bug)
    if bug.element is not None:
        extents = dict(pair.split("=") for pair in found.case.split(",")[0].split())
        assert found.index == eval(bug.element, {name: int(value) for name, value in extents.items()})
    assert f"{bug.kind}" in str(report)


def assert_place(found: Mismatch, bug: Bug) -> None:
    """The block and thread named are those of the element named."""
    assert found.index is not None
    assert found.block is not None
    assert found.thread is not None
    shape = (16, 16) if bug.function is matmul else (256,)
    place = tuple(b * s + t for b, s, t in zip(found.block, shape, found.thread, strict=False))
    assert place == tuple(reversed(found.index))


def bugs(target: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("bug", [pytest.param(b, id=b.name) for b in BUGS if target in b.targets])


@pytest.mark.skipif(torch.cuda.is_available(), reason="check() takes the GPU")
@bugs("cpu")
def test_caught_on_the_cpu(bug):
    assert_caught(bug, "cpu")


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="no GPU here")
@bugs("cuda")
def test_caught_on_the_gpu(bug):
    assert_caught(bug, "cuda")


@pytest.mark.parametrize("function", MAKERS, ids=lambda function: function.__name__)
def test_nothing_is_found_where_nothing_is_planted(function):
    report = MAKERS[function](function).check()
    assert report.ok and report.checked, str(report)


def named_like_options(
    i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"], race: float, unordered: float
):
    out[i] = x[i] * race + unordered


def test_a_parameter_named_like_an_option_of_check_is_the_kernels():
    report = kernel(named_like_options).check(torch.ones(5), race=2.0, unordered=0.5)
    assert report.ok
    assert (report.compared, report.accepted) == (5, 0)
