"""`k.op`: one torch operator a kernel, with version counters, fake tensors, and a name that an edit changes."""

import gc
import runpy
import subprocess
import sys
import threading
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from jaxtyping import Float, Float32  # noqa: E402
from torch import Tensor  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402
from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402

from py2cu import Index, blockDim, blockIdx, kernel, threadIdx  # noqa: E402
from py2cu.kernels import Kernel  # noqa: E402

pytestmark = pytest.mark.builds
X = torch.arange(4.0)


@kernel
def plus(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"], by: float = 1.0):
    out[i] = x[i] + by


@kernel
def bump(i: Index["n"], x: Float32[Tensor, "n"]):
    x[i] += 1


@kernel
def both(i: Index["n"], x: Float32[Tensor, "n"], low: Float32[Tensor, "n"], high: Float32[Tensor, "n+1"]):
    low[i] = x[i] - 1
    high[i] = x[i] + 1


@kernel
def rotated(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"], by: complex = 1j, first: float = 0.0):
    out[i] = (x[i] * by).imag + first


@kernel(size="n")
def filled(out: Float32[Tensor, "n"], value: float, n: int):
    i = blockIdx.x * blockDim.x + threadIdx.x
    out[i] = value


def overload(k: Kernel, name: str):
    return getattr(getattr(torch.ops.py2cu, k.op._opname), name)


def test_overloads() -> None:
    op = plus.op
    assert isinstance(op, torch._ops.OpOverload)
    assert str(op._schema).partition("(")[2] == "Tensor x, float by=1.) -> Tensor"
    assert str(overload(plus, "out")._schema).partition("(")[2] == "Tensor x, Tensor(a!) out, float by=1.) -> ()"
    launch = str(overload(plus, "grid")._schema).partition("(")[2]
    assert launch == "Tensor x, Tensor(a!) out, float by=1., *, SymInt[] grid, SymInt[] block) -> ()"
    out = torch.empty(4)
    assert op(X).tolist() == op(X, 1.0).tolist() == [1, 2, 3, 4]
    assert overload(plus, "out")(X, out) is None
    assert out.tolist() == [1, 2, 3, 4]
    overload(plus, "grid")(X, out, by=2.0, grid=[1], block=[4])
    assert out.tolist() == [2, 3, 4, 5]
    assert [each.shape for each in both.op(X)] == [(4,), (5,)]
    torch.testing.assert_close(rotated.op(X, by_imag=2.0), 2 * X)


@kernel
def resized(r: Index["m"], x: Float32[Tensor, "n"], out: Float32[Tensor, "m"], m: int):
    out[r] = x[r % x.shape[0]]


def test_none_is_refused_where_a_value_is_needed() -> None:
    """torch's dispatcher takes None for a tensor, and for a number that another overload determines."""
    out = torch.zeros(4)
    for _ in range(2):
        with pytest.raises(RuntimeError, match="no tensor arguments"):
            both.op(None)
        with pytest.raises(RuntimeError, match="plus: `x` is missing"):
            overload(plus, "grid")(None, out, grid=[1], block=[4])
        with pytest.raises(RuntimeError):
            overload(plus, "out")(X, None)
        overload(plus, "out")(X, out)
        assert out.tolist() == [1, 2, 3, 4]
        with pytest.raises(RuntimeError, match="resized: `m` is missing"):
            resized.op(X)
        assert resized.op(X, 2).tolist() == [0, 1]
        overload(resized, "out")(X, out, None)
        assert out.tolist() == [0, 1, 2, 3]


def test_every_way_to_write_an_array_bumps_its_version_once() -> None:
    out, x = torch.empty(4), X.clone()
    edited = plus.with_translation(plus.translation)
    ways = {
        "out": lambda: plus(X, out=out),
        "launch": lambda: plus[1, 4](X, out, 1.0),
        "op.out": lambda: overload(plus, "out")(X, out),
        "op.grid": lambda: overload(plus, "grid")(X, out, grid=[1], block=[4]),
        "of edited files": lambda: edited(X, out),
        "in place": lambda: bump(x),
        "op in place": lambda: bump.op(x),
        "some outputs": lambda: both(X, low=out),
        "recorded": lambda: plus(torch.ones(4, requires_grad=True), out=out),
        "recorded in place": lambda: bump(v := torch.ones(4, requires_grad=True) * 1) or v,
    }
    for name, way in ways.items():
        for _ in range(3):
            before = out._version + x._version
            v = way()
            after = out._version + x._version + (v._version if name == "recorded in place" else 0)
            assert after - before == 1, name
        out.detach_()


def test_what_autograd_saved_may_not_be_overwritten() -> None:
    w = torch.ones(3, requires_grad=True)
    v = w * 1
    z = v * v
    bump(v.detach())
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


@pytest.mark.parametrize("way", ["call", "out", "launch", "op", "op.out", "op.grid"])
def test_leaves_that_require_grad_are_refused(way: str) -> None:
    leaf = torch.ones(4, requires_grad=True)
    calls = {
        "call": lambda: bump(leaf),
        "out": lambda: plus(X, out=leaf),
        "launch": lambda: bump[1, 4](leaf),
        "op": lambda: bump.op(leaf),
        "op.out": lambda: overload(plus, "out")(X, leaf),
        "op.grid": lambda: overload(bump, "grid")(leaf, grid=[1], block=[4]),
    }
    with pytest.raises(
        RuntimeError, match=r"is a leaf that requires grad|is not differentiable, and `x` requires grad"
    ):
        calls[way]()
    with torch.no_grad():
        calls[way]()


def test_a_launch_says_that_it_is_not_differentiable() -> None:
    x, out = torch.ones(4, requires_grad=True), torch.empty(4)
    message = r"plus\[grid, block\]\(...\) is not differentiable, and `x` requires grad; pass `x.detach\(\)`, or launch"
    for launch in (
        plus[1, 4],
        plus.simulate[1, 4],
        lambda x, out, _: overload(plus, "grid")(x, out, grid=[1], block=[4]),
    ):
        with pytest.raises(RuntimeError, match=message):
            launch(x, out, 1.0)
    plus[1, 4](x.detach(), out, 1.0)


def test_inference_mode() -> None:
    with torch.inference_mode():
        x = torch.ones(4)
        bump(x)
        assert plus(x).tolist() == plus.op(x).tolist() == [3] * 4
        assert plus(torch.ones(4, requires_grad=True)).is_inference()
        out = torch.empty(4)
        assert plus(x, out=out) is out
    assert plus(x).tolist() == [3] * 4


def test_inference_tensors_are_written_in_inference_mode_alone() -> None:
    with torch.inference_mode():
        out = torch.zeros(4)
    calls = {
        "call": lambda k: k(X, out=out),
        "launch": lambda k: k[1, 4](X, out, 1.0),
        "op": lambda _: overload(plus, "out")(X, out),
        "recorded": lambda k: k(torch.ones(4, requires_grad=True), out=out),
    }
    message = r"plus: `out` is written, and is an inference tensor outside of inference mode; pass `out.clone\(\)`, or"
    plus(X, out=torch.empty(4))  # makes a plan
    for call in calls.values():
        for k in (plus, plus, plus.simulate):
            with pytest.raises(RuntimeError, match=message):
                call(k)
    assert out.tolist() == [0] * 4
    with pytest.raises(RuntimeError, match="bump: `x` is written, and is an inference tensor"):
        bump.op(out)


@kernel
def total(i: Index["n"], x: Float[Tensor, "n"], y: Float[Tensor, "n"], out: Float[Tensor, "n"]):
    out[i] = x[i] + y[i]


def test_autocast() -> None:
    with torch.autocast("cpu", torch.bfloat16):
        assert plus(X).dtype == plus.op(X).dtype == torch.float32
        product = torch.mm(torch.ones(2, 2), torch.ones(2, 2))[0]
        message = r"`x` must be float32, got bfloat16; `torch.autocast` may have cast it: pass `x.to\(torch.float32\)`"
        for call in (plus, plus.op, plus.simulate):
            with pytest.raises(RuntimeError, match=message):
                call(product)
        with pytest.raises(RuntimeError, match=r"`x` must be float32, got float64$"):
            plus(X.double())
        message = (
            r"`y` must be bfloat16, got float32; `torch.autocast` casts other arguments: pass `y.to\(torch.bfloat16\)`"
        )
        with pytest.raises(RuntimeError, match=message):
            total(product, torch.ones(2))
    with pytest.raises(RuntimeError, match=r"`x` must be float32, got bfloat16$"):
        plus(product)


def test_traced_and_transformed_calls_are_calls_of_the_op() -> None:
    """No mode, tracer or transform gets to see the compiled code's own op, also after plain calls made a plan."""
    k = plus._copy()
    k(X), k(X)
    name = f"py2cu.{k.op._opname}.default"
    assert name in make_fx(lambda x: k(x))(X).code
    assert name in make_fx(lambda x: k(x), tracing_mode="symbolic")(X).code
    with FakeTensorMode() as mode:
        assert type(k(mode.from_tensor(X))).__name__ == "FakeTensor"
    assert "py2cu::" in str(torch.jit.trace(lambda x: k(x), (X,)).graph)
    seen = []

    class Mode(torch.overrides.TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    class DispatchMode(torch.utils._python_dispatch.TorchDispatchMode):
        def __torch_dispatch__(self, func, types, args=(), kwargs=None):
            seen.append(str(func))
            return func(*args, **(kwargs or {}))

    for mode in (Mode(), DispatchMode()):
        with mode:
            k(X)
        assert seen == [name]
        seen.clear()
    assert torch.func.functionalize(lambda x: k(x))(X).tolist() == [1, 2, 3, 4]


def test_vmap() -> None:
    x, y = torch.rand(3, 4), torch.rand(4, 3)
    torch.testing.assert_close(torch.func.vmap(plus)(x), x + 1)
    torch.testing.assert_close(torch.func.vmap(plus, in_dims=1, out_dims=1)(y), y + 1)
    torch.testing.assert_close(torch.func.vmap(lambda x, out: plus(x, out=out))(x, torch.empty(3, 4)), x + 1)
    torch.testing.assert_close(torch.func.vmap(torch.func.vmap(plus))(x.reshape(3, 2, 2)), x.reshape(3, 2, 2) + 1)
    assert [each.shape for each in torch.func.vmap(both)(x)] == [(3, 4), (3, 5)]
    z = y.clone()
    assert torch.func.vmap(lambda z: bump(z) or z, in_dims=1)(z).shape == (3, 4)
    torch.testing.assert_close(z, y + 1)
    with pytest.raises(RuntimeError, match="under `vmap`, plus writes `out`, which has no batch dimension"):
        torch.func.vmap(lambda x: plus(x, out=torch.empty(4)))(x)


def test_fake_implementations_refuse_what_calls_refuse() -> None:
    with FakeTensorMode() as mode:
        x = mode.from_tensor(X)
        with pytest.raises(RuntimeError, match="`x` must be float32, got float64"):
            plus.op(x.double())
        with pytest.raises(RuntimeError, match="dimension 0 of `out` is `n` = 4, got 3"):
            plus(x, out=torch.empty(3))
        with pytest.raises(RuntimeError, match="`x` must have 1 dimensions, got 2"):
            plus(x.reshape(2, 2))
    with pytest.raises(RuntimeError, match="`x` is on meta; kernels run on cuda and cpu"):
        overload(plus, "out")(X.to("meta"), torch.empty(4))


def test_a_definition_lives_as_long_as_the_kernel_or_a_handle() -> None:
    def define() -> Kernel:
        @kernel
        def short_lived(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
            out[i] = 3 * x[i]

        return short_lived

    k, again = define(), define()
    op, name = k.op, k.op._opname
    assert again.op is op
    del k
    gc.collect()
    assert op(X).tolist() == [0, 3, 6, 9]
    del again
    gc.collect()
    assert name not in vars(torch.ops.py2cu)
    assert op(X).tolist() == [0, 3, 6, 9]
    k = define()
    assert k.op is op
    assert getattr(torch.ops.py2cu, name).default is op
    del k, op
    gc.collect()
    assert not hasattr(torch.ops.py2cu, name)
    assert name not in [*torch.ops.py2cu]  # which `torch.export` and Inductor run through


def test_threads_define_one_op() -> None:
    k = plus._copy()
    found: list[object] = []
    threads = [threading.Thread(target=lambda: found.append((k.op, k(X).tolist()))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [(k.op, [1, 2, 3, 4])] * 8


TEXT = """
from jaxtyping import Float, Float32
from torch import Tensor
from py2cu import Index, kernel
FACTOR = 2.0
def more(x):
    return x * FACTOR
@kernel
def f(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    out[i] = more(x[i])
"""
EDITS = {
    "nothing": (False, "", ""),
    "the rest of the file": (False, "FACTOR =", "\n\nOTHER = 3\nFACTOR ="),
    "a constant": (True, "FACTOR = 2.0", "FACTOR = 3.0"),
    "a function": (True, "x * FACTOR", "x - FACTOR"),
    "the kernel": (True, "more(x[i])", "more(x[i]) + 1"),
    "an element type": (True, "Float32", "Float64"),
    "an option": (True, "@kernel\n", "@kernel(block=128)\n"),
    "a shape": (True, 'out: Float32[Tensor, "n"]', 'out: Float32[Tensor, "n+1"]'),
}


def names_in_new_processes(*files: Path) -> list[str]:
    program = "import sys, runpy; [print(runpy.run_path(file)['f'].op._opname) for file in sys.argv[1:]]"
    done = subprocess.run([sys.executable, "-c", program, *map(str, files)], capture_output=True, text=True, check=True)
    return done.stdout.split()


def test_names_are_those_of_the_text(tmp_path: Path) -> None:
    files = []
    for number, (_, old, new) in enumerate(EDITS.values()):
        files.append(tmp_path / f"file{number}.py")
        files[-1].write_text(TEXT.replace(old, new) if old else TEXT)
    names = names_in_new_processes(*files)
    assert names == names_in_new_processes(*files)
    changed = [name != names[0] for name in names]
    assert dict(zip(EDITS, changed, strict=True)) == {what: differs for what, (differs, _, _) in EDITS.items()}
    assert len(set(names)) == len(EDITS) - 1


LOADS = """
import runpy, sys, torch
kernel = runpy.run_path(sys.argv[1])["f"]
kernel.op  # defines the operator
print(torch.export.load(sys.argv[2]).module()(torch.arange(5.0)).tolist())
"""


@pytest.mark.slow
def test_an_exported_program_runs_in_another_process(tmp_path: Path) -> None:
    file, program = tmp_path / "file.py", tmp_path / "program.pt2"
    file.write_text(TEXT)
    k = runpy.run_path(str(file))["f"]

    class Doubled(torch.nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return k(x) + 1

    exported = torch.export.export(Doubled(), (X,), dynamic_shapes=({0: torch.export.Dim("n")},))
    assert f"torch.ops.py2cu.{k.op._opname}.default" in exported.graph_module.code
    torch.export.save(exported, program)
    run = [sys.executable, "-c", LOADS, str(file), str(program)]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == str([1.0, 3.0, 5.0, 7.0, 9.0])


@pytest.mark.parametrize("form", ["call", "launch", "op"])
def test_a_compiled_function_tells_kernels_apart(form: str) -> None:
    @kernel
    def minus(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"], by: float = 1.0):
        out[i] = x[i] - by

    def use(k: Kernel, x: torch.Tensor) -> torch.Tensor:
        if form == "launch":
            out = torch.empty_like(x)
            k[1, 4](x, out, 1.0)
            return out
        return k.op(x) if form == "op" else k(x)

    torch._dynamo.reset()
    compiled = torch.compile(use, fullgraph=True, backend="aot_eager")
    assert [compiled(k, X).tolist() for k in (plus, minus, plus)] == [[1, 2, 3, 4], [-1, 0, 1, 2], [1, 2, 3, 4]]
