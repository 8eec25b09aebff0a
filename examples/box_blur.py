"""A photograph blurred: every pixel becomes the mean of a square around it, cut off at the edges.

    python examples/box_blur.py

Shows loops with bounds that differ by element, and a number among the arguments.
"""

import torch
from jaxtyping import Float32
from skimage import data
from torch import Tensor
from torch.nn.functional import avg_pool2d

from py2cu import Index, kernel


@kernel
def box_blur(r: Index["h"], c: Index["w"], x: Float32[Tensor, "h w"], radius: int, out: Float32[Tensor, "h w"]):
    """Mean over a square of `2 * radius + 1` pixels a side; at the edges, over the part inside the picture."""
    total = 0.0
    count = 0
    for y in range(max(r - radius, 0), min(r + radius + 1, x.shape[0])):
        for z in range(max(c - radius, 0), min(c + radius + 1, x.shape[1])):
            total += x[y, z]
            count += 1
    out[r, c] = total / count


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    photo = torch.from_numpy(data.camera()).to(device, torch.float32) / 255
    radius = 3

    blurred = box_blur(photo, radius)

    pooled = avg_pool2d(photo[None], 2 * radius + 1, stride=1, padding=radius, count_include_pad=False)[0]
    torch.testing.assert_close(blurred, pooled, rtol=1e-5, atol=1e-6)
    print(f"Blurred a photo of {photo.shape[1]} x {photo.shape[0]} pixels on {device}: as torch's avg_pool2d does")
    print(box_blur.check())


if __name__ == "__main__":
    main()
