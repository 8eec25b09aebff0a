"""Evaluation of expressions that the source shows to be constant, and of the classes that hold constants.

    FULL = (1 << WIDTH) - 1        Config.EPS        Gate.INPUT.value

In: the bindings of the names around a kernel. Out: numbers, strings and tuples of numbers; members of enums are still
members, for their operators. No user code runs: a class is made of its literals by Python's own `type` and `enum`.
"""

from __future__ import annotations

import ast
import enum
import functools
import types
import warnings
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from dataclasses import dataclass, field, replace
from typing import Final

import libcst as cst

from py2cu.builtins import CONSTANTS
from py2cu.dtypes import DType
from py2cu.frontend.names import constants as evaluate
from py2cu.frontend.names.constants import Real, Value, as_constants
from py2cu.frontend.names.operators import SYMBOLS
from py2cu.frontend.names.syntax import dotted
from py2cu.ir.operators import OPERATORS, UNARY
from py2cu.live import frozen, is_integer_member, is_library, live_attribute

MAX_STEPS: Final = 300  # the longest chain of definitions that is evaluated
_LITERAL: Final = (bool, int, float, complex, str)
_BASES: Final[Mapping[str, type]] = {
    "builtins.object": object, "builtins.int": int, "builtins.float": float, "builtins.str": str,
    "enum.Enum": enum.Enum, "enum.IntEnum": enum.IntEnum, "enum.StrEnum": enum.StrEnum, "enum.Flag": enum.Flag,
    "enum.IntFlag": enum.IntFlag,
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Evaluator:
    """Evaluates expressions outside of kernels. The bindings are those of an `Environment`.

    `values` caches the values of definitions and the classes. `inside`: what the body of a class has bound so far.
    `is_table`: the expression is what a name stands for, where a list is a table, as a tuple is.
    """

    imports: Mapping[str, str]
    definitions: Mapping[str, cst.BaseExpression]
    functions: Mapping[str, cst.FunctionDef]
    classes: Mapping[str, cst.ClassDef]
    live: Mapping[str, object]
    qualify: Callable[[cst.BaseExpression], str | None]
    values: MutableMapping[str, object]
    inside: Mapping[str, object] = field(default_factory=dict)
    is_table: bool = False

    def value(self, node: cst.BaseExpression, depth: int = 0) -> Value | None:
        """The number, string or tuple of numbers that `node` evaluates to; None for anything else."""
        if depth > MAX_STEPS:
            return None
        if self.is_table and isinstance(node, cst.List | cst.Tuple):
            return as_constants(self.value(element.value, depth + 1) for element in node.elements)
        if self.is_table:
            return replace(self, is_table=False).value(node, depth)

        def value(inner: cst.BaseExpression) -> Value | None:
            return self.value(inner, depth + 1)

        match node:
            case cst.Integer() | cst.Float() | cst.SimpleString():
                literal = _literal(node.value)
                return literal if isinstance(literal, int | float | str) else None
            case cst.Imaginary():
                return complex(node.value)
            case cst.Name(value="True" | "False"):
                return node.value == "True"
            case cst.UnaryOperation(operator=sign, expression=inner):
                return evaluate.compute(UNARY[SYMBOLS[type(sign)]], value(inner))
            case cst.BinaryOperation(left=left, operator=sign, right=right) if type(sign) in SYMBOLS:
                return evaluate.compute_or_join(OPERATORS[SYMBOLS[type(sign)]].compute, value(left), value(right))
            case cst.Comparison(left=left, comparisons=rest):
                operands = [value(left), *(value(each.comparator) for each in rest)]
                return evaluate.compare([each.operator for each in rest], operands)
            case cst.IfExp(test=test, body=body, orelse=orelse):
                decided = value(test)
                return None if decided is None else value(body if decided else orelse)
            case cst.Tuple(elements=elements):
                return as_constants(value(element.value) for element in elements)
            case cst.Subscript(value=table, slice=[cst.SubscriptElement(slice=cst.Index(value=at, star=None))]):
                return evaluate.item(value(table), value(at))
            case cst.Call(func=function, args=args) if not any(arg.keyword or arg.star for arg in args):
                return evaluate.call(self.qualify(function) or "", [value(arg.value) for arg in args])
            case cst.Name(value=name) if name in self.inside:
                return _as_value(self.inside[name])
            case cst.Name(value=name) if name in self.definitions:
                return self._value_of_definition(name, depth)
            case cst.Name(value=name) if name not in self.imports and name not in self.functions:
                return _as_value(self.live.get(name))
            case cst.Attribute(value=cst.Call()):
                limit = self.limit(node)
                return limit[2] if limit is not None and limit[0] != "numpy.finfo" else None
            case cst.Attribute(value=owner, attr=cst.Name(value=attribute)) if (
                holder := self.owner(owner, depth + 1)
            ) is not None:
                return _as_value(live_attribute(holder, attribute))
            case cst.Name() | cst.Attribute():
                return CONSTANTS.get(self.qualify(node) or "")
            case _:
                return None

    def _value_of_definition(self, name: str, depth: int) -> Value | None:
        if name not in self.values:
            self.values[name] = None  # ends the recursion of a name that its own definition mentions
            computed = replace(self, inside={}, is_table=True).value(self.definitions[name], depth + 1)
            # `TABLE = tuple(f(k) for k in range(256))`, `PAD = ord("=")`: the module has computed it.
            self.values[name] = self.live.get(name) if computed is None else computed
        return _as_value(self.values[name])

    def limit(self, node: cst.Attribute) -> tuple[str, DType, Real] | None:
        """`np.iinfo(np.int32).max`: the function, the dtype, and the number."""
        match node:
            case cst.Attribute(value=cst.Call(func=function, args=[cst.Arg(value=dtype)]), attr=cst.Name(value=name)):
                owner = self.qualify(function)
                if owner in ("numpy.iinfo", "numpy.finfo", "torch.iinfo", "torch.finfo"):
                    limit = evaluate.limit(owner, self.qualify(dtype) or "", name)
                    return (owner, *limit) if limit is not None else None
        return None

    # --- classes ---

    def owner(self, node: cst.BaseExpression, depth: int = 0) -> object:
        """The user's class, or the member of an enum, that `node` names; None for anything else."""
        if depth > MAX_STEPS:
            return None
        match node:
            case cst.Name(value=name) if name in self.inside:
                return _as_owner(self.inside[name])
            case cst.Name(value=name) if isinstance(self.live.get(name), type | enum.Enum | types.ModuleType):
                return _as_owner(self.live[name])
            case cst.Name(value=name) if name in self.classes:
                return self.class_named(name)
            case cst.Name(value=name) if name in self.definitions:
                return self.owner(self.definitions[name], depth + 1)
            case cst.Attribute(value=cst.Name(value=name), attr=cst.Name(value=attribute)) if isinstance(
                module := self.live.get(name), types.ModuleType
            ):
                return _as_owner(live_attribute(module, attribute))
            case cst.Attribute(value=inner, attr=cst.Name(value=attribute)):
                holder = self.owner(inner, depth + 1)
                return None if holder is None else _as_owner(live_attribute(holder, attribute))
            case _:
                return None

    def class_named(self, name: str) -> type | None:
        """The class that a `class` statement makes, as far as its body is literal; None for any other class."""
        if name not in self.values:
            self.values[name] = None  # ends the recursion of a class that mentions itself
            self.values[name] = self.read_class(self.classes[name])
        made = self.values[name]
        return made if isinstance(made, type) else None

    def read_class(self, node: cst.ClassDef) -> type | None:
        """The class that `node` makes, if its bases are known and its body is literal; None for any other class."""
        bases = tuple(base for arg in node.bases if (base := self._base(arg)) is not None)
        if node.keywords or len(bases) < len(node.bases) or not all(map(self._is_kept_by, node.decorators)):
            return None
        is_enum = any(issubclass(base, enum.Enum) for base in bases)
        inside: dict[str, object] = {}
        reader = replace(self, inside=inside)
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # some numbers of `auto()` depend on the version of Python
            try:
                metaclass, namespace, _ = types.prepare_class(node.name.value, bases)
                namespace["__module__"] = ""
                for statement in node.body.body:
                    for name, value in reader._bound_in_class(statement, is_enum):
                        namespace[name] = value
                        inside[name] = namespace[name]
                made: type = metaclass(node.name.value, bases, namespace)
            except (TypeError, ValueError, AttributeError, Warning):  # also from Python, of a class that it refuses
                return None
        return made

    def _bound_in_class(
        self, statement: cst.BaseStatement | cst.BaseSmallStatement, is_enum: bool
    ) -> Iterator[tuple[str, object]]:
        """The names that a statement of a class binds, with their values.

        Raises:
            ValueError: only running the class would show what it binds.
        """
        match statement:
            case cst.SimpleStatementLine(body=small):
                for each in small:
                    yield from self._bound_in_class(each, is_enum)
            case cst.Pass() | cst.AnnAssign(value=None):
                pass
            case cst.Expr(value=cst.Ellipsis() | cst.SimpleString() | cst.ConcatenatedString()):
                pass
            case cst.AnnAssign(target=cst.Name(value=name), value=cst.BaseExpression() as value):
                yield self._class_constant(name, value, is_enum)
            case cst.Assign(targets=targets, value=value):
                for target in targets:
                    yield self._class_constant(dotted(target.target), value, is_enum)
            case cst.FunctionDef(name=cst.Name(value=name)) if not (is_enum and name.startswith("_")):
                yield name, property()
            case cst.ClassDef(name=cst.Name(value=name)) if not is_enum:
                yield name, self.read_class(statement)
            case _:
                raise ValueError(f"{type(statement).__name__} in a class")

    def _class_constant(self, name: str, node: cst.BaseExpression, is_enum: bool) -> tuple[str, object]:
        value: object = self.value(node)
        if is_enum and isinstance(node, cst.Call) and self.qualify(node.func) == "enum.auto" and not node.args:
            value = enum.auto()
        if not name or name.startswith("_" if is_enum else "__") or (is_enum and value is None):
            raise ValueError(name)
        return name, value

    def _base(self, arg: cst.Arg) -> type | None:
        if isinstance(arg.value, cst.Name) and arg.value.value in self.classes:
            return self.class_named(arg.value.value)
        return None if arg.star else _BASES.get(self.qualify(arg.value) or "")

    def _is_kept_by(self, decorator: cst.Decorator) -> bool:
        """True for a decorator that keeps the attributes of a class."""
        return self.qualify(decorator.decorator) in ("enum.unique", "dataclasses.dataclass")  # rule: class-decorator


def _as_value(value: object) -> Value | None:
    """`value` if it is a number, a string, a tuple or list of numbers, or a member of an `IntEnum`; else None."""
    table = frozen(value)
    if isinstance(table, tuple):
        return as_constants(table)
    if isinstance(value, enum.Enum):
        return value if is_integer_member(value) else None  # rule: member-integer
    return value if isinstance(value, _LITERAL) and type(value).__module__ != "numpy" else None


def _as_owner(value: object) -> object:
    """`value` if it is a class of the user's, or a member of such an enum; else None."""
    home = value if isinstance(value, type) else type(value)
    return value if isinstance(value, type | enum.Enum) and not is_library(home.__module__) else None


@functools.lru_cache(4096)
def _literal(text: str) -> object:
    """The value of a literal, cached: annotations repeat the same ones."""
    return ast.literal_eval(text)
