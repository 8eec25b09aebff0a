"""A matrix times a vector: each thread walks along one row.

    python examples/matvec.py

Shows a loop over an array's extent with a sum kept in a local variable.
"""

import torch
from jaxtyping import Float32
from sklearn.datasets import load_digits
from torch import Tensor

from py2cu import Index, kernel


@kernel
def matvec(r: Index["h"], m: Float32[Tensor, "h w"], v: Float32[Tensor, "w"], out: Float32[Tensor, "h"]):
    """The scalar product of every row of `m` with `v`."""
    total = 0.0
    for i in range(m.shape[1]):
        total += m[r, i] * v[i]
    out[r] = total


def main() -> None:
    device = "cuda" if torch.cuda.is_available() else "cpu"
    digits = torch.from_numpy(load_digits().data).to(device, torch.float32) / 16
    mean = digits.mean(dim=0)

    torch.testing.assert_close(matvec(digits, mean), digits @ mean, rtol=1e-5, atol=1e-5)

    print(f"{digits.shape[0]} x {digits.shape[1]} by a vector on {device}: as torch does")
    print(matvec.check())


if __name__ == "__main__":
    main()
