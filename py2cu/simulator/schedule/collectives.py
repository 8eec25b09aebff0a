"""Substitutes for the functions by which threads cooperate, py2cu's and Numba's, in a simulated kernel.

In: an object of a kernel's globals, or the name of a module. Out: `substitute_for` and `MODULES`, the substitutes; and
`works_together`, whether a kernel has to run by blocks because its threads wait for each other or share memory.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from types import FunctionType, SimpleNamespace
from typing import Any, Final

from py2cu.builtins import PUBLIC, ROWS, Builtin, Rule, ThreadScope
from py2cu.builtins.launch import FULL_MASK
from py2cu.builtins.sync import GRID_BARRIER
from py2cu.dtypes import I32
from py2cu.live import reachable_functions, visible_objects
from py2cu.simulator.memory.atomics import SimulatedAtomics
from py2cu.simulator.memory.cache_hints import load_hinted, store_hinted
from py2cu.simulator.memory.happens_before import WARP
from py2cu.simulator.memory.local import make_constant, make_local, parse_dtype, parse_shape
from py2cu.simulator.memory.predication import PREDICATION, as_predicated
from py2cu.simulator.memory.races import RACES
from py2cu.simulator.schedule.block import SCHEDULER
from py2cu.simulator.state import THREAD
from py2cu.simulator.values.checked_int import CheckedInt
from py2cu.simulator.values.family import element_class
from py2cu.simulator.values.library_functions import LIBRARY, NUMBA


def _substitute(row: Builtin) -> Callable[..., Any]:
    """The substitute for a function by which threads cooperate."""
    effects, name, arguments = row.effects, row.name, _arguments_of(row)

    def fence() -> None:
        RACES.current.fence(in_block=effects.fence is ThreadScope.BLOCK)
        THREAD.spend_spin_budget()

    def active_lanes() -> Any:
        return SCHEDULER.block.wait_for_active_lanes(name)

    def exchange(*places: Any, **named: Any) -> Any:
        mask, *operands = arguments(*places, **named)
        value = tuple(operands) if row.rule is Rule.SHUFFLE else operands[0] if operands else None
        return SCHEDULER.block.wait_for_lanes(name, _bits(mask), value)

    def barrier(*places: Any, **named: Any) -> Any:
        return SCHEDULER.block.wait(name, *arguments(*places, **named))

    substitute: Callable[..., Any] = exchange if effects.waits else active_lanes
    if effects.fence is not None:
        substitute = fence
    elif effects.together is not ThreadScope.WARP:
        substitute = barrier
    return functools.update_wrapper(substitute, PUBLIC[name])  # type: ignore[arg-type]


def _signed(function: Callable[..., Any]) -> Callable[..., Any]:
    """Numba's function of masks, which are int32."""
    of_result: Any = element_class(I32)

    def call(*places: Any, **named: Any) -> Any:
        return of_result.wrapped(int(function(*places, **named)))

    return functools.update_wrapper(call, function)


def _votes_equal(mask: Any, predicate: Any) -> Any:
    """Numba's `eq_sync`."""
    return COOPERATIVE["py2cu.all_sync"](mask, predicate) == COOPERATIVE["py2cu.any_sync"](mask, predicate)


def _match_all(mask: Any, value: Any) -> tuple[Any, Any]:
    """Numba's `match_all_sync`: the mask, or 0, and whether all lanes of it have the same value."""
    is_same = _bits(COOPERATIVE["py2cu.match_any_sync"](mask, value)) == _bits(mask)
    return _signed(lambda: _bits(mask) if is_same else 0)(), is_same


def _arguments_of(row: Builtin) -> Callable[..., tuple[Any, ...]]:
    """The arguments of a call in the order of the row's parameters, defaults included."""
    signature = inspect.signature(PUBLIC[row.name])  # type: ignore[arg-type]
    defaults = tuple(parameter.default for parameter in signature.parameters.values())
    required = defaults.count(inspect.Parameter.empty)

    def arguments(*places: Any, **named: Any) -> tuple[Any, ...]:
        if required <= len(places) <= len(defaults) and not named:  # `bind` takes a third of the time of a simulation
            return places + defaults[len(places) :]
        bound = signature.bind(*places, **named)
        bound.apply_defaults()
        return bound.args

    return arguments


def _bits(mask: Any) -> int:
    """The 32 bits of a mask; Numba's masks are signed."""
    return int(mask) & FULL_MASK


def _shared(shape: Any, dtype: Any) -> Any:
    memory = SCHEDULER.block.memory
    return _predicated(memory.array_for_call_site(sys._getframe(1), parse_shape(shape), parse_dtype(dtype)))


_DYNAMIC: Final = "the shared memory that a launch gives"


def _shared_of_numba(shape: Any, dtype: Any) -> Any:
    """Numba's array: one of no elements is all of the shared memory that the launch gives."""
    place: object = None
    memory = SCHEDULER.block.memory
    if shape in (0, (0,)):
        element = parse_dtype(dtype)  # arrays of different dtypes are different memory here
        place, shape = (_DYNAMIC, element), SCHEDULER.dynamic_bytes // (element.bits // 8)
    array = memory.array_for_call_site(sys._getframe(1), parse_shape(shape), parse_dtype(dtype), place)
    return _predicated(array)


def _local(shape: Any, dtype: Any) -> Any:
    return _predicated(make_local(shape, dtype))


def _constant(values: Any) -> Any:
    return _predicated(make_constant(values))


def _predicated(array: object) -> object:
    """`array`, predicated if the running thread is out of range."""
    return as_predicated(array) if PREDICATION.active else array


ATOMIC: Final = SimulatedAtomics()
COOPERATIVE: Final = {
    row.key: _substitute(row)
    for row in ROWS.values()
    if row.effects.together is not None or row.effects.fence is not None
}


def _of(library: str) -> dict[str, object]:
    """The substitutes for the functions of `library`."""
    names = {name: function for key, function in COOPERATIVE.items() for name in ROWS[key].names}
    own = {name.removeprefix(f"{library}."): function for name, function in names.items() if name.startswith(library)}
    return {**LIBRARY[library], **own, "atomic": ATOMIC}


PY2CU_SUBSTITUTES: Final = _of("py2cu") | {
    "local": _local, "shared": _shared, "warpSize": CheckedInt(WARP), "ldg": load_hinted, "ldcs": load_hinted,
    "stcs": store_hinted, "fast": SimpleNamespace(**LIBRARY["py2cu.fast"]),
}  # fmt: skip
NUMBA_SUBSTITUTES: Final = _of("numba.cuda") | {
    **{name: _signed(COOPERATIVE[f"py2cu.{name}"]) for name in ("ballot_sync", "match_any_sync")},
    "eq_sync": _votes_equal, "match_all_sync": _match_all,
    "local": SimpleNamespace(array=_local), "shared": SimpleNamespace(array=_shared_of_numba),
    "const": SimpleNamespace(array_like=_constant), "warpsize": CheckedInt(WARP),
    "cg": SimpleNamespace(this_grid=lambda: SimpleNamespace(sync=COOPERATIVE[GRID_BARRIER])),
    **{name.rpartition(".")[2]: SimpleNamespace(**LIBRARY[name]) for name in NUMBA[1:]},
}  # fmt: skip
MODULES: Final = {"py2cu": PY2CU_SUBSTITUTES, "numba.cuda": NUMBA_SUBSTITUTES}
_NAMES: Final = {ROWS[key].name for key in COOPERATIVE} | {"eq_sync", "match_all_sync", "shared", "this_grid"}
"""Names of functions by which threads wait for each other, fence or share memory."""
_BY_OBJECT: Final = {id(PUBLIC[name]): name for name in PY2CU_SUBSTITUTES}


def numba_name(value: object) -> str:
    """What Numba's `cuda` calls `value`, its own or that of `py2cu.numba`; "" for any other object."""
    is_numba = (getattr(value, "__module__", None) or "").startswith("numba.cuda")
    return getattr(value, "__name__", "") if is_numba else ""


def substitute_for(value: object) -> object | None:
    """The substitute for a function of py2cu or of Numba; None for any other object."""
    name = _BY_OBJECT.get(id(value))
    if name is not None:
        return PY2CU_SUBSTITUTES[name]
    return NUMBA_SUBSTITUTES.get(numba_name(value))


def works_together(function: FunctionType) -> bool:
    """Whether threads may wait for each other, fence or share memory in `function` or in the functions it calls."""
    return any(map(_mentions, reachable_functions(function)))


def _mentions(function: FunctionType) -> bool:
    names = {*function.__code__.co_names, *function.__code__.co_freevars}
    live = (value for name, value in visible_objects(function).items() if name in names)
    return bool(names & _NAMES) or any({_BY_OBJECT.get(id(value)), numba_name(value)} & _NAMES for value in live)
