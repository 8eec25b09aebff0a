"""Stores Python floats as float32 where every use converts them to float32; Python complex numbers likewise.

    y[i] = Convert(a, float32) * x[i]     →     y[i] = a * x[i]      with `float a` in the kernel's signature
    y[i] = Convert(W[k], float32)         →     y[i] = W[k]          with `const float W[3]`
    half = 0.5; y[i] = half * x[i]        →     float half = 0.5f;

Every use rounds the double in the same way, so one rounding suffices: in the launcher, or where the local is assigned.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Final

from py2cu import ir
from py2cu.diagnostics import Reporter
from py2cu.ir.complex_numbers import is_complex_constructor
from py2cu.ir.rewrite import rebuild_block, with_fields
from py2cu.ir.visit import all_expressions, statements
from py2cu.passes.lowering.widen_halves import ROUND_TO, convert_generic, may_be_half

_WEAK: Final = (ir.PY_FLOAT, ir.PY_COMPLEX)


def narrow_floats(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """The kernel with these locals stored as elements; `narrowed` lists these parameters with their element type.

    A device function takes such parameters as elements, and its callers convert to them.
    """
    functions: dict[str, ir.Kernel] = {}
    for function in kernel.functions:
        narrowed = _narrow(_with_converted_arguments(function, functions))
        types = dict(narrowed.narrowed)
        parameters = tuple(replace(p, type=types.get(p.name, p.type)) for p in function.parameters)
        functions[function.key] = replace(narrowed, parameters=parameters, narrowed=())
    return with_fields(_narrow(_with_converted_arguments(kernel, functions)), functions=tuple(functions.values()))


def _with_converted_arguments(caller: ir.Kernel, functions: dict[str, ir.Kernel]) -> ir.Kernel:
    """`caller` with Python floats converted to the elements that a function takes."""
    if not functions:
        return caller

    def convert(expr: ir.Expr) -> ir.Expr:
        if not isinstance(expr, ir.DeviceCall) or expr.function not in functions:
            return expr
        pairs = zip(expr.args, functions[expr.function].parameters, strict=True)
        args = (_rounded(a, p.type) if a.type in _WEAK and isinstance(p.type, ir.ElementType) else a for a, p in pairs)
        return replace(expr, args=tuple(args))

    return with_fields(caller, body=rebuild_block(caller.body, convert))


def _narrow(kernel: ir.Kernel) -> ir.Kernel:
    narrowed = _narrow_names(kernel)
    while narrowed is not kernel:  # a narrowed local converts what is assigned to it
        kernel, narrowed = narrowed, _narrow_names(narrowed)
    calls_round_to = any(isinstance(n, ir.Call) and n.function == ROUND_TO for n in all_expressions(narrowed.body))
    launcher_rounds = any(may_be_half(type_) for _, type_ in narrowed.narrowed)
    return replace(narrowed, helpers=(*narrowed.helpers, ROUND_TO)) if calls_round_to or launcher_rounds else narrowed


def _narrow_names(kernel: ir.Kernel) -> ir.Kernel:
    assigned = {stmt.name for stmt in statements(kernel.body) if isinstance(stmt, ir.Assign)}
    parameters = [p.name for p in kernel.parameters if p.type in _WEAK and p.name not in assigned]
    parameters += [value.name for value in kernel.launch_values]
    locals_ = [name for name, type_ in kernel.locals if type_ in _WEAK]
    element_type_of = _only_types(kernel)
    tables = [
        decl.name
        for decl in kernel.array_decls
        if decl.name in element_type_of and element_type_of[decl.name].dtype.is_native
    ]
    element_types = {n: element_type_of[n] for n in (*parameters, *locals_, *tables) if n in element_type_of}
    if not element_types:
        return kernel

    def narrow(expr: ir.Expr) -> ir.Expr:
        value = _source_of(expr)
        if value is not None and value.type in _WEAK and _read(value) in element_types:
            return replace(value, type=element_types[_read(value)])
        return expr

    def narrow_assignment(stmt: ir.Stmt) -> ir.Block:
        if isinstance(stmt, ir.Assign) and stmt.name in element_types:
            return (replace(stmt, value=_rounded(stmt.value, element_types[stmt.name])),)
        return (stmt,)

    return replace(
        kernel,
        body=rebuild_block(kernel.body, narrow, narrow_assignment),
        locals=tuple((name, element_types.get(name, type_)) for name, type_ in kernel.locals),
        array_decls=tuple(
            replace(b, type=replace(b.type, dtype=element_types[b.name].dtype, weak=False))
            if b.name in element_types
            else b
            for b in kernel.array_decls
        ),
        narrowed=(*kernel.narrowed, *((name, element_types[name]) for name in parameters if name in element_types)),
    )


def _rounded(value: ir.Expr, type_: ir.ElementType) -> ir.Expr:
    if isinstance(value, ir.Constant):
        return replace(value, type=type_)
    if is_complex_constructor(value):
        part = ir.ElementType(type_.dtype.part)
        return replace(value, args=tuple(_rounded(arg, part) for arg in value.args), type=type_)
    return convert_generic(value, type_)


def _source_of(expr: ir.Expr) -> ir.Expr | None:
    """What `expr` converts to its type; None where it is no conversion."""
    match expr:
        case ir.Convert(value=value):
            return value
        case ir.Call(args=(value,)) if expr.function == ROUND_TO:
            return value
        case _:
            return None


def _read(expr: ir.Expr) -> str:
    """The local, parameter or table that `expr` reads."""
    match expr:
        case ir.Name(id=name) | ir.Load(array=name):
            return name
        case _:
            return ""


def _only_types(kernel: ir.Kernel) -> dict[str, ir.ElementType]:
    """Python floats that every use converts to one element type, and that type."""
    nodes = tuple(all_expressions(kernel.body))
    uses = Counter(_read(node) for node in nodes)
    types: dict[str, list[ir.Type]] = {}
    for node in nodes:
        value = _source_of(node)
        if value is not None and value.type in _WEAK and _read(value):
            types.setdefault(_read(value), []).append(node.type)
    return {
        name: targets[0]
        for name, targets in types.items()
        # rule: float-uses-agree
        if len(targets) == uses[name] and len(set(targets)) == 1 and isinstance(targets[0], ir.ElementType)
    }
