"""The rules that a kernel obeys at each stage. Breaking one is a bug of py2cu, never of the user.

In: a kernel and its stage. Out: nothing, or an `InternalError` at the first node that breaks a rule. The pipeline
verifies what reaches the targets; the tests verify the kernel after every pass.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterator
from typing import Final

from py2cu import ir
from py2cu.diagnostics import InternalError
from py2cu.dtypes import Kind
from py2cu.ir.operators import OPERATORS
from py2cu.ir.visit import all_expressions, blocks, statements
from py2cu.source import Span


class Stage(enum.IntEnum):
    """How far a kernel has come; the rules of a stage hold from there on, unless they say until when."""

    UNTYPED = enum.auto()  # from the front end until `infer_types`
    TYPED = enum.auto()  # until `lower_semantics`
    LOWERED = enum.auto()  # what a target may change before it names and declares
    FINISHED = enum.auto()  # what a target spells


Broken = Iterator[tuple[str, Span]]  # what is wrong, and where


def verify(kernel: ir.Kernel, stage: Stage) -> None:
    """Check a kernel, and the device functions that it calls, against the rules of `stage`.

    Raises:
        InternalError: it breaks one.
    """
    for function in (kernel, *kernel.functions):
        for first, last, rule in _RULES:
            if first <= stage <= last:
                for message, span in rule(function, kernel):
                    raise InternalError(f"{message}, in `{function.name}`", span)


def _names_exist(function: ir.Kernel, kernel: ir.Kernel) -> Broken:
    """Every array and every device function that is named exists, and is called with what it takes."""
    arrays = {p.name for p in function.parameters if p.is_array} | {decl.name for decl in function.array_decls}
    functions = {callee.key: len(callee.parameters) for callee in kernel.functions}
    for node in all_expressions(function.body):
        match node:
            case ir.Constant() | ir.Name() | ir.Binary():  # what is frequent comes first
                pass
            case ir.Load(array=name) | ir.Atomic(array=name) | ir.ArrayName(id=name) if name not in arrays:
                yield f"there is no array `{name}`", node.span
            case ir.DeviceCall(function=key, args=args) if functions.get(key) != len(args):
                yield f"`{key}` does not exist, or takes another number of arguments", node.span
    for stmt in statements(function.body):
        if isinstance(stmt, ir.Store | ir.Alloc) and stmt.array not in arrays:
            yield f"there is no array `{stmt.array}`", stmt.span


def _is_untyped(function: ir.Kernel, _: ir.Kernel) -> Broken:
    """No node that typing or lowering creates."""
    for node in all_expressions(function.body):
        if isinstance(node, ir.Convert):
            yield "a conversion stands in untyped IR", node.span
        if isinstance(node, ir.Call) and "." not in node.function:
            yield f"the helper `{node.function}` stands in untyped IR", node.span
    if function.locals:
        yield "untyped IR has typed locals", function.span


def _is_typed(function: ir.Kernel, _: ir.Kernel) -> Broken:
    """Every value has a type; a call that is a statement has none."""
    unused = {id(stmt.call) for stmt in statements(function.body) if isinstance(stmt, ir.ExprStmt)}
    for node in all_expressions(function.body):
        # rule: verified-type
        if node.type is ir.UNKNOWN and id(node) not in unused and not isinstance(node, ir.ArrayName):
            yield f"{type(node).__name__} has no type", node.span
        if isinstance(node, ir.Extent):
            yield "an extent was not resolved", node.span
        if isinstance(node, ir.IsDtype):
            yield "a test of a dtype was not decided", node.span


def _knows_locals(function: ir.Kernel, kernel: ir.Kernel) -> Broken:
    """Every name that is assigned is a local or a parameter; every name that is read is known."""
    assigned = {name for name, _ in function.locals} | {p.name for p in function.parameters}
    known = assigned.union(function.dims, kernel.dims, (index.name for index in function.indices))
    known.update(value.name for value in function.launch_values)
    for stmt in statements(function.body):
        if isinstance(stmt, ir.For):
            known.add(stmt.var)
        if isinstance(stmt, ir.EachPack):
            known.update(stmt.values)
        if isinstance(stmt, ir.Assign) and stmt.name not in assigned:
            yield f"`{stmt.name}` has no type", stmt.span
    for node in all_expressions(function.body):
        if isinstance(node, ir.Name) and node.id not in known:
            yield f"nothing defines `{node.id}`", node.span  # rule: verified-local


def _is_lowered(function: ir.Kernel, _: ir.Kernel) -> Broken:
    """Only what C computes as Python does; an access of memory has one index, unless C knows the array's extents."""

    def is_flat(access: ir.Load | ir.Atomic | ir.Store) -> bool:
        return len(access.indices) == 1 or function.keeps_subscripts(access.array)

    for node in all_expressions(function.body):
        if isinstance(node, ir.Binary) and node.op != OPERATORS[node.op].c:
            yield f"`{node.op}` was not lowered", node.span
        if isinstance(node, ir.TupleItem) and not node.field:
            yield "an item of a tuple has no field", node.span
        if isinstance(node, ir.BoolOp) and not _is_bool(node.type):
            yield f"`{node.op}` gives one of its operands", node.span
        if isinstance(node, ir.Load | ir.Atomic) and not is_flat(node):
            yield "an access was not flattened", node.span
        if _lacks_width(node):
            yield f"{type(node).__name__} has no width", node.span
    for stmt in statements(function.body):
        if isinstance(stmt, ir.For | ir.While) and stmt.orelse:
            yield "the `else` of a loop was not lowered", stmt.span
        if isinstance(stmt, ir.Store) and not is_flat(stmt):
            yield "a store was not flattened", stmt.span


def _is_bool(type_: ir.Type) -> bool:
    return isinstance(type_, ir.ElementType | ir.PythonType) and ir.kind_of(type_) is Kind.BOOL


def _lacks_width(node: ir.Expr) -> bool:
    """True for a Python integer of no C type; a literal is of the type that it meets."""
    type_ = node.type
    is_open = isinstance(type_, ir.PythonType) and type_.width is ir.Width.ANY and type_.kind is Kind.INT
    return is_open and not isinstance(node, ir.Constant)


def _is_portable(function: ir.Kernel, _: ir.Kernel) -> Broken:
    """No node that only the passes of a target create."""
    for stmt in statements(function.body):
        if isinstance(stmt, ir.DeclareLocal | ir.StructuredBinding | ir.EachPack | ir.EachThread):
            yield f"{type(stmt).__name__} stands before the passes of a target", stmt.span
        if isinstance(stmt, ir.Assign) and stmt.declares is not None:
            yield f"`{stmt.name}` is declared before the passes of a target", stmt.span


def _is_declared(function: ir.Kernel, _: ir.Kernel) -> Broken:
    """Every local is declared once where it is visible, before it is assigned."""
    yield from _declared_in(function.body, frozenset((*(p.name for p in function.parameters), *function.per_thread)))


def _declared_in(block: ir.Block, around: frozenset[str]) -> Broken:
    visible = set(around)
    for stmt in block:
        declared = _declares(stmt)
        for name in declared:
            if name in visible:
                yield f"`{name}` is declared twice", stmt.span  # rule: verified-twice
        visible.update(declared)
        if isinstance(stmt, ir.Assign) and stmt.name not in visible:
            yield f"`{stmt.name}` has no declaration", stmt.span
        own = {stmt.var} if isinstance(stmt, ir.For) else set[str]()
        start = stmt.start if isinstance(stmt, ir.While) else ()
        own.update(name for each in start for name in _declares(each))
        for inner in blocks(stmt):
            yield from _declared_in(inner, frozenset(visible if inner is start else own | visible))


def _declares(stmt: ir.Stmt) -> tuple[str, ...]:
    match stmt:
        case ir.DeclareLocal(name=name):
            return (name,)
        case ir.Assign(name=name) if stmt.declares is not None:
            return (name,)
        case ir.StructuredBinding(names=names):
            return names
        case _:
            return ()


Rule = Callable[[ir.Kernel, ir.Kernel], Broken]
_RULES: Final[tuple[tuple[Stage, Stage, Rule], ...]] = (
    (Stage.UNTYPED, Stage.FINISHED, _names_exist),
    (Stage.UNTYPED, Stage.UNTYPED, _is_untyped),
    (Stage.UNTYPED, Stage.TYPED, _is_portable),
    (Stage.TYPED, Stage.FINISHED, _is_typed),
    (Stage.TYPED, Stage.FINISHED, _knows_locals),
    (Stage.LOWERED, Stage.FINISHED, _is_lowered),
    (Stage.FINISHED, Stage.FINISHED, _is_declared),
)
