"""`torch.func.vmap` of kernels: one call for a batch where this is exact, else one for each element."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from jaxtyping import Float, UInt8  # noqa: E402
from torch import Tensor  # noqa: E402
from torch.func import grad, jacrev, vmap  # noqa: E402

from py2cu import Index, Kernel, kernel  # noqa: E402
from py2cu.call import batching, definition  # noqa: E402
from py2cu.call.instances import Instances  # noqa: E402

pytestmark = pytest.mark.builds


@kernel
def scaled(i: Index["n"], x: Float[Tensor, "n"], w: Float[Tensor, "n"], out: Float[Tensor, "n"], by: float = 2.0):
    out[i] = by * x[i] * x[i] * w[i]


@scaled.backward
def scaled_x(
    i: Index["n"],
    x: Float[Tensor, "n"],
    w: Float[Tensor, "n"],
    by: float,
    grad_out: Float[Tensor, "n"],
    grad_x: Float[Tensor, "n"],
):
    grad_x[i] = 2 * by * x[i] * w[i] * grad_out[i]


@kernel
def grey(i: Index["n"], x: UInt8[Tensor, "3 n"], out: UInt8[Tensor, "n"]):
    out[i] = 0.25 * x[0, i] + 0.5 * x[1, i] + 0.25 * x[2, i]


@kernel
def product(r: Index["h"], c: Index["w"], x: Float[Tensor, "h k"], y: Float[Tensor, "k w"], out: Float[Tensor, "h w"]):
    total = 0.0
    for j in range(x.shape[1]):
        total += x[r, j] * y[j, c]
    out[r, c] = total


@kernel
def centred(row: Index["batch"], x: Float[Tensor, "*batch n"], out: Float[Tensor, "*batch n"]):
    total = 0.0
    for c in range(x.shape[1]):
        total += x[row, c]
    for c in range(x.shape[1]):
        out[row, c] = x[row, c] - total / x.shape[1]


@kernel
def halves(i: Index["n"], x: Float[Tensor, "n"], low: Float[Tensor, "n"], high: Float[Tensor, "n"]):
    low[i] = x[i] / 2
    high[i] = x[i] - x[i] / 2


@kernel
def increased(i: Index["n"], x: Float[Tensor, "n"], by: Float[Tensor, "n"] | None = None):
    x[i] += 1.0 if by is None else by[i]


@kernel
def numbered(i: Index["n"], x: Float[Tensor, "n"]):
    x[i] += i


@kernel
def scaled_(i: Index["n"], x: Float[Tensor, "n"], w: Float[Tensor, "n"], out: Float[Tensor, "n"]):
    x[i] += w[i]
    out[i] = 2 * w[i]


@kernel
def raised_(i: Index["n"], x: Float[Tensor, "n"], w: Float[Tensor, "n"], out: Float[Tensor, "n"]):
    x[i] += w[i] + 0 * i
    out[i] = 2 * w[i]


@scaled_.backward
@raised_.backward
@kernel
def scaled_w(i: Index["n"], grad_x: Float[Tensor, "n"], grad_out: Float[Tensor, "n"], grad_w: Float[Tensor, "n"]):
    grad_w[i] = grad_x[i] + 2 * grad_out[i]
    grad_x[i] = grad_x[i]


@kernel
def ramp(i: Index["n"], x: Float[Tensor, "n"], out: Float[Tensor, "n"]):
    out[i] = x[i] * i


@kernel
def multiples(i: Index["n"], x: Float[Tensor, "n"], out: Float[Tensor, "n"]):
    out[i] = x[0] * i


@kernel
def from_the_first(i: Index["n"], x: Float[Tensor, "n"], out: Float[Tensor, "n"]):
    out[i] = x[i] - x[0]


def torch_scaled(x: torch.Tensor, w: torch.Tensor, by: float = 2.0) -> torch.Tensor:
    return by * x * x * w


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """The name of each kernel whose compiled code has run, in order."""
    names: list[str] = []
    run = Instances.run

    def counted(self: Instances, *args: Any, **kwargs: Any) -> Any:
        names.append(self.signature.name)
        return run(self, *args, **kwargs)

    monkeypatch.setattr(Instances, "run", counted)
    # Launchers, which would be called instead, refuse everything.
    monkeypatch.setattr(definition._Overload, "_launched", lambda *_, **__: definition._REFUSED)
    return names


def looped(monkeypatch: pytest.MonkeyPatch, run: Callable[[], Any]) -> Any:
    """The result with a call for each element."""
    with monkeypatch.context() as patch:
        patch.setattr(batching._Batch, "find_merged_dimension", lambda _: None)
        return run()


B, H, W, K = 3, 4, 5, 2
IN_ONE_CALL = {
    "both": (scaled, torch_scaled, [(B, W), (B, W)], (0, 0), 0),
    "other axes": (scaled, torch_scaled, [(W, B), (B, W)], (1, -2), -1),
    "an argument without a batch": (scaled, torch_scaled, [(B, W), (W,)], (0, None), 1),
    "a later axis": (product, torch.matmul, [(H, K), (B, K, W)], (None, 0), 0),
    "a later axis, moved": (product, torch.matmul, [(H, K), (K, W, B)], (None, 2), 2),
    "rows": (product, torch.matmul, [(H, B, K), (K, W)], (1, None), 1),
    "leading extents": (centred, lambda x: x - x.mean(-1, keepdim=True), [(H, B, 2, W)], (1,), 2),
    "a single row": (centred, lambda x: x - x.mean(-1, keepdim=True), [(B, W)], (0,), 0),
}


@pytest.mark.parametrize("case", IN_ONE_CALL)
def test_one_call_for_a_batch(case: str, calls: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    k, reference, shapes, in_dims, out_dims = IN_ONE_CALL[case]
    arguments = [torch.randn(shape, dtype=torch.float64) for shape in shapes]
    batched = vmap(k, in_dims, out_dims, randomness="error")
    result = batched(*arguments)
    assert calls == [k.__name__]
    torch.testing.assert_close(result, vmap(reference, in_dims, out_dims)(*arguments))
    assert torch.equal(result, looped(monkeypatch, lambda: batched(*arguments)))
    assert len(calls) == 1 + B
    torch.testing.assert_close(vmap(k, in_dims, out_dims, chunk_size=2)(*arguments), result)


def test_planes_and_several_outputs(calls: list[str]) -> None:
    x = torch.randint(0, 256, (B, 3, W), dtype=torch.uint8)
    planes = x.movedim(1, 0) // 4
    torch.testing.assert_close(vmap(grey)(planes.movedim(0, 1) * 4), planes[0] + 2 * planes[1] + planes[2])
    y = torch.randn(B, W)
    low, high = vmap(halves, out_dims=(0, 1))(y)
    assert torch.equal(low + high.T, y)
    assert calls == ["grey", "halves"]


@pytest.mark.parametrize("in_dims", [0, 1])
def test_arrays_that_are_written(in_dims: int, calls: list[str]) -> None:
    x = torch.zeros(B, W).movedim(0, in_dims).contiguous()
    vmap(lambda x: increased(x) or x, in_dims)(x)
    vmap(lambda x: increased(x, by=torch.full((W,), 2.0)) or x, in_dims)(x)
    assert torch.equal(x, torch.full_like(x, 3))
    y, out = torch.randn(B, W), torch.empty(B, W).movedim(0, in_dims).contiguous()
    vmap(lambda y, out: scaled(y, y, out=out), (0, in_dims))(y, out)
    torch.testing.assert_close(out.movedim(in_dims, 0), 2 * y**3)
    assert calls == ["increased", "increased", "scaled"]


@pytest.mark.parametrize("in_dims", [0, 1])
def test_arrays_that_are_written_one_by_one(in_dims: int, calls: list[str]) -> None:
    x = torch.zeros(4, 4)
    vmap(lambda x: numbered(x) or x, in_dims)(x)
    assert len(calls) == 4
    expected = torch.arange(4.0).expand(4, 4)
    assert torch.equal(x, expected if in_dims == 0 else expected.T)


def test_a_call_for_each_element_where_one_call_is_another_result(calls: list[str]) -> None:
    x = torch.randn(B, W)
    assert torch.equal(vmap(ramp)(x), x * torch.arange(W))
    assert torch.equal(vmap(from_the_first)(x), x - x[:, :1])
    assert torch.equal(vmap(multiples)(x), x[:, :1] * torch.arange(W))
    torch.testing.assert_close(vmap(product)(x[:, None], x[:, :, None]), (x * x).sum(1)[:, None, None])
    out = torch.empty(B, W)
    vmap(lambda x, out: halves[1, W](x, out, out.clone()) or out)(x, out)
    assert torch.equal(out, x / 2)
    assert len(calls) == 5 * B


def test_a_call_for_each_element_where_the_grid_would_be_too_large(
    calls: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    x, y = torch.randn(B, 16, K), torch.randn(K, W)
    monkeypatch.setattr(batching, "_MAX_BLOCKS", B)
    torch.testing.assert_close(vmap(product, (0, None))(x, y), x @ y)
    monkeypatch.setattr(batching, "_MAX_BLOCKS", B - 1)
    torch.testing.assert_close(vmap(product, (0, None))(x, y), x @ y)
    assert len(calls) == 1 + B


def test_an_empty_batch() -> None:
    assert vmap(scaled)(torch.empty(0, W), torch.empty(0, W)).shape == (0, W)
    with pytest.raises(RuntimeError, match="ramp is called once for each element, and the batch has none"):
        vmap(ramp)(torch.empty(0, W))


def test_arguments_that_do_not_fit_are_named_as_in_a_call() -> None:
    with pytest.raises(RuntimeError, match=r"dimension 0 of `w` is `n` = 4, got 6"):
        vmap(scaled, (0, 0))(torch.ones(3, 4), torch.ones(3, 6))
    with pytest.raises(RuntimeError, match="`w` must have 1 dimensions, got 2"):
        vmap(scaled, (0, None))(torch.ones(3, 4), torch.ones(3, 4))
    with pytest.raises(RuntimeError, match="under `vmap`, increased writes `x`, which has no batch dimension"):
        vmap(lambda by: increased(torch.zeros(W), by=by))(torch.ones(B, W))


def test_nested_and_with_gradients(calls: list[str]) -> None:
    x, w = torch.rand(2, B, W, dtype=torch.float64), torch.rand(W, B, dtype=torch.float64)
    nested = vmap(vmap(scaled, (0, 1)), (0, None))(x, w)
    torch.testing.assert_close(nested, 2 * x * x * w.T)
    assert calls == ["scaled"]
    calls.clear()
    found = vmap(grad(lambda x, w: scaled(x, w).sum()), (0, 1))(x[0], w)
    torch.testing.assert_close(found, 4 * x[0] * w.T)
    assert calls == ["scaled", "scaled_x"]
    calls.clear()
    found = grad(lambda x: vmap(scaled, (0, 1))(x, w).sum())(x[0])
    torch.testing.assert_close(found, 4 * x[0] * w.T)
    assert calls == ["scaled", "scaled_x"]
    calls.clear()
    torch.testing.assert_close(
        jacrev(lambda x: scaled(x, w[:, 0].contiguous()))(x[0, 0]), torch.diag(4 * x[0, 0] * w[:, 0])
    )
    assert calls == ["scaled", "scaled_x"]  # `jacrev` maps over the rows of the identity


@pytest.mark.parametrize("in_dims", [0, 1])
@pytest.mark.parametrize("k", [scaled_, raised_], ids=["one call", "a call each"])
def test_updates_that_autograd_records(k: Kernel, in_dims: int) -> None:
    w = torch.rand(B, B, dtype=torch.float64, requires_grad=True)

    def update(w: torch.Tensor) -> torch.Tensor:
        x = torch.zeros(B, B, dtype=torch.float64)
        low = vmap(lambda x, w: k(x, w), in_dims)(x, w)
        return x.sum() + low.sum()

    (found,) = torch.autograd.grad(update(w), w)
    torch.testing.assert_close(found, torch.full_like(w, 3))


@pytest.mark.slow
def test_compiled() -> None:
    torch._dynamo.reset()
    compiled = torch.compile(vmap(scaled, (0, None), 1), fullgraph=True, dynamic=True, backend="aot_eager")
    with torch._dynamo.config.patch(error_on_recompile=True):
        for n in (4, 7, 9):
            x, w = torch.randn(n + 1, n), torch.randn(n)
            torch.testing.assert_close(compiled(x, w), (2 * x * x * w).T)
