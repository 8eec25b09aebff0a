"""The two spellings of a launch program agree: the launcher of calls in Python, and the launcher in the emitted C++.

In: every kernel of the cases and examples, and invented calls. Both get the same numbers, and what each passes to CUDA
is recorded: instance, grid, block, shared memory, and the values of the kernel's arguments, which must be equal bit for
bit. Where one refuses a call, so does the other.
"""

from __future__ import annotations

import contextlib
import ctypes
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, ClassVar, Final

import pytest

pytest.importorskip("torch")

import torch

from py2cu.call.launchers import likeness
from py2cu.call.launchers.engines import Block
from py2cu.call.launchers.launcher import LaunchFunction, Order, write_launcher
from py2cu.call.launchers.likeness import Likeness
from py2cu.check import small_values
from py2cu.dtypes import DType, Kind
from py2cu.ir.abi.launch import INT32_MAX, REFUSED, LaunchProgram
from py2cu.ir.abi.parameters import Parameter
from py2cu.ir.abi.signature import Signature, evaluate
from py2cu.ir.types import ElementType, PythonType
from py2cu.options import MAX_THREADS, NO_VALUES
from py2cu.pipeline import lower_file
from py2cu.source import SourceFile
from py2cu.targets.lowered import Lowered
from tests.support.compilers import gxx
from tests.support.invented_calls import Array, Call, InventedGuards, Inventor, strides_of
from tests.support.launch_records import (
    Emitted,
    Launch,
    Slot,
    build,
    kernel_name,
    names_of_arguments,
    slot_of,
    strided_arrays,
)
from tests.support.samples import proofs
from tests.test_goldens import EXAMPLES, SIGNATURES
from tests.test_kernel_cases import CASES, read_case, values_of

QUICK, LONG = 30, 2000
PATHS = [*EXAMPLES, *CASES]
BATCHES = [PATHS[start::24] for start in range(24)]
MOST_SHARED: Final = 227 * 1024
"""The shared memory, in bytes, that a block may have on any GPU."""


class _Keys:
    """Instances, of which each is its key."""

    def __getitem__(self, key: tuple[Any, ...]) -> tuple[Any, ...]:
        return key


REFUSAL: Final = "refused"
NOTHING: Final = "nothing is launched"
Outcome = Launch | str


@dataclass(slots=True)
class Recorder:
    """An engine that keeps what CUDA would get."""

    program: LaunchProgram
    constexprs: tuple[int, ...]
    kernel: str = ""
    shape: tuple[int, ...] = ()
    shared: int = 0
    block: Block | None = None
    is_cuda: ClassVar[bool] = True
    launch: ClassVar[str] = ""

    def lines(self, names: dict[str, Any], program: LaunchProgram, values: Sequence[str]) -> Iterator[str]:
        names |= {"record": self.record, "instances": _Keys()}
        yield "block = new()"
        yield f"pack({', '.join(['block.memory', '0', *values])})"
        yield "record(instance, (gx, gy, gz, bx, by, bz), shared, block)"

    def record(self, instance: tuple[Any, ...], shape: tuple[int, ...], shared: int, block: Block) -> None:
        assert self.block is None
        _, form, *given = instance
        packs, is_wide = (form, True) if self.program.packs else ((), not form)
        self.kernel = kernel_name(self.program, self.constexprs, tuple(given), packs, is_wide=is_wide)
        self.shape, self.shared, self.block = shape, shared, block

    def taken(self, sizes: Sequence[int]) -> Launch | None:
        """The launch since the last time, with values of these sizes, as CUDA reads them."""
        block, self.block = self.block, None
        if block is None:
            return None
        values = (ctypes.string_at(at or 0, size) for at, size in zip(block.addresses._obj, sizes, strict=False))
        return Launch(self.kernel, self.shape, self.shared, tuple(values))


@dataclass(slots=True)
class Pair:
    """The two launchers of one instance of a kernel."""

    emitted: Emitted
    recorder: Recorder
    inventor: Inventor
    sizes: tuple[int, ...] = ()  # of the kernel's parameters
    _launchers: dict[Order, LaunchFunction] = field(default_factory=dict)

    @classmethod
    def of(cls, emitted: Emitted, random: Random) -> Pair:
        constexprs = dict(zip(emitted.program.constexprs, emitted.constexprs, strict=True))
        recorder = Recorder(emitted.program, emitted.constexprs)
        return cls(emitted, recorder, Inventor(emitted.signature, constexprs, random))

    def disagreement(self, random: Random) -> tuple[str, Outcome]:
        """Run one more call through both: what is wrong, if anything, and what the emitted launcher does."""
        on_grid = not self.emitted.program.size or random.random() < 0.25
        call = self.inventor.call(on_grid=on_grid)
        emitted = self._by_emitted(call)
        python = self._by_python(call, allocates=not on_grid and random.random() < 0.3)
        if emitted == python:
            return "", emitted
        template = self.emitted.program.template_arguments(self.emitted.constexprs, (), is_wide=False)
        return f"{self.emitted.signature.name}{template}{call}\n    C++:    {emitted}\n    Python: {python}", emitted

    # --- the emitted launcher ---

    def _by_emitted(self, call: Call) -> Outcome:
        if self._is_refused_by_binding(call):
            return REFUSAL
        done = self.emitted.call([*self._slots(call)], call.shape)
        if not isinstance(done, Launch):
            return NOTHING if done is None else REFUSAL
        self.sizes = tuple(map(len, done.values))
        assert len(self.sizes) == len(self.emitted.program.passed)
        return self._judged(done)

    def _is_refused_by_binding(self, call: Call) -> bool:
        """Checks of the emitted binding that the launcher behind it relies on."""
        signature, program = self.emitted.signature, self.emitted.program
        numbers = {**call.dims, **self.inventor.constexprs}
        if any(not 0 <= evaluate(extent, numbers) <= INT32_MAX for _, extent in program.checks_shared):
            return True
        block = [evaluate(extent, numbers) for extent in program.block] if not call.shape else [*call.shape[3:]]
        is_checked = program.has_open_block if not call.shape else bool(signature.launch_bounds)
        return is_checked and not self._is_possible(block)

    def _slots(self, call: Call) -> Iterator[Slot]:
        signature = self.emitted.signature
        parameters = {p.name: p for p in signature.parameters}
        for name in names_of_arguments(signature):
            parameter = parameters.get(name)
            if parameter is None:
                yield slot_of(call.dims[name])
            elif parameter.is_array:
                array = call.arguments[name]
                yield slot_of(array and (array.address or 1 if parameter.may_be_none else array.address))
            else:
                yield slot_of(_number(parameter, call), is_float=_is_float(parameter))
        for name in strided_arrays(signature):
            yield from map(slot_of, strides_of(call.arguments[name], len(signature.array_type(name).dims)))

    # --- the launcher of calls ---

    def _by_python(self, call: Call, *, allocates: bool) -> Outcome:
        signature = self.emitted.signature
        allocates = allocates and _may_allocate(signature)
        parameters = signature.inputs if allocates else signature.parameters
        names, values = [p.name for p in parameters], [call.arguments[p.name] for p in parameters]
        order = Order.of(signature, names, values, on_grid=bool(call.shape), of_call=False)
        if order not in self._launchers:
            program, constexprs = self.emitted.program, self.emitted.constexprs
            self._launchers[order] = write_launcher(signature, program, order, constexprs, self.recorder)
        launcher = self._launchers[order]
        if self.inventor.random.random() < 0.5:  # what the launcher remembers of these arrays holds for all numbers
            with contextlib.suppress(OtherOutputs):
                self._launch(launcher, self.inventor.with_other_numbers(call), parameters)
            self.recorder.block = None
        if not self._launch(launcher, call, parameters):
            return REFUSAL
        done = self.recorder.taken(self.sizes)
        return NOTHING if done is None else self._judged(done)

    def _launch(self, launcher: LaunchFunction, call: Call, parameters: Sequence[Parameter]) -> bool:
        left_out = (p for p in self.emitted.signature.outputs if p not in parameters)
        _provide(launcher, [call.arguments[p.name] for p in left_out])
        try:
            launcher(*call.shape, *(call.arguments[p.name] for p in parameters))
        except REFUSED:
            return False
        return True

    # --- CUDA ---

    def _judged(self, launch: Launch) -> Outcome:
        """The launch, unless CUDA refuses its shape."""
        *grid, bx, by, bz = launch.shape
        fits = all(0 < extent <= most for extent, most in zip(grid, (INT32_MAX, 65535, 65535), strict=True))
        return launch if fits and self._is_possible((bx, by, bz)) and 0 <= launch.shared <= MOST_SHARED else REFUSAL

    def _is_possible(self, block: Sequence[int]) -> bool:
        bounds = self.emitted.signature.launch_bounds
        most = bounds[0] if bounds else MAX_THREADS
        threads = 1
        for extent, limit in zip(block, (most, most, 64), strict=False):
            threads *= extent if 0 < extent <= limit else most + 1
        return threads <= most


def _number(parameter: Parameter, call: Call) -> Any:
    """A number as the binding passes it: the default or the extent that a call leaves out."""
    value = call.arguments[parameter.name]
    if value is not None or parameter.may_be_none:
        return value
    return call.dims[parameter.name] if parameter.default is None else parameter.default.value


def _is_float(parameter: Parameter) -> bool:
    match parameter.type:
        case ElementType(dtype=DType(kind=kind)) | PythonType(kind=kind):
            return kind >= Kind.FLOAT
    raise AssertionError(parameter)


def _may_allocate(signature: Signature) -> bool:
    """Whether a call may leave out all outputs."""
    names = {p.name for p in signature.outputs}
    is_source = any(dim.array in names for dim in signature.dims)
    may_all = names and signature.op_allocates and not any(p.may_be_none for p in signature.outputs)
    names_device = any(p.is_array and not p.may_be_none for p in signature.inputs)
    return bool(may_all) and not is_source and names_device


class OtherOutputs(Exception):
    """The launcher asks for outputs that the call does not have."""


def _provide(launcher: LaunchFunction, outputs: Sequence[Array]) -> None:
    """Let a launcher allocate these arrays, which must have the shapes and dtypes that it asks for."""
    rest = [*outputs]

    def empty(shape: tuple[int, ...], dtype: torch.dtype, **_: object) -> Array:
        array = rest.pop(0)
        if (array.shape, array.dtype) != (tuple(shape), dtype):
            raise OtherOutputs
        return array

    space = launcher.__globals__
    space["empty"], space["empty_like"] = empty, lambda like, **_: empty(like.shape, like.dtype)


_remember = Likeness.remember


def _remember_each(likeness: Likeness, *facts: Any) -> None:
    likeness._others = 0
    _remember(likeness, *facts)


def _lowered(path: Path) -> Lowered:
    """The kernels of an example or a case, with instances of templates that have none."""
    file, signatures, values = SourceFile.read(path), SIGNATURES.get(path.stem, ()), NO_VALUES
    if path.suffix == ".case":
        case = read_case(path)
        file, values = SourceFile(f"{path.stem}.py", case.python), values_of(case)
    done = lower_file(file, signatures=signatures, values=values)
    lacking = {name: some for each in done.signatures for name, some in small_values(each).items()}
    return lower_file(file, values={**values, **lacking}) if lacking else done


def _compare(paths: Sequence[Path], calls: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run so many calls of each kernel through both of its launchers, over all of its instances."""
    gxx()
    monkeypatch.setattr(torch._C, "_cuda_getDevice", lambda: 0, raising=False)
    monkeypatch.setattr(likeness, "Guards", InventedGuards)
    monkeypatch.setattr(Likeness, "remember", _remember_each)
    monkeypatch.setattr(likeness, "PLAIN_TENSORS", frozenset({Array}))
    wrong: list[str] = []
    for path, built in zip(paths, build([*map(_lowered, paths)]), strict=True):
        kernels: dict[str, list[Emitted]] = {}
        for each in built:
            kernels.setdefault(each.signature.op, []).append(each)
        for name, instances in kernels.items():
            random = Random(f"{path.stem} {name}")
            pairs = [Pair.of(each, random) for each in instances]
            differences, outcomes = zip(
                *(pairs[number % len(pairs)].disagreement(random) for number in range(max(calls, len(pairs)))),
                strict=True,
            )
            wrong += [f"{path.stem}: {difference}" for difference in differences if difference][:3]
            launches = sum(isinstance(outcome, Launch) for outcome in outcomes)
            assert launches * 40 >= len(outcomes), f"{path.stem}: only {launches} calls of {name} are launched"
    assert not wrong, "\n".join(wrong)


@pytest.mark.builds
@pytest.mark.parametrize("paths", proofs(BATCHES, 24), ids=lambda paths: f"{paths[0].stem}-{paths[-1].stem}")
def test_both_launchers_pass_the_same_to_cuda(paths: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    _compare(paths, QUICK, monkeypatch)


@pytest.mark.builds
@pytest.mark.slow
@pytest.mark.proof
@pytest.mark.parametrize("paths", BATCHES, ids=lambda paths: f"{paths[0].stem}-{paths[-1].stem}")
def test_both_launchers_agree_about_many_calls(paths: list[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    _compare(paths, LONG, monkeypatch)
