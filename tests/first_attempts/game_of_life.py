"""One generation of Conway's Life on a torus."""
import torch
from jaxtyping import Bool
from torch import Tensor

from py2cu import Index, kernel

NEIGHBOURS = ((-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1))


@kernel
def life(y: Index["h"], x: Index["w"], alive: Bool[Tensor, "h w"], out: Bool[Tensor, "h w"]):
    h, w = alive.shape
    count = sum(alive[(y + dy) % h, (x + dx) % w] for dy, dx in NEIGHBOURS)
    out[y, x] = count == 3 or (alive[y, x] and count == 2)


KERNEL = life


def reference(alive):
    n = sum(torch.roll(alive.int(), shift, (0, 1)) for shift in NEIGHBOURS)
    return (n == 3) | (alive & (n == 2))


def cases():
    g = torch.Generator().manual_seed(11)
    yield dict(alive=torch.rand(12, 17, generator=g) > 0.6)
    yield dict(alive=torch.rand(3, 3, generator=g) > 0.5)
