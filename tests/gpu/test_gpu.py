"""On a real GPU: the examples against their Python and against torch, and how a call behaves around the kernel."""

from __future__ import annotations

import importlib
import importlib.util
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no GPU here", allow_module_level=True)

from py2cu import Kernel  # noqa: E402
from tests.support import kernels_of_blocks  # noqa: E402
from tests.support.modules import import_file  # noqa: E402

pytestmark = pytest.mark.gpu
EXAMPLES = Path(__file__).parent.parent.parent / "examples"
CUDA = torch.device("cuda")


def example(name: str):
    return import_file(EXAMPLES / f"{name}.py")


NAMES = [path.stem for path in sorted(EXAMPLES.glob("*.py"))]


@pytest.fixture(scope="module")
def modules():
    pytest.importorskip("skimage")
    pytest.importorskip("sklearn")
    return {name: example(name) for name in NAMES}


@pytest.fixture(scope="module")
def add(modules) -> Kernel:
    return modules["vector_add"].vector_add


@pytest.fixture(scope="module")
def grey(modules) -> Kernel:
    return modules["grayscale"].rgb2grey


@pytest.fixture(scope="module")
def matmul(modules) -> Kernel:
    return modules["matmul"].matmul


# --- against Python and torch ---


def test_multiply_adds_round_twice_where_that_is_asked_for(tmp_path, monkeypatch):
    (tmp_path / "contracted.py").write_text(
        "from jaxtyping import Float32\nfrom torch import Tensor\nfrom py2cu import Index, kernel\n\n\n@kernel\n"
        'def f(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):\n    out[i] = x[i] * x[i] - 1.0\n'
    )
    monkeypatch.syspath_prepend(tmp_path)
    f = importlib.import_module("contracted").f
    x = torch.tensor([1 + 2**-12], device=CUDA)
    exact = 2**-11 + 2**-24
    assert f(x).item() == exact
    assert f.without_fma()(x).item() == torch.tensor(exact + 1).item() - 1 != exact
    assert f.without_fma().check().ok


def test_halves_are_made_by_way_of_float32(tmp_path, monkeypatch):
    """Numbers between two halves, nearer to one of them than a float32 can tell."""
    (tmp_path / "rounded.py").write_text(
        "from jaxtyping import BFloat16, Float, Float16, Float64, Int64\nfrom torch import Tensor\n"
        'from py2cu import Index, kernel\n\n\n@kernel\ndef f(i: Index["n"], a: float, x: Float64[Tensor, "n"], '
        'k: Int64[Tensor, "n"], y: Float[Tensor, "n"], half: Float16[Tensor, "n"], brain: BFloat16[Tensor, "n"], '
        'elements: Float[Tensor, "n"], integers: Float[Tensor, "n"], numbers: Float[Tensor, "n"]):\n'
        "    half[i], brain[i], elements[i], integers[i], numbers[i] = y[i], y[i], x[i], k[i], a\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    f = importlib.import_module("rounded").f
    k = torch.tensor([2**40 + 2**32 + 1])
    for value in (1 + 2**-11 + 2**-40, 1 + 2**-8 + 2**-40):
        x = torch.tensor([value], dtype=torch.float64)
        for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64):
            y = x.to(dtype)
            expected = [y.half(), y.bfloat16(), y, k.to(dtype), y]
            outputs = [torch.empty_like(tensor, device=CUDA) for tensor in expected]
            f(value, x.cuda(), k.cuda(), y.cuda(), *outputs)
            assert all(map(torch.equal, map(torch.Tensor.cpu, outputs), expected)), (value, dtype)
    assert f.check().ok


def test_halves_are_divided_as_torch_divides_them(tmp_path):
    divisors = (3, 10, -0.7, 6.5, 100, 2.0, 14, 1000, 65504, 2**-14)
    lines = "".join(f"    out[{place}, i] = x[i] / {divisor}\n" for place, divisor in enumerate(divisors))
    (tmp_path / "divided.py").write_text(
        "from jaxtyping import Float16\nfrom torch import Tensor\nfrom py2cu import Index, kernel\n\n\n@kernel\n"
        f'def f(i: Index["n"], x: Float16[Tensor, "n"], out: Float16[Tensor, "{len(divisors)} n"]):\n{lines}'
    )
    halves = torch.arange(2**16, dtype=torch.int32).to(torch.int16).view(torch.float16).to(CUDA)
    by = torch.tensor(divisors, dtype=torch.float16, device=CUDA)
    expected = (halves.float() / by.float()[:, None]).half()
    found = import_file(tmp_path / "divided.py").f(halves)
    torch.testing.assert_close(found, expected, rtol=0, atol=0, equal_nan=True)


def test_sums_of_int16_are_compared_as_such(tmp_path, monkeypatch):
    """Two of the least number make zero; compared as `a == -b` in 32 bits they do not."""
    (tmp_path / "summed.py").write_text(
        "from jaxtyping import Int\nfrom torch import Tensor\nfrom py2cu import Index, kernel\n\n\n@kernel\n"
        'def f(i: Index["n"], x: Int[Tensor, "n"], y: Int[Tensor, "n"], out: Int[Tensor, "n"], z: Int[Tensor, "n"]):\n'
        "    out[i] = 1 if x[i] + y[i] else 0\n    z[i] = 1 if x[i] + y[i] == 0 else max(~x[i] + 1, y[i])\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    f = importlib.import_module("summed").f
    x = torch.tensor([-(2**15), 1, 0], dtype=torch.int16, device=CUDA)
    out, z = f(x, x)
    assert out.tolist() == [0, 1, 0]
    assert z.tolist() == [1, 1, 1]
    assert f.check().ok


@pytest.mark.parametrize("name", NAMES)
def test_kernels_of_the_examples_match_python(modules, name):
    for kernel in vars(modules[name]).values():
        if isinstance(kernel, Kernel):
            report = kernel.check()
            assert report.device == "cuda"
            assert report.ok, str(report)


@pytest.mark.parametrize("n", [32, 50, 10_000])
def test_complex_numbers_are_shared(n):
    x = torch.randn(n, dtype=torch.complex128, device=CUDA)
    whole = torch.cat([x, x.new_zeros(-n % 32)]).view(-1, 32)
    expected = torch.fft.fft(whole).view(-1)[:n]
    torch.testing.assert_close(kernels_of_blocks.spectrum(x), expected, rtol=1e-5, atol=1e-4)
    assert kernels_of_blocks.spectrum.check().ok


@pytest.mark.parametrize("n", [0, 1, 255, 256, 257, 1_000_003])
def test_vector_add_matches_torch(add, n):
    a, b = torch.randn(2, n, device=CUDA)
    assert torch.equal(add(a, b), a + b)


@pytest.mark.parametrize(("h", "k", "w"), [(1, 1, 1), (16, 16, 16), (17, 33, 15), (500, 64, 300), (3, 0, 5)])
def test_matmul_matches_torch(matmul, h, k, w):
    m, n = torch.randn(h, k, device=CUDA), torch.randn(k, w, device=CUDA)
    expected = (m.double() @ n.double()).float()
    torch.testing.assert_close(matmul(m, n), expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("n", [1, 1000, 512 * 512])
def test_grey_matches_torch(grey, n):
    x = torch.randint(0, 256, (3, n), dtype=torch.uint8, device=CUDA)
    expected = 0.2989 * x[0] + 0.5870 * x[1] + 0.1140 * x[2]
    assert (grey(x).float() - expected).abs().max() <= 1  # truncated, after at most one rounding more or less


def test_sigmoid_matches_torch(modules):
    x = torch.randn(100_001, device=CUDA) * 50
    torch.testing.assert_close(modules["sigmoid"].sigmoid(x), torch.sigmoid(x))


@pytest.mark.parametrize("n", [0, 4, 1020, 1_000_004])
def test_rows_of_views_match_torch(modules, n):
    vectors = modules["vectors"]
    x = torch.randn(n, device=CUDA)
    assert torch.equal(vectors.scale(x, 3.0), 3 * x)
    pixels = torch.randint(0, 256, (4 * n,), dtype=torch.uint8, device=CUDA)
    planar = pixels.view(-1, 4)[:, :3].T
    expected = 0.2989 * planar[0] + 0.5870 * planar[1] + 0.1140 * planar[2]
    assert torch.allclose(vectors.rgba2grey(pixels).float(), expected, rtol=0, atol=1)  # truncated, as above


def test_an_array_that_begins_between_rows_is_refused(modules):
    x = torch.randn(1025, device=CUDA)
    with pytest.raises(RuntimeError, match="`x` must begin at a multiple of 16 bytes"):
        modules["vectors"].scale(x[1:], 3.0)
    torch.cuda.synchronize()


def test_cpu_and_gpu_agree(matmul):
    m, n = torch.randn(40, 30), torch.randn(30, 20)
    torch.testing.assert_close(matmul(m, n), matmul(m.cuda(), n.cuda()).cpu())


# --- sizes ---


@pytest.mark.parametrize(("h", "w"), [(0, 5), (5, 0), (0, 0)])
def test_nothing_to_do(matmul, h, w):
    out = matmul(torch.ones(h, 4, device=CUDA), torch.ones(4, w, device=CUDA))
    assert out.shape == (h, w)
    torch.cuda.synchronize()


@pytest.mark.slow
def test_more_elements_than_32_bits_count(grey):
    """The instantiation with 64-bit indices: 3 n is past 2^32, n past 2^31."""
    n = 2**31 + 1000
    if torch.cuda.mem_get_info()[0] < 6 * n:
        pytest.skip("too little memory on this GPU")
    x = torch.zeros(3, n, dtype=torch.uint8, device=CUDA)
    x[:, -1000:] = 200
    x[:, :7] = 100
    out = grey(x)
    assert out[-1000:].unique().tolist() == [199]
    assert out[:7].unique().tolist() == [99]
    assert not out[7:-1000].any()


@pytest.mark.slow
def test_just_below_where_64_bits_begin(grey):
    """The last size for 32-bit indices: 3 n just fits."""
    n = (2**31 - 1) // 3
    x = torch.full((3, n), 200, dtype=torch.uint8, device=CUDA)
    assert grey(x).unique().tolist() == [199]


# --- outputs and launches ---


def test_out_is_filled_in_place(add):
    a, b = torch.randn(2, 1000, device=CUDA)
    out = torch.empty_like(a)
    assert add(a, b, out=out).data_ptr() == out.data_ptr()
    assert torch.equal(out, a + b)


def test_explicit_grid(add):
    a, b = torch.randn(2, 1000, device=CUDA)
    out = torch.zeros_like(a)
    add[2, 128](a, b, out)
    assert torch.equal(out[:256], (a + b)[:256])
    assert not out[256:].any()


def test_explicit_grid_in_two_dimensions(matmul):
    m, n = torch.randn(50, 8, device=CUDA), torch.randn(8, 30, device=CUDA)
    out = torch.empty(50, 30, device=CUDA)
    matmul[(4, 7), (8, 8)](m, n, out)
    torch.testing.assert_close(out, m @ n, rtol=1e-4, atol=1e-4)


def test_a_block_beyond_the_launch_bounds():
    from tests.unit.call.test_launch_bounds import double

    x = torch.ones(100, device="cuda")
    assert double(x).tolist() == [2.0] * 100
    with pytest.raises(RuntimeError, match="a block has at most 64 threads, got 96"):
        double[2, 96](x, torch.empty_like(x))


def test_a_block_that_no_gpu_takes(add):
    a, b = torch.randn(2, 10, device=CUDA)
    with pytest.raises(RuntimeError, match="launch failed"):
        add[1, 4096](a, b, torch.empty_like(a))
    assert torch.equal(add(a, b), a + b)  # the error is not left behind


# --- streams and devices ---


def test_runs_on_the_current_stream(add):
    a, b = torch.ones(2, 1 << 20, device=CUDA)
    out = torch.empty_like(a)
    add(a, b, out=out)  # built, before anything is timed
    assert not out.zero_().any()  # torch's kernel is loaded now: loading one waits for the whole GPU
    torch.cuda.synchronize()
    side = torch.cuda.Stream()
    with torch.cuda.stream(side):
        torch.cuda._sleep(2_000_000_000)  # about a second, before the kernel: others may share the GPU
        add(a, b, out=out)
        done = side.record_event()
    assert not done.query()
    assert not out.any()  # the default stream does not wait, and the kernel has not run
    side.synchronize()
    assert bool((out == 2).all())


def test_is_captured_in_a_cuda_graph(add):
    a, b = torch.randn(2, 1000, device=CUDA)
    out = torch.empty_like(a)
    add(a, b, out=out)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        add(a, b, out=out)
    a.fill_(1)
    b.fill_(2)
    graph.replay()
    assert bool((out == 3).all())


# --- arguments that do not fit ---


def test_wrong_arguments_are_named(add, grey, matmul):
    a = torch.ones(10, device=CUDA)
    planes = torch.ones(3, 10, dtype=torch.uint8, device=CUDA)
    with pytest.raises(RuntimeError, match="`b` must be float32, got float64"):
        add(a, a.double())
    with pytest.raises(RuntimeError, match="`b` must have 1 dimensions, got 2"):
        add(a, a[None])
    with pytest.raises(RuntimeError, match=r"dimension 0 of `b` is `n` = 10, got 9"):
        add(a, a[:9].clone())
    with pytest.raises(RuntimeError, match="`b` is on cpu and `a` on cuda:0"):
        add(a, a.cpu())
    with pytest.raises(RuntimeError, match="`b` is on cuda:0 and `a` on cpu"):
        add(a.cpu(), a)
    with pytest.raises(RuntimeError, match="`out`"):
        add(a, a, out=torch.empty(11, device=CUDA))
    with pytest.raises(RuntimeError, match=r"dimension 0 of `x` is `3` = 3, got 4"):
        grey(torch.ones(4, 10, dtype=torch.uint8, device=CUDA))
    with pytest.raises(RuntimeError, match="`h` is 9"):
        matmul(torch.ones(5, 4, device=CUDA), torch.ones(4, 3, device=CUDA), h=9)
    with pytest.raises(TypeError, match="missing `b`"):
        add(a)
    with pytest.raises(TypeError, match="no parameter `c`"):
        add(a, a, c=a)
    assert grey(planes).shape == (10,)


def test_an_array_that_is_not_contiguous_is_refused(add, matmul):
    a = torch.ones(20, device=CUDA)
    with pytest.raises(RuntimeError, match=r"`a` must be contiguous; pass `a.contiguous\(\)`"):
        add(a[::2], a[:10])
    with pytest.raises(RuntimeError, match="`n` must be contiguous"):
        matmul(torch.ones(5, 4, device=CUDA), torch.ones(3, 4, device=CUDA).T)
    with pytest.raises(RuntimeError, match="`out` must be contiguous"):
        add(a[:10], a[:10].clone(), out=torch.ones(20, device=CUDA)[::2])


def test_an_output_that_overlaps_an_input_is_refused(add):
    a = torch.ones(20, device=CUDA)
    with pytest.raises(RuntimeError, match="`out` is written and overlaps `a`"):
        add(a[:15], torch.ones(15, device=CUDA), out=a[5:])
    assert add(a, torch.ones(20, device=CUDA), out=a).tolist() == [2.0] * 20
