"""Reports a name whose value only running the file would show, with the bindings that may reach its use.

In: an expression of a kernel, and the environment. Out: whether the expression has such a name; the first one is
reported.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import libcst as cst

from py2cu.diagnostics import Related, Reporter
from py2cu.frontend.names.bindings import Binding
from py2cu.frontend.names.environment import Environment
from py2cu.frontend.names.syntax import source_text
from py2cu.source import Span

_SHOWN = 4  # places that bind the name


def report_ambiguous_name(
    node: cst.CSTNode,
    environment: Environment,
    reporter: Reporter,
    span_of: Callable[[cst.CSTNode], Span],
    hint: str | None = None,
) -> bool:
    """Report the first ambiguous name in `node`; False if there is none. `hint` replaces the usual one."""
    name = environment.first_ambiguous(node)
    if name is None:
        return False
    bindings = environment.ambiguous[name.value]
    places = [Related(_effect_of(place), span_of(place.node)) for place in bindings[:_SHOWN]]
    what = f"the value of `{name.value}` is known only by running the file, which py2cu does not do"
    reporter.error("P205", what, span_of(name), hint or _hint(name.value, bindings), places)
    return True


def parameter_hint(name: str, environment: Environment) -> str:
    """How a kernel gets a number that its source does not determine."""
    known = "" if environment.live else "; where Python calls the kernel, a number is known"
    return f"make `{name}` a parameter of the kernel{known}"


def hint_for_value(name: str, environment: Environment) -> str | None:
    """The hint for an ambiguous name in a body that may be a number; None for a function or a module."""
    bindings = environment.ambiguous.get(name, ())
    for meaning in (place.meaning for place in bindings):
        is_function = isinstance(meaning, cst.Name) and environment.function_name(meaning.value) is not None
        if is_function or isinstance(meaning, str | cst.FunctionDef | cst.Lambda):
            return None
    return f"{_hint(name, bindings)}, or {parameter_hint(name, environment)}"


def remove_decorators(function: cst.FunctionDef) -> str:
    """A hint that names all decorators of `function`."""
    texts = (f"`@{source_text(each.decorator)}`" for each in function.decorators)
    return f"remove {' and '.join(texts)} above `def {function.name.value}`"


def _hint(name: str, bindings: Sequence[Binding]) -> str:
    for meaning in (place.meaning for place in bindings):
        if isinstance(meaning, cst.FunctionDef) and meaning.decorators:
            return remove_decorators(meaning)
    if any(place.is_change for place in bindings):
        return f"make `{name}` a tuple, which nothing changes: `{name} = (…)`"
    return f"bind `{name}` once, with a plain `=`, `def` or `import` that always runs"


def _effect_of(place: Binding) -> str:
    """Describe a binding: what it does to the name, and whether it always runs."""
    match place:
        case Binding(meaning=cst.FunctionDef(decorators=[_, *_])):
            return f"the decorator may replace `{place.name}` here"
        case Binding(is_change=True):
            return f"`{place.name}` may be changed here, or get another name"
        case Binding(meaning=None, node=cst.Name() | cst.NamedExpr()):
            return f"`{place.name}` {'gets' if place.is_certain else 'may get'} its value here"
        case Binding(meaning=None, node=cst.BaseExpression()):
            return f"`{place.name}` is computed from this"
        case _:
            return f"`{place.name}` {'is' if place.is_certain else 'may be'} bound here"
