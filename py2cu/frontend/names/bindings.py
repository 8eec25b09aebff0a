"""The bindings of a scope: the name, the value as far as the source shows it, and whether the binding always runs.

In: the statements of a module, or of a function that encloses a kernel. Out: a `Binding` for each name that they bind,
in order, and these by name. No user code runs. A branch, the body of a loop and the body of a `with`, which may swallow
an exception, may run or not. Two conditions are decided: `TYPE_CHECKING` is false, and a `try` succeeds if its body
assigns literals or imports installed libraries of Python or of kernels; a library that is not loaded yet is assumed to
have the imported name. Other statements are assumed not to raise: otherwise the file would have no kernel.
"""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace

import libcst as cst

from py2cu.frontend.names.known_names import is_known
from py2cu.frontend.names.reexports import Reexports, Starred
from py2cu.frontend.names.syntax import Statement, dotted, flatten, suites
from py2cu.live import is_library

Meaning = str | cst.BaseExpression | cst.FunctionDef | cst.ClassDef  # the imported name, else the node
STAR = "*"
"""The name of the binding `from m import *`, which stands for all its names."""
_LITERALS = (cst.Integer, cst.Float, cst.Imaginary, cst.SimpleString)


@dataclass(frozen=True, slots=True)
class Binding:
    """One place that binds a name; `meaning` is None if the source does not show the value."""

    name: str
    meaning: Meaning | None
    node: cst.CSTNode  # what to point at
    is_certain: bool  # it runs whenever the scope does
    is_change: bool = False  # it binds no name, but may change the list that the name stands for

    def agrees(self, other: Binding) -> bool:
        """True for two imports of the same object."""
        return self.meaning == other.meaning and isinstance(self.meaning, str)


@dataclass(frozen=True, slots=True)
class Bindings:
    """The bindings of one scope by name, each with its place in the order of execution.

    `stars` are the modules of which `import *` may bind further names.
    """

    by_name: dict[str, list[tuple[int, Binding]]] = field(default_factory=dict)
    stars: list[str] = field(default_factory=list)

    @property
    def functions_last(self) -> list[tuple[str, list[tuple[int, Binding]]]]:
        """The items of `by_name`, so that the names of decorators come before the functions under them."""
        return sorted(self.by_name.items(), key=lambda item: isinstance(item[1][-1][1].meaning, cst.FunctionDef))

    def add_library_star(self, library: str, when: int, star: Binding, but: Collection[str] = ()) -> None:
        """Rebind the known names of a library that `from library import *` imports, except those in `but`."""
        self.stars.append(library)
        for name, ordered in self.by_name.items():
            qualified = f"{library}.{name}"
            if name not in but and is_known(qualified):  # rule: name-starred
                ordered.append((when, replace(star, name=name, meaning=qualified)))

    def add_file_star(self, module: str, when: int, star: Binding, exported: Starred) -> None:
        """Bind the names that `from module import *` imports from a file beside this one."""
        for library in exported.libraries:
            self.add_library_star(library, when, star, exported.names)
        dot = "" if module.endswith(".") else "."
        for name, is_determined in exported.names.items():
            meaning, is_certain = f"{module}{dot}{name}" if is_determined else None, star.is_certain and is_determined
            place = replace(star, name=name, meaning=meaning, is_certain=is_certain)
            self.by_name.setdefault(name, []).append((when, place))

    def add_unread_star(self, module: str, when: int, star: Binding) -> None:
        """Note that `from module import *` may rebind any name: the module cannot be read."""
        self.stars.append(module)
        for name, ordered in self.by_name.items():
            if not isinstance(ordered[-1][1].meaning, str):  # names of libraries are seldom bound again
                ordered.append((when, replace(star, name=name, meaning=None, is_certain=False)))


def gather_bindings(body: Iterable[Statement], reexports: Reexports | None) -> Bindings:
    """Collect the bindings of one scope by name, stars expanded; `reexports` reads the files beside."""
    bindings = Bindings()
    for when, binding in enumerate(find_bindings(body)):
        if binding.name != STAR:
            places = bindings.by_name.setdefault(binding.name, [])
            if places and places[-1][1].agrees(binding):
                before = places.pop()[1]
                binding = replace(binding, is_certain=binding.is_certain or before.is_certain)
            places.append((when, binding))
            continue
        module = str(binding.meaning)
        if is_library(module):
            bindings.add_library_star(module, when, binding)
        elif reexports is not None and (exported := reexports.starred(module)) is not None:
            bindings.add_file_star(module, when, binding, exported)
        else:
            bindings.add_unread_star(module, when, binding)
    return bindings


def find_bindings(body: Iterable[Statement], is_certain: bool = True) -> Iterator[Binding]:
    """Every binding of one scope."""
    for statement in body:
        yield from _bindings(statement, is_certain)
        if any(isinstance(inner, cst.Return) for inner in flatten([statement])):  # rule: name-after-return
            is_certain = False


def _bindings(statement: Statement, is_certain: bool) -> Iterator[Binding]:
    match statement:
        case cst.SimpleStatementLine(body=small):
            yield from find_bindings(small, is_certain)
        case cst.Import(names=aliases):
            for alias in aliases:
                full = dotted(alias.name)
                top = full.partition(".")[0]
                name, meaning = (top, top) if alias.asname is None else (alias.evaluated_alias or full, full)
                yield Binding(name, meaning, alias, is_certain)
        case cst.ImportFrom(names=cst.ImportStar() as star):
            yield Binding(STAR, _module(statement), star, is_certain)
        case cst.ImportFrom(names=aliases) if not isinstance(aliases, cst.ImportStar):
            module = _module(statement)
            for alias in aliases:
                name = dotted(alias.name)
                meaning = f"{module}{name}" if module.endswith(".") else f"{module}.{name}"
                yield Binding(alias.evaluated_alias or name, meaning, alias, is_certain)
        case cst.Assign(targets=targets, value=value):
            for assigned in targets:
                yield from _targets(assigned.target, value, is_certain)
        case cst.AnnAssign(target=cst.Name() as target, value=cst.BaseExpression() as value):
            yield Binding(target.value, value, target, is_certain)
        case cst.FunctionDef(name=name):
            yield Binding(name.value, statement, name, is_certain)
        case cst.AugAssign(target=target) | cst.Del(target=target):  # rule: name-augmented
            yield from _targets(target, None, is_certain)
        case cst.ClassDef(name=name):
            yield Binding(name.value, statement, name, is_certain)
        case cst.TypeAlias(name=name):
            yield Binding(name.value, None, name, is_certain)
        case cst.If(test=test, body=block, orelse=orelse):
            yield from find_bindings(block.body, False)  # rule: name-in-branch
            if orelse is not None:
                is_taken = is_certain and _is_type_checking(test)  # rule: name-type-checking
                yield from find_bindings([orelse] if isinstance(orelse, cst.If) else orelse.body.body, is_taken)
        case cst.Try() | cst.TryStar():
            yield from _bindings_of_try(statement, is_certain)
        case _:
            for head in _targets_of_head(statement):  # rule: name-of-head
                yield from _targets(head, None, is_certain)
            for suite in suites(statement):
                yield from find_bindings(suite, False)  # rule: name-in-suite


def _bindings_of_try(statement: cst.Try | cst.TryStar, is_certain: bool) -> Iterator[Binding]:
    """The bindings of a `try`: handlers bind nothing if the body succeeds."""
    succeeds = all(map(_succeeds, statement.body.body))  # rule: name-after-try
    yield from find_bindings(statement.body.body, is_certain and succeeds)
    for handler in () if succeeds else statement.handlers:
        if handler.name is not None:
            yield from _targets(handler.name.name, None, False)
        yield from find_bindings(handler.body.body, False)
    if statement.orelse is not None:
        yield from find_bindings(statement.orelse.body.body, is_certain and succeeds)
    if statement.finalbody is not None:
        yield from find_bindings(statement.finalbody.body.body, is_certain)


def _targets(target: cst.CSTNode, value: cst.BaseExpression | None, is_certain: bool) -> Iterator[Binding]:
    """The bindings of a target: names get the values of a tuple one by one, or unknown values."""
    match target, value:
        case cst.Name(value=name), _:
            yield Binding(name, value, target, is_certain)
        case cst.Tuple(elements=elements), cst.Tuple(elements=values) if _are_pairs(elements, values):
            for element, element_value in zip(elements, values, strict=True):
                yield from _targets(element.value, element_value.value, is_certain)
        case ((cst.Tuple(elements=elements) | cst.List(elements=elements)), _):
            for at, element in enumerate(elements):
                item = value if value is None else _item(value, at)
                yield from _targets(element.value, item if isinstance(element, cst.Element) else None, is_certain)


def _item(value: cst.BaseExpression, at: int) -> cst.BaseExpression | None:
    """`range(3)[1]` for the target GREEN of `RED, GREEN, BLUE = range(3)`; None for values other than ranges."""
    match value:
        case cst.Call(func=cst.Name(value="range")):
            index = cst.SubscriptElement(cst.Index(cst.Integer(str(at))))
            return cst.Subscript(value, [index])
        case _:
            return None


def _are_pairs(elements: Sequence[cst.BaseElement], values: Sequence[cst.BaseElement]) -> bool:
    return len(elements) == len(values) and all(isinstance(one, cst.Element) for one in (*elements, *values))


def _targets_of_head(statement: Statement) -> Iterator[cst.CSTNode]:
    match statement:
        case cst.For(target=target):
            yield target
        case cst.With(items=items):
            yield from (item.asname.name for item in items if item.asname is not None)
        case cst.Match(cases=cases):
            for case in cases:
                yield from _captures(case.pattern)


def _captures(pattern: cst.CSTNode) -> Iterator[cst.Name]:
    match pattern:
        case cst.MatchAs(name=cst.Name() as name) | cst.MatchStar(name=cst.Name() as name):
            yield name
        case cst.MatchMapping(rest=cst.Name() as name):
            yield name
    for child in pattern.children:
        yield from _captures(child)


def _is_type_checking(test: cst.BaseExpression) -> bool:
    match test:
        case cst.Name(value="TYPE_CHECKING") | cst.Attribute(attr=cst.Name(value="TYPE_CHECKING")):
            return True
        case _:
            return False


def _succeeds(statement: Statement) -> bool:
    """True for imports of installed libraries, and for assignments of literals to names."""
    match statement:
        case cst.SimpleStatementLine(body=small):
            return all(map(_succeeds, small))
        case cst.Import(names=aliases):
            return all(_is_here(dotted(alias.name)) for alias in aliases)
        case cst.ImportFrom(names=cst.ImportStar()):
            return _is_here(_module(statement))
        case cst.ImportFrom(names=aliases) if not isinstance(aliases, cst.ImportStar):
            return all(_is_here(_module(statement), dotted(alias.name)) for alias in aliases)
        case cst.Assign(targets=targets, value=value):
            is_constant = isinstance(value, _LITERALS) or getattr(value, "value", "") in ("True", "False", "None")
            return is_constant and all(isinstance(target.target, cst.Name) for target in targets)
        case _:
            return isinstance(statement, cst.Pass)


def _is_here(module: str, name: str | None = None) -> bool:
    """True if a library is installed and, once it is loaded, has `name`."""
    if not is_library(module):
        return False
    loaded = sys.modules.get(module)
    if loaded is not None:
        return name is None or hasattr(loaded, name) or f"{module}.{name}" in sys.modules  # rule: name-loaded
    try:
        return importlib.util.find_spec(module.partition(".")[0]) is not None
    except (ImportError, ValueError):
        return False


def _module(statement: cst.ImportFrom) -> str:
    return "." * len(statement.relative) + (dotted(statement.module) if statement.module else "")
