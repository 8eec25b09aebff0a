"""Kernels that are generic over a set of dtypes: `Float32[Tensor, "n"] | BFloat16[Tensor, "n"]`."""

import pytest

pytest.importorskip("torch")

import numpy as np
import torch
from jaxtyping import BFloat16, Float16, Float32, Int32, Int64
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensorMode

from py2cu import Index, kernel

pytestmark = pytest.mark.builds

Act = Float32[Tensor, "n"] | BFloat16[Tensor, "n"]


@kernel
def picked(i: Index["n"], x: Act, at: Int32[Tensor, "m"] | Int64[Tensor, "m"], out: Act):
    out[i] = x[at[i % at.shape[0]]]


@kernel
def square(i: Index["n"], x: Act, out: Act):
    if x.dtype == torch.bfloat16:
        out[i] = np.float32(x[i]) * np.float32(x[i])
    else:
        out[i] = x[i] * x[i]


@square.backward
def square_grad(i: Index["n"], x: Act, grad_out: Act, grad_x: Act):
    grad_x[i] = 2 * x[i] * grad_out[i]


@kernel
def forgotten(i: Index["n"], x: Float32[Tensor, "n"] | Float16[Tensor, "n"], out: Float32[Tensor, "n"]):
    out[i] = x[i] + 100000.0


@kernel
def updated(i: Index["n"], x: Act, master: Float32[Tensor, "n"], out: Act):
    if x.dtype == torch.bfloat16:
        master[i] = 2 * master[i]
        out[i] = master[i]
        return
    out[i] = 2 * x[i]


DTYPES = (torch.float32, torch.bfloat16)
X = torch.arange(5.0) + 1


@pytest.mark.parametrize("index", [torch.int32, torch.int64], ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_call_picks_the_instance(dtype: torch.dtype, index: torch.dtype) -> None:
    at = torch.tensor([4, 0], dtype=index)
    for run in (picked, picked.simulate, picked.op):
        assert torch.equal(run(X.to(dtype), at), torch.tensor([5.0, 1, 5, 1, 5], dtype=dtype))


def test_another_dtype_is_refused_with_the_members_of_the_set() -> None:
    with pytest.raises(RuntimeError, match=r"picked: `x` must be one of float32, bfloat16, got float16$"):
        picked(X.half(), X.int())
    with pytest.raises(RuntimeError, match=r"`at` must be one of int32, int64, got int16$"):
        picked(X, X.short())
    with pytest.raises(RuntimeError, match=r"`out` must be bfloat16, got float32$"):
        picked(X.bfloat16(), X.int(), out=torch.empty(5))


def test_a_missing_instance_is_named_with_its_line_and_the_cast() -> None:
    line = forgotten.python.__code__.co_firstlineno + 2
    reason = rf"no float16 instance of `forgotten`: line {line}: 100000.0 does not fit float16.*`opmath\(x\[i\]\)`"
    for run in (forgotten, forgotten.simulate, forgotten.op):
        with pytest.raises(RuntimeError, match="`x` must be float32, got float16"):
            run(X.half())
    with pytest.raises(RuntimeError, match=reason):
        forgotten(X.half())
    with FakeTensorMode(), pytest.raises(RuntimeError, match=reason):
        forgotten(torch.empty(5, dtype=torch.float16))


def test_what_some_instances_write_is_given_by_every_call() -> None:
    for dtype, factor in zip(DTYPES, (1, 2), strict=True):
        for run in (updated, updated.simulate):
            master = X.clone()
            version = master._version
            assert torch.equal(run(X.to(dtype), master), 2 * X.to(dtype))
            assert torch.equal(master, factor * X)
            assert run is not updated or master._version > version
    assert updated.check().ok


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_gradients_and_vmap(dtype: torch.dtype) -> None:
    x = X.to(dtype, copy=True).requires_grad_()
    square(x).sum().backward()
    assert torch.equal(x.grad, 2 * X.to(dtype))
    batch = torch.stack([X, -X]).to(dtype)
    assert torch.equal(torch.vmap(square)(batch), batch * batch)


def test_check_compares_gradients_of_the_float64_twin_and_lists_branches() -> None:
    report = square.check(grad=True)
    line = square.python.__code__.co_firstlineno + 2
    assert report.ok and report.gradients == ("x",)
    what = "gradients are compared in float64 alone, not in the branches for other dtypes of"
    assert f"line {line}: {what} `x.dtype == torch.bfloat16`" in report.skipped


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_under_compile_and_with_fakes(dtype: torch.dtype) -> None:
    compiled = torch.compile(lambda x: square(x) + 1, fullgraph=True, backend="eager")
    assert torch.equal(compiled(X.to(dtype)), X.to(dtype) * X.to(dtype) + 1)
    with FakeTensorMode():
        assert square(torch.empty(5, dtype=dtype)).dtype is dtype
