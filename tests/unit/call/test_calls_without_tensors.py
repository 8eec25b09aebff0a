"""A kernel that takes no tensor: a call allocates its outputs on torch's default device, as torch's factories do."""

import pytest

torch = pytest.importorskip("torch")

from jaxtyping import Float32, Int32  # noqa: E402
from torch import Tensor  # noqa: E402

from py2cu import Index, kernel  # noqa: E402


@kernel(init={"total": 5})
def table(
    r: Index["h"],
    c: Index["w"],
    out: Int32[Tensor, "h w"],
    total: Float32[Tensor, "h+1"],
    h: int,
    w: int,
    step: int = 2,
):
    out[r, c] = r * step + c
    if c == 0:
        total[r] = r


EXPECTED = torch.tensor([[0, 1, 2], [2, 3, 4]], dtype=torch.int32), torch.tensor([0.0, 1.0, 5.0])


def assert_right(out: object) -> None:
    assert isinstance(out, tuple)
    for got, expected in zip(out, EXPECTED, strict=True):
        assert torch.equal(got, expected)


@pytest.mark.builds
def test_outputs_are_allocated_or_filled() -> None:
    assert_right(table(2, 3))
    assert_right(table(h=2, w=3))
    assert_right(table.simulate(2, 3))
    out, total = torch.empty(2, 3, dtype=torch.int32), torch.full((3,), 5.0)
    returned = table(out=out, total=total)
    assert returned[0] is out
    assert_right(returned)
    assert_right(table(out, total))
    assert_right(table(2, 3, out=out.zero_()))
    table[1, (16, 16)](out.zero_(), total, 2, 3, 2)
    assert_right((out, total))
    assert table.check().ok


def test_the_default_device_decides() -> None:
    with torch.device("meta"):
        out, total = table(2, 3)
    assert (out.device.type, out.shape, total.shape) == ("meta", (2, 3), (3,))
    with torch.device("meta"), pytest.raises(RuntimeError, match="torch's default device is meta; kernels run on"):
        table.simulate(2, 3)


def test_numbers_that_fix_the_shape_are_required() -> None:
    with pytest.raises(TypeError, match="is missing `w`"):
        table(2)
