"""Compare a kernel's gradients with numerical derivatives: `torch.autograd.gradcheck`, in float64.

In: a kernel with backwards, and the report of its check. Out: the report with the gradients. A kernel with narrower
floats is checked as its copy in float64 (`KernelOptions.float64`). Cases are small, since a numerical derivative calls
the kernel twice for each element; each is simulated first, so that none makes the compiled kernel access memory outside
its arrays.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from itertools import chain
from typing import Any, ClassVar, Final, Protocol, Self

import torch
from torch.autograd.gradcheck import GradcheckError

from py2cu.check.cases import Argument, Case, make_case, scale_down, user_case
from py2cu.check.differences import Fault
from py2cu.check.draw import RANDOM, TAME
from py2cu.check.report import CheckReport, Mismatch
from py2cu.check.run_case import CheckedKernel
from py2cu.check.sizes import choose_sizes, row_lengths
from py2cu.diagnostics import TranslationError
from py2cu.ir.abi.gradients import match_backwards
from py2cu.ir.abi.parameters import Role
from py2cu.ir.abi.signature import Signature
from py2cu.ir.types import ArrayType
from py2cu.ir.visit import names_in
from py2cu.simulator import SimulationError, simulate

PLAN: Final = ((1, TAME), (2, TAME), (3, RANDOM))  # an index into the lists of sizes, and the flavour of the values
MAX_WORK: Final = 64  # of an invented case
MAX_ELEMENTS: Final = 2048  # of an input, since each element is varied
SECONDS: Final = 3.0  # of processor time for the Python of a case
SHOWN: Final = 400  # characters of a message of `gradcheck`
STEP: Final = 1e-6  # of a difference quotient
FAR: Final = 1e-5  # a derivative that is farther from its quotient is worth showing


class Differentiable(CheckedKernel, Protocol):
    """The interface of a kernel with backwards that `check_gradients` uses."""

    __name__: str
    kind: ClassVar[str]
    backwards: Any

    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

    def with_options(self, *, float64: bool) -> Self: ...


def check_gradients(
    kernel: Differentiable, report: CheckReport, arguments: Mapping[str, Argument] | None = None
) -> CheckReport:
    """`report`, the outcome of the kernel's other checks, with its gradients for `arguments`, or for invented ones.

    Raises:
        BuildError: a compiler refused the kernel.
    """
    try:
        twin = kernel.with_options(float64=True)
        signatures = [backward.signature for backward in twin.backwards]
        all_roles, misfits = match_backwards(twin.signature, signatures)
    except TranslationError as error:
        what = f"the gradients: {error.diagnostics[0].headline}"
        return replace(report, gradients=(), skipped=(*report.skipped, what))
    if misfits:
        what = f"`{twin.backwards[misfits[0].place].__name__}` is no backward: {misfits[0].message}"
        failure = Mismatch(Fault.GRADIENT, "every call", what)
        return replace(report, gradients=(), failures=(*report.failures, failure))
    pairs = zip(twin.backwards, all_roles, strict=True)
    kernels = {target: backward.__name__ for backward, roles in pairs for _, target in roles.results}
    cases = _invented(twin.signature, signatures) if arguments is None else [_widened(twin.signature, arguments)]
    compared: dict[str, None] = {}
    skipped: list[str] = []
    for case in cases:
        if (reason := _unspecified(twin, case)) is not None:
            skipped.append(f"{case}: {reason}")
            continue
        for name in kernels:
            value = case.arguments.get(name)
            if not isinstance(value, torch.Tensor) or not value.numel():
                continue
            if value.numel() > MAX_ELEMENTS:
                what = f"`grad_{name}`: gradients are compared for at most {MAX_ELEMENTS:,} elements"
                skipped.append(f"{what}, and `{name}` has {value.numel():,}")
                continue
            compared[name] = None
            if (difference := _difference(twin, case, name, report.device)) is not None:
                what = f"`grad_{name}` of `{kernels[name]}` is no derivative: {difference}"
                failure = Mismatch(Fault.GRADIENT, str(case), what, f"grad_{name}")
                return replace(report, gradients=tuple(compared), failures=(*report.failures, failure))
    skipped = [] if compared else skipped
    tests = dict.fromkeys(test for each in (twin, *twin.backwards) for test in each.signature.dtype_tests)
    what = "gradients are compared in float64 alone, not in the branches for other dtypes of"
    skipped += (f"line {line}: {what} `{text}`" for line, text in tests)
    return replace(report, gradients=tuple(compared), skipped=(*report.skipped, *skipped))


def _invented(signature: Signature, backwards: Iterable[Signature]) -> Iterator[Case]:
    rows = tuple(chain.from_iterable(_rows_of(backward, signature) for backward in backwards))
    for each in signature.instances or (signature,):
        instance = replace(each, vector_widths=(*each.vector_widths, *rows))
        for number, (index, flavour) in enumerate(PLAN):
            case = make_case(instance, choose_sizes(instance, index, number), flavour, number)
            small = case and scale_down(instance, case, lambda work: work <= MAX_WORK)
            if small is not None:
                yield small


def _rows_of(backward: Signature, forward: Signature) -> Iterator[tuple[str, int]]:
    """The arrays of `forward` whose last dimension `backward` views in rows, with the length of the rows."""
    for instance in backward.instances or (backward,):
        lengths = row_lengths(instance)
        for array in instance.arrays:
            target = array.name.removeprefix("grad_")
            if isinstance(array.type, ArrayType) and array.type.dims and target in {p.name for p in forward.arrays}:
                yield from ((target, lengths[name]) for name in names_in(array.type.dims[-1]) if name in lengths)


def _widened(signature: Signature, arguments: Mapping[str, Argument]) -> Case:
    """The user's arguments with the dtypes of the kernel's copy."""
    wide: dict[str, Argument] = {}
    for name, value in arguments.items():
        if isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex()):
            wide[name] = value.to(torch.complex128 if value.is_complex() else torch.float64)
        else:
            wide[name] = value
    return user_case(signature.instance(wide), wide)


def _unspecified(kernel: Differentiable, case: Case) -> str | None:
    """Why the Python has no specified result in this case, or one without a derivative; None if it has one."""
    signature = kernel.signature.instance(case.arguments)
    arguments = _copied(case.arguments)
    try:
        simulated = simulate(kernel.python, signature, arguments, seconds=SECONDS, stops=False)
    except (SimulationError, ValueError) as error:
        return str(error)
    for finding in simulated.findings:
        if finding.is_open or finding.is_bug:
            return str(finding)
    written = (p.name for p in signature.arrays if p.role is not Role.INPUT and p.name in arguments)
    infinite = next((name for name in written if not torch.isfinite(arguments[name]).all()), None)
    return infinite and f"`{infinite}` is infinite or NaN, and has no derivative"


def _copied(arguments: Mapping[str, Argument]) -> dict[str, Any]:
    return {name: value.clone() if isinstance(value, torch.Tensor) else value for name, value in arguments.items()}


def _difference(kernel: Differentiable, case: Case, name: str, device: str) -> str | None:
    """What `gradcheck` says about the gradient of the argument `name`; None if it is right."""
    allocated = {p.name for p in kernel.signature.outputs}
    given: dict[str, Any] = {n: v.to(device) if isinstance(v, torch.Tensor) else v for n, v in case.arguments.items()}
    value = given[name].detach().requires_grad_()

    def run(value: torch.Tensor) -> dict[str, torch.Tensor]:
        """What the kernel writes, by name."""
        arguments = {n: v for n, v in _copied(given | {name: value}).items() if n not in allocated}
        returned = kernel(**arguments)
        outputs = returned if isinstance(returned, tuple) else (returned,) if allocated else ()
        written = dict(zip((p.name for p in kernel.signature.outputs), outputs, strict=True))
        updated = (p.name for p in kernel.signature.arrays if p.role is Role.INOUT and p.name in arguments)
        return written | {name: arguments[name] for name in updated}

    with _uninitialised_memory_is_nan():
        try:
            torch.autograd.gradcheck(lambda value: tuple(_differentiable(run(value)).values()), value)
        except GradcheckError as error:
            return _worst_element(run, name, value) or _shortened(error)
        except RuntimeError as error:
            return _shortened(error)
    return None


def _shortened(error: Exception) -> str:
    text = " ".join(str(error).split())
    return text if len(text) <= SHOWN else f"{text[:SHOWN]} …"


def _differentiable(written: Mapping[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: each for name, each in written.items() if each.requires_grad}


def _worst_element(
    run: Callable[[torch.Tensor], Mapping[str, torch.Tensor]], name: str, value: torch.Tensor
) -> str | None:
    """The derivative by an element of the argument `name` that is farthest from a difference quotient.

    None for complex numbers, and where no derivative is far away.
    """
    outputs = _differentiable(run(value))
    if any(each.is_complex() for each in (value, *outputs.values())):
        return None
    worst, text = FAR, None
    for output, result in outputs.items():
        places = range(result.numel())
        derivatives = [torch.autograd.grad(run(value)[output].flatten()[at], value)[0].flatten() for at in places]
        quotients = [_quotient(run, output, value, at) for at in range(value.numel())]
        found, expected = torch.stack(derivatives), torch.stack(quotients, dim=1)
        away = (found - expected).abs().nan_to_num(math.inf)
        if away.max() > worst:
            worst, at = float(away.max()), tuple(map(int, torch.unravel_index(away.argmax(), away.shape)))
            quotient = f"d {_element(output, result, at[0])} / d {_element(name, value, at[1])}"
            text = f"{quotient} is {found[at]:.6g} by the kernel, and {expected[at]:.6g} by differences"
    return text


def _quotient(
    run: Callable[[torch.Tensor], Mapping[str, torch.Tensor]], output: str, value: torch.Tensor, at: int
) -> torch.Tensor:
    """The difference quotients of all elements of `output` by element `at` of the argument."""
    with torch.no_grad():
        lower, upper = (value.detach().clone(memory_format=torch.contiguous_format) for _ in range(2))
        lower.view(-1)[at] -= STEP
        upper.view(-1)[at] += STEP
        return (run(upper)[output] - run(lower)[output]).flatten() / (2 * STEP)


def _element(name: str, tensor: torch.Tensor, at: int) -> str:
    """Element `at` of all elements, as Python spells it: `x[1, 2]`."""
    indices = torch.unravel_index(torch.tensor(at), tensor.shape) if tensor.dim() else ()
    return f"`{name}[{', '.join(str(int(index)) for index in indices) or '()'}]`"


@contextmanager
def _uninitialised_memory_is_nan() -> Iterator[None]:
    """Fill what torch allocates with NaN, so that a gradient that the kernel does not store is found."""
    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])
