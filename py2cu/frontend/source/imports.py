"""Device functions and constants that a kernel imports from other files or uses from other notebook cells.

    from helpers import clamp          helpers.py, or helpers/__init__.py, beside the importing file
    from .geometry import clamp        geometry.py in its folder; `..geometry` in the folder above
    import helpers                     for `helpers.clamp(…)`

In: a name in a kernel, and its environment. Out: the node of the function, or the value of the constant; a hint if the
file has no such function. Files are parsed, never imported or run. In a running Python, where
`@kernel` decorates live functions, the live function gives the file of its source.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FunctionType
from typing import Final

import libcst as cst

from py2cu.diagnostics import Origin, Related, Reporter
from py2cu.frontend.names.constants import Constants, Real, as_constants, numbers
from py2cu.frontend.names.environment import Environment
from py2cu.frontend.names.list_changes import lists_in
from py2cu.frontend.names.reexports import MAX_REEXPORTS, find_file
from py2cu.frontend.source.reader import LAMBDA, Module, read_module
from py2cu.function_text import source_file
from py2cu.live import defaults_of, frozen, is_library, live_attribute, python_behind, visible_objects
from py2cu.source import SourceFile, UnreadableSource
from py2cu.suggestions import did_you_mean

_MAX_ATTRIBUTES: Final = 3  # behind the name of a class: `Config.Mode.SUM.value`


@dataclass(frozen=True, slots=True)
class DeviceFunction:
    """A function that a kernel calls: its node, and the file and the names around it.

    `defaults` are those of the live function; None if only its text is known. Where a call fixes parameters, which the
    function no longer has, `fixed` spells them, `suffix` tells them apart in C++, `environment` knows their names, and
    `around` does not.
    """

    node: cst.FunctionDef
    module: Module
    environment: Environment
    defaults: Mapping[str, object] | None = None
    number: int = 0  # distinguishes live functions that have the same name
    fixed: str = ""
    suffix: str = ""
    around: Environment | None = None


@dataclass(frozen=True, slots=True)
class ImportedSources:
    """Reads the files that define a kernel's functions and constants; `main` is the file of the kernel.

    A name is read once: `functions` and `constants` cache the results.
    """

    main: SourceFile
    functions: dict[tuple[str, str, object], DeviceFunction | str] = field(default_factory=dict)
    numbers: dict[FunctionType, int] = field(default_factory=dict)
    constants: dict[tuple[str, str], Constants | Real | None] = field(default_factory=dict)

    def find(
        self, node: cst.BaseExpression, environment: Environment, module: Module, reporter: Reporter
    ) -> DeviceFunction | str | None:
        """The function that `node` names in `module`; a hint if its file has none; None if `node` names no file."""
        qualified = environment.qualify(node)
        if qualified is None or is_library(qualified) or "." not in qualified:
            return None
        live = environment.live_value(node)
        live = python_behind(live) or live
        key = (module.file.name, qualified, live if isinstance(live, FunctionType) else None)
        if key not in self.functions:
            used = Related(f"`{qualified.rpartition('.')[2]}` is used here", module.span(node), module.file)
            self.functions[key] = (
                self._read_live(live, reporter, used)
                if isinstance(live, FunctionType)
                else self._read_file(qualified, module.file, reporter, used)
            )
        return self.functions[key]

    def _read_live(self, function: FunctionType, reporter: Reporter, used: Related) -> DeviceFunction | str:
        file, code = source_file(function), function.__code__
        module = (
            self._read(file, reporter, used, _bound_name(function), visible_objects(function)) if file.text else None
        )
        source = module.function_at(code.co_firstlineno, code.co_name) if module else None
        if module is None or source is None:
            return f"the source of `{function.__name__}` is not available: write it with `def` in a file or a cell"
        number = 0 if _is_current(function) else self.numbers.setdefault(function, len(self.numbers) + 1)
        return DeviceFunction(source.function, module, source.environment, defaults_of(function), number)

    def constant(
        self, node: cst.BaseExpression, environment: Environment, module: Module, reporter: Reporter
    ) -> Constants | Real | None:
        """The number, or the tuple of numbers, that `node` names in another file; None for anything else."""
        qualified = environment.qualify(node)
        if qualified is None or is_library(qualified) or "." not in qualified:
            return None
        value = environment.live_value(node)
        if value is None:
            key = (module.file.name, qualified)
            if key not in self.constants:
                used = Related(f"`{qualified.rpartition('.')[2]}` is used here", module.span(node), module.file)
                self.constants[key] = self._read_constant(qualified, module.file, reporter, used)
            return self.constants[key]
        known = as_constants([frozen(value)])
        has_elements = known is not None and any(type(number).__module__ == "numpy" for number in numbers(known))
        return None if known is None or has_elements else known[0]  # `np.float64` is no plain float

    def _read_constant(
        self, qualified: str, beside: SourceFile, reporter: Reporter, used: Related
    ) -> Constants | Real | None:
        opened, attributes = self._open(qualified, beside, reporter, used, MAX_REEXPORTS), list[str]()
        while isinstance(opened, str) and "." in qualified and len(attributes) < _MAX_ATTRIBUTES:
            qualified, _, attribute = qualified.rpartition(".")
            attributes.insert(0, attribute)
            opened = self._open(qualified, beside, reporter, used, MAX_REEXPORTS) if qualified.strip(".") else opened
        if isinstance(opened, str):
            return None
        environment, node = opened[0].environment, _attribute_of(cst.Name(opened[1]), attributes)
        definition = environment.definition(opened[1])
        if definition is not None and lists_in({opened[1]: definition}):
            return None  # any file that imports the list may change it
        table, number = environment.constants(node), environment.constant(node)
        return number if table is None and isinstance(number, bool | int | float) else table

    def _read_file(self, qualified: str, beside: SourceFile, reporter: Reporter, used: Related) -> DeviceFunction | str:
        opened = self._open(qualified, beside, reporter, used, MAX_REEXPORTS)
        if isinstance(opened, str):
            return opened
        module, name = opened
        environment = module.environment
        if (function := environment.function_name(name)) is not None:
            return DeviceFunction(environment.functions[function], module, environment)
        if name in environment.definitions:
            return f"`{name}` of `{module.file.name}` is not a function defined by `def`"
        if name in environment.ambiguous:
            source = f"the source of `{module.file.name}`"
            return f"{source} does not determine what `{name}` is: define it once, undecorated"
        return did_you_mean(name, environment.names, f"`{module.file.name}` has no function `{name}`")

    def _open(
        self, qualified: str, beside: SourceFile, reporter: Reporter, used: Related, remaining: int
    ) -> tuple[Module, str] | str:
        """The file that defines a name, and its name there; a hint if there is no such file."""
        name = qualified.rpartition(".")[2]
        before = qualified.removesuffix(name)
        module_name = before.rstrip(".") or before
        path = find_file(module_name, Path(beside.name).parent)
        if path is None:
            missing = f"{module_name.rpartition('.')[2]}.py"
            return f"functions are read from files beside this one, and there is no `{missing}`"
        try:
            module = self._read(SourceFile.read(path), reporter, used, name, {})
        except UnreadableSource as error:
            return f"`{path}{error.place}` cannot be read: {error}"
        if module is None:
            return f"fix `{path}` first"
        if name in module.environment.imports and remaining:
            return self._open(module.environment.imports[name], module.file, reporter, used, remaining - 1)
        return module, name

    def _read(
        self, file: SourceFile, reporter: Reporter, used: Related, name: str, live: dict[str, object]
    ) -> Module | None:
        return read_module(file, reporter.within(Origin(file, used)), live, name)


def _is_current(function: FunctionType) -> bool:
    """Whether the name of `function` in its module or class still refers to it; a nested one has no such name."""
    first, *attributes = function.__qualname__.split(".")
    owner = function.__globals__.get(_bound_name(function) if first == LAMBDA else first)
    for name in attributes:
        owner = live_attribute(owner, name)
    return (python_behind(owner) or getattr(owner, "__func__", owner)) is function  # a static method has `__func__`


def _attribute_of(node: cst.BaseExpression, attributes: Sequence[str]) -> cst.BaseExpression:
    """`Gate.INPUT.value`."""
    for attribute in attributes:
        node = cst.Attribute(node, cst.Name(attribute))
    return node


def _bound_name(function: FunctionType) -> str:
    """A name that the file of `function` binds to it; of a lambda in a function, the name of that function."""
    if function.__code__.co_name != LAMBDA:
        return function.__code__.co_name
    around = function.__qualname__.partition(".")[0]
    names = (name for name, value in function.__globals__.items() if value is function)
    return next(names, around) if around == LAMBDA else around
