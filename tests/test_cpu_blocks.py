"""Kernels whose threads work together compute on the CPU what PyTorch does."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.builds

from tests.support import kernels_of_blocks as kernels  # noqa: E402


@pytest.fixture(autouse=True)
def _seeded():
    torch.manual_seed(0)


@pytest.mark.parametrize("name", ["matmul", "matmul_dynamic"])
@pytest.mark.parametrize("shape", [(1, 1, 1), (16, 16, 16), (33, 17, 50)])
def test_tiles_multiply_matrices(name, shape):
    h, w, k = shape
    m, n = torch.randn(h, k), torch.randn(k, w)
    torch.testing.assert_close(getattr(kernels, name)(m, n), m @ n, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("blocks", [[None, (4, 8), (16, 2, 1)], [(64, 1), (8, 4), None]])
def test_a_launch_may_have_another_block_than_calls(blocks):
    for block in blocks:
        out = torch.full((32, 64), -1, dtype=torch.int32)
        if block is None:
            kernels.opposite(out=out)
        else:
            kernels.opposite[(64 // block[0], 32 // block[1]), block](out)
        x, y, *_ = block or (8, 4)
        one = torch.arange(x * y - 1, -1, -1, dtype=torch.int32).view(y, x)
        assert torch.equal(out, one.repeat(32 // y, 64 // x))


@pytest.mark.parametrize("wide", [4, 32])
def test_a_block_may_depend_on_the_call(wide):
    x = torch.arange(16 * 64, dtype=torch.int32).view(16, 64)
    blocks = x.view(4, 4, 64 // wide, wide).flip(1, 3)
    assert torch.equal(kernels.turned(x, wide=wide), blocks.reshape(16, 64))


def test_arrays_of_a_thread_live_across_barriers():
    m, n = torch.randn(7, 40), torch.randn(40, 19)
    torch.testing.assert_close(kernels.matmul_registers(m, n), m @ n, rtol=1e-4, atol=1e-4)


def test_the_last_rounds_of_a_tree_wait_for_their_warp():
    x = torch.randn(1000)
    out = torch.zeros(4)
    kernels.tree(x, out)
    padded = torch.cat([x, torch.zeros(24)])
    torch.testing.assert_close(out, padded.view(4, 256).sum(1), rtol=1e-4, atol=1e-4)


def test_functions_wait_and_share():
    x = torch.randn(1000)
    out = torch.zeros(1)
    kernels.mean(x, torch.zeros(8), torch.zeros(1, dtype=torch.int32), out)
    torch.testing.assert_close(out[0], x.mean(), rtol=1e-4, atol=1e-5)


def test_scan():
    x = torch.randint(-9, 9, (300,), dtype=torch.int32)
    parts = [part.cumsum(0) for part in x.split(128)]
    assert kernels.scan(x).tolist() == torch.cat(parts).tolist()


@pytest.mark.parametrize("grid", [1, 3, 50])
def test_histogram(grid):
    x = torch.randint(0, 999, (5000,), dtype=torch.int32)
    counts = torch.zeros(16, dtype=torch.int32)
    kernels.histogram[grid, 128](x, counts, 5000)
    assert counts.tolist() == torch.bincount(x % 16, minlength=16).tolist()


def test_sort():
    x = torch.randint(-999, 999, (150,), dtype=torch.int32)
    parts = [part.sort().values for part in x.split(64)]
    assert kernels.sort(x).tolist() == torch.cat(parts).tolist()


def test_votes_and_shuffles():
    x = torch.randint(0, 12, (128,), dtype=torch.int32)
    out = torch.zeros(128, 8, dtype=torch.int32)
    kernels.votes(x, out)
    for i in range(128):
        warp = x[i // 32 * 32 :][:32].tolist()
        block = x[i // 64 * 64 :][:64]
        lane = i % 32
        assert out[i].tolist() == [
            warp[3],
            warp[lane - 2] if lane % 8 >= 2 else warp[lane],
            warp[lane ^ 5],
            any(v > 9 for v in warp) + 2 * all(v > 0 for v in warp),
            sum((v > 5) << k for k, v in enumerate(warp)) >> 1 & 0xFFFF,
            sum((v == warp[lane]) << k for k, v in enumerate(warp)) & 0xFFFF,
            int((block > 5).sum()),
            lane if (block > 9).any() and not (block > 9).all() else 0,
        ]


def test_warps_leave_loops_at_different_times():
    x = torch.randint(0, 12, (128,), dtype=torch.int32)
    out = torch.zeros(128, dtype=torch.int32)
    kernels.rounds(x, out)

    def total(i: int) -> int:
        ks = [0, 1, 3, 4] if i // 32 % 2 == 0 else [1, 3, 4, 5]
        return sum(ks) * int(x[i ^ 1])

    expected = [-total(i) if i // 32 % 2 else total(i + 1 if i % 32 < 31 else i) for i in range(128)]
    assert out.tolist() == expected


def test_what_a_thread_assigns_to_a_parameter_is_its_own():
    x = torch.randn(70, dtype=torch.float64)
    signs = torch.tensor([1.0, -1.0], dtype=torch.float64).repeat(48) * 0.5
    products = torch.cat([x, torch.zeros(26, dtype=torch.float64)]) * signs
    expected = products.view(3, 32).flip(1).reshape(-1) + signs
    torch.testing.assert_close(kernels.own_parameter(x, scale=0.5), expected[:70])


def test_without_barriers_threads_may_return():
    x = torch.randn(50)
    torch.testing.assert_close(kernels.alone(x), torch.where(x < 0, 0, 2 * x))


def test_a_block_is_no_larger_than_in_cuda():
    with pytest.raises(RuntimeError, match="at most 1024 threads, got 1056"):
        kernels.histogram[1, (33, 32)](torch.zeros(1, dtype=torch.int32), torch.zeros(16, dtype=torch.int32), 1)


@pytest.mark.parametrize("n", [1, 64, 1000, 64 * 1024])
def test_blocks_wait_for_the_whole_grid(n):
    x = torch.rand(n, dtype=torch.float64)
    out = torch.empty_like(x)
    kernels.cumulated(x, torch.empty(-(-n // 64), dtype=torch.float64), out)
    sums = x.cumsum(0)
    torch.testing.assert_close(out, sums + sums.roll(-1))


def test_blocks_that_wait_for_each_other_are_at_most_1024():
    x, out = torch.zeros(2, 64 * 1024 + 1, dtype=torch.float64)
    sums = torch.zeros(1025, dtype=torch.float64)
    message = "cumulated: 1025 blocks wait for each other, and at most 1024 run at once on the CPU"
    with pytest.raises(RuntimeError, match=message):
        kernels.cumulated(x, sums, out)
    with pytest.raises(RuntimeError, match=message):
        kernels.cumulated[(25, 41), 64](x, sums, out)


def test_a_vote_decides_how_long_a_warp_goes_on():
    x = torch.randint(0, 12, (128,), dtype=torch.int32)
    out = torch.zeros(128, dtype=torch.int32)
    kernels.settle(x, out)
    for i in range(128):
        warp, by = x[i // 32 * 32 :][:32], i // 32 % 2 + 1
        turns = -(-int(warp.max()) // by)
        hits = turns > 3 and bool((warp - by * turns == 0).any())
        assert out[i] == (-turns if hits else turns)


def test_half_of_a_warp_shuffles():
    x = torch.rand(32)
    out = torch.zeros(32)
    kernels.half_a_warp(x, out)
    assert out[:8].tolist() == (x[:8] + x[8:16]).tolist()
    assert out[16:].tolist() == x[16:].tolist()


@pytest.mark.parametrize("n", [0, 4, 256, 1000])
def test_rows_are_loaded_and_stored_around_barriers(n):
    x = torch.randn(n)
    padded = torch.cat([x, torch.zeros(-n % 256)]).view(-1, 64, 4)
    shifted = torch.cat([padded[..., 1:], padded[:, :, :1].roll(-1, 1)], dim=2)
    assert torch.equal(kernels.rotated(x), shifted.reshape(-1)[:n])


@pytest.mark.parametrize("n", [2, 64, 150])
def test_a_row_is_kept_while_threads_wait(n):
    x = torch.randint(-99, 99, (n,), dtype=torch.int32)
    padded = torch.cat([x, torch.zeros(-n % 64, dtype=torch.int32)]).view(-1, 32, 2)
    seconds = padded.sum(2, dtype=torch.int32).flip(1) - padded[..., 0]
    expected = torch.stack([torch.zeros_like(seconds), seconds], dim=2)
    assert torch.equal(kernels.paired(x), expected.reshape(-1)[:n])


def test_a_tuple_is_kept_while_threads_wait():
    x = torch.randn(50)
    padded = torch.cat([x, torch.zeros(14)]).view(2, 32)
    assert torch.equal(kernels.kept(x), (2 * padded + padded.flip(1)).reshape(-1)[:50])


def test_what_a_view_overwrites_is_read_before():
    x = torch.randn(50)
    assert torch.equal(kernels.overwritten(x), x)


@pytest.mark.parametrize("n", [32, 50])
def test_complex_numbers_are_shared(n):
    x = torch.randn(n, dtype=torch.complex128)
    whole = torch.cat([x, x.new_zeros(-n % 32)]).view(-1, 32)
    torch.testing.assert_close(kernels.spectrum(x), torch.fft.fft(whole).view(-1)[:n], rtol=1e-5, atol=1e-4)
    assert kernels.spectrum.check().ok
