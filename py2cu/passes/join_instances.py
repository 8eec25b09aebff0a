"""Compares the instances of a generic kernel, and explains those that cannot be made.

In: the lowered instances, and the reporters of the failed ones. Out: the arrays that instances use differently; the
refused instances, as data for the errors of calls and as notes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from py2cu import ir
from py2cu.diagnostics import Diagnostic, Reporter
from py2cu.dtypes import TypeVariable
from py2cu.ir.abi.parameters import Refusal
from py2cu.source import SourceFile, Span

Dtypes = tuple[str, ...]


def uneven_arrays(family: ir.Instances) -> frozenset[str]:
    """The arrays that only some instances write, or allocate."""
    roles = [{p.name: p.role for p in instance.arrays} for instance in family]
    return frozenset(name for each in roles for name, role in each.items() if role is not roles[0][name])


def refusals(
    kernel: ir.Kernel, failed: Mapping[Dtypes, Reporter], reporter: Reporter, notes: bool
) -> tuple[Refusal, ...]:
    """The refused instances, grouped by the place of their first error; with `notes`, also one note a group."""
    errors: dict[tuple[SourceFile, Span], list[tuple[Dtypes, Diagnostic]]] = {}
    for dtypes, local in failed.items():
        error = local.errors[0]
        errors.setdefault((error.file, error.span), []).append((dtypes, error))
    done = []
    for (file, span), group in errors.items():
        refused, (_, error) = tuple(dtypes for dtypes, _ in group), group[0]
        place = f"line {span.line}" if file is reporter.file else f"line {span.line} of {file.name}"
        done.append(Refusal(refused, f"{place}: {error.message}; {error.hint}"))
        if notes:
            what = f"no {_listed(refused, kernel.variables)} instance of `{kernel.name}`: {error.message}"
            Reporter(file, reporter.diagnostics).note("P708", what, span, error.hint or "")
    return tuple(done)


def _listed(refused: Sequence[Dtypes], variables: Sequence[TypeVariable]) -> str:
    """`float16 or bfloat16`; with two type variables, those of one if they decide, else `float16 and int8`."""
    instances = math.prod(len(variable.admits) for variable in variables)
    for place, variable in enumerate(variables):
        names = dict.fromkeys(dtypes[place] for dtypes in refused)
        if len(names) * instances == len(refused) * len(variable.admits):
            return " or ".join(names)
    return " or ".join(" and ".join(dtypes) for dtypes in refused)
