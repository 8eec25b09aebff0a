"""Which calls `k(x, out=x)` are accepted: those in which each element has exactly one thread, counted here."""

import itertools
import math
from collections import Counter

import pytest

torch = pytest.importorskip("torch")

from tests.support.modules import import_file  # noqa: E402

EXTENTS = {"n": 5, "m": 3, "l": 2}
DIMS = "nml"
AXES = "xyz"
BLOCKS = [None, (4,), (4, 1), (4, 2), (1, 4), (1, 1, 2), (2, 1, 3), (2, 2, 2), ("t", "t")]
ELEMENTS = ["n", "m", "nm", "mn", "nml", "lmn"]  # the dimensions of an array, which the index of their axis runs over
HEAD = """
from jaxtyping import Int32
from torch import Tensor
from py2cu import Constexpr, Index, blockDim, blockIdx, kernel, threadIdx
"""


def element(dims: str, name: str = "{}") -> str:
    return ", ".join(name.format(dim) for dim in dims)


def options(block: tuple[int | str, ...] | None, size: str = "") -> str:
    given = {"size": tuple(size) if size else None, "block": block}
    return ", ".join(f"{name}={value!r}" for name, value in given.items() if value is not None)


def parameters(dims: str, launched: str, block: tuple[int | str, ...] | None) -> str:
    arrays = [f'{name}: Int32[Tensor, "{" ".join(dims)}"]' for name in ("x", "y", "out")]
    sizes = [f"{dim}: int" for dim in launched if dim not in dims]
    return ", ".join([*arrays, *sizes, *["t: Constexpr[int] = 2"] * (block is not None and "t" in block)])


def source(kind: str, rank: int, block: tuple[int | str, ...] | None, dims: str, name: str) -> str:
    """A kernel whose threads run over the first `rank` dimensions, and whose arrays have `dims`."""
    launched = DIMS[:rank]
    at, first = element(dims, "i_{}"), element("0" * len(dims))
    body = f"out[{at}] = x[{at}] + y[{first}]"
    if kind == "index":
        indices = ", ".join(f'i_{dim}: Index["{dim}"]' for dim in reversed(launched))
        head = f"@kernel({options(block)})\ndef {name}({indices}, {parameters(dims, launched, block)}):\n"
        return f"{head}    {body}\n"
    head = f"@kernel({options(block, launched)})\ndef {name}({parameters(dims, launched, block)}):\n"
    lines = [
        f"i_{dim} = blockIdx.{axis} * blockDim.{axis} + threadIdx.{axis}"
        for dim, axis in zip(launched, AXES, strict=False)
    ]
    extents = {dim: f"x.shape[{dims.index(dim)}]" if dim in dims else dim for dim in launched}
    guard = " and ".join(f"i_{dim} < {extent}" for dim, extent in extents.items())
    return head + "".join(f"    {line}\n" for line in [*lines, f"if {guard}:", f"    {body}"])


def threads_of_an_element(rank: int, block: tuple[int | str, ...] | None, dims: str) -> int:
    """The most threads of a call that access one element."""
    extents = [2 if extent == "t" else extent for extent in block or ()] or [4] * rank
    extents += [1] * (3 - len(extents))
    sizes = [EXTENTS[dim] for dim in DIMS[:rank]] + [1] * (3 - rank)
    launched = [range(-(-size // extent) * extent) for size, extent in zip(sizes, extents, strict=True)]
    counts: Counter[tuple[int, ...]] = Counter()
    for thread in itertools.product(*launched):
        index = dict(zip(DIMS[:rank], thread, strict=False))
        if all(at < EXTENTS[dim] for dim, at in index.items()):
            counts[tuple(index[dim] for dim in dims)] += 1
    return max(counts.values())


@pytest.mark.parametrize("block", BLOCKS, ids=str)
@pytest.mark.parametrize("rank", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("kind", ["index", "block"])
def test_an_output_is_an_input_if_each_element_has_one_thread(kind, rank, block, tmp_path):
    forms = {f"k_{dims}": dims for dims in ELEMENTS if set(dims) <= set(DIMS[:rank])}
    path = tmp_path / "in_place.py"
    path.write_text(HEAD + "\n\n".join(source(kind, rank, block, dims, name) for name, dims in forms.items()))
    kernels = vars(import_file(path))
    for name, dims in forms.items():
        judge(kernels[name], rank, block, dims)


def judge(kernel, rank: int, block: tuple[int | str, ...] | None, dims: str) -> None:
    shape = tuple(EXTENTS[dim] for dim in dims)
    x, y = (
        torch.arange(30, dtype=torch.int32)[: math.prod(shape)].reshape(shape),
        torch.full(shape, 3, dtype=torch.int32),
    )
    sizes = {dim: EXTENTS[dim] for dim in DIMS[:rank] if dim not in dims}
    if threads_of_an_element(rank, block, dims) == 1:
        expected = x + y
        kernel.simulate(x, y, out=x, **sizes)
        assert torch.equal(x, expected)
    else:
        for call in (kernel.simulate, kernel.check):
            refuses("x", call, x, y, out=x, **sizes)
    refuses("y", kernel.simulate, x, y, out=y, **sizes)
    refuses("x", kernel.simulate[(3, 3, 3), (4, 2, 1)], x, y, x, *sizes.values(), *[2] * (block == ("t", "t")))


def refuses(name: str, call, *args, **kwargs) -> None:
    with pytest.raises(RuntimeError, match=f"`out` is written and overlaps `{name}` in memory"):
        call(*args, **kwargs)
