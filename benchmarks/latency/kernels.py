"""The kernels that are called: plain ones of two to four arrays, and one for each further form of a call."""

from jaxtyping import Float, Float32
from torch import Tensor

from py2cu import Constexpr, Index, kernel


@kernel
def two(i: Index["n"], a: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    out[i] = a[i] + a[i]


@kernel
def three(i: Index["n"], a: Float32[Tensor, "n"], b: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    out[i] = a[i] + b[i]


@kernel
def four(
    i: Index["n"], a: Float32[Tensor, "n"], b: Float32[Tensor, "n"], c: Float32[Tensor, "n"], out: Float32[Tensor, "n"]
):
    out[i] = a[i] + b[i] + c[i]


@kernel(strided=True)
def strided(i: Index["n"], a: Float32[Tensor, "n"], b: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    out[i] = a[i] + b[i]


@kernel
def optional(i: Index["n"], a: Float32[Tensor, "n"], out: Float32[Tensor, "n"], b: Float32[Tensor, "n"] | None = None):
    out[i] = a[i] + (a[i] if b is None else b[i])


@kernel
def default(i: Index["n"], a: Float32[Tensor, "n"], out: Float32[Tensor, "n"], by: float = 2.0):
    out[i] = by * a[i]


@kernel
def template(i: Index["n"], a: Float32[Tensor, "n"], out: Float32[Tensor, "n"], times: Constexpr[int]):
    total = 0.0
    for _ in range(times):
        total += a[i]
    out[i] = total


@kernel
def generic(i: Index["n"], a: Float[Tensor, "n"], b: Float[Tensor, "n"], out: Float[Tensor, "n"]):
    out[i] = a[i] + b[i]


@kernel
def outputs(
    i: Index["n"], a: Float32[Tensor, "n"], x: Float32[Tensor, "n"], y: Float32[Tensor, "n"], z: Float32[Tensor, "n"]
):
    x[i] = a[i] + a[i]
    y[i] = a[i] + a[i]
    z[i] = a[i] + a[i]


@kernel
def pair(i: Index["n"], a: Float32[Tensor, "n"], out: Float32[Tensor, "n"], by: tuple[float, float]):
    out[i] = by[0] * a[i] + by[1] * a[i]


@kernel
def product(i: Index["n"], a: Float32[Tensor, "n"], b: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    out[i] = a[i] * b[i]


@product.backward
def product_gradients(
    i: Index["n"],
    a: Float32[Tensor, "n"],
    b: Float32[Tensor, "n"],
    grad_out: Float32[Tensor, "n"],
    grad_a: Float32[Tensor, "n"],
    grad_b: Float32[Tensor, "n"],
):
    grad_a[i] = grad_out[i] * b[i]
    grad_b[i] = grad_out[i] * a[i]
