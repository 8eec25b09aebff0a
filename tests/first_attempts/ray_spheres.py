"""Spheres on a plane, lit by one lamp: a ray per pixel, vectors as tuples."""
import math

import torch
from jaxtyping import Float32
from torch import Tensor

from py2cu import Index, kernel

LIGHT = (0.577, 0.577, -0.577)
SKY = (0.5, 0.7, 1.0)
EYE = (0.0, 0.0, -3.0)
AMBIENT = 0.1


def dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def add(a, b):
    return a[0] + b[0], a[1] + b[1], a[2] + b[2]


def sub(a, b):
    return a[0] - b[0], a[1] - b[1], a[2] - b[2]


def scale(a, s):
    return a[0] * s, a[1] * s, a[2] * s


def normalize(a):
    return scale(a, 1.0 / math.sqrt(dot(a, a)))


def hit_sphere(origin, direction, centre, radius):
    """The distance to the nearest hit in front of the origin, or infinity."""
    oc = sub(origin, centre)
    b = dot(oc, direction)
    disc = b * b - (dot(oc, oc) - radius * radius)
    if disc < 0:
        return math.inf
    t = -b - math.sqrt(disc)
    return t if t > 1e-3 else math.inf


@kernel
def render(
    y: Index["h"],
    x: Index["w"],
    spheres: Float32[Tensor, "k 4"],
    colours: Float32[Tensor, "k 3"],
    out: Float32[Tensor, "h w 3"],
    h: int,
    w: int,
):
    u = (x + 0.5) / w * 2 - 1
    v = 1 - (y + 0.5) / h * 2
    ray = normalize((u, v, 1.5))

    nearest = math.inf
    which = -1
    for k, (cx, cy, cz, r) in enumerate(spheres):
        t = hit_sphere(EYE, ray, (cx, cy, cz), r)
        if t < nearest:
            nearest, which = t, k

    colour = SKY
    if which >= 0:
        cx, cy, cz, _ = spheres[which]
        point = add(EYE, scale(ray, nearest))
        normal = normalize(sub(point, (cx, cy, cz)))
        shade = AMBIENT + (1 - AMBIENT) * max(dot(normal, LIGHT), 0.0)
        r, g, b = colours[which]
        colour = scale((r, g, b), shade)
    for c in range(3):
        out[y, x, c] = colour[c]


KERNEL = render
TOLERANCE = dict(rtol=1e-3, atol=1e-3)


def reference(spheres, colours, h, w):
    f = torch.float64
    v, u = torch.meshgrid(
        1 - (torch.arange(h, dtype=f) + 0.5) / h * 2, (torch.arange(w, dtype=f) + 0.5) / w * 2 - 1, indexing="ij"
    )
    ray = torch.stack([u, v, torch.full_like(u, 1.5)], -1)
    ray = ray / ray.norm(dim=-1, keepdim=True)
    centre, radius = spheres[:, :3].to(f), spheres[:, 3].to(f)
    eye, light = torch.tensor(EYE, dtype=f), torch.tensor(LIGHT, dtype=f)
    oc = eye - centre
    b = ray @ oc.T
    disc = b * b - ((oc * oc).sum(-1) - radius**2)
    t = -b - disc.clamp(min=0).sqrt()
    t = torch.where((disc >= 0) & (t > 1e-3), t, torch.inf)
    near, which = t.min(-1)
    found = near.isfinite()
    near = torch.where(found, near, 0.0)
    normal = eye + ray * near[..., None] - centre[which]
    normal = normal / normal.norm(dim=-1, keepdim=True)
    shade = AMBIENT + (1 - AMBIENT) * (normal @ light).clamp(min=0)
    out = torch.where(found[..., None], colours.to(f)[which] * shade[..., None], torch.tensor(SKY, dtype=f))
    return out.float()


def cases():
    spheres = torch.tensor([[0.0, 0.0, 1.0, 1.0], [1.2, 0.4, 2.0, 0.7], [0.0, -101.0, 1.0, 100.0]])
    colours = torch.tensor([[1.0, 0.2, 0.2], [0.2, 1.0, 0.2], [0.8, 0.8, 0.8]])
    yield dict(spheres=spheres, colours=colours, h=12, w=16)
