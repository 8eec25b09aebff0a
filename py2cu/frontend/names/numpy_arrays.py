"""The arrays of NumPy that a module makes once, which Numba's `cuda.const.array_like` puts into constant memory.

    TAPS = np.array([0.25, 0.5, 0.25], dtype=np.float32)

In: an expression around a kernel. Out: the dtype and the numbers, from the live array, or from the text of a call of
`np.array` with constants.
"""

from __future__ import annotations

import libcst as cst

from py2cu.dtypes import F64, I64, DType, find_dtype
from py2cu.frontend.names.constants import Constants, as_constants, numbers
from py2cu.frontend.names.environment import Environment
from py2cu.live import frozen, is_numpy_array

_MAKERS = ("numpy.array", "numpy.asarray")


def numpy_array(node: cst.BaseExpression, environment: Environment) -> tuple[DType, Constants] | None:
    """The dtype of the array that `node` names, and its rows as tuples; None if these are not known."""
    live = environment.live.get(node.value) if isinstance(node, cst.Name) else environment.live_value(node)
    if is_numpy_array(live) and not environment.is_local(node):
        dtype, table = find_dtype(str(live.dtype)), frozen(live.tolist())
        rows = as_constants(table) if isinstance(table, tuple) else None
        return None if dtype is None or not rows else (dtype, rows)
    if not isinstance(node, cst.Name):
        return None
    match environment.definition(node.value):
        case cst.Call(func=function, args=[cst.Arg(value=values, keyword=None), *rest]) if (
            environment.qualify(function) in _MAKERS and len(rest) < 2
        ):
            rows = environment.table(values)
            dtype = named_dtype(rest[0].value, environment, "numpy") if rest else _default(rows)
            return None if dtype is None or not rows else (dtype, rows)
    return None


def named_dtype(node: cst.BaseExpression, environment: Environment, of: str) -> DType | None:
    """The dtype of a library that `node` names."""
    library, _, name = (environment.qualify(node) or "").rpartition(".")
    return find_dtype(name) if library == of else None


def _default(rows: Constants | None) -> DType | None:
    """What NumPy makes of Python numbers."""
    kinds = {type(number) for number in numbers(rows or ())}
    return F64 if float in kinds else I64 if kinds == {int} else None
