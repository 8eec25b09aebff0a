"""Odd arguments: the first call of a form, later ones, launches and simulations accept and refuse the same."""

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from typing import Any

import pytest

torch = pytest.importorskip("torch")

import numpy as np  # noqa: E402
from jaxtyping import Float, Float32  # noqa: E402
from torch import Tensor  # noqa: E402

from py2cu import Constexpr, Index, kernel  # noqa: E402
from py2cu.kernels import Kernel  # noqa: E402

pytestmark = [pytest.mark.builds, pytest.mark.filterwarnings("ignore::UserWarning")]


@kernel
def typed(
    i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"], k: int, f: bool = True, s: float = 1.0,
    b: np.uint8 = 1, u: np.uint64 = 1, z: complex = 0j, q: np.float32 = 2.0,
):  # fmt: skip
    out[i] = x[i] + k + s + b + float(u) + z.real + q if f else x[i]


@kernel
def templated(i: Index["n"], x: Float32[Tensor, "n"], out: Float32[Tensor, "n"], k: int, t: Constexpr[int] = 4):
    out[i] = x[i] + k + t


@kernel
def generic(i: Index["n"], x: Float[Tensor, "n"], y: Float[Tensor, "n"], out: Float[Tensor, "n"], k: int):
    out[i] = x[i] + y[i] + k


@kernel
def in_place(i: Index["n"], x: Float32[Tensor, "n"], k: int):
    x[i] += k


class Subclass(Tensor):
    pass


def freed() -> Tensor:
    tensor = torch.arange(4.0)
    tensor.untyped_storage().resize_(0)
    return tensor


def plain() -> Tensor:
    return torch.arange(4.0)


TENSORS: dict[str, Callable[[], object]] = {
    "sparse": lambda: plain().to_sparse(),
    "compressed sparse": lambda: torch.eye(4).to_sparse_csr(),
    "nested": lambda: torch.nested.nested_tensor([plain()]),
    "mkldnn": lambda: plain().to_mkldnn(),  # type: ignore[operator, no-untyped-call]
    "quantized": lambda: torch.quantize_per_tensor(plain(), 0.1, 0, torch.quint8),
    "without memory": lambda: freed(),
    "meta": lambda: plain().to("meta"),
    "negative view": lambda: torch._neg_view(plain()),
    "imaginary part of a conjugate": lambda: torch.complex(plain(), plain()).conj().imag,
    "parameter": lambda: torch.nn.Parameter(plain()),
    "requires grad": lambda: plain().requires_grad_(),
    "no leaf": lambda: plain().requires_grad_() * 1,
    "subclass": lambda: plain().as_subclass(Subclass),
    "strided": lambda: torch.arange(8.0)[::2],
    "expanded": lambda: torch.ones(1).expand(4),
    "double": lambda: plain().double(),
    "half": lambda: plain().half(),
    "complex": lambda: plain().to(torch.complex64),
    "two dimensions": lambda: plain().reshape(2, 2),
    "no dimension": lambda: torch.tensor(1.0),
    "empty": lambda: torch.empty(0),
    "longer": lambda: torch.arange(5.0),
    "None": lambda: None,
    "list": lambda: [1.0, 2.0],
    "array": lambda: np.ones(4, np.float32),
    "number": lambda: 3.0,
}
INTEGERS: list[object] = [
    2**31, 2**63 - 1, 2**63, 2**70, 10**400, -(2**63), -(2**63) - 1, np.int64(3), np.uint64(2**63), np.float32(2.0),
    2.5, torch.tensor(2), torch.tensor(3.7), None, True, np.bool_(True), Fraction(2), "2", math.nan,
]  # fmt: skip
NUMBERS: dict[str, list[object]] = {
    "k": INTEGERS,
    "f": [1, 0.0, math.nan, None, np.bool_(True), torch.tensor(True)],
    "s": [
        1, 2**70, 10**400, np.float32(0.5), np.float64(0.5), np.float16(0.5), np.int8(3), Fraction(1, 2), True, 1j,
        None, torch.tensor(1.0), math.nan, "1",
    ],
    "b": [255, 256, -1, np.uint8(3), 2**70, 2.0, True, None],
    "u": [2**63 - 1, 2**63, 2**64, -1, np.uint64(2**63)],
    "z": [1j, 1, np.complex64(2j), 10**400, Fraction(1, 2), None],
    "q": [1e39, 10**400, 1e-50, np.float64(3), math.inf],
}  # fmt: skip


def outcome(call: Callable[[], Any]) -> str:
    try:
        result = call()
    except (TypeError, RuntimeError, ValueError, OverflowError) as error:
        return f"{type(error).__name__}: {error}"
    return "None" if result is None else str(result.tolist())


def cold(k: Kernel) -> Kernel:
    """The same kernel, which nobody has called yet."""
    return k._copy()


def ways(k: Kernel, *, warmed: Callable[[Callable[..., Any]], object]) -> Iterator[tuple[str, Callable[..., Any]]]:
    """Every way to run a kernel with outputs given by name, or allocated; `warmed` calls it with plain arguments."""
    warm = cold(k)
    warmed(warm)
    yield "cold", cold(k)
    yield "warm", warm
    yield "simulated", k.simulate


def agreed(k: Kernel, call: Callable[[Callable[..., Any]], Any], warmed: Callable[[Callable[..., Any]], object]) -> str:
    """The outcome of a call, the same in each way and at each repetition."""
    found = {}
    for name, run in ways(k, warmed=warmed):
        found[name] = outcome(lambda run=run: call(run))
        found[f"{name} again"] = outcome(lambda run=run: call(run))
    assert len(set(found.values())) == 1, found
    return found["cold"]


REFUSED = {
    "without memory",
    "sparse", "compressed sparse", "nested", "mkldnn", "quantized", "meta", "strided", "expanded", "double", "half",
    "complex", "two dimensions", "no dimension", "None", "list", "array", "number",
}  # fmt: skip


@pytest.mark.parametrize("what", TENSORS)
def test_inputs(what: str) -> None:
    said = agreed(typed, lambda run: run(TENSORS[what](), 2), lambda run: run(plain(), 2))
    assert ("Error" in said) == (what in REFUSED), said


@pytest.mark.parametrize("what", ["sparse", "compressed sparse", "nested"])
def test_a_layout_is_named(what: str) -> None:
    assert "must be a dense tensor" in agreed(typed, lambda run: run(TENSORS[what](), 2), lambda run: run(plain(), 2))


@pytest.mark.parametrize("what", TENSORS)
def test_outputs(what: str) -> None:
    said = agreed(
        typed, lambda run: run(plain(), 2, out=TENSORS[what]()), lambda run: run(plain(), 2, out=torch.empty(4))
    )
    more = {"negative view", "imaginary part of a conjugate", "parameter", "requires grad", "empty", "longer"}
    assert ("Error" in said) == (what in REFUSED | more), said


@pytest.mark.parametrize("what", TENSORS)
def test_what_is_changed_in_place(what: str) -> None:
    agreed(in_place, lambda run: run(TENSORS[what](), 2), lambda run: run(plain(), 2))


@pytest.mark.parametrize("what", TENSORS)
def test_inputs_of_template_and_generic_kernels(what: str) -> None:
    agreed(templated, lambda run: run(TENSORS[what](), 2), lambda run: run(plain(), 2))
    agreed(generic, lambda run: run(plain(), TENSORS[what](), 2), lambda run: run(plain(), plain(), 2))
    agreed(generic, lambda run: run(TENSORS[what](), plain(), 2), lambda run: run(plain(), plain(), 2))


@pytest.mark.parametrize("what", TENSORS)
def test_launches(what: str) -> None:
    def call(run: Any) -> Tensor:
        run[1, 32](TENSORS[what](), out := torch.zeros(4), 2)
        return out

    agreed(typed, call, lambda run: run[1, 32](plain(), torch.zeros(4), 2))
    agreed(templated, call, lambda run: run[1, 32](plain(), torch.zeros(4), 2))


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in NUMBERS.items() for value in values])
def test_numbers(name: str, value: object) -> None:
    agreed(typed, lambda run: run(plain(), **{"k": 2, name: value}), lambda run: run(plain(), k=2))

    def launch(run: Any) -> Tensor:
        run[1, 32](plain(), out := torch.zeros(4), **{"k": 2, name: value})
        return out

    agreed(typed, launch, lambda run: run[1, 32](plain(), torch.zeros(4), k=2))


@pytest.mark.parametrize("value", [*INTEGERS, -1, 0, np.int32(8)], ids=repr)
def test_template_arguments(value: object) -> None:
    agreed(templated, lambda run: run(plain(), 2, value), lambda run: run(plain(), 2, 4))
    agreed(templated, lambda run: run(plain(), value, 4), lambda run: run(plain(), 2, 4))


def test_arguments_that_overlap() -> None:
    whole = torch.arange(8.0)
    said = agreed(typed, lambda run: run(whole[:4], 2, out=whole[2:6]), lambda run: run(plain(), 2, out=torch.zeros(4)))
    assert said == "RuntimeError: typed: `out` is written and overlaps `x` in memory"


def test_a_leaf_may_be_written_without_grad() -> None:
    parameter = torch.nn.Parameter(plain())
    with torch.no_grad():
        for run in (in_place, in_place, in_place.simulate):
            run(parameter, 1)
    assert parameter.tolist() == [3.0, 4.0, 5.0, 6.0]
    with pytest.raises(RuntimeError, match=r"in_place: `x` is written, and is a leaf that requires grad"):
        in_place(parameter, 1)
    with pytest.raises(RuntimeError, match=r"is a leaf that requires grad"):
        in_place.check(parameter, 1)


def test_a_dimension_that_is_given_as_numpys_number() -> None:
    @kernel
    def repeated(i: Index["n"], x: Float32[Tensor, "n"], w: int, out: Float32[Tensor, "w n"]):
        for j in range(w):
            out[j, i] = x[i]

    for run in (repeated, repeated.simulate):
        assert run(plain(), np.int64(2)).shape == (2, 4)
