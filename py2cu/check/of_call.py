"""`Kernel.check`: tell its options from the arguments of a call, and check on these arguments or on invented ones.

In: a kernel and the arguments of `k.check(…)`. Out: a `CheckReport`. Errors: those of `check_kernel` and of a call.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Protocol

from py2cu.call.argument_checks import check_arguments
from py2cu.call.layout import Layout
from py2cu.check.cases import user_case
from py2cu.check.gradients import Differentiable, check_gradients
from py2cu.check.progress import progress_bar
from py2cu.check.report import CheckReport
from py2cu.check.run import check_kernel
from py2cu.check.sizes import small_values
from py2cu.diagnostics import TranslationError
from py2cu.ir.abi.signature import Signature


class Checkable(Differentiable, Protocol):
    """What is known here of a `Kernel`."""

    def with_small_values(self) -> Checkable: ...


class Instantiable(Protocol):
    """A `Kernel` with template arguments."""

    @property
    def signature(self) -> Signature: ...
    def with_values(self, **values: int | Iterable[int]) -> Instantiable: ...


def small_values_of(kernel: Instantiable) -> dict[str, tuple[int, ...]]:
    """Values for the template arguments without instances, for which the kernel can be translated."""

    def has_instance(name: str, value: int) -> bool:
        try:
            _ = kernel.with_values(**{name: (value,)}).signature
        except TranslationError:
            return False
        return True

    candidates = small_values(kernel.signature).items()
    return {name: tuple(value for value in values if has_instance(name, value)) for name, values in candidates}


def check_call(
    kernel: Checkable, layout: Layout, args: Sequence[Any], kwargs: Mapping[str, Any], *, contracts: bool
) -> CheckReport:
    """Check `kernel` on the arguments of a call or, without any, on invented ones; see `Kernel.check`."""
    parameters = kernel.signature.keywords
    options = {name: kwargs[name] for name in ("unordered", "race", "grad") if name in kwargs.keys() - parameters}
    arguments = {name: value for name, value in kwargs.items() if name not in options}
    with_gradients = options.pop("grad", False)
    if with_gradients and not kernel.backwards:
        raise TypeError(f"{kernel.__name__} has no backward; attach one with `@{kernel.__name__}.backward`")
    with progress_bar(f"checking {kernel.__name__}") as progress:
        if not args and not arguments:
            report = check_kernel(kernel.with_small_values(), contracts=contracts, progress=progress, **options)
            return _with_gradients(kernel, report, None, contracts, options.get("race")) if with_gradients else report
        _, values = layout.bind(args, arguments)
        device = check_arguments(layout.signature, values)
        case = user_case(kernel.signature.instance(values), values)
        report = check_kernel(kernel, [case], device=device, contracts=contracts, progress=progress, **options)
        exact = f"`{kernel.__name__}.without_fma().check(…)` knows bits and branches exactly, in a build without FMA"
        report = replace(report, advice=exact if contracts else "")  # rule: check-advice
        return _with_gradients(kernel, report, values, contracts, options.get("race")) if with_gradients else report


def _with_gradients(
    kernel: Checkable,
    report: CheckReport,
    values: Mapping[str, Any] | None,
    contracts: bool,
    race: str | None,
) -> CheckReport:
    """`report` with the gradients, and with what a check of each backward by itself finds, such as races."""
    if by_host := [backward for backward in kernel.backwards if backward.kind != kernel.kind]:
        what = f"the gradients: `{by_host[0].__name__}` is a {by_host[0].kind}, of which there is no copy in float64"
        return replace(report, gradients=(), skipped=(*report.skipped, what))
    report = check_gradients(kernel, report, values)
    for backward in kernel.backwards:
        own = check_kernel(backward.with_small_values(), contracts=contracts, race=race)
        failures = (replace(each, message=f"in `{backward.__name__}`, {each.message}") for each in own.failures)
        report = replace(report, failures=(*report.failures, *failures))
    return report
