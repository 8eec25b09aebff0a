"""Constants of classes in a simulated kernel: they are typed as those of a module are."""

from enum import Enum, IntEnum

import pytest

np = pytest.importorskip("numpy")
torch = pytest.importorskip("torch")

from jaxtyping import Float64, Int64  # noqa: E402
from torch import Tensor  # noqa: E402

from py2cu import Index, kernel  # noqa: E402
from py2cu.simulator import SimulationWarning  # noqa: E402


class Large(IntEnum):
    LOW = 1
    HIGH = 2**62


class Kind(Enum):
    HIGH = 2**62


class Config:
    HIGH = 2**62
    NUMBER = np.float32

    class Inner:
        HIGH = 2**62


TABLE = (Large.LOW, Large.HIGH)


@kernel
def of_member(i: Index["n"], out: Int64[Tensor, "n"]):
    out[i] = Large.HIGH * (i + 2) // 4


@kernel
def of_value(i: Index["n"], out: Int64[Tensor, "n"]):
    out[i] = (Large.HIGH.value + Kind.HIGH.value * (i + 1)) // 2


@kernel
def of_class(i: Index["n"], out: Int64[Tensor, "n"]):
    out[i] = (Config.HIGH + Config.Inner.HIGH * (i + 1)) // 2


@kernel
def of_table(i: Index["n"], out: Int64[Tensor, "n"]):
    out[i] = TABLE[i + 1] * 2 // 2


@pytest.mark.parametrize("kernel_", [of_member, of_value, of_class, of_table], ids=lambda each: each.__name__)
def test_integers_of_classes_are_checked(kernel_):
    out = torch.empty(1, dtype=torch.int64)
    with pytest.warns(SimulationWarning, match="a Python integer leaves 64 bits"):
        kernel_.simulate(out)


def test_a_member_is_a_python_integer():
    out = torch.zeros(2, dtype=torch.int64)

    @kernel
    def indexed(i: Index["n"], x: Int64[Tensor, "n"], out: Int64[Tensor, "n"], at: int = Large.LOW):
        out[i] = x[Large.LOW] + Large.LOW.value * 10 + at * 100

    indexed.simulate(torch.tensor([3, 4]), out)
    assert out.tolist() == [114, 114]
    indexed.simulate(torch.tensor([3, 4]), out, at=Large.LOW)
    assert out.tolist() == [114, 114]


@kernel
def converted(i: Index["n"], x: Int64[Tensor, "n"], out: Float64[Tensor, "n"]):
    out[i] = Config.NUMBER(x[i]) / 10


def test_types_of_classes_compute_as_elements():
    x = torch.tensor([7])
    assert converted.simulate(x).tolist() == [float(np.float32(7) / np.float32(10))]
