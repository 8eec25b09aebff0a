"""Reports a name whose value only running the file would show, with the bindings that may reach its use.

In: an expression of a kernel, and the environment. Out: whether the expression has such a name; the first one is
reported.
"""

from __future__ import annotations

from collections.abc import Callable

import libcst as cst

from py2cu.diagnostics import Related, Reporter
from py2cu.frontend.names.bindings import Binding
from py2cu.frontend.names.environment import Environment
from py2cu.source import Span

_SHOWN = 4  # places that bind the name
_HINT = (
    "bind it once, with a plain `=`, `def` or `import` that always runs, or make it a parameter; "
    "under the decorator, its value is known"
)


def report_ambiguous_name(
    node: cst.CSTNode,
    environment: Environment,
    reporter: Reporter,
    span_of: Callable[[cst.CSTNode], Span],
    hint: str = _HINT,
) -> bool:
    """Report the first ambiguous name in `node`; False if there is none."""
    name = environment.first_ambiguous(node)
    if name is None:
        return False
    places = [Related(_effect_of(place), span_of(place.node)) for place in environment.ambiguous[name.value][:_SHOWN]]
    what = f"the value of `{name.value}` is known only by running the file, which py2cu does not do"
    reporter.error("P205", what, span_of(name), hint, places)
    return True


def _effect_of(place: Binding) -> str:
    """Describe a binding: what it does to the name, and whether it always runs."""
    match place:
        case Binding(meaning=cst.FunctionDef(decorators=[_, *_])):
            return f"the decorator may replace `{place.name}` here"
        case Binding(meaning=None, node=cst.Name() | cst.NamedExpr()):
            return f"`{place.name}` {'gets' if place.is_certain else 'may get'} its value here"
        case Binding(meaning=None, node=cst.BaseExpression()):
            return f"`{place.name}` is computed from this"
        case _:
            return f"`{place.name}` {'is' if place.is_certain else 'may be'} bound here"
