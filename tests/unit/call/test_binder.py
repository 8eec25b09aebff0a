"""Which argument is which: the table of calls that have always been accepted, the rule behind it, and defaults."""

from __future__ import annotations

import inspect
import math
import pydoc
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest

torch = pytest.importorskip("torch")

import numpy as np  # noqa: E402

from py2cu.kernels import Kernel  # noqa: E402
from py2cu.pipeline import translate_file  # noqa: E402
from py2cu.source import SourceFile  # noqa: E402
from tests.support.modules import import_file  # noqa: E402

X, Y, Z = (torch.full((4, 4), float(number)) for number in range(3))

KERNELS: Final = '''
import math
import numpy as np
from jaxtyping import Float32
from torch import Tensor
from py2cu import Constexpr, Index, blockDim, blockIdx, kernel, threadIdx


@kernel
def two(i: Index["n"], x: Float32[Tensor, "n"], lo: Float32[Tensor, "n"], hi: Float32[Tensor, "n"]):
    lo[i] = x[i] - 1
    hi[i] = x[i] + 1


@kernel(size=("w", "h"), block=(16, 16))
def matmul(blockIdx, threadIdx, blockDim, m: Float32[Tensor, "h k"], n: Float32[Tensor, "k w"],
           out: Float32[Tensor, "h w"], h: int, w: int, k: int):
    r = blockIdx.y * blockDim.y + threadIdx.y
    c = blockIdx.x * blockDim.x + threadIdx.x
    if r >= h or c >= w: return
    o = 0.
    for i in range(k): o += m[r, i] * n[i, c]
    out[r, c] = o


@kernel
def mixed(i: Index["n"], x: Float32[Tensor, "n"], n: int, scale: float, out: Float32[Tensor, "n"],
          y: Float32[Tensor, "n"]):
    out[i] = scale * x[i] + y[i] + n


@kernel
def stepped(i: Index["n"], x: Float32[Tensor, "n"], by: float):
    x[i] += by


@kernel
def tiled(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"], tile: Constexpr[int] = 4,
          flip: Constexpr[bool] = False):
    out[i] = x[i] + tile if flip else x[i] - tile


@kernel
def shaped(i: Index["rows"], x: Float32[Tensor, "rows tile"], tile: Constexpr[int], out: Float32[Tensor, "rows"],
           s: float):
    out[i] = x[i, tile - 1] * s


EPS = 0.25


@kernel
def normed(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"], n: int, eps: float = 1e-5,
           rounds: int = 100, flip: bool = False, far: float = math.inf, *, small: np.uint8 = 7, named: float = EPS,
           z: complex = 1 - 2j):
    """Adds its numbers up."""
    v = x[i] + eps + rounds + named + small + z.imag + n
    out[i] = min(-v if flip else v, far)


@kernel(size="rows", block=32)
def first(x: Float32[Tensor, "rows n"], *, by: float = 0.5, out: Float32[Tensor, "rows"], m: int):
    r = blockIdx.x * blockDim.x + threadIdx.x
    if r < len(out):
        out[r] = by * x[r, 0] + m
'''

# What earlier versions made of these calls.
CALLS: Final[list[tuple[str, tuple[Any, ...], dict[str, Any], dict[str, Any]]]] = [
    ("two", (X,), {}, {"x": X}),
    ("two", (X, Y), {}, {"x": X, "lo": Y}),
    ("two", (X, Y, Z), {}, {"x": X, "lo": Y, "hi": Z}),
    ("two", (X,), {"hi": Y}, {"x": X, "hi": Y}),
    ("two", (), {"x": X}, {"x": X}),
    ("two", (X,), {"lo": Y, "hi": Z}, {"x": X, "lo": Y, "hi": Z}),
    ("matmul", (X, Y), {}, {"m": X, "n": Y}),
    ("matmul", (X, Y, Z), {}, {"m": X, "n": Y, "out": Z}),
    ("matmul", (X, Y, 1), {}, {"m": X, "n": Y, "h": 1}),
    ("matmul", (X, Y, 1, 2, 3), {}, {"m": X, "n": Y, "h": 1, "w": 2, "k": 3}),
    ("matmul", (X, Y, Z, 1, 2, 3), {}, {"m": X, "n": Y, "out": Z, "h": 1, "w": 2, "k": 3}),
    ("matmul", (X, Y, Z, 1), {}, {"m": X, "n": Y, "out": Z, "h": 1}),
    ("matmul", (X, Y), {"k": 3}, {"m": X, "n": Y, "k": 3}),
    ("matmul", (X, Y), {"out": Z, "h": 1}, {"m": X, "n": Y, "out": Z, "h": 1}),
    ("matmul", (X, Y, 1), {"out": Z}, {"m": X, "n": Y, "out": Z, "h": 1}),
    ("mixed", (X, 3, 0.5, Y), {}, {"x": X, "n": 3, "scale": 0.5, "y": Y}),
    ("mixed", (X, 0.5, Y), {}, {"x": X, "scale": 0.5, "y": Y}),
    ("mixed", (X, 3, 0.5, Z, Y), {}, {"x": X, "n": 3, "scale": 0.5, "out": Z, "y": Y}),
    ("mixed", (X, 0.5, Z, Y), {}, {"x": X, "scale": 0.5, "out": Z, "y": Y}),
    ("mixed", (X, 0.5), {"y": Y}, {"x": X, "scale": 0.5, "y": Y}),
    ("mixed", (X,), {"y": Y, "scale": 2, "out": Z}, {"x": X, "scale": 2, "out": Z, "y": Y}),
    ("mixed", (X, 0.5), {"y": Y, "n": 3}, {"x": X, "n": 3, "scale": 0.5, "y": Y}),
    ("stepped", (X, 1), {}, {"x": X, "by": 1}),
    ("stepped", (X,), {"by": True}, {"x": X, "by": True}),
    ("shaped", (X, 4, 0.5), {}, {"x": X, "tile": 4, "s": 0.5}),
    ("shaped", (X, 0.5), {}, {"x": X, "tile": 4, "s": 0.5}),
    ("shaped", (X, 4, Y, 0.5), {}, {"x": X, "tile": 4, "out": Y, "s": 0.5}),
    ("shaped", (X, Y, 0.5), {}, {"x": X, "tile": 4, "out": Y, "s": 0.5}),
    ("shaped", (X,), {"s": 1}, {"x": X, "tile": 4, "s": 1}),
    ("tiled", (X,), {}, {"x": X, "tile": 4, "flip": False}),
    ("tiled", (X, 8), {}, {"x": X, "tile": 8, "flip": False}),
    ("tiled", (X, 8, True), {}, {"x": X, "tile": 8, "flip": True}),
    ("tiled", (X, Y, 8, True), {}, {"x": X, "out": Y, "tile": 8, "flip": True}),
    ("tiled", (X,), {"flip": True}, {"x": X, "tile": 4, "flip": True}),
]
LAUNCHES: Final = [
    ("two", (X, Y, Z), {}, {"x": X, "lo": Y, "hi": Z}),
    ("two", (X, Y), {"hi": Z}, {"x": X, "lo": Y, "hi": Z}),
    ("matmul", (X, Y, Z), {}, {"m": X, "n": Y, "out": Z}),
    ("matmul", (X, Y, Z, 1, 2, 3), {}, {"m": X, "n": Y, "out": Z, "h": 1, "w": 2, "k": 3}),
]

DEFAULTS: Final = {
    "eps": 1e-5, "rounds": 100, "flip": False, "far": math.inf, "small": 7, "named": 0.25, "z": 1 - 2j
}  # fmt: skip
WITH_DEFAULTS: Final = [
    ("normed", (X,), {}, {"x": X}),
    ("normed", (X, 4), {}, {"x": X, "n": 4}),
    ("normed", (X, 4, 0.5, 3), {}, {"x": X, "n": 4, "eps": 0.5, "rounds": 3}),
    ("normed", (X, Y), {}, {"x": X, "out": Y}),
    ("normed", (X, Y, 4, 0.5), {}, {"x": X, "out": Y, "n": 4, "eps": 0.5}),
    ("normed", (X,), {"eps": 1, "small": np.uint8(3)}, {"x": X, "eps": 1, "small": 3}),
    ("normed", (X, Y), {"z": 2}, {"x": X, "out": Y, "z": 2}),
]


def imported(path: Path, text: str) -> ModuleType:
    path.write_text(text, encoding="utf-8")
    return import_file(path)


@pytest.fixture(scope="module")
def kernels(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    return imported(tmp_path_factory.mktemp("binder") / "calls.py", KERNELS)


def bound(kernels: ModuleType, name: str, args, kwargs, *, on_grid: bool = False):
    _, values = getattr(kernels, name)._prepare().layout.bind(args, kwargs, on_grid=on_grid)
    return values


def same(values: dict[str, Any], expected: dict[str, Any]) -> bool:
    """Tensors are compared by identity."""
    return values.keys() == expected.keys() and all(
        value is expected[name] if isinstance(value, torch.Tensor) else value == expected[name]
        for name, value in values.items()
    )


@pytest.mark.parametrize(("name", "args", "kwargs", "expected"), CALLS)
def test_no_call_has_changed(kernels, name, args, kwargs, expected):
    assert same(bound(kernels, name, args, kwargs), expected)


@pytest.mark.parametrize(("name", "args", "kwargs", "expected"), LAUNCHES)
def test_an_explicit_launch_reads_its_parameters_in_order(kernels, name, args, kwargs, expected):
    assert same(bound(kernels, name, args, kwargs, on_grid=True), expected)


@pytest.mark.parametrize(("name", "args", "kwargs", "expected"), WITH_DEFAULTS)
def test_defaults_stand_in_for_what_a_call_leaves_out(kernels, name, args, kwargs, expected):
    assert same(bound(kernels, name, args, kwargs), DEFAULTS | expected)


@pytest.mark.parametrize(
    ("name", "args", "kwargs", "said"),
    [
        ("two", (X, Y, Z, X), {}, r"two\(x, lo=None, hi=None\) takes 3 positional arguments, got 4; .*lo=, hi="),
        ("two", (X, 1), {}, r"takes a tensor as `lo`, got int; pass outputs by name: lo=, hi="),
        ("two", (), {}, r"is missing `x`"),
        ("two", (X,), {"low": Y}, r"has no parameter `low`"),
        ("two", (X,), {"x": Y}, r"got `x` twice"),
        ("stepped", (X, Y), {}, r"takes a number as `by`, got Tensor"),
        ("stepped", (X, "1"), {}, r"takes a number as `by`, got str"),
        ("stepped", (X, 1j), {}, r"takes a number as `by`, got complex"),
        ("normed", (X, 2.5), {}, r"takes a whole number as `n`, got float"),
        ("normed", (X, 4, 1.0, 2, 1), {}, r"takes a bool as `flip`, got int"),
        ("normed", (X, 4, 1.0, 2, True, 9.0, 5), {}, r"takes a tensor as `out`, got int; pass outputs by name: out="),
        (
            "normed",
            (X,),
            {"small": Y},
            r"flip=False, far=inf, out=None, \*, small=7, .* whole number as `small`, got Tensor",
        ),
        ("first", (X, Y), {"m": 1}, r"takes 1 positional argument, got 2; keyword-only: by=, out=, m=$"),
        (
            "normed",
            (X, 4, 1.0, 2, True, 9.0, 5),
            {},
            r"pass outputs by name: out=; keyword-only: small=, named=, z=$",
        ),
    ],
)
def test_what_fits_no_reading_is_refused(kernels, name, args, kwargs, said):
    with pytest.raises(TypeError, match=said):
        bound(kernels, name, args, kwargs)


@pytest.mark.parametrize(
    ("name", "args", "kwargs"),
    [("mixed", (X, 0.5, Z, Y), {}), ("matmul", (X, Y, 1), {"out": Z}), ("two", (X, Y, Z), {"hi": Z})],
)
def test_an_explicit_launch_knows_no_other_order(kernels, name, args, kwargs):
    with pytest.raises(TypeError):
        bound(kernels, name, args, kwargs, on_grid=True)


@pytest.mark.parametrize("name", ["two", "normed", "first"])
def test_the_signature_is_the_functions(kernels, name):
    kernel = getattr(kernels, name)
    assert inspect.signature(kernel) == inspect.signature(kernel.python)
    page = pydoc.render_doc(kernel, renderer=pydoc.plaintext)
    assert f"\n{name}(" in page
    assert "__call__" not in page
    assert (kernel.__doc__ or "") in page


def test_a_kernel_of_a_class_is_itself(kernels):
    class Layer:
        run = kernels.two

    assert Layer().run is Layer.run is kernels.two
    assert isinstance(Layer.run, Kernel)


def test_headers_show_defaults(kernels):
    translation = translate_file(SourceFile("calls.py", KERNELS))
    for header in (translation.cuda.header.text, kernels.normed.header):
        words = " ".join(header.split())
        assert "double eps /* = 1e-5 */, int64_t rounds /* = 100 */, bool flip /* = false */" in words
        assert "double far /* = INFINITY */, uint8_t small /* = 7 */, double named /* = 0.25 */" in words
        assert "cuda::std::complex<double> z /* = {1.0, -2.0} */" in words
    assert "/*" not in kernels.normed.cuda_source


def test_schemas_have_defaults_and_what_follows_them_goes_by_keyword(kernels):
    texts = kernels.normed.cpp_source
    numbers = "float eps=1e-05, int rounds=100, bool flip=False, float? far=None, int small=7, float named=0.25"
    parts = "float z_real=1.0, float z_imag=-2.0"
    assert f'"normed(Tensor x, int? n=None, {numbers}, {parts}) -> Tensor"' in texts
    assert f'"normed.out(Tensor x, Tensor(a!) out, int? n, {numbers}, {parts}) -> ()"' in texts
    assert f"int? n, {numbers}, {parts}, *, int[] grid, int[] block) -> ()" in texts
    assert '"first(Tensor x, float by=0.5, *, int m) -> Tensor"' in kernels.first.cpp_source
    assert '"first.out(Tensor x, float by=0.5, *, Tensor(a!) out, int m) -> ()"' in kernels.first.cpp_source


@pytest.mark.parametrize("value", [2.0, 3.0])
def test_a_default_is_what_the_function_has(tmp_path_factory, monkeypatch, value):
    """A notebook's cells bind names in any order; the value that counts is the function's own, also in the cache."""
    monkeypatch.setenv("PY2CU_TEST_DEFAULT", str(value))
    source = KERNELS.replace("EPS = 0.25", 'import os\nEPS = float(os.environ["PY2CU_TEST_DEFAULT"])')
    module = imported(tmp_path_factory.getbasetemp() / "computed.py", source)
    assert bound(module, "normed", (X,), {})["named"] == value


@pytest.mark.builds
def test_calls_with_and_without_defaults_agree(kernels):
    x = torch.tensor([1.0, -2.0])
    for run in (kernels.normed, kernels.normed.simulate):
        for _ in range(2):  # the second time by a plan
            torch.testing.assert_close(run(x), x + 100 + 0.25 + 7 - 2 + 2 + 1e-5)
            torch.testing.assert_close(run(x, 2, 0.5), x + 100 + 0.25 + 7 - 2 + 2 + 0.5)
            torch.testing.assert_close(run(x, flip=True, far=-200.0, named=1e3), torch.full((2,), -1107.0) - x)
            out = torch.empty(2)
            assert run(x, out, rounds=0) is out
            torch.testing.assert_close(out, x + 0.25 + 7 - 2 + 2 + 1e-5)
        run[1, 32](x, out)
        torch.testing.assert_close(out, x + 100 + 0.25 + 7 - 2 + 2 + 1e-5)
        run[1, 32](x, out, 2, 0.5, 1, z=5j)
        torch.testing.assert_close(out, x + 1 + 0.25 + 7 + 5 + 2 + 0.5)


@pytest.mark.builds
def test_the_op_has_the_defaults(kernels, monkeypatch):
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)  # the op for the CPU, wherever this runs
    x = torch.tensor([[1.0, 5.0], [-2.0, 5.0]])
    torch.testing.assert_close(kernels.normed.op(x[0]), kernels.normed(x[0]))
    torch.testing.assert_close(kernels.first.op(x, m=3), torch.tensor([3.5, 2.0]))
    for run in (kernels.first, kernels.first.simulate):
        torch.testing.assert_close(run(x, m=3), torch.tensor([3.5, 2.0]))
        torch.testing.assert_close(run(x, m=3, by=2.0, out=torch.empty(2)), torch.tensor([5.0, -1.0]))
        run[1, 32](x, out=(out := torch.empty(2)), m=1)
        torch.testing.assert_close(out, torch.tensor([1.5, 0.0]))


@pytest.mark.builds
def test_check_tries_the_defaults_too(kernels):
    report = kernels.normed.check()
    assert report.ok, report
    assert report.cases >= 8


MORE: Final = """
import numpy as np
from jaxtyping import Float32
from torch import Tensor
from py2cu import Constexpr, Index, kernel, threadIdx


@kernel(size=1)
def number(threadIdx, x: Float32[Tensor, "n"], out: Float32[Tensor, ""], by: float = 1.0):
    out[()] = x[0] + by


@kernel
def scaled(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"], a: float = 1.0, b: float = 2.0, *,
           s: float):
    out[i] = x[i] * a + b + s


@kernel
def in_place(i: Index["h"], x: Float32[Tensor, "h"], h: int, r: float, c: Constexpr[int] = 16):
    x[i] = x[i] * r + c


@kernel
def typed(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"], k: int, f: bool):
    out[i] = x[i] + k if f else x[i]


@kernel
def tiny(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"], a: float = 1e-310,
         b: float = np.float32(0.1), c: bool = np.bool_(True), d: np.uint64 = 2**62):
    out[i] = x[i] + a * 1e300 + b if c else 0.0
"""


@pytest.fixture(scope="module")
def more(tmp_path_factory: pytest.TempPathFactory) -> ModuleType:
    return imported(tmp_path_factory.mktemp("more") / "more.py", MORE)


def test_a_later_reading_that_fits_altogether_is_taken(more):
    values = bound(more, "in_place", (X, 2.5, 4), {})
    assert same(values, {"x": X, "r": 2.5, "c": 4})


@pytest.mark.builds
def test_a_plan_is_for_arguments_of_these_types(more):
    x, out = torch.arange(4.0), torch.full((), 50.0)
    assert more.number(x, 3.0).item() == 3.0
    assert more.number(x, out) is out
    assert out.item() == 1.0
    assert more.number(x, 4.0).item() == 4.0
    y = torch.zeros(4)
    for _ in range(2):
        assert more.scaled(x, 5.0, s=0.0).tolist() == [2.0, 7.0, 12.0, 17.0]
        assert more.scaled(x, y, s=1.0) is y
        assert y.tolist() == [3.0, 4.0, 5.0, 6.0]


@pytest.mark.builds
def test_what_is_refused_cold_is_refused_warm(more):
    x = torch.arange(4.0)
    assert more.typed(x, 2, True).tolist() == [2.0, 3.0, 4.0, 5.0]
    for k, f in [(torch.tensor(2), True), (2.5, True), (2, 1), (2, 2.0), (None, True), ("2", True)]:
        with pytest.raises(TypeError):
            more.typed(x, k, f)
    assert more.typed(x, np.int64(2), False).tolist() == x.tolist()


@pytest.mark.builds
def test_defaults_that_schemas_cannot_say_and_those_that_numpy_rounds(more):
    read = translate_file(SourceFile("more.py", MORE), "tiny").signatures[0]
    live = more.tiny.signature
    assert [p.default.value for p in read.parameters[2:]] == [p.default.value for p in live.parameters[2:]]
    assert more.tiny(torch.zeros(2)).tolist() == pytest.approx([0.1 + 1e-10] * 2)
