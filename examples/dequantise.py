"""A matrix of 4-bit weights times a vector: the weights are unpacked where they are used.

    python examples/dequantise.py

Eight weights of 0 to 15 share an int32, and every 64 weights of a row have a scale and a zero point in float16:
weight = scale * (q - zero). Reading the weights is what such a product costs, so they stay packed in memory. A warp
takes one row: its threads read words side by side, and add up their parts by shuffles (see `reductions.py`).
"""

import numpy as np
import torch
from jaxtyping import Float16, Float32, Int32
from torch import Tensor

from py2cu import blockDim, blockIdx, kernel, opmath, shfl_down_sync, threadIdx, warpSize

FULL = 0xFFFFFFFF
PER_WORD = 8
GROUP = 64  # weights with one scale


@kernel(size="32 * rows", block=128)
def matvec(
    packed: Int32[Tensor, "rows words"], scales: Float16[Tensor, "rows groups"], zeros: Float16[Tensor, "rows groups"],
    x: Float32[Tensor, "8*words"], out: Float32[Tensor, "rows"], rows: int, words: int,
):  # fmt: skip
    """Packed matrix times vector, one row a warp."""
    r = (blockIdx.x * blockDim.x + threadIdx.x) // warpSize
    lane = threadIdx.x % warpSize
    s = np.float32(0.0)
    if r < rows:
        for i in range(lane, words, warpSize):
            word = packed[r, i]
            group = i * PER_WORD // GROUP
            zero = opmath(zeros[r, group])
            dot = np.float32(0.0)
            for j in range(PER_WORD):
                dot += (np.float32((word >> (4 * j)) & 15) - zero) * x[i * PER_WORD + j]
            s += opmath(scales[r, group]) * dot
    offset = warpSize // 2
    while offset > 0:
        s += shfl_down_sync(FULL, s, offset)
        offset //= 2
    if lane == 0 and r < rows:
        out[r] = s


def quantise(weights: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Packed weights, scales and zero points of a matrix whose rows are whole groups."""
    rows, columns = weights.shape
    groups = weights.reshape(rows, -1, GROUP)
    low, high = groups.amin(2), groups.amax(2)
    scales = ((high - low) / 15).half()
    zeros = (-low / scales).half()
    q = (groups / scales[..., None].float() + zeros[..., None].float()).round().clamp(0, 15).long()
    shifts = 4 * torch.arange(PER_WORD, device=weights.device)
    words = (q.reshape(rows, columns // PER_WORD, PER_WORD) << shifts).sum(2)
    return words.to(torch.int32), scales, zeros  # the highest bit becomes the sign


def dequantise(packed: Tensor, scales: Tensor, zeros: Tensor) -> Tensor:
    """The weights again, in float32."""
    shifts = 4 * torch.arange(PER_WORD, device=packed.device)
    q = ((packed[..., None] >> shifts) & 15).reshape(*scales.shape, GROUP)
    return (scales[..., None].float() * (q - zeros[..., None].float())).flatten(1)


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    weights = torch.randn(100, 1024, device=device)
    x = torch.randn(1024, device=device)
    packed, scales, zeros = quantise(weights)

    torch.testing.assert_close(
        matvec(packed, scales, zeros, x), dequantise(packed, scales, zeros) @ x, rtol=1e-4, atol=1e-3
    )
    print(f"4-bit weights times a vector on {device}: as torch with the weights unpacked")
    print(f"{packed.nbytes + scales.nbytes + zeros.nbytes} bytes of weights, in float32 {weights.nbytes}")
    print(matvec.check(packed[:3], scales[:3], zeros[:3], x))


if __name__ == "__main__":
    main()
