"""Types of parameters that lack one, or have the wrong one, by their uses in the body.

syncb.wait()    syncb: threading.Barrier
x[i, j]         x: Float32[Tensor, "h w"]
2 * s           s: float
"""

from __future__ import annotations

from typing import Final

import libcst as cst

from py2cu.frontend.names.environment import Environment
from py2cu.frontend.names.syntax import is_named, nodes_in

_DIMS: Final = {1: "n", 2: "h w", 3: "c h w", 4: "b c h w"}


def dims_text(rank: int) -> str:
    """Names for the dimensions of an array, as in an annotation."""
    return _DIMS.get(rank, " ".join("abcdefgh"[:rank]))


def array_type(rank: int, environment: Environment) -> str:
    """The type of an array, as annotations say it, or the signatures of Numba."""
    if environment.imports_numba:
        return f"`float32[{', '.join(':' * rank)}]` in the signature"
    return f'`Float32[Tensor, "{dims_text(rank)}"]`'


def rewrite_parameter(name: str, body: cst.CSTNode, rank: int) -> str:
    """A hint: the annotation of `name`, which has `rank` dimensions where it is indexed."""
    uses = [node for node in nodes_in(body) if isinstance(node, cst.Attribute | cst.Subscript)]
    of_name = [node for node in uses if is_named(node.value, name)]
    if any(isinstance(node, cst.Attribute) and node.attr.value == "wait" for node in of_name):
        return f"`{name}: threading.Barrier`"
    array = f'`{name}: Float32[Tensor, "{dims_text(rank)}"]`'
    return array if of_name else f"{array}, or `{name}: float` or `{name}: int` for a number"
