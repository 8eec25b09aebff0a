"""What the names around a kernel mean, read from the source alone.

In: the statements of a module and of the functions around a kernel. Out: `Environment.qualify`, which turns `np.exp`
into "numpy.exp" however it was imported, and `Environment.constant`, which finds `FULL = 0xFF`. Nothing is run.
A decorator, whose function already lives, passes its globals too: names that the source does not define (another
notebook cell, a closure) are looked up there.
"""

from __future__ import annotations

import ast
import builtins
import functools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Final

import libcst as cst

from py2cu.builtins import CONSTANTS, lookup
from py2cu.dtypes import BY_JAXTYPING, GENERIC, DType, find_dtype
from py2cu.frontend import evaluate
from py2cu.frontend.evaluate import Constants, Number, Real, Value, as_constants, is_kept

_BUILTIN_NAMES = frozenset(dir(builtins))
# Names that have a meaning here and are no builtin of the language.
KNOWN = frozenset(
    [
        f"py2cu.{name}"
        for name in ("kernel", "device", "local", "Constexpr", "Index", "blockIdx", "threadIdx", "blockDim", "gridDim")
    ]
    + [f"py2cu.{name}" for name in ("shared", "atomic", "syncthreads", "syncgrid", "syncwarp", "unroll")]
    + [f"py2cu.threadfence{scope}" for scope in ("", "_block", "_system")]
    + [f"jaxtyping.{name}" for name in (*BY_JAXTYPING, *GENERIC)]
    + ["torch.Tensor"]
)

MAX_STEPS: Final = 300  # from a name to the farthest number that it is computed from
_LITERAL: Final = (bool, int, float, complex, str)


@dataclass(slots=True)
class Environment:
    """Names bound by imports and simple assignments; `live` holds what Python knows at run time."""

    imports: dict[str, str] = field(default_factory=dict)
    definitions: dict[str, cst.BaseExpression] = field(default_factory=dict)
    functions: dict[str, cst.FunctionDef] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    live: Mapping[str, object] = field(default_factory=dict)
    unread: frozenset[str] = frozenset()  # bound by statements that were left out: for messages alone
    told: Mapping[str, str] = field(default_factory=dict)  # what calls of functions around tell, and which
    binders: Mapping[str, cst.FunctionDef] = field(default_factory=dict)  # in a kernel: whose variable a name is
    homes: Mapping[str, Environment] = field(default_factory=dict)  # of functions within it: what is around each
    free_names: dict[cst.FunctionDef, tuple[str, ...]] = field(default_factory=dict)  # of functions that were asked for
    _values: dict[str, Value | None] = field(default_factory=dict)  # of the definitions asked for

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that is bound here, for messages."""
        return (*self.imports, *self.definitions, *self.functions, *self.unread)

    def read(self, body: Iterable[cst.BaseStatement | cst.BaseSmallStatement]) -> None:
        """Enter what the statements of one scope bind; a later binding replaces an earlier one."""
        for statement in flatten(body):
            match statement:
                case cst.Import(names=aliases):
                    for alias in aliases:
                        self._import(alias)
                case cst.ImportFrom():
                    self._import_from(statement)
                case cst.Assign(targets=[cst.AssignTarget(target=cst.Name(value=name))], value=value):
                    self._forget(name)
                    self.definitions[name] = value
                case cst.AnnAssign(target=cst.Name(value=name), value=cst.BaseExpression() as value):
                    self._forget(name)
                    self.definitions[name] = value
                case cst.FunctionDef(name=cst.Name(value=name)):
                    self._forget(name)
                    self.functions[name] = statement

    def inner(self, function: cst.FunctionDef) -> Environment:
        """The environment inside `function`: its parameters hide outer names, its statements bind more."""
        scope = Environment(
            dict(self.imports), dict(self.definitions), dict(self.functions), list(self.stars), self.live, self.unread,
            {**self.told, **{each.name.value: function.name.value for each in all_parameters(function)}},
        )  # fmt: skip
        for parameter in all_parameters(function):
            scope._forget(parameter.name.value)
        scope.read(function.body.body)
        return scope

    def qualify(self, node: cst.BaseExpression, depth: int = 8) -> str | None:
        """The qualified name that `node`, a name or dotted name, stands for; None for anything else."""
        match node:
            case cst.Attribute(value=value, attr=cst.Name(value=attr)):
                owner = self.qualify(value, depth)
                return f"{owner}.{attr}" if owner else None
            case cst.Name(value=name) if name in self.imports:
                return self.imports[name]
            case cst.Name(value=name) if name in self.definitions and depth:
                return self.qualify(self.definitions[name], depth - 1)
            case cst.Name(value=name) if name not in self.functions:
                if name in self.live:
                    return _live_name(self.live[name])
                return self._starred(name) or (f"builtins.{name}" if name in _BUILTIN_NAMES else None)
            case _:
                return None

    def living(self, node: cst.BaseExpression) -> object:
        """What `node`, a name or dotted name, stands for at run time; None where the source alone is known."""
        match node:
            case cst.Name(value=name) if name not in self.functions:
                return self.live.get(name)
            case cst.Attribute(value=value, attr=cst.Name(value=attr)):
                owner = self.living(value)
                return vars(owner).get(attr) if isinstance(owner, ModuleType) else None
            case _:
                return None

    def definition(self, name: str) -> cst.BaseExpression | None:
        """What the source assigns to `name` outside the kernel."""
        return self.definitions.get(name)

    def constant(self, node: cst.BaseExpression) -> Number | str | None:
        """The number or string that `node` is, names or computes of others; None if it is none."""
        found = None if self._is_own(node) else self._value(node)
        return None if isinstance(found, tuple) else found

    def constants(self, node: cst.BaseExpression) -> Constants | None:
        """The tuple of numbers, or of such tuples, that `node` is or names; None if it is none."""
        found = None if self._is_own(node) else self._value(node)
        return found if isinstance(found, tuple) else None

    def element(self, node: cst.BaseExpression, depth: int = 8) -> tuple[DType, Real] | None:
        """The element that `node` names or makes around the kernel: `np.float32(0.1)`, `np.finfo(np.float32).eps`.

        None for any other, and for what NumPy rounds as no cast of a kernel does.
        """
        match node:
            case cst.Name(value=name) if name in self.definitions and name not in self.binders and depth:
                return replace(self, binders={}).element(self.definitions[name], depth - 1)
            case cst.Call(func=function, args=[cst.Arg(value=value, keyword=None, star="")]):
                library, _, name = (self.qualify(function) or "").rpartition(".")
                dtype, number = find_dtype(name) if library == "numpy" else None, self.constant(value)
                if dtype is None or not isinstance(number, bool | int | float) or not is_kept(dtype, number):
                    return None
                return dtype, number
            case cst.Attribute():
                found = self._limit(node)
                return found[1:] if found is not None and found[0] == "numpy.finfo" else None
            case _:
                return None

    def _is_own(self, node: cst.CSTNode) -> bool:
        """True where `node` mentions a name of the function that is being read."""
        match node:
            case _ if not self.binders:
                return False
            case cst.Name(value=name):
                return name in self.binders
            case cst.Attribute(value=value):
                return self._is_own(value)
            case _:
                return any(map(self._is_own, node.children))

    def _value(self, node: cst.BaseExpression, depth: int = 0) -> Value | None:
        if depth > MAX_STEPS:
            return None

        def value(inner: cst.BaseExpression) -> Value | None:
            return self._value(inner, depth + 1)

        match node:
            case cst.Integer() | cst.Float() | cst.SimpleString():
                literal = _literal(node.value)
                return literal if isinstance(literal, int | float | str) else None
            case cst.Imaginary():
                return complex(node.value)
            case cst.Name(value="True" | "False"):
                return node.value == "True"
            case cst.UnaryOperation(operator=sign, expression=inner):
                return evaluate.compute(evaluate.SIGNS[type(sign)], value(inner))
            case cst.BinaryOperation(left=left, operator=sign, right=right) if type(sign) in evaluate.OPERATORS:
                return evaluate.compute(evaluate.OPERATORS[type(sign)], value(left), value(right))
            case cst.Comparison(left=left, comparisons=[cst.ComparisonTarget(operator=sign, comparator=right)]):
                return evaluate.compare(sign, value(left), value(right))
            case cst.IfExp(test=test, body=body, orelse=orelse):
                decided = value(test)
                return None if decided is None else value(body if decided else orelse)
            case cst.Tuple(elements=elements):
                return as_constants(value(element.value) for element in elements)
            case cst.Subscript(value=table, slice=[cst.SubscriptElement(slice=cst.Index(value=at, star=None))]):
                return evaluate.item(value(table), value(at))
            case cst.Call(func=function, args=args) if not any(arg.keyword or arg.star for arg in args):
                return evaluate.call(self.qualify(function) or "", [value(arg.value) for arg in args])
            case cst.Name(value=name) if name in self.definitions:
                if name not in self._values:
                    self._values[name] = None  # for a name that is defined by itself
                    self._values[name] = value(self.definitions[name])
                return self._values[name]
            case cst.Name(value=name) if name not in self.imports and name not in self.functions:
                live = self.live.get(name)
                if isinstance(live, tuple):
                    return as_constants(live)
                return live if isinstance(live, _LITERAL) and type(live).__module__ != "numpy" else None
            case cst.Attribute(value=cst.Call()):
                found = self._limit(node)
                return found[2] if found is not None and found[0] != "numpy.finfo" else None
            case cst.Name() | cst.Attribute():
                return CONSTANTS.get(self.qualify(node) or "")
            case _:
                return None

    def _limit(self, node: cst.Attribute) -> tuple[str, DType, Real] | None:
        """`np.iinfo(np.int32).max`: whose it is, of which dtype, and the number."""
        match node:
            case cst.Attribute(value=cst.Call(func=function, args=[cst.Arg(value=dtype)]), attr=cst.Name(value=name)):
                owner = self.qualify(function)
                if owner in ("numpy.iinfo", "numpy.finfo", "torch.iinfo", "torch.finfo"):
                    found = evaluate.limit(owner, self.qualify(dtype) or "", name)
                    return (owner, *found) if found is not None else None
        return None

    def _starred(self, name: str) -> str | None:
        """What `from math import *` makes of `name`, as far as kernels know it; the last import counts."""
        for module in reversed(self.stars):
            qualified = f"{module}.{name}"
            if qualified in KNOWN or qualified in CONSTANTS or lookup(qualified) is not None:
                return qualified
        return None

    def _forget(self, name: str) -> None:
        for table in (self.imports, self.definitions, self.functions):
            table.pop(name, None)

    def _import(self, alias: cst.ImportAlias) -> None:
        full = dotted(alias.name)
        if alias.asname is not None:
            self._bind(alias.evaluated_alias or full, full)
        else:
            top = full.partition(".")[0]
            self._bind(top, top)

    def _import_from(self, statement: cst.ImportFrom) -> None:
        module = "." * len(statement.relative) + (dotted(statement.module) if statement.module else "")
        if isinstance(statement.names, cst.ImportStar):
            self.stars.append(module)
            return
        for alias in statement.names:
            name = dotted(alias.name)
            self._bind(alias.evaluated_alias or name, f"{module}{name}" if module.endswith(".") else f"{module}.{name}")

    def _bind(self, name: str, qualified: str) -> None:
        self._forget(name)
        self.imports[name] = qualified


@functools.lru_cache(4096)
def _literal(text: str) -> object:
    """What a literal stands for; annotations say the same ones again and again."""
    return ast.literal_eval(text)


def dotted(node: cst.BaseExpression) -> str:
    """`a.b.c` as text."""
    match node:
        case cst.Attribute(value=value, attr=cst.Name(value=attr)):
            return f"{dotted(value)}.{attr}"
        case cst.Name(value=name):
            return name
        case _:
            return ""


def all_parameters(function: cst.FunctionDef) -> tuple[cst.Param, ...]:
    """Every plain parameter of `function`, in order."""
    params = function.params
    return (*params.posonly_params, *params.params, *params.kwonly_params)


def flatten(
    body: Iterable[cst.BaseStatement | cst.BaseSmallStatement],
) -> Iterator[cst.BaseStatement | cst.BaseSmallStatement]:
    """The statements of one scope: those under `if`, `try` and `with` too, not those in functions and classes."""
    for statement in body:
        match statement:
            case cst.SimpleStatementLine(body=small):
                yield from small
            case cst.If():
                yield from flatten(statement.body.body)
                branch = statement.orelse
                while isinstance(branch, cst.If):
                    yield from flatten(branch.body.body)
                    branch = branch.orelse
                if branch is not None:
                    yield from flatten(branch.body.body)
            case cst.Try():
                yield from flatten(statement.body.body)
                for handler in statement.handlers:
                    yield from flatten(handler.body.body)
            case cst.With() | cst.For() | cst.While():
                yield from flatten(statement.body.body)
            case _:
                yield statement


def _live_name(value: object) -> str | None:
    """The qualified name of a live object: a module, class or function."""
    if isinstance(value, ModuleType):
        return value.__name__
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    module = getattr(value, "__module__", None)
    if not isinstance(name, str) or not isinstance(module, str):
        return None
    # Public names of packages that keep their classes in private modules: torch._tensor.Tensor is torch.Tensor.
    top = module.partition(".")[0]
    name = name.removeprefix("_VariableFunctionsClass.")  # where torch keeps `exp` and its like
    return f"{top}.{name}" if top in {"torch", "numpy", "jaxtyping", "py2cu", "numba"} else f"{module}.{name}"
