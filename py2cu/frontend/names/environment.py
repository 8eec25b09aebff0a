"""The meaning of the names around a kernel, from the source alone.

In: the statements of a module and of the functions that enclose a kernel. Out: an `Environment`, whose `qualify` maps
`np.exp` to "numpy.exp" however it was imported, and whose `constant` evaluates `FULL = 0xFF`. No user code runs.

Under the decorator the function is live, and its globals are passed, too: names that the source does not define
(another notebook cell, a closure), or that it may bind in several ways, are looked up there. Without live values, a
kernel that uses an ambiguous name is refused.
"""

from __future__ import annotations

import builtins
import enum
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import libcst as cst

from py2cu.dtypes import DType, find_dtype
from py2cu.frontend.names.bindings import Binding, gather_bindings
from py2cu.frontend.names.constants import Constants, Number, Real, plain, rounds_alike
from py2cu.frontend.names.evaluation import Evaluator
from py2cu.frontend.names.known_names import is_known, of_numba
from py2cu.frontend.names.list_changes import find_changes, lists_in
from py2cu.frontend.names.reexports import Reexports
from py2cu.frontend.names.syntax import Statement, all_parameters, dotted, name_nodes
from py2cu.live import is_library, live_attribute, live_name, numba_name

_BUILTIN_NAMES = frozenset(dir(builtins))
# Decorators that keep the function's meaning.
_KEEPING: Final = (
    "py2cu.kernel", "py2cu.host", "py2cu.device", "numba.cuda.jit", "numba.jit", "numba.njit"
)  # fmt: skip


@dataclass(slots=True)
class Environment:
    """The names of one scope and of those around it, bound by imports, assignments and `def`.

    imports: the qualified name of each import.
    definitions: the expression that each name is assigned.
    functions: the node of each `def`.
    classes: the node of each `class`.
    stars: modules of `from module import *`, in order.
    live: the current values, by name; empty if only the source is known.
    pruned_names: names bound only by statements that were left out, for messages.
    enclosing_parameters: parameters of enclosing functions, each with its function: their values are known only at run
        time.
    binders: in a kernel or device function, the function that binds each variable.
    homes: of each nested function, the environment that encloses it.
    free_names: free names of functions, as far as they were asked for.
    ambiguous: the bindings that may reach a launch, of each name whose value the source does not determine.
    rebound: all bindings of each name that has several: its value at a `def` may differ from that at a launch.
    bound_elsewhere: names that `global` or `nonlocal` binds, and those that `:=` binds in the module.
    named: the `:=` of each function that has some.
    names_in_definitions: the names in each definition, cached.
    reexports: reads the files beside the kernel's; None if the function is live.
    passed: what a call passes to the function whose names these are, by the parameters that it no longer has.
    """

    imports: dict[str, str] = field(default_factory=dict)
    definitions: dict[str, cst.BaseExpression] = field(default_factory=dict)
    functions: dict[str, cst.FunctionDef] = field(default_factory=dict)
    classes: dict[str, cst.ClassDef] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)
    live: Mapping[str, object] = field(default_factory=dict)
    pruned_names: frozenset[str] = frozenset()
    enclosing_parameters: Mapping[str, str] = field(default_factory=dict)
    binders: Mapping[str, cst.FunctionDef] = field(default_factory=dict)
    homes: Mapping[str, Environment] = field(default_factory=dict)
    free_names: dict[cst.FunctionDef, tuple[str, ...]] = field(default_factory=dict)
    ambiguous: dict[str, tuple[Binding, ...]] = field(default_factory=dict)
    rebound: dict[str, tuple[Binding, ...]] = field(default_factory=dict)
    bound_elsewhere: Mapping[str, cst.CSTNode] = field(default_factory=dict)
    named: Mapping[cst.FunctionDef, tuple[cst.NamedExpr, ...]] = field(default_factory=dict)
    names_in_definitions: dict[cst.CSTNode, tuple[str, ...]] = field(default_factory=dict)
    reexports: Reexports | None = None
    passed: Mapping[str, object] = field(default_factory=dict)
    _values: dict[str, object] = field(default_factory=dict)  # of definitions and classes, cached

    @property
    def names(self) -> tuple[str, ...]:
        """Every name that is bound here, for messages."""
        return (*self.imports, *self.definitions, *self.functions, *self.classes, *self.ambiguous, *self.pruned_names)

    @property
    def imports_numba(self) -> bool:
        """Whether the file, or the live module where that leaves it open, has a name from Numba or `py2cu.numba`."""
        live = (of_numba(live_name(self.live[name]) or "") for name in self.ambiguous if name in self.live)
        return any(name.partition(".")[0] == "numba" for name in (*self.imports.values(), *live))

    def read(self, body: Iterable[Statement], parameters: Collection[str] = ()) -> None:
        """Enter the bindings of one scope whose value at the time of a launch the source determines.

        Uses the last unconditional binding. A conditional binding counts only if the name has no other: without it,
        Python would raise a NameError. A name that is bound again may change between calls, so a live kernel reads its
        current value. `parameters` are those of the scope's function, bound before its body.
        """
        gathered = gather_bindings(body, self.reexports)
        self.stars += gathered.stars
        bound = dict.fromkeys(parameters, 0) | {name: places[-1][0] for name, places in gathered.by_name.items()}
        hidden = _BUILTIN_NAMES.union(parameters)  # rule: name-of-builtin
        # Names bound more than once, or that hide a parameter or a builtin, each with the place of its last binding.
        again = {name: bound[name] for name, places in gathered.by_name.items() if len(places) > 1 or name in hidden}
        for name, places in gathered.functions_last:
            self.forget(name)
            if (rivals := self._rivals([each for _, each in places], name in hidden)) is not None:
                self.ambiguous[name] = rivals
            else:
                self._enter(places[-1][1])
            if name in again:
                self.rebound[name] = tuple(each for _, each in places)
        self._forget_changed_lists(body, gathered.by_name)
        for name, node in self.bound_elsewhere.items():  # rule: name-bound-elsewhere
            self.forget(name)
            self.ambiguous[name] = (*(b for _, b in gathered.by_name.get(name, ())), Binding(name, None, node, False))
        if self.ambiguous or again or parameters:  # rule: name-ambiguous
            self._spread({name: bound[name] for name in gathered.by_name}, bound, again)

    def _forget_changed_lists(self, body: Iterable[Statement], names: Iterable[str]) -> None:
        """Mark the lists among the definitions `names` as ambiguous that a statement of the scope may change."""
        lists = lists_in({name: self.definitions[name] for name in names if name in self.definitions})
        for name, places in (find_changes(body, lists, self.made) if lists else {}).items():
            changes = (Binding(name, None, place, False, is_change=True) for place in places)
            self.ambiguous[name] = (Binding(name, None, self.definitions[name], True), *changes)
            del self.definitions[name]

    def _rivals(self, places: list[Binding], is_bound_before: bool) -> tuple[Binding, ...] | None:
        """The bindings that may reach a launch; None if only the last one does, and the source shows its value."""
        last = places[-1]
        certain = [at for at, place in enumerate(places) if place.is_certain]
        rivals = places[certain[-1] :] if certain else places  # rule: name-rivals
        is_decorated = isinstance(last.meaning, cst.FunctionDef) and not self.is_plain(last.meaning)
        is_one = len(rivals) == 1 and (bool(certain) or not is_bound_before)
        is_determined = is_one and last.meaning is not None and not is_decorated  # rule: name-decorated
        # rule: name-live
        return None if is_determined and not (len(places) > 1 and last.name in self.live) else tuple(rivals)

    def _enter(self, binding: Binding) -> None:
        match binding.meaning:
            case str(qualified):
                self.imports[binding.name] = of_numba(qualified)
            case cst.FunctionDef() as function:
                self.functions[binding.name] = function
            case cst.ClassDef() as class_:
                self.classes[binding.name] = class_
            case cst.BaseExpression() as value:
                self.definitions[binding.name] = value

    def _spread(self, order: Mapping[str, int], bound: Mapping[str, int], again: Mapping[str, int]) -> None:
        """Mark definitions as ambiguous that depend on an ambiguous name, or on one that is bound again later.

        `order` holds the scope's names, each with the place of its last binding. `bound` are the names that this scope
        binds: a definition of an enclosing scope that reads such a name means an outer variable. `again` are the names
        that this scope binds more than once: a definition in this scope may have read an earlier value.
        """
        waiting = [*self.definitions, *self.classes]
        while waiting:
            name = waiting.pop()
            definition = self.definitions.get(name) or self.classes.get(name)
            if definition is None:
                continue
            others, when = (again, order[name]) if name in order else (bound, 0)  # rule: name-again
            names = self._names_in_definition(definition)
            changed = next((each for each in names if each in self.ambiguous or others.get(each, -1) >= when), None)
            if changed is not None:
                self.forget(name)
                self.ambiguous[name] = (Binding(name, None, definition, True), *self.ambiguous.get(changed, ()))
                waiting = [*self.definitions, *self.classes]

    def ask_live(self, names: Iterable[str]) -> None:
        """Use the live values of these names, and of names that are computed from them."""
        waiting = [*names]
        while waiting:
            name = waiting.pop()
            node = self.definitions.get(name) or self.functions.get(name) or self.classes.get(name) or cst.Name(name)
            self.forget(name)
            self.ambiguous[name] = (Binding(name, None, node, True),)
            others = {**self.definitions, **self.classes}.items()
            waiting += [other for other, value in others if name in self._names_in_definition(value)]  # rule: redefines

    def copy(self) -> Environment:
        """A copy whose names may be changed."""
        return replace(
            self, imports={**self.imports}, definitions={**self.definitions}, functions={**self.functions},
            classes={**self.classes}, ambiguous={**self.ambiguous}, rebound={**self.rebound}, _values={},
        )  # fmt: skip

    def _names_in_definition(self, definition: cst.CSTNode) -> tuple[str, ...]:
        if definition not in self.names_in_definitions:
            parts = _parts_run(definition) if isinstance(definition, cst.ClassDef) else [definition]
            self.names_in_definitions[definition] = tuple(name.value for part in parts for name in name_nodes(part))
        return self.names_in_definitions[definition]

    def inner(self, function: cst.FunctionDef) -> Environment:
        """The environment inside `function`: its parameters hide outer names, and its statements bind more."""
        parameters = [each.name.value for each in all_parameters(function)]
        stars = (function.params.star_arg, function.params.star_kwarg)
        parameters += [each.name.value for each in stars if isinstance(each, cst.Param)]
        enclosing = {**self.enclosing_parameters, **dict.fromkeys(parameters, function.name.value)}
        named = self.named.get(function, ())
        elsewhere = {**self.bound_elsewhere, **{dotted(each.target): each for each in named}}
        scope = replace(
            self.copy(), stars=[*self.stars], enclosing_parameters=enclosing, binders={}, homes={}, free_names={},
            bound_elsewhere=elsewhere,
        )  # fmt: skip
        for name in parameters:
            scope.forget(name)
        scope.read(function.body.body, parameters)
        return scope

    def named_in(self, function: cst.FunctionDef) -> tuple[str, ...]:
        """The names that `:=` binds in `function`, once for each place."""
        return tuple(dotted(each.target) for each in self.named.get(function, ()))

    def is_plain(self, function: cst.FunctionDef) -> bool:
        """True if no decorator replaces `function`."""
        return all(self.decorates(decorator.decorator) in _KEEPING for decorator in function.decorators)

    def decorator(self, node: cst.BaseExpression, depth: int = 8) -> cst.BaseExpression:
        """Resolve the name of a decorator: `wide`, after `wide = kernel(block=128)`, is `kernel(block=128)`.

        A decorator is evaluated where it stands. A name with several bindings is not resolved, since its value there is
        unknown.
        """
        if isinstance(node, cst.Name) and node.value in self.definitions and node.value not in self.rebound and depth:
            return self.decorator(self.definitions[node.value], depth - 1)
        return node

    def decorates(self, node: cst.BaseExpression, depth: int = 8) -> str | None:
        """The qualified name of a decorator, without its arguments; `NAME.backward` counts as what made NAME."""
        definition = self.decorator(node)
        function = definition.func if isinstance(definition, cst.Call) else definition
        return self.made(forward, depth - 1) if (forward := self.forward(function, depth)) else self.qualify(function)

    def made(self, function: cst.FunctionDef, depth: int = 8) -> str | None:
        """What its decorators make of `function`: `py2cu.host`, `py2cu.kernel` or neither."""
        kinds = {self.decorates(each.decorator, depth) for each in function.decorators}
        return next((kind for kind in ("py2cu.host", "py2cu.kernel") if kind in kinds), None)

    def forward(self, node: cst.BaseExpression, depth: int = 8) -> cst.FunctionDef | None:
        """The kernel or host function whose `backward` the decorator `node` is: `silu.backward`."""
        match node:
            case cst.Attribute(value=cst.Name(value=name), attr=cst.Name(value="backward")) if depth:
                function = None if name in self.rebound else self.functions.get(name)
                return function if function is not None and self.made(function, depth - 1) else None
        return None

    def as_defined(self) -> Environment:
        """The names whose value is known already when a function is defined: those that its file binds once."""
        return replace(self, live={}, ambiguous={**self.rebound, **self.ambiguous}, _values={})

    def first_ambiguous(self, node: cst.CSTNode) -> cst.Name | None:
        """The first name in `node` that is ambiguous and has no live value; None if there is none."""
        if not self.ambiguous:
            return None
        unresolved = self.ambiguous.keys() - self.binders.keys() - self.live.keys()
        return next((name for name in name_nodes(node) if name.value in unresolved), None)

    def qualify(self, node: cst.BaseExpression | None, depth: int = 8) -> str | None:
        """The qualified name of the object that `node`, a name or dotted name, refers to; None for anything else."""
        match node:
            case cst.Attribute(value=value, attr=cst.Name(value=attr)):
                owner = self.qualify(value, depth)
                return self._library_name(of_numba(f"{owner}.{attr}"), node) if owner else None
            case cst.Name(value=name) if name in self.imports:
                return self._library_name(self.imports[name], node)
            case cst.Name(value=name) if name in self.definitions and depth:
                meaning = self._undecorated(self.definitions[name])
                return self.qualify(meaning, depth - 1) or numba_name(self.live.get(name))
            case cst.Name(value=name) if name not in self.functions:
                if name in self.live:
                    return of_numba(live_name(self.live[name]) or "") or None
                if name in self.ambiguous or name in self.classes:  # rule: name-qualified
                    return None
                return self._starred(name) or (f"builtins.{name}" if name in _BUILTIN_NAMES else None)
            case _:
                return None

    def _library_name(self, qualified: str, node: cst.BaseExpression) -> str:
        """The library's name for an object that a file beside this one re-exports; any other name unchanged."""
        if is_library(qualified) or "." not in qualified:
            return qualified
        if self.reexports is not None:
            return self.reexports.library_name(qualified) or qualified  # rule: library-name
        value = self.live_value(node)
        name = live_name(value) if value is not None else None
        return name if name is not None and is_library(name) else qualified

    def live_value(self, node: cst.BaseExpression) -> object:
        """The live object that `node`, a name or dotted name, refers to; None if only the source is known."""
        match node:
            case cst.Name(value=name) if name not in self.functions:
                return self.live.get(name)
            case cst.Attribute(value=value, attr=cst.Name(value=attr)):
                return live_attribute(self.live_value(value), attr)
            case _:
                return None

    def definition(self, name: str) -> cst.BaseExpression | None:
        """The expression that the source assigns to `name` outside the kernel."""
        return self.definitions.get(name)

    def function_name(self, name: str, depth: int = 8) -> str | None:
        """The name of the `def` that `name` refers to: `g` for `h` after `h = g`; None if it is no function."""
        if name in self.functions:
            return name
        definition = self._undecorated(self.definitions.get(name))
        return self.function_name(definition.value, depth - 1) if isinstance(definition, cst.Name) and depth else None

    def _undecorated(self, node: cst.BaseExpression | None) -> cst.BaseExpression | None:
        """`f` of `cuda.jit(device=True)(f)`; any other expression itself."""
        match node:
            case cst.Call(func=decorator, args=[cst.Arg(value=cst.Name() as function, keyword=None, star="")]) if (
                self.decorates(decorator) in _KEEPING
            ):
                return function
        return node

    def constant(self, node: cst.BaseExpression) -> Number | str | None:
        """The number or string that `node` evaluates to; None for anything else."""
        value = None if self.is_local(node) else plain(self._evaluator.value(node))
        return None if isinstance(value, tuple) else value

    def constants(self, node: cst.BaseExpression) -> Constants | None:
        """The tuple of numbers, or of such tuples, that `node` evaluates to; None for anything else."""
        value = None if self.is_local(node) else self._evaluator.value(node)
        return value if isinstance(value, tuple) else None

    def table(self, node: cst.BaseExpression) -> Constants | None:
        """The tuple of numbers, or of such tuples, in a list or a tuple of constants; None for anything else."""
        value = None if self.is_local(node) else replace(self._evaluator, is_table=True).value(node)
        return value if isinstance(value, tuple) else None

    def owner(self, node: cst.BaseExpression) -> object:
        """The class, or the member of an enum, that `node` names; None for anything else, and for unread classes."""
        return None if self.is_local(node) else self._evaluator.owner(node)

    def is_flag(self, node: cst.BaseExpression) -> bool:
        """True for a constant that is a member of an `IntFlag`, or a union of such members."""
        return not self.is_local(node) and isinstance(self._evaluator.value(node), enum.Flag)

    @property
    def _evaluator(self) -> Evaluator:
        return Evaluator(
            self.imports, self.definitions, self.functions, self.classes, self.live, self.qualify, self._values
        )

    def element(self, node: cst.BaseExpression, depth: int = 8) -> tuple[DType, Real] | None:
        """The NumPy scalar that `node` evaluates to: `np.float32(0.1)`, `np.finfo(np.float32).eps`.

        None for anything else, and for numbers that NumPy rounds differently from a kernel's cast.
        """
        match node:
            case cst.Name(value=name) if name in self.definitions and name not in self.binders and depth:
                return replace(self, binders={}).element(self.definitions[name], depth - 1)
            case cst.Call(func=function, args=[cst.Arg(value=value, keyword=None, star="")]):
                library, _, name = (self.qualify(function) or "").rpartition(".")
                dtype, number = find_dtype(name) if library == "numpy" else None, self.constant(value)
                if dtype is None or not isinstance(number, bool | int | float) or not rounds_alike(dtype, number):
                    return None
                return dtype, number
            case cst.Attribute():
                limit = self._evaluator.limit(node)
                return limit[1:] if limit is not None and limit[0] == "numpy.finfo" else None
            case _:
                return None

    def is_local(self, node: cst.CSTNode) -> bool:
        """True if `node` mentions a variable of a kernel or device function."""
        match node:
            case _ if not self.binders:
                return False
            case cst.Name(value=name):
                return name in self.binders
            case cst.Attribute(value=value):
                return self.is_local(value)
            case _:
                return any(map(self.is_local, node.children))

    def _starred(self, name: str) -> str | None:
        """The qualified name that `from math import *` binds to `name`, if kernels know it; the last star counts."""
        for module in reversed(self.stars):
            qualified = f"{module}.{name}"
            if is_known(qualified):
                return qualified
        return None

    def forget(self, name: str) -> None:
        """Forget the bindings of `name`."""
        for table in (self.imports, self.definitions, self.functions, self.classes, self.ambiguous, self.rebound):
            table.pop(name, None)


def _parts_run(node: cst.ClassDef) -> Iterator[cst.CSTNode]:
    """What Python runs to make a class: all but the bodies of its methods."""
    yield from (*node.decorators, *node.bases)  # rule: class-parts
    yield from (statement for statement in node.body.body if not isinstance(statement, cst.FunctionDef))
