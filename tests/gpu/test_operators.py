"""On a real GPU, kernels as operators: graphs, streams, host threads, and no work besides the expected kernels."""

import math
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
if not torch.cuda.is_available():
    pytest.skip("no GPU here", allow_module_level=True)

from jaxtyping import Float32  # noqa: E402
from torch import Tensor  # noqa: E402
from torch.autograd import DeviceType  # noqa: E402
from torch.profiler import ProfilerActivity, profile, record_function  # noqa: E402

from py2cu import Index, kernel  # noqa: E402
from tests.test_operators import KERNELS, Arguments, arguments, kernel_of  # noqa: E402

pytestmark = pytest.mark.gpu
N = 1 << 16
CYCLES = 1_000_000_000  # about half a second


@kernel
def silu(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"]):
    out[i] = x[i] / (1 + math.exp(-x[i]))


@silu.backward
def silu_gradient(i: Index["n"], x: Float32[Tensor, "n"], grad_out: Float32[Tensor, "n"], grad_x: Float32[Tensor, "n"]):
    s = 1 / (1 + math.exp(-x[i]))
    grad_x[i] = grad_out[i] * s * (1 + x[i] * (1 - s))


@kernel
def bump(i: Index["n"], x: Float32[Tensor, "n"]):
    x[i] += 1


def reference(x: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.silu(x)


def reference_gradient(x: torch.Tensor) -> torch.Tensor:
    leaf = x.detach().requires_grad_()
    return torch.autograd.grad(reference(leaf).sum(), leaf)[0]


def fill_of(k: Any) -> Any:
    return getattr(torch.ops.py2cu, k.op._opname).out


@pytest.fixture(autouse=True, scope="module")
def built() -> None:
    """Everything is built and loaded, torch's own kernels too: loading one waits for the whole GPU."""
    x = torch.randn(N, device="cuda", requires_grad=True)
    silu(x).sum().backward()
    with torch.no_grad():
        silu(x, out=torch.empty_like(x))
        bump(x)
        x.fill_(1).zero_()
    reference_gradient(x)
    torch.cuda.synchronize()


# --- CUDA graphs ---


def captured(run: Callable[[], Any]) -> tuple[torch.cuda.CUDAGraph, Any]:
    """A graph of `run`, called before on a side stream, and what it returned under capture."""
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            run()
    torch.cuda.current_stream().wait_stream(side)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = run()
    return graph, result


def test_calls_in_a_graph_read_what_their_arguments_hold_at_each_replay() -> None:
    x, out = torch.randn(N, device="cuda"), torch.empty(N, device="cuda")
    ways: dict[str, Callable[[], Any]] = {
        "call": lambda: silu(x),
        "out": lambda: silu(x, out=out),
        "launch": lambda: silu[N // 256, 256](x, out) or out,
        "op": lambda: silu.op(x),
        "op.out": lambda: fill_of(silu)(x, out) or out,
    }
    for name, way in ways.items():
        graph, result = captured(way)
        for _ in range(3):
            x.copy_(torch.randn(N))
            result.zero_()
            graph.replay()
            torch.testing.assert_close(result, reference(x), msg=lambda text, name=name: f"{name}: {text}")


def test_a_kernel_in_place_in_a_graph() -> None:
    x = torch.zeros(N, device="cuda")
    graph, _ = captured(lambda: bump(x))
    x.fill_(5)
    for _ in range(4):
        graph.replay()
    assert x.unique().tolist() == [9]


def test_gradients_in_a_graph() -> None:
    x = torch.randn(N, device="cuda", requires_grad=True)
    upstream = torch.ones(N, device="cuda")
    graph, gradient = captured(lambda: torch.autograd.grad(silu(x), x, upstream)[0])
    for _ in range(3):
        with torch.no_grad():
            x.copy_(torch.randn(N))
        gradient.zero_()
        graph.replay()
        torch.testing.assert_close(gradient, reference_gradient(x))


# --- streams and threads ---


def test_calls_run_on_the_current_stream() -> None:
    """The side stream is busy when the calls are issued. On any other stream they would read zeros."""
    ways: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
        "call": silu,
        "out": lambda x: silu(x, out=torch.empty_like(x)),
        "launch": lambda x: silu[N // 256, 256](x, out := torch.empty_like(x)) or out,
        "op": silu.op,
    }
    for name, way in ways.items():
        x, side = torch.zeros(N, device="cuda"), torch.cuda.Stream()
        torch.cuda.synchronize()
        with torch.cuda.stream(side):
            torch.cuda._sleep(CYCLES)
            x.fill_(1)
            result = way(x)
            done = side.record_event()
        assert not done.query(), name
        side.synchronize()
        torch.testing.assert_close(result, reference(torch.ones_like(x)), msg=lambda text, name=name: f"{name}: {text}")


@pytest.mark.parametrize("is_outside", [False, True])
def test_gradients_run_on_the_stream_of_the_forward(is_outside: bool) -> None:
    x, side = torch.zeros(N, device="cuda", requires_grad=True), torch.cuda.Stream()
    torch.cuda.synchronize()
    with torch.cuda.stream(side):
        torch.cuda._sleep(CYCLES)
        with torch.no_grad():
            x.fill_(1)
        y = silu(x).sum()
        if not is_outside:
            y.backward()
    if is_outside:
        torch.cuda.current_stream().wait_stream(side)
        y.backward()
    torch.cuda.synchronize()
    torch.testing.assert_close(x.grad, reference_gradient(torch.ones_like(x)))


def test_host_threads_with_streams_of_their_own() -> None:
    results: dict[int, torch.Tensor] = {}

    def train(number: int) -> None:
        with torch.cuda.stream(torch.cuda.Stream()):
            x = torch.full((N,), number / 8, device="cuda", requires_grad=True)
            for _ in range(20):
                silu(x).sum().backward()
            gradient = x.grad / 20
            torch.cuda.current_stream().synchronize()
            results[number] = gradient

    threads = [threading.Thread(target=train, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(results) == [*range(8)]
    for number, gradient in results.items():
        torch.testing.assert_close(gradient, reference_gradient(torch.full((N,), number / 8, device="cuda")))


# --- what a call issues ---


def issued(run: Callable[[], Any]) -> tuple[list[str], list[str]]:
    """What `run` has the device do, in order, and its calls of CUDA; not those of its first calls."""
    for _ in range(3):
        run()
    torch.cuda.synchronize()
    with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as profiler:
        with record_function("the run"):
            run()
        torch.cuda.synchronize()
    events = profiler.events()
    assert events is not None
    span = next(each.time_range for each in events if each.name == "the run" and each.device_type == DeviceType.CPU)
    on_device = [each for each in events if each.device_type == DeviceType.CUDA and each.name != "the run"]
    on_device.sort(key=lambda each: each.time_range.start)
    calls = [
        each.name
        for each in events
        if each.device_type == DeviceType.CPU
        and each.name.startswith(("cuda", "cu"))
        and span.start <= each.time_range.start <= span.end
    ]
    return [each.name for each in on_device], calls


def waits_and_copies(calls: list[str]) -> list[str]:
    return [
        name for name in calls if any(word in name for word in ("Synchronize", "Memcpy", "Memset", "Malloc", "Free"))
    ]


def issuers() -> Iterator[Any]:
    x = torch.randn(N, device="cuda")
    leaf, out, upstream = x.clone().requires_grad_(), torch.empty_like(x), torch.ones_like(x)
    rows, one = x.view(16, -1), torch.ones((), device="cuda")
    y = silu(leaf)

    def gradient(upstream: torch.Tensor) -> Callable[[], Any]:
        return lambda: torch.autograd.grad(y, leaf, upstream, retain_graph=True)

    yield "call", lambda: silu(x), ["silu_kernel"]
    yield "out", lambda: silu(x, out=out), ["silu_kernel"]
    yield "launch", lambda: silu[N // 256, 256](x, out), ["silu_kernel"]
    yield "op", lambda: silu.op(x), ["silu_kernel"]
    yield "op.out", lambda: fill_of(silu)(x, out), ["silu_kernel"]
    yield "in place", lambda: bump(x), ["bump_kernel"]
    yield "recorded", lambda: silu(leaf), ["silu_kernel"]
    yield "backward", gradient(upstream), ["silu_gradient_kernel"]
    yield "backward of an expanded gradient", gradient(one.expand(N)), ["", "silu_gradient_kernel"]  # the one copy
    yield "vmap", lambda: torch.func.vmap(silu)(rows), ["silu_kernel"]
    yield "inference mode", lambda: torch.inference_mode()(silu)(x), ["silu_kernel"]


@pytest.mark.filterwarnings("ignore:.*Profiler clears events")  # torch 2.11 warns of what it does here
def test_calls_issue_the_expected_kernels_alone() -> None:
    for name, run, expected in issuers():
        kernels, calls = issued(run)
        assert len(kernels) == len(expected), (name, kernels)
        assert all(part in kernel for part, kernel in zip(expected, kernels, strict=True)), (name, kernels)
        assert waits_and_copies(calls) == [], (name, calls)


# --- the examples ---


def on_gpu(call: Arguments) -> Arguments:
    every = {name: value.cuda() if isinstance(value, torch.Tensor) else value for name, value in call.every.items()}
    return Arguments(every, call.allocated)


@pytest.mark.slow
@pytest.mark.parametrize(("path", "name"), KERNELS)
def test_opcheck(path: Path, name: str) -> None:
    k = kernel_of(path, name)
    call = on_gpu(next(arguments(k, 1)))
    torch.library.opcheck(k.op, (), call.of_call)
    if call.allocated:
        torch.library.opcheck(fill_of(k), (), {**call.of_call, **{name: call.every[name] for name in call.allocated}})


@pytest.mark.slow
@pytest.mark.parametrize(("path", "name"), KERNELS)
def test_compiled_once_for_all_sizes(path: Path, name: str) -> None:
    k = kernel_of(path, name)
    torch._dynamo.reset()
    compiled = torch.compile(lambda values: k(**values), fullgraph=True, dynamic=True, backend="aot_eager")
    with torch._dynamo.config.patch(error_on_recompile=True):
        for call in map(on_gpu, arguments(k, 3)):
            expected, found = call.of_call, call.of_call
            torch.testing.assert_close(compiled(found), k(**expected), equal_nan=True)
            torch.testing.assert_close(found, expected, equal_nan=True)


@pytest.mark.slow
@pytest.mark.parametrize(("path", "name"), KERNELS)
def test_gradients(path: Path, name: str) -> None:
    k = kernel_of(path, name)
    if not k.backwards:
        pytest.skip("no backward")
    report = k.check(grad=True)
    assert report.device == "cuda"
    assert report.ok, report
    assert report.gradients, report
