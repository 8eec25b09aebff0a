"""Inspect a live function: the objects that its names refer to now, and the functions that it calls.

In: a function object. Out: its names with their values, also for functions of other modules and notebook cells. Nothing
is called.
"""

from __future__ import annotations

import dis
import enum
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from types import CellType, CodeType, FunctionType, ModuleType
from typing import Any, Final, NamedTuple, TypeGuard

_MOST_ELEMENTS: Final = 16 * 1024  # of an array that fits constant memory
_LIBRARIES: Final = frozenset(
    {*sys.stdlib_module_names, "py2cu", "numpy", "torch", "jaxtyping", "numba", "cupy", "triton", "IPython"}
)


def is_library(qualified: str) -> bool:
    """Whether a qualified name belongs to the standard library, or to a package that kernels know by name."""
    return qualified.partition(".")[0] in _LIBRARIES


def visible_objects(function: FunctionType) -> dict[str, object]:
    """The objects that the names in `function` refer to now: closure variables, then globals."""
    live = {name: function.__globals__[name] for name in _names(function) if name in function.__globals__}
    values = {name: contents(cell) for name, cell in cells_of(function).items()}
    return live | {name: value for name, value in values.items() if value is not None}


def is_integer_member(value: object) -> TypeGuard[int]:
    """True for a member of an `IntEnum` or an `IntFlag`, which computes and prints as an integer does."""
    return isinstance(value, enum.IntEnum | enum.IntFlag)


def frozen(value: object) -> object:
    """`value` with tuples in place of lists, also inside: a list of the module that no statement changes is a table."""
    return tuple(map(frozen, value)) if type(value) in (list, tuple) else value  # type: ignore[call-overload]


def is_numpy_array(value: object) -> TypeGuard[Any]:
    """True for an array of NumPy, which is not imported for the question."""
    return type(value).__module__ == "numpy" and type(value).__name__ == "ndarray"


def live_attribute(owner: object, name: str) -> object:
    """An attribute of a module, a user's class or the member of an enum, looked up without running code; else None."""
    match owner:
        case ModuleType():
            return vars(owner).get(name)
        case enum.Enum():
            return {"name": owner._name_, "value": owner._value_}.get(name)
        case type() if not is_library(owner.__module__):
            members = vars(owner).get("_member_map_", {}) if issubclass(owner, enum.Enum) else {}
            return members.get(name, next((vars(each)[name] for each in owner.__mro__ if name in vars(each)), None))
        case _:
            return None


def defaults_of(function: FunctionType) -> dict[str, object]:
    """The defaults of parameters, by name."""
    positional = function.__code__.co_varnames[: function.__code__.co_argcount]
    values = function.__defaults__ or ()
    return {
        **dict(zip(positional[len(positional) - len(values) :], values, strict=True)),
        **(function.__kwdefaults__ or {}),
    }


def constants(function: FunctionType) -> dict[str, object]:
    """The numbers, strings, tuples and lists that `function` refers to, also in the user's modules that it mentions.

    Lists are given as tuples of their present items, small arrays of NumPy with their dtype.
    """
    values: dict[str, object] = {}
    names = set(_code_names(function.__code__))
    for name, value in visible_objects(function).items():
        if isinstance(value, ModuleType | type):
            values |= {f"{owner}.{each}": member for owner, each, member in _members(value, names)}
        else:
            values[name] = value
    return {
        name: frozen(value)
        for name, value in values.items()
        if isinstance(value, bool | int | float | complex | str | tuple | list)
    } | {
        name: (str(value.dtype), frozen(value.tolist()))
        for name, value in values.items()
        if is_numpy_array(value) and value.size <= _MOST_ELEMENTS
    }


def qualified_names(function: FunctionType) -> dict[str, str]:
    """The qualified names of the modules, classes and functions that `function` refers to."""
    around = visible_objects(function)
    live = {name: live_name(value) for name, value in around.items()}
    names = set(_code_names(function.__code__))
    for value in around.values():
        if isinstance(value, ModuleType):
            live |= {f"{owner}.{name}": live_name(member) for owner, name, member in _members(value, names)}
    return {name: qualified for name, qualified in live.items() if qualified is not None}


class Binding(NamedTuple):
    """A name that a function reads, the namespace in which Python looks it up, and its value: None if unbound."""

    namespace: Mapping[str, object]
    name: str
    value: object


def bindings(function: FunctionType) -> Iterator[Binding]:
    """The lookups of `function` when it runs: globals and builtins, and members of the user's modules and classes."""
    cells = cells_of(function)
    for first, *rest in sorted(_chains(function.__code__, frozenset(cells))):
        value = contents(cells[first]) if first in cells else function.__globals__.get(first)
        if first not in cells:
            yield Binding(function.__globals__, first, value)
        for name in rest:
            namespaces = _namespaces(value, name)
            for namespace in namespaces:
                value = namespace.get(name)
                yield Binding(namespace, name, value)
            if not namespaces:
                break


def _namespaces(owner: object, name: str) -> list[Mapping[str, object]]:
    """Where Python looks up the attribute `name` of a user's module or class; empty for other objects.

    The last one binds the name. An earlier one, of a derived class, would hide it.
    """
    match owner:
        case ModuleType() if not is_library(owner.__name__):
            return [vars(owner)]
        case type() if not is_library(owner.__module__):
            spaces = [vars(each) for each in owner.__mro__]
            found = next((place for place, space in enumerate(spaces) if name in space), len(spaces))
            return list(spaces[: found + 1])
        case _:
            return []


def cells_of(function: FunctionType) -> dict[str, CellType]:
    """The closure variables that `function` reads."""
    return dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))


def contents(cell: CellType) -> object:
    """The value of a closure variable; None before it is assigned."""
    try:
        return cell.cell_contents
    except ValueError:
        return None


_LOADS: Final = frozenset({"LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF"})
_ATTRIBUTES: Final = frozenset({"LOAD_ATTR", "LOAD_METHOD"})


@lru_cache(512)
def _chains(code: CodeType, free: frozenset[str]) -> frozenset[tuple[str, ...]]:
    """The dotted names in `code` and its inner functions, such as `("helpers", "K")`.

    Each starts with a global or with a variable in `free`. To disassemble a function takes longer than to run it for a
    few threads, hence the cache.
    """
    chains: set[tuple[str, ...]] = set()
    chain: tuple[str, ...] = ()
    for instruction in dis.get_instructions(code):
        if instruction.opname == "EXTENDED_ARG":
            continue
        if instruction.opname in _LOADS and (instruction.opname != "LOAD_DEREF" or instruction.argval in free):
            chain = (instruction.argval,)
        elif instruction.opname in _ATTRIBUTES and chain:
            chain = (*chain, instruction.argval)
        else:
            chain = ()
        chains |= {chain} if chain else set()
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            chains |= _chains(constant, free)
    return frozenset(chains)


def reachable_functions(*functions: FunctionType) -> list[FunctionType]:
    """`functions`, and those that they may call, directly or indirectly; none of libraries."""
    reached = dict.fromkeys(functions)
    pending = [*reached]
    while pending:
        for other in callees(pending.pop()):
            if other not in reached:
                reached[other] = None
                pending.append(other)
    return list(reached)


def callees(function: FunctionType) -> Iterator[FunctionType]:
    """The functions that `function` may call directly; none of libraries."""
    values = [binding.value for binding in bindings(function)] + [*map(contents, cells_of(function).values())]
    for value in values:
        if isinstance(value, FunctionType) and not is_library(value.__module__ or ""):
            yield value


def _members(owner: ModuleType | type, names: set[str]) -> Iterator[tuple[str, str, object]]:
    """The members in `names` of a user's module or class, and of those in it: owner, name, value.

    The value of an enum's member is the number or the text that the member stands for.
    """
    if is_library(owner.__module__ if isinstance(owner, type) else owner.__name__):
        return
    inside = [inner for name in sorted(names) if isinstance(inner := live_attribute(owner, name), ModuleType | type)]
    for each in (owner, *inside):
        for name in sorted(names):
            member = live_attribute(each, name)
            if member is not None:
                yield live_name(each) or "", name, member._value_ if isinstance(member, enum.Enum) else member


def _names(function: FunctionType) -> Iterable[str]:
    """The global names in the function's body, and those that its annotations may use."""
    yield from _code_names(function.__code__)
    for name, value in function.__globals__.items():
        if hasattr(value, "__module__") or callable(value) or isinstance(value, ModuleType):
            yield name


def _code_names(code: CodeType) -> Iterator[str]:
    """Every name that the code and its inner functions read."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _code_names(constant)


def python_behind(value: object) -> FunctionType | None:
    """The function behind a dispatcher of Numba, of its simulator or of `py2cu.numba`; None for anything else."""
    if not type(value).__module__.startswith(("numba", "py2cu.numba")):
        return None
    python = getattr(value, "py_func", None) or getattr(value, "fn", None)
    return python if isinstance(python, FunctionType) else None


def numba_name(value: object) -> str | None:
    """The qualified name of a type of Numba, and of the function behind a dispatcher; None for other objects."""
    if type(value).__module__.startswith("numba.core.types."):
        return f"numba.{value}"  # `numba.float32` is no class
    python = python_behind(value)
    return None if python is None else live_name(python)


def live_name(value: object) -> str | None:
    """The qualified name of a module, a class, a function or a type of Numba; None for other objects."""
    if isinstance(value, ModuleType):
        return value.__name__
    if (of_numba := numba_name(value)) is not None:
        return of_numba
    name = getattr(value, "__qualname__", None) or getattr(value, "__name__", None)
    module = getattr(value, "__module__", None)
    if not isinstance(name, str) or not isinstance(module, str):
        return None
    # The public name of a class in a private module: torch._tensor.Tensor is torch.Tensor.
    top = module.partition(".")[0]
    name = name.removeprefix("_VariableFunctionsClass.")  # where torch keeps `exp` and its like
    return f"{top}.{name}" if top in {"torch", "numpy", "jaxtyping", "py2cu", "numba"} else f"{module}.{name}"
