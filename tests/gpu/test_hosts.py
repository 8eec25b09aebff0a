"""Host functions on a GPU: the examples, and gradients."""

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from examples import launchers, lltm, reductions, scan  # noqa: E402
from py2cu import Host  # noqa: E402
from tests import test_host_gradients as with_backward  # noqa: E402

pytestmark = pytest.mark.gpu


def on_gpu(value: Any) -> Any:
    return value.detach().cuda().requires_grad_(value.requires_grad) if isinstance(value, torch.Tensor) else value


CALLS: list[tuple[Host, tuple[Any, ...]]] = [
    (launchers.rgb2grey_pybk, (torch.randint(0, 255, (3, 70, 90), dtype=torch.uint8),)),
    (launchers.matmul_2d, (torch.randn(50, 70), torch.randn(70, 30))),
]


@pytest.mark.parametrize(("function", "arguments"), CALLS, ids=lambda value: getattr(value, "__name__", ""))
def test_launchers_do_on_a_gpu_what_they_do_on_the_cpu(function: Host, arguments: tuple[Any, ...]) -> None:
    function.build()
    expected = function.python(*arguments)
    torch.testing.assert_close(function(*map(on_gpu, arguments)).cpu(), expected)


def test_several_launches() -> None:
    scan.main()
    reductions.main()


def test_the_lltm_cell_learns(capsys: pytest.CaptureFixture[str]) -> None:
    lltm.main()
    losses = lltm.train("cuda")
    assert losses[-1] < losses[0] / 10
    assert "numerical differentiation" in capsys.readouterr().out


@pytest.mark.parametrize("function", with_backward.FUNCTIONS)
def test_gradients(function: Host) -> None:
    arguments = tuple(map(on_gpu, with_backward.arguments()))
    assert torch.autograd.gradcheck(function, arguments)
    function.build()
    assert torch.autograd.gradcheck(function, arguments)
    torch.library.opcheck(function.op, arguments)


def test_a_kernel_has_a_host_function_as_its_backward() -> None:
    assert torch.autograd.gradcheck(with_backward.square, (on_gpu(with_backward.arguments()[0]),))
