"""Replace the globals of a kernel function, keeping its code: breakpoints and tracebacks stay the user's.

In: a Python function. Out: `InstrumentedKernel`, which runs the same code with typed substitutes for `math`, casts and
the like. `set_launch_objects` sets `threadIdx` and the other launch objects in the kernel, in every helper of its
module, and in the functions of other modules that it calls.
"""

from __future__ import annotations

import builtins
import operator
from collections.abc import Callable, Mapping
from enum import Enum
from functools import partial
from operator import setitem
from types import CellType, CodeType, FunctionType, ModuleType, SimpleNamespace
from typing import Any, Final

from py2cu.builtins.launch import LaunchNumber
from py2cu.live import is_library, reachable_functions
from py2cu.simulator.classes import substitute_class
from py2cu.simulator.memory.local import as_table
from py2cu.simulator.memory.predication import skip_if_predicated
from py2cu.simulator.schedule.collectives import MODULES, numba_name, substitute_for
from py2cu.simulator.state import THREAD
from py2cu.simulator.substitutes import members, typed_substitute
from py2cu.simulator.values.checked_int import truth
from py2cu.simulator.values.family import PyComplex
from py2cu.simulator.values.math_functions import BUILTINS

LAUNCH_OBJECTS: Final = ("blockIdx", "threadIdx", "blockDim", "gridDim", "laneid")


class ModuleSubstitute(SimpleNamespace):
    """A module with some attributes replaced.

    `substitute_module` replaces a module inside it, such as `torch.nn.functional`, on first use.
    """

    def __init__(
        self,
        module: ModuleType,
        replaced: Mapping[str, object],
        substitute_module: Callable[[ModuleType], object],
    ) -> None:
        super().__init__(**replaced)
        self._module = module
        self._substitute_module = substitute_module

    def __getattr__(self, name: str) -> object:
        value = getattr(self._module, name)
        if isinstance(value, ModuleType) and value.__name__ == f"{self._module.__name__}.{name}":
            value = self._substitute_module(value)  # rule: module-substitute
            setattr(self, name, value)
        return value


class InstrumentedKernel:
    """A kernel ready to be called thread by thread, with the plain functions that it calls.

    `stops`: `breakpoint()` stops. `predicated`: out-of-range threads skip calls of those functions.
    """

    def __init__(self, function: FunctionType, *, stops: bool = True, predicated: bool = False) -> None:
        self._launch: dict[str, Any] = {}
        # For each launch object, a setter for each namespace that contains it.
        self._slots: dict[str, list[Callable[[int], None]]] = {name: [] for name in LAUNCH_OBJECTS}
        self._modules: dict[str, ModuleSubstitute] = {}
        # Numba's functions that compute with launch objects.
        self._positions = {"grid": self._grid, "gridsize": self._grid_size, "lanemask_lt": self._lanes_below}
        self._reads_position = False
        self._stops, self._predicated = stops, predicated
        self._home = function.__globals__
        self._callees = frozenset(reachable_functions(function))
        self._namespaces: dict[int, dict[str, Any]] = {}  # the substitutes for the globals of each module
        self.codes: set[CodeType] = set()  # of the kernel and the functions that it calls
        self.call = self._rebuild(function)
        self.code = self.call.__code__
        self.reads_launch = self._reads_position or any(self._slots.values())  # else launch objects are parameters only

    def set_launch_objects(self, objects: Mapping[str, int]) -> None:
        """Set launch objects in every namespace that has them."""
        self._launch |= objects
        for name, value in objects.items():
            for put in self._slots[name]:
                put(value)

    def let_stop(self, stops: bool) -> None:
        """Let `breakpoint()` stop from here on, or ignore it."""
        for namespace in self._namespaces.values():
            namespace["__builtins__"]["breakpoint"] = breakpoint if stops else _ignore_breakpoint

    def _namespace(self, home: dict[str, Any]) -> dict[str, Any]:
        """The substitutes for the globals `home`."""
        if id(home) not in self._namespaces:
            namespace = self._namespaces[id(home)] = dict[str, Any]()
            original = home.get("__builtins__", builtins)
            plain = vars(original) if isinstance(original, ModuleType) else original
            silenced = {} if self._stops else {"breakpoint": _ignore_breakpoint}
            # Before any function is rebuilt: it keeps the builtins that its globals have at that time.
            namespace["__builtins__"] = {**plain, **BUILTINS, **silenced}
            for name, value in home.items():
                if name != "__builtins__":
                    self._bind(namespace, name, value)
        return self._namespaces[id(home)]

    def _bind(self, namespace: dict[str, Any], name: str, value: object) -> None:
        """Enter the substitute for `value` under `name`."""
        launch_object = _launch_name(value)
        if launch_object is not None:
            self._slots[launch_object].append(partial(setitem, namespace, name))
        namespace[name] = self._substitute(value)

    def _substitute(self, value: object) -> object:
        """The substitute for `value`, or `value` itself if it needs none."""
        if isinstance(value, ModuleType):
            return self._module(value)
        if value.__class__ is int:
            return THREAD.integer(value)
        if value.__class__ is bool:
            return truth(value)
        if value.__class__ is complex:
            return PyComplex(value)
        if value.__class__ in (tuple, list):
            return as_table(value)
        if (in_class := substitute_class(value, self._substitute)) is not None:  # rule: class-substitute
            return in_class
        if (position := self._positions.get(numba_name(value))) is not None:
            self._reads_position = True
            return position
        collective = substitute_for(value)
        if collective is not None:
            return collective
        if type(value).__module__.startswith("py2cu."):  # a device function behind its decorator
            value = getattr(value, "python", value)
        if isinstance(value, FunctionType) and (value.__globals__ is self._home or value in self._callees):
            rebuilt = self._rebuild(value)
            return skip_if_predicated(rebuilt) if self._predicated else rebuilt  # rule: guard-simulated
        replacement = typed_substitute(value)
        return value if replacement is None else replacement

    def _module(self, module: ModuleType) -> object:
        name = "numba.cuda" if module.__name__ == "py2cu.numba" else module.__name__
        if name in self._modules:
            return self._modules[name]
        replaced: dict[str, object] = dict(members(name))
        replaced |= self._members(module)
        replaced |= MODULES.get(name, {}) | (self._positions if name == "numba.cuda" else {})
        launch = LAUNCH_OBJECTS if name in MODULES else ()
        if not replaced and not launch and name != "numba":
            return module
        substitute = self._modules[name] = ModuleSubstitute(module, replaced, self._module)  # rule: module-path
        for key in launch:
            self._slots[key].append(partial(setattr, substitute, key))
        for inner in ("cuda", "types") if name == "numba" else ("cuda",):  # known by other names, too
            if isinstance(value := vars(module).get(inner), ModuleType):
                setattr(substitute, inner, self._module(value))
        return substitute

    def _members(self, module: ModuleType) -> dict[str, object]:
        """The substitutes for a user module's numbers, inner modules and functions that the kernel calls."""
        if is_library(module.__name__):
            return {}
        substitutes: dict[str, object] = {}
        for name, value in [*vars(module).items()]:
            is_inside = isinstance(value, ModuleType) and value.__name__.startswith(f"{module.__name__}.")
            if (
                is_inside
                or value.__class__ is int
                or isinstance(value, type | Enum)
                or (isinstance(value, FunctionType) and value in self._callees)
            ):
                substitutes[name] = self._substitute(value)
        return {name: value for name, value in substitutes.items() if value is not vars(module)[name]}

    def _rebuild(self, function: FunctionType) -> FunctionType:
        """`function` with the substitutes as its globals, closure variables and defaults."""
        cells = tuple(self._cell(cell) for cell in function.__closure__ or ())
        code, namespace = _with_typed_literals(function.__code__), self._namespace(function.__globals__)
        if function in self._callees:
            self.codes.add(code)
        rebuilt = FunctionType(code, namespace, function.__name__, closure=cells or None)
        rebuilt.__defaults__ = tuple(map(self._substitute, function.__defaults__ or ())) or None
        keywords = function.__kwdefaults__ or {}
        rebuilt.__kwdefaults__ = {name: self._substitute(value) for name, value in keywords.items()}
        return rebuilt

    def _cell(self, cell: CellType) -> CellType:
        """The closure variable `cell` with a substitute for its value, as for a global."""
        try:
            value = cell.cell_contents
        except ValueError:  # not assigned yet
            return cell
        substitute = CellType(self._substitute(value))
        launch_object = _launch_name(value)
        if launch_object is not None:
            self._slots[launch_object].append(partial(setattr, substitute, "cell_contents"))
        return substitute

    def _grid(self, dimensions: int) -> int | tuple[int, ...]:
        """Numba's `cuda.grid`."""
        at, block, size = (self._launch[key] for key in ("threadIdx", "blockIdx", "blockDim"))
        axes = tuple(getattr(block, axis) * getattr(size, axis) + getattr(at, axis) for axis in "xyz"[:dimensions])
        return axes if dimensions > 1 else axes[0]

    def _lanes_below(self) -> int:
        """Numba's `cuda.lanemask_lt`."""
        lane: int = self._launch["laneid"]
        return (1 << lane) - 1

    def _grid_size(self, dimensions: int) -> int | tuple[int, ...]:
        grid, size = self._launch["gridDim"], self._launch["blockDim"]
        axes = tuple(getattr(grid, axis) * getattr(size, axis) for axis in "xyz"[:dimensions])
        return axes if dimensions > 1 else axes[0]


def _ignore_breakpoint(*_: object, **__: object) -> None:
    """`breakpoint()` that does not stop."""


def _with_typed_literals(code: CodeType) -> CodeType:
    """`code` with typed literals, in nested functions too; `code` itself if no literal needs a type."""
    literals = _typed_literal(code.co_consts)
    return code if literals is code.co_consts else code.replace(co_consts=literals)


def _typed_literal(value: Any) -> Any:
    """The substitute for a literal. In `1j * x`, Python's complex number would not ask the float element `x`."""
    if value.__class__ is int and THREAD.integer is not int:  # rule: literal-checked
        return THREAD.integer(value)
    if value.__class__ is bool:
        return truth(value)
    if value.__class__ is complex:
        return PyComplex(value)
    if value.__class__ in (tuple, frozenset):
        items = [*map(_typed_literal, value)]
        return value if all(map(operator.is_, items, value)) else value.__class__(items)
    return _with_typed_literals(value) if isinstance(value, CodeType) else value  # rule: closure-literals


def _launch_name(value: object) -> str | None:
    """The name of the launch object `value`, of py2cu or Numba; None for any other value."""
    if isinstance(value, LaunchNumber):
        return value.name if value.name in LAUNCH_OBJECTS else None
    if isinstance(value, type) and value.__module__.startswith("numba."):
        return value.__name__ if value.__name__ in LAUNCH_OBJECTS else None
    return None
