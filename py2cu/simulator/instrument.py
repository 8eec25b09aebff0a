"""Replace the globals of a kernel function, keeping its code: breakpoints and tracebacks stay the user's.

In: a Python function. Out: `InstrumentedKernel`, which runs the same code with typed substitutes for `math`, casts and
the like. `set_launch_objects` sets `threadIdx` and the other launch objects in the kernel, in every helper of its
module, and in the functions of other modules that it calls.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping
from functools import partial
from operator import setitem
from types import CellType, CodeType, FunctionType, ModuleType, SimpleNamespace
from typing import Any, Final

from py2cu.live import is_library, reachable_functions
from py2cu.simulator.memory.local import as_table
from py2cu.simulator.memory.predication import skip_if_predicated
from py2cu.simulator.schedule.collectives import MODULES, substitute_for
from py2cu.simulator.state import THREAD
from py2cu.simulator.substitutes import members, typed_substitute
from py2cu.simulator.values.family import PyComplex
from py2cu.simulator.values.math_functions import BUILTINS

LAUNCH_OBJECTS: Final = ("blockIdx", "threadIdx", "blockDim", "gridDim", "laneid")


class ModuleStandIn(SimpleNamespace):
    """A module of which some attributes are replaced; the rest is the module's own. Modules within it are stood in for
    by `inner`, when they are asked for: `torch.nn.functional`.
    """

    def __init__(
        self, module: ModuleType, replaced: Mapping[str, object], inner: Callable[[ModuleType], object]
    ) -> None:
        super().__init__(**replaced)
        self._module = module
        self._inner = inner

    def __getattr__(self, name: str) -> object:
        value = getattr(self._module, name)
        if isinstance(value, ModuleType) and value.__name__ == f"{self._module.__name__}.{name}":
            value = self._inner(value)
            setattr(self, name, value)
        return value


class InstrumentedKernel:
    """A kernel ready to be called thread by thread; the plain functions that it calls are rebound with it.

    `leaves_out`: threads past the end may leave calls of them out.
    """

    def __init__(self, function: FunctionType, *, stops: bool = True, predicated: bool = False) -> None:
        self._launch: dict[str, Any] = {}
        self._slots: dict[str, list[Callable[[int], None]]] = {name: [] for name in LAUNCH_OBJECTS}  # who has it
        self._modules: dict[str, ModuleStandIn] = {}
        self._stops, self._leaves_out = stops, predicated
        self._home = function.__globals__
        self._called = frozenset(reachable_functions(function))
        self._namespaces: dict[int, dict[str, Any]] = {}  # stand-ins for the globals of each module
        self.codes: set[CodeType] = set()  # of the functions that it calls
        self.call = self._rebuild(function)
        self.code = self.call.__code__
        self.reads_launch = any(self._slots.values())  # else the launch is in parameters alone

    def set_launch_objects(self, objects: Mapping[str, int]) -> None:
        """Set launch objects, until they are set again."""
        self._launch |= objects
        for name, value in objects.items():
            for put in self._slots[name]:
                put(value)

    def let_stop(self, stops: bool) -> None:
        """Heed `breakpoint()` from here on, or take no notice of it."""
        for namespace in self._namespaces.values():
            namespace["__builtins__"]["breakpoint"] = breakpoint if stops else _go_on

    def _namespace(self, home: dict[str, Any]) -> dict[str, Any]:
        """The stand-ins for the globals `home`."""
        if id(home) not in self._namespaces:
            made = self._namespaces[id(home)] = dict[str, Any]()
            own = home.get("__builtins__", builtins)
            plain = vars(own) if isinstance(own, ModuleType) else own
            silenced = {} if self._stops else {"breakpoint": _go_on}
            made["__builtins__"] = {**plain, **BUILTINS, **silenced}  # first: a function keeps those that it finds
            for name, value in home.items():
                if name != "__builtins__":
                    self._bind(made, name, value)
        return self._namespaces[id(home)]

    def _bind(self, namespace: dict[str, Any], name: str, value: object) -> None:
        """Enter `value`, or its stand-in, under `name`."""
        launch_object = _launch_name(value)
        if launch_object is not None:
            self._slots[launch_object].append(partial(setitem, namespace, name))
        namespace[name] = self._stand_in(value)

    def _stand_in(self, value: object) -> object:
        if isinstance(value, ModuleType):
            return self._module(value)
        if value.__class__ is int:
            return THREAD.integer(value)
        if value.__class__ is complex:
            return PyComplex(value)
        if value.__class__ is tuple:
            return as_table(value)
        together = substitute_for(value)
        if together is not None:
            return together
        if type(value).__module__.startswith("py2cu."):  # a device function behind its decorator
            value = getattr(value, "python", value)
        if isinstance(value, FunctionType) and (value.__globals__ is self._home or value in self._called):
            rebuilt = self._rebuild(value)
            return skip_if_predicated(rebuilt) if self._leaves_out else rebuilt
        replacement = typed_substitute(value)
        return value if replacement is None else replacement

    def _module(self, module: ModuleType) -> object:
        name = module.__name__
        if name in self._modules:
            return self._modules[name]
        replaced: dict[str, object] = dict(members(name))
        replaced |= self._members(module)
        if name == "numba.cuda":
            replaced |= {"grid": self._grid, "gridsize": self._grid_size}
        replaced |= MODULES.get(name, {})
        launch = LAUNCH_OBJECTS if name in MODULES else ()
        if not replaced and not launch and name != "numba":
            return module
        made = self._modules[name] = ModuleStandIn(module, replaced, self._module)
        for key in launch:
            self._slots[key].append(partial(setattr, made, key))
        if isinstance(cuda := vars(module).get("cuda"), ModuleType):
            made.cuda = self._module(cuda)
        return made

    def _members(self, module: ModuleType) -> dict[str, object]:
        """Stand-ins for what a module of the user's has: numbers, functions that the kernel calls, modules in it."""
        if is_library(module.__name__):
            return {}
        made: dict[str, object] = {}
        for name, value in [*vars(module).items()]:
            is_inside = isinstance(value, ModuleType) and value.__name__.startswith(f"{module.__name__}.")
            if is_inside or value.__class__ is int or (isinstance(value, FunctionType) and value in self._called):
                made[name] = self._stand_in(value)
        return {name: value for name, value in made.items() if value is not vars(module)[name]}

    def _rebuild(self, function: FunctionType) -> FunctionType:
        cells = tuple(self._cell(cell) for cell in function.__closure__ or ())
        code, namespace = _with_typed_literals(function.__code__), self._namespace(function.__globals__)
        if function in self._called:
            self.codes.add(code)
        made = FunctionType(code, namespace, function.__name__, closure=cells or None)
        made.__defaults__ = tuple(map(self._stand_in, function.__defaults__ or ())) or None
        made.__kwdefaults__ = {name: self._stand_in(value) for name, value in (function.__kwdefaults__ or {}).items()}
        return made

    def _cell(self, cell: CellType) -> CellType:
        """A closure variable: the same stand-ins as for a global."""
        try:
            value = cell.cell_contents
        except ValueError:  # not assigned yet
            return cell
        made = CellType(self._stand_in(value))
        launch_object = _launch_name(value)
        if launch_object is not None:
            self._slots[launch_object].append(partial(setattr, made, "cell_contents"))
        return made

    def _grid(self, dimensions: int) -> int | tuple[int, ...]:
        """Numba's `cuda.grid`."""
        at, block, size = (self._launch[key] for key in ("threadIdx", "blockIdx", "blockDim"))
        axes = tuple(getattr(block, axis) * getattr(size, axis) + getattr(at, axis) for axis in "xyz"[:dimensions])
        return axes if dimensions > 1 else axes[0]

    def _grid_size(self, dimensions: int) -> int | tuple[int, ...]:
        grid, size = self._launch["gridDim"], self._launch["blockDim"]
        axes = tuple(getattr(grid, axis) * getattr(size, axis) for axis in "xyz"[:dimensions])
        return axes if dimensions > 1 else axes[0]


def _go_on(*_: object, **__: object) -> None:
    """`breakpoint()` where nobody wants to stop."""


def _with_typed_literals(code: CodeType) -> CodeType:
    """`code` itself, unless its literals need a stand-in, or those of functions in it."""
    literals = tuple(map(_typed_literal, code.co_consts))
    same = all(made is literal for made, literal in zip(literals, code.co_consts, strict=True))
    return code if same else code.replace(co_consts=literals)


def _typed_literal(value: Any) -> Any:
    """A literal that tells of itself: in `1j * x`, Python's own complex number would not ask the float element `x`."""
    if value.__class__ is int and THREAD.integer is not int:
        return THREAD.integer(value)
    if value.__class__ is complex:
        return PyComplex(value)
    return _with_typed_literals(value) if isinstance(value, CodeType) else value


def _launch_name(value: object) -> str | None:
    """The launch object that `value` is, if any: one of `py2cu.vocabulary`, or numba's."""
    kind = type(value)
    if kind.__name__ in ("LaunchObject", "LaunchNumber") and kind.__module__ == "py2cu.vocabulary":
        name = getattr(value, "name", None)
        return name if name in LAUNCH_OBJECTS else None
    if isinstance(value, type) and value.__module__.startswith("numba."):
        return value.__name__ if value.__name__ in LAUNCH_OBJECTS else None
    return None
