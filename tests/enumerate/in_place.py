"""The table of in-place calls, `k(x, out=x)`: blocks by axes of `size` by pairs of arrays.

A kernel whose signature admits the pair runs with one array for both parameters. Each element must then hold what one
thread makes of it: the value that two arrays would give.
"""

from __future__ import annotations

import ast
import itertools
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Final

from tests.enumerate.arguments import Grid
from tests.enumerate.judge import Outcome, Verdict, translate
from tests.enumerate.launches import Job, launch
from tests.enumerate.oracle import functions_alone
from tests.support.libraries import Device

BLOCKS: Final = (
    "", "block=8", "block=32", "block=(8,)", "block=(4, 2)", "block=(32, 8)", "block=(1, 4)", "block=(4, 1, 2)",
    "block=(1, 1, 4)", "block=(2, 2, 2)",
)  # fmt: skip
SIZES: Final = ('size="n"', 'size=("n",)', 'size=("n", "m")', 'size=("n", "m", "k")', 'size=("n", 1)', 'size="n*m"')
EXTENTS: Final = {"n": 10, "m": 3, "k": 2}
INDICES: Final = {
    "i": "blockIdx.x * blockDim.x + threadIdx.x",
    "j": "blockIdx.y * blockDim.y + threadIdx.y",
    "l": "blockIdx.z * blockDim.z + threadIdx.z",
    "t": "threadIdx.x",
}
GUARDS: Final = {"i": "i < n", "j": "j < m", "l": "l < k", "t": "t < n"}
PAIRS: Final = (
    ("n", "i"), ("n m", "i, j"), ("m n", "j, i"), ("k m n", "l, j, i"), ("n 2", "i, 0"), ("n m", "i, 1"), ("n", "t"),
    ("m", "j"), ("k n", "l, i"),
)  # fmt: skip
HEAD: Final = """\
from jaxtyping import Int64
from torch import Tensor
from py2cu import Index, kernel, blockIdx, blockDim, threadIdx


"""
INDEX_KERNELS: Final = (
    ('i: Index["n"]', "n", "i"),
    ('i: Index["n"], j: Index["m"]', "n m", "i, j"),
    ('j: Index["m"], i: Index["n"]', "m n", "j, i"),
    ('i: Index["n"], j: Index["m"]', "n", "i"),
    ('i: Index["n*m"]', "n*m", "i"),
    ('l: Index["k"], j: Index["m"], i: Index["n"]', "k m n", "l, j, i"),
)


@dataclass(frozen=True, slots=True)
class Call:
    """A kernel, the extents of its two arrays, and the indices at which it writes."""

    source: str
    dims: str
    at: str

    @property
    def key(self) -> str:
        lines = self.source[len(HEAD) :].strip().splitlines()
        return f"in place: {'; '.join(line.strip() for line in lines)}"

    def arguments(self) -> dict[str, Any]:
        """One array for both parameters."""
        shape = tuple(_extent(dim) for dim in self.dims.split())
        array = Grid(range(math.prod(shape)), shape, "int64")
        return {"x": array, "out": array, **EXTENTS}

    def expected(self) -> list[int]:
        """What CPython makes of the array, thread by thread, where it reads one array and writes another."""
        shape = tuple(_extent(dim) for dim in self.dims.split())
        places = [place if len(place) > 1 else place[0] for place in itertools.product(*map(range, shape))]
        x = dict(zip(places, range(len(places)), strict=True))
        out = dict(x)
        names: dict[str, Any] = dict.fromkeys(("blockIdx", "blockDim", "threadIdx"))
        exec(compile(functions_alone(ast.parse(self.source)), "f.py", "exec"), names)
        indices = re.findall(r"(\w): Index\[\"(.*?)\"\]", self.source)
        if indices:
            for at in itertools.product(*(range(_extent(extent)) for _, extent in indices)):
                names["f"](*at, x, out, **EXTENTS)
            return [*out.values()]
        grid, block = self.launch()
        names["blockDim"] = SimpleNamespace(**dict(zip("xyz", block, strict=True)))
        for b, t in itertools.product(itertools.product(*map(range, grid)), itertools.product(*map(range, block))):
            names["blockIdx"] = SimpleNamespace(**dict(zip("xyz", b, strict=True)))
            names["threadIdx"] = SimpleNamespace(**dict(zip("xyz", t, strict=True)))
            names["f"](x, out, **EXTENTS)
        return [*out.values()]

    def launch(self) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Grid and block, as the contract has them: the size divided by the block, rounded up."""
        options = re.search(r"@kernel\((.*)\)", self.source)
        assert options is not None
        given = eval(f"dict({options[1]})", {})
        size = given["size"] if isinstance(given["size"], tuple) else (given["size"],)
        block = given.get("block", {1: (256,), 2: (16, 16), 3: (8, 8, 8)}[len(size)])
        extents = [_extent(each) if isinstance(each, str) else each for each in size] + [1, 1]
        block = ((*block, 1, 1) if isinstance(block, tuple) else (block, 1, 1))[:3]
        return tuple(-(-extent // width) for extent, width in zip(extents[:3], block, strict=True)), block


def _extent(dim: str) -> int:
    return math.prod(EXTENTS.get(factor) or int(factor) for factor in dim.split("*"))


def calls() -> Iterator[Call]:
    """The table."""
    for block, size, (dims, at) in itertools.product(BLOCKS, SIZES, PAIRS):
        options = ", ".join(filter(None, (size, block)))
        names = re.findall("[a-z]", at)
        lines = [f"    {name} = {INDICES[name]}" for name in names]
        lines.append(f"    if {' and '.join(GUARDS[name] for name in names)}:")
        yield _call(options, "", dims, at, [*lines, f"        out[{at}] = x[{at}] + 1"])
    for block, (indices, dims, at) in itertools.product(BLOCKS, INDEX_KERNELS):
        yield _call(block, f"{indices}, ", dims, at, [f"    out[{at}] = x[{at}] + 1"])


def _call(options: str, indices: str, dims: str, at: str, lines: list[str]) -> Call:
    arrays = f'x: Int64[Tensor, "{dims}"], out: Int64[Tensor, "{dims}"]'
    head = f"@kernel({options})\ndef f({indices}{arrays}, n: int, m: int, k: int):"
    return Call(HEAD + "\n".join([head, *lines, ""]), dims, at)


def judge_in_place(device: Device, table: Sequence[Call]) -> list[tuple[Call, Verdict]]:
    """A verdict on each call; a pair that the signature does not admit counts as refused."""
    verdicts: list[Verdict] = []
    jobs: dict[int, Job] = {}
    for number, call in enumerate(table):
        translation = translate(call.source, device)
        if isinstance(translation, Verdict):
            verdicts.append(translation)
        elif not translation.signatures[0].in_place:
            verdicts.append(Verdict(Outcome.REFUSED, "no pair", source=call.source))
        else:
            verdicts.append(Verdict(Outcome.AGREES, source=call.source))
            jobs[number] = Job(translation, call.arguments, "out")
    for number, launched in launch(jobs, device).items():
        verdict, expected = verdicts[number], table[number].expected()
        if launched.elements != expected:
            verdict.outcome, verdict.expected, verdict.got = Outcome.DIFFERS, expected, launched.elements or []
            verdict.message = f"two arrays: {expected}, in place: {launched.elements} {launched.message}"
    return [*zip(table, verdicts, strict=True)]
