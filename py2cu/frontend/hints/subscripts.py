"""Subscripts that kernels do not have, as loops over elements.

x[:, i]        for k in range(x.shape[0]): x[k, i]
row[::2]       for k in range(0, len(row), 2): row[k]
TABLE[r, 1]    TABLE[r][1]
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from py2cu.frontend.names.syntax import name_nodes, source_text


def rewrite_slices(base: cst.BaseExpression, parts: Sequence[cst.BaseSlice], node: cst.BaseExpression) -> str:
    """A hint for the part `node`, `parts` of `base`: a loop for each slice, over one element."""
    array, used = source_text(base), {name.value for name in name_nodes(node)}
    free = (letter for letter in "klmnopqrstuv" if letter not in used)
    loops, indices = [], []
    for axis, part in enumerate(parts):
        if isinstance(part, cst.Slice):
            indices.append(next(free))
            extent = f"{array}.shape[{axis}]" if len(parts) > 1 else f"len({array})"
            loops.append(f"`for {indices[-1]} in range({_bounds(part, extent)})`")
        elif isinstance(part, cst.Index):
            indices.append(source_text(part.value))
    return f"write a loop, {', '.join(loops)}, over its elements `{array}[{', '.join(indices)}]`"


def rewrite_brackets(table: str, subscript: cst.Subscript) -> str:
    """The text of one number of the tuple `table`, with a bracket for each index and `k` for a slice."""
    parts = [element.slice for element in subscript.slice]
    match parts:
        case [cst.Index(value=cst.Tuple(elements=elements))]:
            indices = [source_text(element.value) for element in elements]
        case _:
            indices = [source_text(part.value) if isinstance(part, cst.Index) else "k" for part in parts]
    return table + "".join(f"[{index}]" for index in indices)


def _bounds(part: cst.Slice, extent: str) -> str:
    """The arguments of `range` for a slice of an axis with this extent."""
    lower = "0" if part.lower is None else source_text(part.lower)
    upper = extent if part.upper is None else source_text(part.upper)
    if part.step is not None:
        return f"{lower}, {upper}, {source_text(part.step)}"
    return upper if lower == "0" else f"{lower}, {upper}"
