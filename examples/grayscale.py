"""A photograph turned grey: one kernel, written three ways.

    python examples/grayscale.py

`rgb2grey` is called once for each pixel of a flat picture, `rgb2grey_2d` once for each row and column. `rgb2grey_block`
sees blocks and threads, as a CUDA programmer would write it. All three make the same picture.
"""

from pathlib import Path

import torch
from jaxtyping import UInt8
from skimage import data, io
from torch import Tensor

from py2cu import Index, kernel


@kernel
def rgb2grey(i: Index["n"], x: UInt8[Tensor, "3 n"], out: UInt8[Tensor, "n"]):
    """Luminance of a planar RGB picture."""
    out[i] = 0.2989 * x[0, i] + 0.5870 * x[1, i] + 0.1140 * x[2, i]


@kernel
def rgb2grey_2d(r: Index["h"], c: Index["w"], x: UInt8[Tensor, "3 h w"], out: UInt8[Tensor, "h w"]):
    """Luminance of an RGB picture, by row and column."""
    out[r, c] = 0.2989 * x[0, r, c] + 0.5870 * x[1, r, c] + 0.1140 * x[2, r, c]


@kernel(size=("w", "h"), block=(16, 16))
def rgb2grey_block(blockIdx, threadIdx, blockDim, x: UInt8[Tensor, "3 h w"], out: UInt8[Tensor, "h w"], w: int, h: int):
    """Luminance of an RGB picture, by blocks of 16 by 16 threads."""
    c = blockIdx.x * blockDim.x + threadIdx.x
    r = blockIdx.y * blockDim.y + threadIdx.y
    if c < w and r < h:
        out[r, c] = 0.2989 * x[0, r, c] + 0.5870 * x[1, r, c] + 0.1140 * x[2, r, c]


def main(out: Path = Path("out")) -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    photo = torch.from_numpy(data.astronaut()).to(device)  # height, width, 3
    h, w, _ = photo.shape
    planes = photo.permute(2, 0, 1).contiguous()

    grey = rgb2grey(planes.view(3, h * w)).view(h, w)

    assert torch.equal(grey, rgb2grey_2d(planes))
    assert torch.equal(grey, rgb2grey_block(planes))

    out.mkdir(parents=True, exist_ok=True)
    io.imsave(out / "grey.png", grey.cpu().numpy(), check_contrast=False)
    (out / "rgb2grey.cu").write_text(rgb2grey.cuda_source)
    (out / "rgb2grey.h").write_text(rgb2grey.header)
    (out / "rgb2grey.cpp").write_text(rgb2grey.cpp_source)

    name = torch.cuda.get_device_name() if device == "cuda" else "CPU (no CUDA GPU here)"
    print(f"Turned a photo of {w} x {h} pixels grey on: {name}")
    print(rgb2grey.check())
    print(f"  picture      {out / 'grey.png'}")
    print(f"  CUDA kernel  {out / 'rgb2grey.cu'}, {out / 'rgb2grey.h'}")
    print(f"  torch op     {out / 'rgb2grey.cpp'}")


if __name__ == "__main__":
    main()
