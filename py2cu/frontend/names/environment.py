"""What the names around a kernel mean, read from the source alone.

In: the statements of a module and of the functions around a kernel. Out: `Environment.qualify`, which turns `np.exp`
into "numpy.exp" however it was imported, and `Environment.constant`, which finds `FULL = 0xFF`. Nothing is run.
A decorator, whose function already lives, passes its globals too: names that the source does not define (another
notebook cell, a closure), or that it may bind in more than one way, are looked up there. Without it, these are refused
where a kernel mentions them.
"""

from __future__ import annotations

import ast
import builtins
import functools
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from types import ModuleType
from typing import Final

import libcst as cst

from py2cu.builtins import CONSTANTS
from py2cu.dtypes import DType, find_dtype
from py2cu.frontend.names import constants as evaluate
from py2cu.frontend.names.bindings import Binding, gather_bindings
from py2cu.frontend.names.constants import Constants, Number, Real, Value, as_constants, is_kept
from py2cu.frontend.names.known_names import is_known
from py2cu.frontend.names.operators import COMPUTE_BINARY, COMPUTE_UNARY
from py2cu.frontend.names.reexports import Reexports
from py2cu.frontend.names.syntax import Statement, all_parameters, name_nodes
from py2cu.live import is_library, live_name

_BUILTIN_NAMES = frozenset(dir(builtins))
_KEEPING: Final = ("py2cu.kernel", "py2cu.device", "numba.cuda.jit")  # decorators after which a text is what it was
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
    unsure: dict[str, tuple[Binding, ...]] = field(default_factory=dict)  # what the text does not tell, and why
    rebound: dict[str, tuple[Binding, ...]] = field(default_factory=dict)  # what once was another thing, and where
    origin: Mapping[str, cst.CSTNode] = field(default_factory=dict)  # names that `global` and its like bind anew
    makings: dict[cst.BaseExpression, tuple[str, ...]] = field(default_factory=dict)  # the names in definitions
    reexports: Reexports | None = None  # reads the files beside; a live kernel asks what its names are
    _values: dict[str, Value | None] = field(default_factory=dict)  # of the definitions asked for

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that is bound here, for messages."""
        return (*self.imports, *self.definitions, *self.functions, *self.unsure, *self.unread)

    def read(self, body: Iterable[Statement], parameters: Collection[str] = ()) -> None:
        """Enter the bindings of one scope whose value at the time of a launch the source determines.

        Uses the last unconditional binding. A conditional binding counts only if the name has no other: without it,
        Python would raise a NameError. A name that is bound again may change between calls, so a live kernel reads its
        current value. `parameters` are those of the scope's function, bound before its body.
        """
        gathered = gather_bindings(body, self.reexports)
        self.stars += gathered.stars
        bound = dict.fromkeys(parameters, 0) | {name: places[-1][0] for name, places in gathered.by_name.items()}
        hidden = _BUILTIN_NAMES.union(parameters)
        again = {name: bound[name] for name, places in gathered.by_name.items() if len(places) > 1 or name in hidden}
        for name, places in gathered.by_name.items():
            self._forget(name)
            if (rivals := self._rivals([each for _, each in places], name in hidden)) is not None:
                self.unsure[name] = rivals
            else:
                self._enter(places[-1][1])
            if name in again:
                self.rebound[name] = tuple(each for _, each in places)
        for name, node in self.origin.items():
            self._forget(name)
            self.unsure[name] = (
                *(each for _, each in gathered.by_name.get(name, ())),
                Binding(name, None, node, False),
            )
        if self.unsure or again or parameters:
            self._spread({name: bound[name] for name in gathered.by_name}, bound, again)

    def _rivals(self, places: list[Binding], is_given: bool) -> tuple[Binding, ...] | None:
        """The bindings between which only running tells; None where the text tells that the last one counts."""
        last = places[-1]
        certain = [at for at, place in enumerate(places) if place.is_certain]
        rivals = places[certain[-1] :] if certain else places
        is_decorated = isinstance(last.meaning, cst.FunctionDef) and not self.is_plain(last.meaning)
        is_one = len(rivals) == 1 and (bool(certain) or not is_given)
        is_told = is_one and last.meaning is not None and not is_decorated
        return None if is_told and not (len(places) > 1 and last.name in self.live) else tuple(rivals)

    def _enter(self, binding: Binding) -> None:
        match binding.meaning:
            case str(qualified):
                self.imports[binding.name] = qualified
            case cst.FunctionDef() as function:
                self.functions[binding.name] = function
            case cst.BaseExpression() as value:
                self.definitions[binding.name] = value

    def _spread(self, order: Mapping[str, int], bound: Mapping[str, int], again: Mapping[str, int]) -> None:
        """Doubt what is computed from a name that is in doubt, or that was another when it was computed.

        `order` is that of the scope's own names. A definition from around the scope knows none of those in `bound`; one
        of its own may know those in `again` as they were before.
        """
        waiting = [*self.definitions]
        while waiting:
            name = waiting.pop()
            definition = self.definitions.get(name)
            if definition is None:
                continue
            others, when = (again, order[name]) if name in order else (bound, 0)
            made_of = self._made_of(definition)
            changed = next((each for each in made_of if each in self.unsure or others.get(each, -1) >= when), None)
            if changed is not None:
                self._forget(name)
                self.unsure[name] = (Binding(name, None, definition, True), *self.unsure.get(changed, ()))
                waiting = [*self.definitions]

    def ask_live(self, names: Iterable[str]) -> None:
        """Let the live values of these names count, and those of names that are computed from them."""
        waiting = [*names]
        while waiting:
            name = waiting.pop()
            node = self.definitions.get(name) or self.functions.get(name) or cst.Name(name)
            self._forget(name)
            self.unsure[name] = (Binding(name, None, node, True),)
            waiting += [other for other, made in self.definitions.items() if name in self._made_of(made)]

    def copy(self) -> Environment:
        """The same names, to be changed."""
        return replace(
            self, imports={**self.imports}, definitions={**self.definitions}, functions={**self.functions},
            unsure={**self.unsure}, rebound={**self.rebound}, _values={},
        )  # fmt: skip

    def _made_of(self, definition: cst.BaseExpression) -> tuple[str, ...]:
        if definition not in self.makings:
            self.makings[definition] = tuple(name.value for name in name_nodes(definition))
        return self.makings[definition]

    def inner(self, function: cst.FunctionDef) -> Environment:
        """The environment inside `function`: its parameters hide outer names, its statements bind more."""
        parameters = [each.name.value for each in all_parameters(function)]
        stars = (function.params.star_arg, function.params.star_kwarg)
        parameters += [each.name.value for each in stars if isinstance(each, cst.Param)]
        scope = Environment(
            dict(self.imports), dict(self.definitions), dict(self.functions), list(self.stars), self.live, self.unread,
            {**self.told, **dict.fromkeys(parameters, function.name.value)}, unsure=dict(self.unsure),
            rebound=dict(self.rebound), origin=self.origin, makings=self.makings, reexports=self.reexports,
        )  # fmt: skip
        for name in parameters:
            scope._forget(name)
        scope.read(function.body.body, parameters)
        return scope

    def is_plain(self, function: cst.FunctionDef) -> bool:
        """True where `function` stays what its text says: no decorator makes another of it."""
        return all(self.decorates(decorator.decorator) in _KEEPING for decorator in function.decorators)

    def decorator(self, node: cst.BaseExpression, depth: int = 8) -> cst.BaseExpression:
        """A decorator, or what it is a name of: `kernel(block=128)` for `wide` after `wide = kernel(block=128)`.

        A decorator acts where it stands: of a name that is bound anew, the text may tell another one.
        """
        if isinstance(node, cst.Name) and node.value in self.definitions and node.value not in self.rebound and depth:
            return self.decorator(self.definitions[node.value], depth - 1)
        return node

    def decorates(self, node: cst.BaseExpression) -> str | None:
        """The qualified name of a decorator, without its arguments."""
        behind = self.decorator(node)
        return self.qualify(behind.func if isinstance(behind, cst.Call) else behind)

    def as_defined(self) -> Environment:
        """What is sure of the names where a function is defined, not only when a kernel runs: what the text of its file
        binds once.
        """
        return replace(self, live={}, unsure={**self.rebound, **self.unsure}, _values={})

    def doubted(self, node: cst.CSTNode) -> cst.Name | None:
        """The first name in `node` that nothing known here tells; None where there is none."""
        if not self.unsure:
            return None
        doubtful = self.unsure.keys() - self.binders.keys() - self.live.keys()
        return next((name for name in name_nodes(node) if name.value in doubtful), None)

    def qualify(self, node: cst.BaseExpression, depth: int = 8) -> str | None:
        """The qualified name that `node`, a name or dotted name, stands for; None for anything else."""
        match node:
            case cst.Attribute(value=value, attr=cst.Name(value=attr)):
                owner = self.qualify(value, depth)
                return self._behind(f"{owner}.{attr}", node) if owner else None
            case cst.Name(value=name) if name in self.imports:
                return self._behind(self.imports[name], node)
            case cst.Name(value=name) if name in self.definitions and depth:
                return self.qualify(self.definitions[name], depth - 1)
            case cst.Name(value=name) if name not in self.functions:
                if name in self.live:
                    return live_name(self.live[name])
                if name in self.unsure:
                    return None
                return self._starred(name) or (f"builtins.{name}" if name in _BUILTIN_NAMES else None)
            case _:
                return None

    def _behind(self, qualified: str, node: cst.BaseExpression) -> str:
        """The library's name for an object that a file beside this one re-exports; any other name unchanged."""
        if is_library(qualified) or "." not in qualified:
            return qualified
        if self.reexports is not None:
            return self.reexports.library_name(qualified) or qualified
        value = self.living(node)
        name = live_name(value) if value is not None else None
        return name if name is not None and is_library(name) else qualified

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

    def function_name(self, name: str, depth: int = 8) -> str | None:
        """What the function is called that `name` stands for: `g` for `h` after `h = g`; None where it is none."""
        if name in self.functions:
            return name
        definition = self.definitions.get(name)
        return self.function_name(definition.value, depth - 1) if isinstance(definition, cst.Name) and depth else None

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
                return evaluate.compute(COMPUTE_UNARY[type(sign)], value(inner))
            case cst.BinaryOperation(left=left, operator=sign, right=right) if type(sign) in COMPUTE_BINARY:
                return evaluate.compute(COMPUTE_BINARY[type(sign)], value(left), value(right))
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
            if is_known(qualified):
                return qualified
        return None

    def _forget(self, name: str) -> None:
        for table in (self.imports, self.definitions, self.functions, self.unsure, self.rebound):
            table.pop(name, None)


@functools.lru_cache(4096)
def _literal(text: str) -> object:
    """What a literal stands for; annotations say the same ones again and again."""
    return ast.literal_eval(text)
