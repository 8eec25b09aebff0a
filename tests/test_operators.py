"""Every kernel of the examples is a torch operator: `opcheck`, `torch.compile` without a graph break, modes."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from py2cu.check.cases import make_case  # noqa: E402
from py2cu.check.draw import TAME  # noqa: E402
from py2cu.check.sizes import choose_sizes, dimension_names  # noqa: E402
from py2cu.ir.visit import names_in  # noqa: E402
from py2cu.kernels import Kernel  # noqa: E402
from tests.support.modules import import_file  # noqa: E402

pytestmark = [pytest.mark.builds, pytest.mark.slow]
EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.py"))


def kernel_of(path: Path, name: str) -> Kernel:
    module = import_file(path)
    kernel = getattr(module, name)
    assert isinstance(kernel, Kernel)
    return kernel.with_small_values()


def names_of_kernels() -> Iterator[Any]:
    """Every kernel of the examples, as the text has it: importing the files takes longer."""
    for path in EXAMPLES:
        lines = path.read_text(encoding="utf-8").splitlines()
        for head, line in itertools.pairwise(lines):
            if head.startswith("@kernel"):
                name = line.removeprefix("def ").partition("(")[0]
                yield pytest.param(path, name, id=f"{path.stem}-{name}")


KERNELS = [*names_of_kernels()]


@dataclass(frozen=True)
class Arguments:
    """The arguments of one call; `calls` leave out those that are allocated."""

    every: Mapping[str, Any]
    allocated: frozenset[str]

    @property
    def of_call(self) -> dict[str, Any]:
        return {
            name: value.clone() if isinstance(value, torch.Tensor) else value
            for name, value in self.every.items()
            if name not in self.allocated
        }


def arguments(kernel: Kernel, count: int) -> Iterator[Arguments]:
    """Arguments of `count` calls with other sizes and the same numbers; template arguments keep their values."""
    signature = kernel.signature
    first = choose_sizes(signature, 0)
    of_block = {name for extent in signature.block for name in names_in(extent)}
    dimensions = [name for name in dimension_names(signature) if name not in {*signature.constexprs, *of_block}]
    numbers = dict[str, Any]()
    for number in range(count):
        sizes = first | {name: 64 << (place + number) % 4 for place, name in enumerate(dimensions)}
        case = make_case(signature, sizes, TAME, seed=1)
        assert case is not None
        drawn = {p.name: case.arguments[p.name] for p in signature.parameters if not p.is_array and p.name not in sizes}
        numbers = numbers or {name: abs(value) for name, value in drawn.items()}
        yield Arguments({**case.arguments, **numbers}, frozenset(p.name for p in signature.outputs))


@pytest.mark.parametrize(("path", "name"), KERNELS)
def test_opcheck(path: Path, name: str) -> None:
    kernel = kernel_of(path, name)
    call = next(arguments(kernel, 1))
    packet = getattr(torch.ops.py2cu, kernel.op._opname)
    torch.library.opcheck(packet.default, (), call.of_call)
    if call.allocated:
        torch.library.opcheck(packet.out, (), {**call.of_call, **{name: call.every[name] for name in call.allocated}})


@torch._dynamo.config.patch(error_on_recompile=True)
@pytest.mark.parametrize(("path", "name"), KERNELS)
def test_compiled_once_for_all_sizes_from_the_first_use_on(path: Path, name: str) -> None:
    kernel = kernel_of(path, name)
    torch._dynamo.reset()
    fresh = kernel._copy()
    compiled = torch.compile(lambda values: fresh(**values), fullgraph=True, dynamic=True, backend="aot_eager")
    for call in arguments(kernel, 3):
        expected, found = call.of_call, call.of_call
        torch.testing.assert_close(compiled(found), kernel(**expected), equal_nan=True)
        torch.testing.assert_close(found, expected, equal_nan=True)


@pytest.mark.parametrize(("path", "name"), KERNELS)
def test_inference_mode_and_autocast_change_nothing(path: Path, name: str) -> None:
    kernel = kernel_of(path, name)
    call = next(arguments(kernel, 1))
    expected = call.of_call
    returned = kernel(**expected)
    for run, mode in itertools.product((kernel, kernel.op), (torch.inference_mode(), torch.autocast("cpu"))):
        with mode:
            found = call.of_call
            torch.testing.assert_close(run(**found), returned, equal_nan=True)
            torch.testing.assert_close(found, expected, equal_nan=True)
