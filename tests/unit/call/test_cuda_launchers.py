"""Launchers for a GPU, with a driver that only notes what it is asked to do."""

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from py2cu.build import driver  # noqa: E402
from py2cu.call.launchers import launcher as launchers  # noqa: E402
from py2cu.call.launchers import likeness  # noqa: E402
from py2cu.call.launchers.engines import CudaEngine  # noqa: E402
from py2cu.call.launchers.launcher import LaunchFunction, Order, write_launcher  # noqa: E402
from py2cu.pipeline import lower_file  # noqa: E402
from py2cu.source import SourceFile  # noqa: E402
from py2cu.translation import TargetName  # noqa: E402
from tests.support.invented_calls import Array, InventedGuards, contiguous  # noqa: E402

SOURCE = """
from jaxtyping import Float32
from torch import Tensor
from py2cu import Index, kernel

@kernel
def plus(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    out[i] = x[i] + 1

@kernel
def plus_2d(r: Index["h"], c: Index["w"], x: Float32[Tensor, "h w"], out: Float32[Tensor, "h w"]):
    out[r, c] = x[r, c] + 1
"""


class Driver:
    """Instances that are loaded and kernels that are launched, with the device that was current."""

    def __init__(self) -> None:
        self.device = 0
        self.loaded: list[tuple[int, int]] = []
        self.packs: list[tuple[int, ...]] = []  # of the loaded instances
        self.launched: list[int] = []

    def load(self, device: int, given: tuple[bool, ...], packs: tuple[int, ...], **_: Any) -> int:
        self.loaded.append((device, self.device))
        self.packs.append(packs)
        return device + 1

    def launch(self, *_: Any) -> int:
        self.launched.append(self.device)
        return 0

    def on_device(self, device: int, launch: LaunchFunction, *values: Any) -> Any:
        before, self.device = self.device, device
        result = launch(*values)
        self.device = before
        return result


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> Driver:
    gpu = Driver()
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(torch._C, "_cuda_getDevice", lambda: gpu.device, raising=False)
    monkeypatch.setattr(torch._C, "_cuda_getCurrentRawStream", lambda _: 0, raising=False)
    monkeypatch.setattr(driver, "launch_function", lambda: gpu.launch)
    monkeypatch.setattr(launchers, "_on_device", gpu.on_device)
    monkeypatch.setattr(likeness, "Guards", InventedGuards)
    return gpu


def launcher_of(gpu: Driver, *, on_grid: bool, name: str = "plus") -> LaunchFunction:
    lowered = lower_file(SourceFile("plus.py", SOURCE))
    signature = next(each for each in lowered.signatures if each.name == name)
    (program,) = lowered.for_calls(TargetName.CUDA).text(TargetName.CUDA).programs_of(signature.op)
    order = Order(("x", "out"), on_grid=on_grid, of_call=False)
    return write_launcher(signature, program, order, (), CudaEngine(name, gpu.load))


def arrays(device: int, *shape: int, offset: int = 0) -> list[Array]:
    at = (2**20 * place + offset for place in (1, 2))
    return [Array(torch.float32, shape, contiguous(shape), 4, address, device) for address in at]


@pytest.mark.parametrize("on_grid", [False, True])
def test_an_instance_is_loaded_once_for_each_device_which_is_current_then(gpu: Driver, *, on_grid: bool) -> None:
    launch = launcher_of(gpu, on_grid=on_grid)
    shape = (1, 1, 1, 64, 1, 1) if on_grid else ()
    for device, extent in ((1, 64), (1, 64), (0, 64), (1, 128), (0, 64), (1, 64)):
        launch(*shape, *arrays(device, extent))
        assert gpu.launched.pop() == device
    assert gpu.loaded == [(1, 1), (0, 0)]


def test_an_empty_call_loads_nothing(gpu: Driver) -> None:
    launcher_of(gpu, on_grid=False)(*arrays(0, 0))
    assert not gpu.loaded
    assert not gpu.launched


@pytest.mark.parametrize(
    ("shape", "offset", "packs"),
    [
        ((4096,), 0, (1, 1)),
        ((4096,), 4, (1, 1)),
        ((4097,), 0, (4, 2)),
        ((4097,), 4, (1, 4)),
        ((64, 64), 0, (1, 1)),
        ((66, 64), 0, (4, 2)),
        ((64, 65), 0, (1, 4)),
    ],
)
def test_a_launch_of_few_elements_takes_no_packs(
    gpu: Driver, shape: tuple[int, ...], offset: int, packs: tuple[int, int]
) -> None:
    launch = launcher_of(gpu, on_grid=False, name=("plus", "plus_2d")[len(shape) - 1])
    launch(*arrays(0, *shape, offset=offset))
    assert gpu.packs == [packs]
