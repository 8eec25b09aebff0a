"""Finds the dimensions along which a kernel computes independently, so that `vmap` needs one launch for a batch.

    def f(r: Index["h"], c: Index["w"], x: …["h w"], bias: …["w"], out: …["h w"]):
        out[r, c] = x[r, c] + bias[c]           →     independent: h, w

A dimension is independent if one index runs over it, and if the kernel uses this index only to select its own elements.
Arrays of h rows may then be concatenated along `h`: one launch computes what a launch for each of them would.
"""

from __future__ import annotations

from py2cu import ir
from py2cu.analysis.effects import observes_launch
from py2cu.diagnostics import Reporter
from py2cu.ir.rewrite import with_fields
from py2cu.ir.visit import all_expressions, assigned_names, names_in, statements


def find_independent_dims(kernel: ir.Kernel, _: Reporter) -> ir.Kernel:
    """The kernel with its `independent_dims`; one whose threads see the launch or each other has none."""
    if not kernel.indices or observes_launch(kernel):
        return kernel
    dims = (index.extent.id for index in kernel.indices if isinstance(index.extent, ir.Name))
    return with_fields(kernel, independent_dims=tuple(dim for dim in dims if _is_independent(kernel, dim)))


def _is_independent(kernel: ir.Kernel, dim: str) -> bool:
    extents = [index.extent for index in kernel.indices]
    extents += [*kernel.block, *(size for declared in kernel.array_decls for size in declared.type.dims)]
    if [dim in names_in(extent) for extent in extents].count(True) > 1 or kernel.parameter(dim) is not None:
        return False
    index = next(index.name for index in kernel.indices if index.extent == ir.Name(dim, type=index.extent.type))
    axes: dict[str, int] = {}
    for parameter in kernel.arrays:
        match [(at, size) for at, size in enumerate(kernel.array_type(parameter.name).dims) if dim in names_in(size)]:
            case []:
                pass
            case [(axis, ir.Name())]:
                axes[parameter.name] = axis
            case _:
                return False
    return _selects_own_elements(kernel, index, dim, axes)


def _selects_own_elements(kernel: ir.Kernel, index: str, dim: str, axes: dict[str, int]) -> bool:
    """True if `index` selects the element of each access to these arrays, and nothing else depends on it or on `dim`.

    Views and device functions may access an array in other ways.
    """
    if index in assigned_names(kernel.body) or any(kernel.base_array(d.name) in axes for d in kernel.array_decls):
        return False
    uses = 0
    accesses: list[ir.Load | ir.Atomic | ir.Store] = []
    for node in all_expressions(kernel.body):
        match node:
            case ir.ArrayName(id=array) if array in axes:
                return False
            case ir.Name(id=name):
                if name == dim:
                    return False
                uses += name == index
            case ir.Load() | ir.Atomic():
                accesses.append(node)
            case _:
                pass
    accesses += (stmt for stmt in statements(kernel.body) if isinstance(stmt, ir.Store))
    own = [each.indices[axes[each.array]] for each in accesses if each.array in axes]
    return uses == len(own) and all(isinstance(each, ir.Name) and each.id == index for each in own)  # rule: vmap-own
