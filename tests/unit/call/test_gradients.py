"""`@k.backward`: kernels that compute gradients, called by autograd."""

import gc
import pickle
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from jaxtyping import Complex, Float, Float32, Float64, Int64  # noqa: E402
from torch import Tensor  # noqa: E402
from torch.autograd import gradcheck, gradgradcheck  # noqa: E402

from py2cu import Index, TranslationError, atomic, blockDim, blockIdx, kernel, threadIdx  # noqa: E402

pytestmark = pytest.mark.builds


@kernel
def scaled(i: Index["n"], x: Float[Tensor, "n"], w: Float[Tensor, "n"], out: Float[Tensor, "n"], by: float = 2.0):
    out[i] = by * x[i] * w[i]


@scaled.backward(block=64)
def scaled_x(i: Index["n"], by: float, grad_x: Float[Tensor, "n"], grad_out: Float[Tensor, "n"], w: Float[Tensor, "n"]):
    grad_x[i] = by * grad_out[i] * w[i]


@scaled.backward
def scaled_w(i: Index["n"], x: Float[Tensor, "n"], by: float, grad_out: Float[Tensor, "n"], grad_w: Float[Tensor, "n"]):
    grad_w[i] = by * grad_out[i] * x[i]


@scaled_x.backward
def scaled_x_second(
    i: Index["n"],
    w: Float[Tensor, "n"],
    grad_out: Float[Tensor, "n"],
    by: float,
    grad_grad_x: Float[Tensor, "n"],
    grad_grad_out: Float[Tensor, "n"],
    grad_w: Float[Tensor, "n"],
):
    grad_grad_out[i] = by * grad_grad_x[i] * w[i]
    grad_w[i] = by * grad_grad_x[i] * grad_out[i]


@kernel
def plus_(i: Index["n"], x: Float[Tensor, "n"], w: Float[Tensor, "n"]):
    x[i] = 1 / (x[i] + w[i])


@plus_.backward
def plus_x(i: Index["n"], x: Float[Tensor, "n"], grad_x: Float[Tensor, "n"]):
    grad_x[i] *= -x[i] * x[i]


@plus_.backward
def plus_w(i: Index["n"], x: Float[Tensor, "n"], grad_x: Float[Tensor, "n"], grad_w: Float[Tensor, "n"]):
    grad_w[i] = -grad_x[i] * x[i] * x[i]


@kernel
def both(
    i: Index["n"], x: Float[Tensor, "n"], low: Float[Tensor, "n"], high: Float[Tensor, "n"], at: Int64[Tensor, "n"]
):
    low[i] = x[i] * x[i]
    high[i] = 3 * x[i]
    at[i] = i


@both.backward
def both_x(
    i: Index["n"],
    x: Float[Tensor, "n"],
    grad_low: Float[Tensor, "n"],
    grad_high: Float[Tensor, "n"],
    grad_x: Float[Tensor, "n"],
):
    grad_x[i] = 2 * x[i] * grad_low[i] + 3 * grad_high[i]


@kernel
def half_known(
    i: Index["n"], x: Float[Tensor, "n"], w: Float[Tensor, "n"], y: Float[Tensor, "n"], z: Float[Tensor, "n"]
):
    y[i] = x[i] * w[i]
    z[i] = w[i]


@half_known.backward
def half_known_x(i: Index["n"], w: Float[Tensor, "n"], grad_y: Float[Tensor, "n"], grad_x: Float[Tensor, "n"]):
    grad_x[i] = w[i] * grad_y[i]


@kernel(size="h")
def row_sums(x: Float[Tensor, "h w"], out: Float[Tensor, "h"], h: int, w: int):
    r = blockIdx.x * blockDim.x + threadIdx.x
    if r < h:
        total = 0.0
        for c in range(w):
            total += x[r, c]
        out[r] = total


@row_sums.backward
def row_sums_x(
    r: Index["h"], c: Index["w"], grad_out: Float[Tensor, "h"], grad_x: Float[Tensor, "h w"], h: int, w: int
):
    grad_x[r, c] = grad_out[r]


@kernel
def gathered(i: Index["n"], table: Float[Tensor, "m"], at: Int64[Tensor, "n"], out: Float[Tensor, "n"]):
    out[i] = table[at[i]]


@gathered.backward
def gathered_table(i: Index["n"], at: Int64[Tensor, "n"], grad_out: Float[Tensor, "n"], grad_table: Float[Tensor, "m"]):
    atomic.add(grad_table, at[i], grad_out[i])


@kernel
def biased(i: Index["n"], x: Float[Tensor, "n"], out: Float[Tensor, "n"], bias: Float[Tensor, "n"] | None = None):
    value = x[i]
    if bias is not None:
        value += bias[i]
    out[i] = value


@biased.backward
def biased_all(i: Index["n"], grad_out: Float[Tensor, "n"], grad_x: Float[Tensor, "n"], grad_bias: Float[Tensor, "n"]):
    grad_x[i] = grad_out[i]
    grad_bias[i] = grad_out[i]


@kernel
def turned(i: Index["n"], x: Complex[Tensor, "n"], out: Complex[Tensor, "n"]):
    out[i] = x[i] * 1j


@turned.backward
def turned_x(i: Index["n"], grad_out: Complex[Tensor, "n"], grad_x: Complex[Tensor, "n"]):
    grad_x[i] = grad_out[i] * -1j


def leaf(*shape: int, dtype: torch.dtype = torch.float64) -> torch.Tensor:
    return (torch.rand(*shape, dtype=dtype) + 0.5).requires_grad_()


def in_place(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    y = x * 1
    assert plus_(y, w) is None
    return y


def test_gradients() -> None:
    x, w = leaf(5), leaf(5)
    assert gradcheck(scaled, (x, w, 3.0))
    assert gradcheck(lambda x, w: scaled(w=w, x=x), (x, w))
    assert gradcheck(lambda x, w: scaled.op(x, w, 3.0), (x, w))
    assert gradcheck(both, (x,))
    assert gradcheck(row_sums, (leaf(2, 3),))
    assert gradcheck(turned, (leaf(3, dtype=torch.complex128),))
    assert scaled(x, w).grad_fn.name() == "scaledBackward"


def test_a_kernel_in_place() -> None:
    assert gradcheck(in_place, (leaf(5), leaf(5)))
    x, w, z = leaf(3), leaf(3), leaf(3)
    y = x * 1
    plus_(y, w)
    both_terms = y + z  # one gradient tensor for both, which the backward may not overwrite for `z`
    both_terms.sum().backward()
    assert z.grad.tolist() == [1, 1, 1]


def test_outputs_that_the_caller_gives() -> None:
    x, w = leaf(5), leaf(5)

    def filled(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return scaled(x, w, out=torch.empty_like(x))

    assert gradcheck(filled, (x, w))
    out = leaf(5) * 1
    scaled(x, w, out=out).sum().backward(inputs=[x])
    out = (former := leaf(5)) * 1
    with pytest.raises(RuntimeError, match="scaled: the gradient of what `out` held before the call is unknown"):
        scaled(x, w, out=out).sum().backward(inputs=[former])


def test_gradients_of_gradients() -> None:
    x, w = leaf(4), leaf(4)
    assert gradgradcheck(lambda x: scaled(x, w.detach()), (x,))
    assert gradcheck(lambda g, w: scaled_x(3.0, g, w), (leaf(4), w))
    (first,) = torch.autograd.grad(scaled(x, w).sum(), w, create_graph=True)
    with pytest.raises(RuntimeError, match=r"scaled_w has no backward; attach one with `@scaled_w\.backward`"):
        first.sum().backward()


def test_only_what_is_asked_for_runs() -> None:
    x, w = leaf(4), leaf(4)
    y, z = half_known(x, w)
    (grad,) = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close(grad, w.detach())
    half_known(x, w.detach())[0].sum().backward()
    assert not z.requires_grad  # no backward has `grad_z`
    with pytest.raises(RuntimeError, match="no backward of half_known computes `grad_w`; attach one with"):
        half_known(x, w)[0].sum().backward()


def test_what_is_not_differentiable() -> None:
    low, high, at = both(leaf(3))
    assert low.requires_grad
    assert high.requires_grad
    assert not at.requires_grad


def test_missing_gradients_are_zeros() -> None:
    x = leaf(3)
    (grad,) = torch.autograd.grad(both(x)[1].sum(), x)
    assert grad.tolist() == [3, 3, 3]


def test_gradients_that_are_not_contiguous_or_conjugate() -> None:
    x, w = leaf(4), leaf(4)
    scaled(x, w).sum().backward()  # of stride 0
    torch.testing.assert_close(x.grad, 2 * w.detach())
    (grad,) = torch.autograd.grad(scaled(x, w), x, torch.ones(8, dtype=torch.float64)[::2])
    torch.testing.assert_close(grad, 2 * w.detach())
    z = leaf(3, dtype=torch.complex128)
    (grad,) = torch.autograd.grad(turned(z), z, z.detach().conj())
    torch.testing.assert_close(grad, z.detach().conj().resolve_conj() * -1j)


def test_gradients_that_accumulate_start_as_zeros() -> None:
    """Nothing gives the call of the backward the size of `table`, so that it allocates no gradient."""
    at = torch.tensor([0, 2, 2, 0, 0])
    assert gradcheck(lambda table: gathered(table, at), (leaf(4),))


def test_optional_arrays() -> None:
    x = leaf(3)
    assert gradcheck(biased, (x,))
    assert gradcheck(lambda x, bias: biased(x, bias=bias), (x, leaf(3)))


def test_saved_arrays_may_not_change() -> None:
    x, w = leaf(3) * 1, leaf(3)
    y = scaled(x, w)
    plus_(x, w.detach())
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    x, w = leaf(3) * 1, leaf(3)
    y = scaled(x, w.detach())  # needs `w` alone
    plus_(x, w.detach())
    y.sum().backward()


def test_transforms() -> None:
    x, w = torch.rand(4, dtype=torch.float64), torch.rand(4, dtype=torch.float64)
    torch.testing.assert_close(torch.func.grad(lambda x: scaled(x, w).sum())(x), 2 * w)
    torch.testing.assert_close(
        torch.func.jacrev(torch.func.grad(lambda x: scaled(x, w).square().sum()))(x), torch.diag(8 * w * w)
    )
    torch.testing.assert_close(torch.func.jacrev(lambda w: in_place(x, w))(w), torch.diag(-((x + w) ** -2)))


def test_batched_gradients() -> None:
    x, w = leaf(3), leaf(3)
    rows = torch.eye(3, dtype=torch.float64)
    (found,) = torch.autograd.grad(scaled(x, w), x, rows, is_grads_batched=True)
    torch.testing.assert_close(found, torch.diag(2 * w.detach()))
    at, table = torch.tensor([0, 2, 2]), leaf(4)
    expected = torch.nn.functional.one_hot(at, 4).double()
    torch.testing.assert_close(torch.func.jacrev(lambda table: gathered(table, at))(table), expected)
    message = "gathered_table updates `grad_table`, which it cannot for batched gradients of `is_grads_batched=True`"
    with pytest.raises(RuntimeError, match=message):
        torch.autograd.grad(gathered(table, at), table, rows, is_grads_batched=True)


def test_forward_mode_is_refused() -> None:
    x, w = torch.rand(4), torch.rand(4)
    message = "scaled has no forward-mode derivative, and `x` has a tangent; use reverse mode"
    with pytest.raises(RuntimeError, match=message):
        torch.func.jvp(lambda x: scaled(x, w), (x,), (w,))
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, w)
        for call in (scaled, scaled.op):
            with pytest.raises(RuntimeError, match=message):
                call(dual, w)
        assert scaled(x, w).shape == (4,)


@pytest.mark.slow
def test_opcheck() -> None:
    x, w = leaf(5), leaf(5)
    torch.library.opcheck(scaled.op, (x, w, 3.0))
    torch.library.opcheck(both.op, (x,))
    torch.library.opcheck(row_sums.op, (leaf(2, 3),))
    torch.library.opcheck(row_sums_x.op, (leaf(2).detach(), 2, 3))
    torch.library.opcheck(plus_.op, (torch.rand(5, dtype=torch.float64), w))


def test_threads() -> None:
    results: list[torch.Tensor] = []

    def train() -> None:
        x, w = torch.ones(100, dtype=torch.float64, requires_grad=True), leaf(100)
        for _ in range(20):
            scaled(x, w).sum().backward()
        results.append(x.grad / w.detach())

    threads = [threading.Thread(target=train) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    torch.testing.assert_close(torch.stack(results), torch.full((4, 100), 40.0, dtype=torch.float64))


@pytest.mark.slow
def test_compiled() -> None:
    def layer(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return both(in_place(scaled(x, w, 3.0), w) + 1)[0].square()

    torch._dynamo.reset()
    compiled = torch.compile(layer, fullgraph=True, dynamic=True)
    with torch._dynamo.config.patch(error_on_recompile=True):
        for n in (4, 7, 9):
            x, w = leaf(n), leaf(n)
            expected = torch.autograd.grad(layer(x, w).sum(), (x, w))
            torch.testing.assert_close(torch.autograd.grad(compiled(x, w).sum(), (x, w)), expected)


def test_existing_kernels_and_those_of_other_kernels() -> None:
    @kernel
    def same(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
        out[i] = x[i]

    @kernel
    def also(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
        out[i] = x[i]

    @kernel(block=32)
    def passed_on(i: Index["n"], grad_out: Float32[Tensor, "n"], grad_x: Float32[Tensor, "n"]):
        grad_x[i] = grad_out[i]

    assert same.backward(passed_on) is also.backward(passed_on) is passed_on
    x = leaf(3, dtype=torch.float32)
    (same(x) + also(x)).sum().backward()
    assert x.grad.tolist() == [2, 2, 2]
    with pytest.raises(TypeError, match="`passed_on` cannot be its own backward"):
        passed_on.backward(same)
    with pytest.raises(TypeError, match="`passed_on` is a kernel already, and has its own options"):
        same.backward(block=64)(passed_on)
    with pytest.raises(TypeError, match="takes a plain Python function"):
        same.backward(3)


def test_a_kernel_that_is_no_backward() -> None:
    @kernel
    def same(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
        out[i] = x[i]

    @same.backward
    def wrong(i: Index["n"], grad_y: Float32[Tensor, "n"], grad_x: Float32[Tensor, "n"]):
        grad_x[i] = grad_y[i]

    assert same(torch.ones(2)).tolist() == [1, 1]
    with pytest.raises(TranslationError, match=r"error\[P412\]: `same` has no parameter `grad_y`") as caught:
        same(leaf(2, dtype=torch.float32))
    assert 'def wrong(i: Index["n"], grad_y' in str(caught.value)


def test_a_backward_that_was_defined_again() -> None:
    """As in a notebook, where the forward's cell was not run again."""

    @kernel
    def same(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
        out[i] = x[i]

    for _ in range(2):

        @same.backward
        def same_x(i: Index["n"], grad_out: Float32[Tensor, "n"], grad_x: Float32[Tensor, "n"]):
            grad_x[i] = grad_out[i]

    with pytest.raises(TranslationError, match="run the definition of `same` again, too"):
        same(leaf(2, dtype=torch.float32))


FACTOR = 2.0


def test_an_edit_of_a_backward_is_another_op() -> None:
    @kernel
    def same(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
        out[i] = x[i]

    plain = same.op

    @same.backward
    def same_x(i: Index["n"], grad_out: Float32[Tensor, "n"], grad_x: Float32[Tensor, "n"]):
        grad_x[i] = FACTOR * grad_out[i]

    global FACTOR
    x, found, ops = leaf(1, dtype=torch.float32), [], []
    for factor in (2.0, 3.0):
        FACTOR = factor
        found.append(torch.autograd.grad(same(x).sum(), x)[0].item())
        ops.append(same.op)
    assert found == [2, 3]
    assert len({plain, *ops}) == 3
    (grad,) = torch.autograd.grad(ops[0](x).sum(), x)
    assert grad.item() == 2  # an old handle keeps the old code

    name = ops[1]._opname
    del same, same_x, plain, ops
    gc.collect()
    assert not hasattr(torch.ops.py2cu, name)


@pytest.mark.slow
def test_a_compiled_function_sees_backwards_that_are_attached_later() -> None:
    @kernel
    def same(i: Index["n"], x: Float32[Tensor, "n"], y: Float32[Tensor, "n"], z: Float32[Tensor, "n"]):
        y[i] = x[i]
        z[i] = x[i]

    def first(i: Index["n"], grad_y: Float32[Tensor, "n"], grad_x: Float32[Tensor, "n"]):
        grad_x[i] = grad_y[i]

    def all_of_it(
        i: Index["n"], grad_y: Float32[Tensor, "n"], grad_z: Float32[Tensor, "n"], grad_x: Float32[Tensor, "n"]
    ):
        grad_x[i] = grad_y[i] + grad_z[i]

    def second(
        i: Index["n"],
        grad_grad_x: Float32[Tensor, "n"],
        grad_grad_y: Float32[Tensor, "n"],
        grad_grad_z: Float32[Tensor, "n"],
    ):
        grad_grad_y[i] = grad_grad_x[i]
        grad_grad_z[i] = grad_grad_x[i]

    same.backward(first)
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: same(x), fullgraph=True, backend="aot_eager")
    x = leaf(2, dtype=torch.float32)
    assert [each.requires_grad for each in compiled(x)] == [True, False]
    same.backwards[:] = []
    backward = same.backward(all_of_it)
    assert [each.requires_grad for each in compiled(x)] == [True, True]
    assert torch.autograd.grad(sum(compiled(x)).sum(), x)[0].tolist() == [2, 2]
    name = same.op._opname
    backward.backward(second)
    compiled(x)
    assert same.op._opname != name


def test_optional_parameters() -> None:
    @kernel
    def scaled_at(
        i: Index["n"],
        x: Float[Tensor, "n"],
        out: Float[Tensor, "n"],
        bias: Float[Tensor, "m"] | None = None,
        by: float | None = None,
    ):
        out[i] = (x[i] if by is None else x[i] * by) + (0 if bias is None else bias[0])

    @scaled_at.backward
    def scaled_at_all(
        i: Index["n"],
        grad_out: Float[Tensor, "n"],
        grad_x: Float[Tensor, "n"],
        by: float | None = None,
        grad_bias: Float[Tensor, "m"] | None = None,
    ):
        grad_x[i] = grad_out[i] if by is None else grad_out[i] * by
        if grad_bias is not None:
            atomic.add(grad_bias, 0, grad_out[i])

    x, bias = leaf(3), leaf(2)
    for by in (None, 3.0):
        assert gradcheck(lambda x, by=by: scaled_at(x, by=by), (x,))
        assert gradcheck(lambda x, bias, by=by: scaled_at(x, bias=bias, by=by), (x, bias))

    @scaled_at.backward
    def never_none(i: Index["n"], by: float, grad_out: Float[Tensor, "n"], grad_x: Float[Tensor, "n"]):
        grad_x[i] = grad_out[i] * by

    with pytest.raises(TranslationError, match="`by` of `scaled_at` may be None, and `by` here may not"):
        scaled_at(x)


TEXT = """
import torch
from jaxtyping import Float32
from torch import Tensor
from py2cu import Index, kernel

@kernel
def f(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    out[i] = x[i] * x[i] * x[i]

@f.backward
def f_x(i: Index["n"], x: Float32[Tensor, "n"], grad_out: Float32[Tensor, "n"], grad_x: Float32[Tensor, "n"]):
    grad_x[i] = 3 * x[i] * x[i] * grad_out[i]

if __name__ == "__main__":
    x = torch.ones(2, requires_grad=True)
    torch.compile(f, fullgraph=True)(x).sum().backward()
    print(x.grad[0].item(), f.op._opname)
"""


@pytest.mark.slow
@pytest.mark.proof
def test_a_compiled_function_in_another_process_sees_an_edited_backward(tmp_path: Path) -> None:
    """`torch.compile` keeps compiled graphs by the names of their operators."""
    results = []
    for text in (TEXT, TEXT.replace("= 3 * x", "= 30 * x")):
        file = tmp_path / "f.py"
        file.write_text(text)
        done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, check=True)
        results.append(done.stdout.split())
    assert [float(value) for value, _ in results] == [3, 30]
    assert results[0][1] != results[1][1]


def test_pickles_and_copies_have_backwards() -> None:
    @kernel
    def same(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
        out[i] = x[i]

    @same.backward
    def same_x(i: Index["n"], grad_out: Float32[Tensor, "n"], grad_x: Float32[Tensor, "n"]):
        grad_x[i] = grad_out[i]

    for other in (pickle.loads(pickle.dumps(same)), same.without_fma(), same._copy()):
        x = leaf(2, dtype=torch.float32)
        other(x).sum().backward()
        assert x.grad.tolist() == [1, 1]
    assert pickle.loads(pickle.dumps(scaled)) is scaled


# --- written arrays that are views ---


@kernel
def tripled(i: Index["n"], x: Float64[Tensor, "n"]):
    x[i] = x[i] * 3


@tripled.backward
def tripled_x(i: Index["n"], grad_x: Float64[Tensor, "n"]):
    grad_x[i] = grad_x[i] * 3


@kernel
def added(i: Index["n"], a: Float64[Tensor, "n"], x: Float64[Tensor, "n"]):
    x[i] += 2 * a[i]


@added.backward
def added_a(i: Index["n"], grad_x: Float64[Tensor, "n"], grad_a: Float64[Tensor, "n"]):
    grad_a[i] = 2 * grad_x[i]
    grad_x[i] = grad_x[i]


def changed(write: Callable[[torch.Tensor], Any]) -> Callable[..., torch.Tensor]:
    """A function that writes to a copy of its first argument, and returns the copy."""

    def run(base: torch.Tensor, *rest: torch.Tensor) -> torch.Tensor:
        copy = base * 1
        write(copy, *rest)
        return copy

    return run


@pytest.mark.parametrize(
    "write",
    [lambda b: tripled(b[:3]), lambda b: tripled(b.view(-1)), lambda b: tripled(b.view(2, 3)[1]),
     lambda b: tripled(b[2:][1:3])],
)  # fmt: skip
def test_views_that_are_changed_in_place(write: Callable[..., Any]) -> None:
    assert gradcheck(changed(write), (leaf(6),))


def test_a_view_that_is_not_the_first_argument() -> None:
    assert gradcheck(changed(lambda b, a: added(a, b[1:4])), (leaf(6), leaf(3)))
    first, second = torch.func.grad(lambda b, a: changed(lambda b, a: added(a, b[1:4]))(b, a).sum(), (0, 1))(
        leaf(6).detach(), leaf(3).detach()
    )
    assert first.tolist() == [1] * 6
    assert second.tolist() == [2] * 3


def test_an_output_that_is_a_view() -> None:
    def into_a_view(x: torch.Tensor) -> torch.Tensor:
        buffer = torch.zeros(8, dtype=x.dtype)
        scaled(x, torch.ones_like(x), out=buffer[2:6])
        return buffer

    assert gradcheck(into_a_view, (leaf(4),))


def test_views_that_autograd_cannot_record() -> None:
    buffer, x = torch.zeros(6, dtype=torch.float64), leaf(3)
    with pytest.raises(RuntimeError, match="both: `low` is a view, and the kernel writes other arrays, too"):
        both(x, low=buffer[:3], high=buffer[3:], at=torch.zeros(3, dtype=torch.int64))
    rows = leaf(2, 3) * 1
    with pytest.raises(RuntimeError, match="tripled: `x` is a view that may not be changed in place"):
        tripled(rows.unbind(0)[0])
    weight = leaf(4)
    with pytest.raises(RuntimeError, match="tripled: `x` is written, and is a leaf that requires grad"):
        tripled(weight[:2])
    assert buffer.tolist() == [0] * 6
    assert [each._version for each in (buffer, weight)] == [0, 0]


def test_a_view_written_by_a_kernel_without_a_backward() -> None:
    @kernel
    def plain(i: Index["n"], x: Float64[Tensor, "n"]):
        x[i] += 1

    with pytest.raises(RuntimeError, match="plain has no backward"):
        changed(lambda b: plain(b[:2]))(leaf(3)).sum().backward()


def test_a_written_array_without_a_gradient_may_not_require_grad() -> None:
    """It would keep its former history, as if the kernel had not run."""

    @kernel
    def counted(i: Index["n"], x: Float64[Tensor, "n"], c: Float64[Tensor, "n"], out: Float64[Tensor, "n"]):
        c[i] = c[i] * 10
        out[i] = x[i] * 3

    @counted.backward
    def counted_x(i: Index["n"], grad_out: Float64[Tensor, "n"], grad_x: Float64[Tensor, "n"]):
        grad_x[i] = 3 * grad_out[i]

    c = leaf(3) * 2
    with pytest.raises(RuntimeError, match="counted: `c` requires grad and is written, and no backward of counted"):
        counted(leaf(3), c)
    assert counted(x := leaf(3), c.detach()).requires_grad
    assert x.grad is None


def test_results_that_autograd_would_round_or_sum() -> None:
    @kernel
    def same(i: Index["n"], j: Index["m"], x: Float[Tensor, "m"], out: Float[Tensor, "n m"]):
        out[i, j] = x[j]

    @same.backward
    def narrow(j: Index["m"], grad_out: Float[Tensor, "n m"], grad_x: Float32[Tensor, "m"], n: int):
        grad_x[j] = grad_out[0, j] * n

    with pytest.raises(TranslationError, match="`grad_x` is float32, and `x` of `same` may have more digits"):
        same(leaf(2), torch.zeros(3, 2, dtype=torch.float64))

    @kernel
    def spread(i: Index["n"], j: Index["m"], x: Float64[Tensor, "m"], out: Float64[Tensor, "n m"]):
        out[i, j] = x[j]

    @spread.backward
    def wide(i: Index["n"], j: Index["m"], grad_out: Float64[Tensor, "n m"], grad_x: Float64[Tensor, "n m"]):
        grad_x[i, j] = grad_out[i, j]

    with pytest.raises(TranslationError, match="`grad_x` has 2 dimensions, and `x` of `spread` has 1"):
        spread(leaf(2), torch.zeros(3, 2, dtype=torch.float64))


def test_strides_of_the_forward_are_those_of_its_backward() -> None:
    @kernel(strided=True)
    def squared(i: Index["n"], x: Float64[Tensor, "n"], out: Float64[Tensor, "n"]):
        out[i] = x[i] * x[i]

    @squared.backward
    def squared_x(i: Index["n"], x: Float64[Tensor, "n"], grad_out: Float64[Tensor, "n"], grad_x: Float64[Tensor, "n"]):
        grad_x[i] = 2 * x[i] * grad_out[i]

    with pytest.raises(TranslationError, match="`x` of `squared` may have any strides, and must be contiguous here"):
        squared(leaf(4)[::2])


def test_dropped_kernels_with_backwards_leave_no_op() -> None:
    def define(number: int) -> tuple[str, str]:
        @kernel
        def dropped(i: Index["n"], x: Float64[Tensor, "n"], out: Float64[Tensor, "n"]):
            out[i] = x[i] * number

        @dropped.backward
        def dropped_x(i: Index["n"], grad_out: Float64[Tensor, "n"], grad_x: Float64[Tensor, "n"]):
            grad_x[i] = grad_out[i] * number

        return str(dropped.op.name()), str(dropped_x.op.name())

    names = define(7)
    for _ in range(4):  # torch's own finalizers run at the next collection
        gc.collect()
    assert not [name for name in torch._C._dispatch_get_all_op_names() if name.startswith(names)]
