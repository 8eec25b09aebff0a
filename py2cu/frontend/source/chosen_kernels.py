"""Choose the kernels of a file that are translated.

In: the module, and the name that was asked for, if any. Out: the kernels. Errors: P107, for a name that no kernel or
two kernels have, and for a file without a kernel.
"""

from __future__ import annotations

from py2cu.diagnostics import Reporter
from py2cu.frontend.source.dynamic_kernels import report_dynamic_kernels
from py2cu.frontend.source.reader import KernelSource, Module
from py2cu.source import Span
from py2cu.suggestions import did_you_mean


def chosen_kernels(
    module: Module, only: str | None, reporter: Reporter, *, is_required: bool
) -> tuple[KernelSource, ...]:
    """The kernels of a file, or the one called `only`; if one is required, a file without is an error."""
    chosen = tuple(s for s in module.kernels if only is None or s.function.name.value == only)
    has_dynamic_error = report_dynamic_kernels(module, only, reporter)
    if not chosen and is_required and not has_dynamic_error:
        message = f"there is no kernel called `{only}`" if only else "there is no kernel in this file"
        hint = "decorate a function with `@kernel` from py2cu"
        if only and module.kernels:
            known = [source.function.name.value for source in module.kernels]
            hint = did_you_mean(only, known, f"its kernels are {', '.join(known)}")
        reporter.error("P107", message, Span(1, 0, 1, 1), hint)
    names: dict[str, KernelSource] = {}
    for source in chosen:
        name = source.function.name.value
        if name in names:
            reporter.error("P107", f"two kernels are called `{name}`", module.span(source.function.name), "rename one")
        names[name] = source
    return chosen
