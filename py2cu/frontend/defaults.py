"""Defaults of device functions: constants, as they are where the function is defined.

    SCALE = 2.5

    def scaled(v, k=SCALE, turn=math.pi, most=1 << 10, step=np.float32(0.1)): …

Python takes a default's value when the `def` runs, and what is read here are names as they are later: one that is bound
more than once may have been another number before, and is refused. So is one that the file of the function does not
bind itself, another notebook cell's or another file's, which may be another number by now.
"""

from __future__ import annotations

import libcst as cst

from py2cu.diagnostics import Reporter
from py2cu.frontend.doubts import refuse_doubt
from py2cu.frontend.scope import of_64_bits, source_text
from py2cu.frontend.siblings import DeviceFunction
from py2cu.ir.complex_numbers import literal
from py2cu.ir.extents import Constant
from py2cu.ir.nodes import Call, Expr
from py2cu.source import Span


def read_default(param: cst.Param, function: DeviceFunction, reporter: Reporter, span: Span) -> Expr | None:
    """What a call at `span` gives `param` by giving nothing; None, and a diagnostic, where the text does not tell.

    `reporter` is that of the function's file.
    """
    node, name = param.default, param.name.value
    assert node is not None
    early = function.environment.as_defined()
    hint = f"give `{name}` in the call, or bind the name once, with a plain `=` or `import` that surely runs"
    if refuse_doubt(node, early, reporter, function.module.span, hint):
        return None
    if (element := early.element(node)) is not None:
        dtype, number = element
        return Call(f"numpy.{dtype.name}", (Constant(number, span),), span)
    value = early.constant(node)
    if isinstance(value, complex):
        return literal(value, span)
    if isinstance(value, bool | int | float):
        value = of_64_bits(value, reporter, function.module.span(node))
        return Constant(value, span, text=source_text(node) if _is_literal(node) else "")
    what = f"the default of `{name}` is no number that the text tells"
    reporter.error("P105", what, function.module.span(node), f"give `{name}` in the call")
    return None


def _is_literal(node: cst.BaseExpression) -> bool:
    match node:
        case cst.UnaryOperation(operator=cst.Minus(), expression=inner):
            return isinstance(inner, cst.BaseNumber)
        case _:
            return isinstance(node, cst.BaseNumber)
