"""Several neighbouring elements at once, which saves instructions where memory is the limit.

    python examples/vectors.py

A view `x.view(-1, 4)` has rows of four, and each is loaded or stored by one instruction: sixteen bytes of floats in
`scale`, the four bytes of a pixel in `rgba2grey`. Elements of two bytes come eight at a time, in `halve`.
"""

import torch
from jaxtyping import BFloat16, Float32, UInt8
from torch import Tensor

from py2cu import Index, blockDim, blockIdx, kernel, threadIdx


@kernel
def scale(i: Index["n // 4"], x: Float32[Tensor, "n"], factor: float, out: Float32[Tensor, "n"]):
    x4, out4 = x.view(-1, 4), out.view(-1, 4)
    a, b, c, d = x4[i]
    out4[i] = factor * a, factor * b, factor * c, factor * d


@kernel
def halve(i: Index["n // 8"], x: BFloat16[Tensor, "n"]):
    """In place, sixteen bytes a thread."""
    x8 = x.view(-1, 8)
    a, b, c, d, e, f, g, h = x8[i]
    x8[i] = 0.5 * a, 0.5 * b, 0.5 * c, 0.5 * d, 0.5 * e, 0.5 * f, 0.5 * g, 0.5 * h


@kernel(size="n")
def rgba2grey(rgba: UInt8[Tensor, "4*n"], out: UInt8[Tensor, "n"]):
    """Luminance of a picture whose pixels have four bytes, of which the last says how opaque they are."""
    pixels = rgba.view(-1, 4)
    i = blockIdx.x * blockDim.x + threadIdx.x
    if i < len(pixels):
        r, g, b, _ = pixels[i]
        out[i] = 0.2989 * r + 0.5870 * g + 0.1140 * b


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    x = torch.randn(1 << 20, device=device)
    assert torch.equal(scale(x, 2.0), 2 * x)

    y = x.bfloat16()
    halve(y)
    assert torch.equal(y, 0.5 * x.bfloat16())

    pixels = torch.randint(0, 256, (1 << 18, 4), dtype=torch.uint8, device=device)
    weights = torch.tensor([0.2989, 0.5870, 0.1140, 0.0], device=device)
    grey = rgba2grey(pixels.view(-1))
    assert (grey - (pixels * weights).sum(1)).abs().max() < 1.001

    try:
        scale(x[1:-3], 2.0)
    except RuntimeError as error:
        print(f"Refused: {str(error).splitlines()[0]}")

    print(f"Scaled, halved and turned grey on {device}, several elements at a time")
    for each in (scale, halve, rgba2grey):
        print(each.check())


if __name__ == "__main__":
    main()
