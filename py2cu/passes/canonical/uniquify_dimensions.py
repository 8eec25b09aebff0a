"""Renames dimensions that have the name of a local, an array or an index.

    def f(…, x: UInt8[Tensor, "c h w"], …):     →    "c_extent h w"
        _, h, w = x.shape                             dropped: `h` and `w` are the dimensions
        c = blockIdx.x * blockDim.x + threadIdx.x     unchanged: `c` is the local

The product of the leading dimensions `...` gets a name, `elements`.

An integer parameter with the name of a dimension is that dimension. Assigning to it, or to a template argument, is an
error.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from py2cu import ir
from py2cu.analysis.account import elided_in
from py2cu.diagnostics import Reporter
from py2cu.ir.abi.parameters import Parameter
from py2cu.ir.names import underscored_name
from py2cu.ir.rewrite import with_fields
from py2cu.ir.substitution import rename
from py2cu.ir.visit import statements


def uniquify_dimensions(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """The kernel with no dimension without a name, or called like a local, an array or an element index."""
    kernel = _drop_restatements(kernel)
    dims = kernel.dims
    assigned = {
        s.name if isinstance(s, ir.Assign) else s.var: s
        for s in statements(kernel.body)
        if isinstance(s, ir.Assign | ir.For)
    }
    dimension_arguments = {p.name for p in kernel.parameters if p.type == ir.PY_INT and p.name in dims}
    for name in sorted(dimension_arguments & set(assigned)):
        message = f"`{name}` is a dimension and cannot be assigned to"
        reporter.error("P203", message, assigned[name].span, "use another name")
    for name in sorted(kernel.constexprs.keys() & set(assigned) - dimension_arguments):
        message = f"`{name}` is a template argument and cannot be assigned to"
        reporter.error("P203", message, assigned[name].span, "use another name")
    others = {p.name for p in kernel.parameters} | {i.name for i in kernel.indices} | set(assigned)
    others |= {decl.name for decl in kernel.array_decls}
    renamed: dict[str, str] = {}
    for name in dims:
        if name == ir.UNNAMED_LEADING:
            renamed[name] = underscored_name("elements", {*others, *dims, *renamed.values()})
        elif name in others - dimension_arguments:
            renamed[name] = underscored_name(f"{name}_extent", {*others, *dims, *renamed.values()})
    return _rename_dims(kernel, renamed) if renamed else kernel


def _drop_restatements(kernel: ir.Kernel) -> ir.Kernel:
    """Drop `h, w = x.shape` where the annotation "h w" already names these dimensions."""
    count = Counter(
        s.name if isinstance(s, ir.Assign) else s.var
        for s in statements(kernel.body)
        if isinstance(s, ir.Assign | ir.For)
    )

    def restates(stmt: ir.Stmt) -> bool:
        match stmt:
            case ir.Assign(name=name, value=ir.Extent(array=array, axis=axis)) if count[name] == 1:
                dim = kernel.array_type(array).dims[axis]
                return isinstance(dim, ir.Name) and dim.id == name and kernel.parameter(name) is None
            case _:
                return False

    body = tuple(ir.Comment(s.span, s.trivia) if restates(s) else s for s in kernel.body)
    dropped = elided_in(tuple(s for s in kernel.body if restates(s)), ir.Elision.RESTATEMENT)
    return with_fields(kernel, body=body, elided=kernel.elided + dropped)


def _rename_dims(kernel: ir.Kernel, renamed: dict[str, str]) -> ir.Kernel:
    def change(extent: ir.DimExpr) -> ir.DimExpr:
        return ir.as_extent(rename(extent, renamed))

    def change_parameter(parameter: Parameter) -> Parameter:
        type_ = parameter.type
        if not isinstance(type_, ir.ArrayType):
            return parameter
        return replace(parameter, type=replace(type_, dims=tuple(map(change, type_.dims))))

    def change_array(type_: ir.ArrayType) -> ir.ArrayType:
        return replace(type_, dims=tuple(map(change, type_.dims)))

    return replace(
        kernel,
        array_decls=tuple(replace(decl, type=change_array(decl.type)) for decl in kernel.array_decls),
        block_parameters=tuple(
            declared if declared.type is None else replace(declared, type=change_array(declared.type))
            for declared in kernel.block_parameters
        ),
        parameters=tuple(map(change_parameter, kernel.parameters)),
        indices=tuple(replace(index, extent=change(index.extent)) for index in kernel.indices),
        size=None if kernel.size is None else tuple(map(change, kernel.size)),
        block=tuple(map(change, kernel.block)),  # rule: block-renamed
    )
