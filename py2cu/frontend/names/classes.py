"""Refuses classes, and attributes of classes, that are no numbers in a kernel, and operators of flags.

In: expressions of a kernel. Out: diagnostics that say what to write instead. Flags are never negative, so that some
operators of `IntFlag` differ from those of integers:

    ~Option.RELU              all other options, and -2 of the integer
    -8 | Option.RELU          a flag of Python's choice, and -7 of the integer
"""

from __future__ import annotations

import enum
from collections.abc import Callable
from typing import Final

import libcst as cst

from py2cu.diagnostics import Reporter
from py2cu.frontend.names.environment import Environment
from py2cu.frontend.names.syntax import source_text
from py2cu.live import live_attribute
from py2cu.source import Span
from py2cu.suggestions import did_you_mean

_SETTING: Final = (cst.BitOr, cst.BitXor, cst.BitOrAssign, cst.BitXorAssign)
_AS_PARAMETER: Final = "a kernel computes with numbers: pass one as a parameter"


def report_class(
    node: cst.BaseExpression, environment: Environment, reporter: Reporter, span_of: Callable[[cst.CSTNode], Span]
) -> bool:
    """Report a class, or the attribute of one that is no number; False for any other expression."""
    reason = why_no_number(node, environment)
    if reason is not None:
        reporter.error("P202", reason[0], span_of(node), reason[1])
    return reason is not None


def why_no_number(node: cst.BaseExpression, environment: Environment) -> tuple[str, str] | None:
    """What is wrong with `Mode.SUM`, and the hint; None unless `node` is a class or an attribute of one."""
    text = source_text(node)
    if isinstance(environment.owner(node), type) or (isinstance(node, cst.Name) and node.value in environment.classes):
        constants = _constants(environment.owner(node))
        hint = f"name one of its constants: `{text}.{constants[0]}`" if constants else _AS_PARAMETER
        return f"`{text}` is a class, not a number", hint
    if not isinstance(node, cst.Attribute):
        return None
    holder, attribute = source_text(node.value), node.attr.value
    match environment.owner(node.value):
        case type() as owner if any(attribute in vars(each) for each in owner.__mro__):
            return _why_no_constant(text, live_attribute(owner, attribute), environment)
        case type() as owner:
            hint = f"assign a number to it in `class {holder}`"
            return f"`{holder}` has no `{attribute}`", did_you_mean(attribute, _constants(owner), hint)
        case enum.Enum():
            return f"`{text}` is not a number", _AS_PARAMETER
    if isinstance(node.value, cst.Name) and node.value.value in environment.classes:
        return _why_no_constant(text, None, environment)
    match environment.definition(holder):
        case cst.Call(func=cst.Name(value=made)) if made in environment.classes:
            what = f"`{holder}` is an object, and a kernel reads the constants of classes"
            return what, f"write `{made}.{attribute}`, or pass it as a parameter"
    return None


def _why_no_constant(text: str, value: object, environment: Environment) -> tuple[str, str]:
    """What is wrong with an attribute that has this value; None is one that the source does not determine."""
    owner, _, name = text.rpartition(".")
    match value:
        case enum.Enum(value=int() | float()):
            hint = f"write `{text}.value`, or derive `{owner}` from `IntEnum`"
            return f"`{text}` is a member of an enum, not a number", hint
        case tuple():
            return f"`{text}` is a tuple", f"name it outside the kernel: `{name} = {text}`, and look up `{name}[k]`"
        case None if not environment.live:
            hint = f"assign a number to it in `class {owner}`, or make `{name}` a parameter of the kernel"
            return f"the source does not determine the value of `{text}`", hint
        case _:
            return f"`{text}` is not a number", _AS_PARAMETER


def _constants(owner: object) -> list[str]:
    """The names of the numbers in a class."""
    if not isinstance(owner, type):
        return []
    names = [name for name in vars(owner) if not name.startswith("_")]
    return [name for name in names if isinstance(live_attribute(owner, name), bool | int | float)]


def report_flag(
    sign: cst.CSTNode,
    operands: tuple[cst.BaseExpression, ...],
    environment: Environment,
    reporter: Reporter,
    span_of: Callable[[cst.CSTNode], Span],
) -> None:
    """Report a flag among `operands`, unless the operator `sign` computes the same as for integers."""
    if not isinstance(sign, (cst.BitInvert, *_SETTING)):
        return
    flag = next((operand for operand in operands if environment.is_flag(operand)), None)
    if flag is None or (isinstance(sign, _SETTING) and all(map(environment.is_flag, operands))):  # rule: class-flag
        return
    text = source_text(flag)
    what = f"this operator of the flag `{text}` differs from that of an integer, as flags are never negative"
    reporter.error("P202", what, span_of(flag), f"take the integer: `int({text})`")
