"""Kernels whose threads work together, beside CUDA written by hand: `blocks_by_hand.cu`. The same inputs, in turns."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

from benchmarks import gpu, table
from benchmarks.table import Row

HAND: Final = Path(__file__).parent / "blocks_by_hand.cu"
MATMUL_LIMIT, LIMIT = 1.03, 1.05
Call = Callable[..., object]


def rows() -> Iterator[Row]:
    hand = gpu.compiled(HAND.read_text(encoding="utf-8"))
    yield from matmuls(hand)
    yield from sums(hand)
    yield from scans(hand)
    yield from others(hand)


def matmuls(hand: ctypes.CDLL, size: int = 4096) -> Iterator[Row]:
    import torch

    from examples import tiled_matmul

    m, n = torch.randn(2, size, size, device="cuda")
    square = (size, size)
    for form, ours, tile in (
        ("static", lambda out: tiled_matmul.matmul_static(m, n, out=out), ()),
        ("dynamic", lambda out: tiled_matmul.matmul_dynamic(m, n, out=out, tw=16), (16,)),
        ("template", lambda out: tiled_matmul.matmul_template(m, n, out=out, tile=32), ()),
        ("registers", lambda out: tiled_matmul.matmul_registers(m, n, out=out), ()),
    ):
        theirs = by_pointers(getattr(hand, f"matmul_{form}"), (m, n), (size, size, size, *tile))
        yield row(f"matmul {size}³ f32 by tiles, {form}", ours, theirs, m.new_zeros(square), limit=MATMUL_LIMIT)


def sums(hand: ctypes.CDLL, size: int = 2**28, blocks: int = 2048) -> Iterator[Row]:
    import torch

    from examples.reductions import tree_sums, warp_sums

    x = torch.rand(size, device="cuda")
    trees = by_pointers(hand.tree_sums, (x,), (size, blocks))
    yield row("sums 2^28 f32 by trees", lambda out: tree_sums(x, out), trees, x.new_zeros(blocks))
    warps = by_pointers(hand.warp_sums, (x,), (size,))
    yield row("sum 2^28 f32 by shuffles", lambda out: warp_sums(x, out), warps, x.new_zeros(1))


def scans(hand: ctypes.CDLL, size: int = 2**27) -> Iterator[Row]:
    import torch

    from examples.scan import THREADS, add_totals, scan_blocks

    x = torch.rand(size, device="cuda")
    totals = x.new_zeros(size // THREADS)
    theirs = by_pointers(hand.scan_blocks, (x,), (size,))
    yield row("scan 2^27 f32 in blocks", lambda *outputs: scan_blocks(x, *outputs), theirs, torch.zeros_like(x), totals)
    added = by_pointers(hand.add_totals, (), (size,))
    yield row("scan 2^27 f32, totals added", add_totals, added, x, torch.rand_like(totals))


def others(hand: ctypes.CDLL, size: int = 16384) -> Iterator[Row]:
    import torch

    from examples import histogram, transpose

    x = torch.randn(size, size, device="cuda")
    theirs = by_pointers(hand.transpose, (x,), (size, size))
    yield row(f"transpose {size}×{size} f32", lambda out: transpose.transpose(x, out=out), theirs, torch.zeros_like(x))
    bytes_ = (torch.randn(2**28, device="cuda") * 30 + 128).clamp(0, 255).to(torch.uint8)
    theirs = by_pointers(hand.histogram, (bytes_,), (2**28,))
    counts = torch.zeros(256, dtype=torch.int32, device="cuda")
    yield row("histogram 2^28 u8", lambda out: histogram.histogram(bytes_, out), theirs, counts)


def by_pointers(function: Any, inputs: tuple[Any, ...], extents: tuple[int, ...]) -> Call:
    """The function by hand as a call of its outputs."""

    def call(*outputs: Any) -> None:
        function(*(ctypes.c_void_p(tensor.data_ptr()) for tensor in (*inputs, *outputs)), *extents)

    return call


def row(what: str, ours: Call, theirs: Call, *outputs: Any, limit: float = LIMIT) -> Row:
    """Both compute the same once, each on its own copy of the outputs; then they take turns."""
    import torch

    written = [[output.clone() for output in outputs] for _ in range(2)]
    calls = [lambda: ours(*written[0]), lambda: theirs(*written[1])]
    for call in calls:
        call()
    torch.testing.assert_close(*written, rtol=1e-4, atol=1e-4)
    mine, hand = gpu.in_turns(*calls)
    return table.compare(what, mine, hand, "by hand", limit)
