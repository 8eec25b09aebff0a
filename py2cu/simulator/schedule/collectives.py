"""Substitutes for the functions by which threads cooperate, py2cu's and Numba's, in a simulated kernel.

In: an object of a kernel's globals, or the name of a module. Out: `substitute_for` and `MODULES`, the substitutes; and
`works_together`, whether a kernel has to run by blocks because its threads wait for each other or share memory.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FunctionType, SimpleNamespace
from typing import Any, Final

from py2cu.builtins import PUBLIC
from py2cu.builtins.launch import FULL_MASK
from py2cu.live import reachable_functions, visible_objects
from py2cu.simulator.memory.atomics import SimulatedAtomics
from py2cu.simulator.memory.happens_before import WARP
from py2cu.simulator.memory.local import make_local, parse_dtype, parse_shape
from py2cu.simulator.memory.predication import PREDICATION, as_predicated
from py2cu.simulator.memory.races import RACES
from py2cu.simulator.schedule.block import SCHEDULER
from py2cu.simulator.schedule.warp_exchange import REDUCTIONS
from py2cu.simulator.state import THREAD
from py2cu.simulator.values.bit_functions import BIT_FUNCTIONS
from py2cu.simulator.values.checked_int import CheckedInt
from py2cu.simulator.values.library_functions import LIBRARY


def _syncthreads() -> None:
    SCHEDULER.block.wait("syncthreads")


def _syncthreads_count(predicate: Any) -> Any:
    return SCHEDULER.block.wait("syncthreads_count", predicate)


def _syncthreads_and(predicate: Any) -> Any:
    return SCHEDULER.block.wait("syncthreads_and", predicate)


def _syncthreads_or(predicate: Any) -> Any:
    return SCHEDULER.block.wait("syncthreads_or", predicate)


def _syncgrid() -> None:
    SCHEDULER.block.wait("syncgrid")


def _syncwarp(mask: Any = FULL_MASK) -> None:
    SCHEDULER.block.wait_for_lanes("syncwarp", _bits(mask))


def _fence() -> None:
    RACES.current.fence(in_block=False)
    THREAD.spend_spin_budget()


def _fence_block() -> None:
    RACES.current.fence(in_block=True)
    THREAD.spend_spin_budget()


def _shfl_sync(mask: Any, value: Any, lane: Any, width: Any = WARP) -> Any:
    return SCHEDULER.block.wait_for_lanes("shfl_sync", _bits(mask), (value, lane, width))


def _shfl_up_sync(mask: Any, value: Any, delta: Any, width: Any = WARP) -> Any:
    return SCHEDULER.block.wait_for_lanes("shfl_up_sync", _bits(mask), (value, delta, width))


def _shfl_down_sync(mask: Any, value: Any, delta: Any, width: Any = WARP) -> Any:
    return SCHEDULER.block.wait_for_lanes("shfl_down_sync", _bits(mask), (value, delta, width))


def _shfl_xor_sync(mask: Any, value: Any, lanes: Any, width: Any = WARP) -> Any:
    return SCHEDULER.block.wait_for_lanes("shfl_xor_sync", _bits(mask), (value, lanes, width))


def _ballot_sync(mask: Any, predicate: Any) -> Any:
    return SCHEDULER.block.wait_for_lanes("ballot_sync", _bits(mask), predicate)


def _any_sync(mask: Any, predicate: Any) -> Any:
    return SCHEDULER.block.wait_for_lanes("any_sync", _bits(mask), predicate)


def _all_sync(mask: Any, predicate: Any) -> Any:
    return SCHEDULER.block.wait_for_lanes("all_sync", _bits(mask), predicate)


def _value_exchange(name: str) -> Callable[[Any, Any], Any]:
    """The warp function `name` of one value per lane."""

    def exchange(mask: Any, value: Any) -> Any:
        return SCHEDULER.block.wait_for_lanes(name, _bits(mask), value)

    return exchange


def _activemask() -> Any:
    return SCHEDULER.block.wait_for_active_lanes()


def _bits(mask: Any) -> int:
    """The 32 bits of a mask; Numba's masks are signed."""
    return int(mask) & FULL_MASK


def _shared(shape: Any, dtype: Any) -> Any:
    memory = SCHEDULER.block.memory
    return _predicated(memory.array_for_call_site(sys._getframe(1), parse_shape(shape), parse_dtype(dtype)))


def _local(shape: Any, dtype: Any) -> Any:
    return _predicated(make_local(shape, dtype))


def _predicated(array: object) -> object:
    """`array`, predicated if the running thread is out of range."""
    return as_predicated(array) if PREDICATION.active else array


ATOMIC: Final = SimulatedAtomics()
WAITING: Final[dict[str, object]] = {
    "syncthreads": _syncthreads, "syncthreads_count": _syncthreads_count, "syncthreads_and": _syncthreads_and,
    "syncthreads_or": _syncthreads_or, "syncgrid": _syncgrid, "syncwarp": _syncwarp,
    "shfl_sync": _shfl_sync, "shfl_up_sync": _shfl_up_sync,
    "shfl_down_sync": _shfl_down_sync, "shfl_xor_sync": _shfl_xor_sync, "ballot_sync": _ballot_sync,
    "any_sync": _any_sync, "all_sync": _all_sync, "activemask": _activemask,
    **{name: _value_exchange(name) for name in ("match_any_sync", *REDUCTIONS)},
}  # fmt: skip
FENCES: Final[dict[str, object]] = {
    "threadfence": _fence, "threadfence_system": _fence, "threadfence_block": _fence_block,
}  # fmt: skip
PY2CU_SUBSTITUTES: Final[dict[str, object]] = {
    **WAITING, **FENCES, **BIT_FUNCTIONS, "rsqrt": LIBRARY["torch"]["rsqrt"],
    "local": _local, "shared": _shared, "atomic": ATOMIC,
    "warpSize": CheckedInt(WARP),
}  # fmt: skip
NUMBA_SUBSTITUTES: Final[dict[str, object]] = {
    **WAITING, **FENCES, **BIT_FUNCTIONS, "local": SimpleNamespace(array=_local),
    "shared": SimpleNamespace(array=_shared), "atomic": ATOMIC, "warpsize": CheckedInt(WARP),
    "cg": SimpleNamespace(this_grid=lambda: SimpleNamespace(sync=_syncgrid)),
}  # fmt: skip
MODULES: Final = {"py2cu": PY2CU_SUBSTITUTES, "numba.cuda": NUMBA_SUBSTITUTES}
_BY_OBJECT: Final = {id(PUBLIC[name]): name for name in PY2CU_SUBSTITUTES}


def substitute_for(value: object) -> object | None:
    """The substitute for a function of py2cu or of Numba; None for any other object."""
    name = _BY_OBJECT.get(id(value))
    if name is not None:
        return PY2CU_SUBSTITUTES[name]
    is_numba = (getattr(value, "__module__", None) or "").startswith("numba.cuda.")
    return NUMBA_SUBSTITUTES.get(getattr(value, "__name__", "")) if is_numba else None


def works_together(function: FunctionType) -> bool:
    """Whether threads may wait for each other, fence or share memory in `function` or in the functions it calls."""
    return any(map(_mentions, reachable_functions(function)))


def _mentions(function: FunctionType) -> bool:
    names = {*function.__code__.co_names, *function.__code__.co_freevars}
    cooperative_names = {*WAITING, *FENCES, "shared", "this_grid"}
    live = (value for name, value in visible_objects(function).items() if name in names)
    return bool(names & cooperative_names) or any(_BY_OBJECT.get(id(value)) in cooperative_names for value in live)
