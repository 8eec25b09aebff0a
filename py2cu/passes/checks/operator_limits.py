"""Refuses kernels whose operator torch's schemas cannot describe: too many arguments, or too many arrays written.

def f(i: Index["n"], x0: Float32[Tensor, "n"], …, x60: …, out: …)     # P108: 62 arguments
"""

from __future__ import annotations

from typing import Final

from py2cu import ir
from py2cu.diagnostics import Reporter
from py2cu.ir.abi.parameters import Parameter, Role

MAX_ARGUMENTS: Final = 58  # of torch's 60: an explicit launch adds `grid` and `block`
MAX_WRITTEN: Final = 26  # each has a letter in the schema  # rule: operator-results
_WORDS: Final = ("NoneType",)  # the one identifier that torch's schema parser does not take for a name


def check_operator_limits(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """Report names that schemas cannot have, and the first parameter past each limit; the kernel is unchanged."""
    count = 0
    for parameter in kernel.parameters:
        count += _arguments(parameter)
        if count > MAX_ARGUMENTS:  # rule: operator-arguments
            total = sum(map(_arguments, kernel.parameters))
            what = f"the operator would have {total} arguments, and torch takes at most {MAX_ARGUMENTS} of a kernel"
            hint = "pass one array in place of several arrays or numbers, or write several kernels"
            reporter.error("P108", what, parameter.span, hint)
            break
    for name, span in ((kernel.name, kernel.span), *((p.name, p.span) for p in kernel.parameters)):
        if name in _WORDS:  # rule: operator-word
            reporter.error("P108", f"`{name}` is reserved in torch's schemas", span, "use another name")
    written = [p for p in kernel.parameters if isinstance(p.type, ir.ArrayType) and p.role is not Role.INPUT]
    if len(written) > MAX_WRITTEN:
        what = f"the kernel writes {len(written)} arrays, and its operator can return at most {MAX_WRITTEN}"
        hint = "write one array of several rows, or write several kernels"
        reporter.error("P108", what, written[MAX_WRITTEN].span, hint)
    return kernel


def _arguments(parameter: Parameter) -> int:
    """How many arguments of the schema `parameter` is: a complex number is two."""
    return 1 if isinstance(parameter.type, ir.ArrayType) or not ir.is_complex(parameter.type) else 2
