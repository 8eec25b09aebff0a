"""Emits CPU kernels whose threads work together: one call per block, with a loop over the threads for each region.

    float o[MAX_THREADS];
    for_each_thread(blockDim, [&](Dim3 threadIdx, int64_t thread) {
        o[thread] += ms[threadIdx.y][0];
    });

Values that each thread keeps are arrays indexed by the thread's number. Outside such a loop only uniform values are
read, so any thread's element will do.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from py2cu import ir
from py2cu.builtins import Builtin, Rule
from py2cu.builtins.launch import LANE_HELPER, WARP_SIZE
from py2cu.ir.names import underscored_name
from py2cu.ir.visit import all_expressions, assigned_names, statements
from py2cu.targets.cxx.calls import is_collective_builtin
from py2cu.targets.cxx.cxx_text import PRECEDENCE, PRIMARY, CxxText
from py2cu.targets.cxx.dialect import Callee, Dialect
from py2cu.targets.cxx.lines import Line
from py2cu.targets.cxx.statements import Emitter

MEMORY: Final = "shared_memory"  # the kernel's parameter for a block's dynamic shared memory
FIRST_THREAD: Final = "0"  # the C++ text of its index
_LOOPS: Final = {
    ir.ThreadOrder.ANY: "for_each_thread",
    ir.ThreadOrder.IN_ORDER: "for_each_thread_in_order",
    ir.ThreadOrder.WAITING: "run_threads_as_fibers",
}


class BlockEmitter(Emitter):
    """Emits the body of a kernel that `split_at_barriers` has split into regions."""

    def __init__(self, kernel: ir.Kernel, dialect: Dialect, callees: Mapping[str, Callee]) -> None:
        super().__init__(kernel, dialect, callees)
        taken = {kernel.c_name(name) for name in (*self.locals, *kernel.dims, *(p.name for p in kernel.parameters))}
        taken |= {kernel.c_name(value.name) for value in kernel.launch_values}
        taken |= {callee.function.symbol for callee in callees.values()}  # rule: hidden-callee
        self.number = underscored_name("thread", taken)
        self.thread = FIRST_THREAD  # the thread whose element of a per-thread array `name` spells

    def name(self, name: str) -> str:
        spelled = super().name(name)
        return f"{spelled}[{self.thread}]" if name in self.kernel.per_thread else spelled

    def launch_object(self, name: str) -> str:
        """Outside a loop over the threads a call passes the first thread's index: its result is the same for all."""
        return "Dim3{0, 0, 0}" if name == "threadIdx" and self.thread == FIRST_THREAD else name  # rule: block-thread

    def body(self) -> Iterator[Line]:
        """The lengths of rows, the per-thread arrays, whose extents may name them, then the kernel's body."""
        names = {name for name, _ in self.kernel.row_lengths}
        lengths = tuple(stmt for stmt in self.kernel.body if isinstance(stmt, ir.Assign) and stmt.name in names)
        yield from self.block(lengths)
        for name in self.kernel.per_thread:
            yield Line(f"    {self.per_thread_array(name)};")
        yield from self.block(tuple(stmt for stmt in self.kernel.body if stmt not in lengths))

    def per_thread_array(self, name: str) -> str:
        """The declaration of a value that each thread keeps: `float o[MAX_THREADS]`."""
        self.thread = "MAX_THREADS"  # `name` then spells the declaration
        if self.kernel.array_decl(name) is not None:
            text = self.declaration(name)
        else:
            text = f"{self.type_text(self.locals[name])} {self.name(name)}"
        self.thread = FIRST_THREAD
        return text

    def spell_statement(self, stmt: ir.Stmt, depth: int) -> Iterator[Line]:
        match stmt:
            case ir.EachThread(body=body):
                yield from self.each_thread(stmt, body, depth)
            case _:
                yield from super().spell_statement(stmt, depth)

    def call(self, expr: ir.Call) -> CxxText:
        if expr.function == LANE_HELPER:
            return CxxText(f"{self.number} % {WARP_SIZE}", PRECEDENCE["%"], "int64_t")
        return super().call(expr)

    def collective(self, expr: ir.Call, row: Builtin) -> CxxText:
        """`shfl_down_sync(operands, thread, blockDim, 16)`: each thread reads the operands of other threads."""
        mask, operands, *rest = expr.args
        assert isinstance(operands, ir.Name), operands
        others = [self.expr(each).text for each in rest] if row.rule is Rule.SHUFFLE else [self.mask(mask)]
        name = row.key.rpartition(".")[2]
        args = [super().name(operands.id), self.number, "blockDim", *others]
        returns_value = row.rule in (Rule.SHUFFLE, Rule.REDUCE)
        c_type = self.c_type(operands.type) if returns_value else "bool" if row.result == "bool" else "uint32_t"
        return CxxText(f"{name}({', '.join(args)})", PRIMARY, c_type)

    def each_thread(self, stmt: ir.EachThread, body: ir.Block, depth: int) -> Iterator[Line]:
        """The loop over the threads; its lambda names only the parameters that the body uses."""
        self.thread = self.number
        inner = [*self.block(body, depth + 1)]
        self.thread = FIRST_THREAD
        place = "Dim3 threadIdx" if self.reads_thread_index(body) else "Dim3"
        number = f"int64_t {self.number}" if self.reads_thread_number(body) else "int64_t"
        pad = "    " * depth
        yield Line(f"{pad}{_LOOPS[stmt.turns]}(blockDim, [&]({place}, {number}) {{")
        yield from inner
        yield Line(f"{pad}}});")

    def reads_thread_index(self, body: ir.Block) -> bool:
        """True if the body, or a device function that it calls, reads `threadIdx`."""
        return any(
            (isinstance(node, ir.LaunchIndex) and node.object == "threadIdx")
            or (isinstance(node, ir.DeviceCall) and "threadIdx" in self.callees[node.function].launch)
            for node in all_expressions(body)
        )

    def reads_thread_number(self, body: ir.Block) -> bool:
        """True if the body needs the thread's number: for per-thread arrays, lanes or collectives."""
        names = {*assigned_names(body)}
        for stmt in statements(body):
            match stmt:
                case ir.Store(array=array):
                    names.add(array)
                case ir.Alloc(array=array):
                    names |= {array, self.kernel.base_array(array)}
        for node in all_expressions(body):
            match node:
                case ir.Call(function=function) if function == LANE_HELPER or is_collective_builtin(function):
                    return True
                case ir.Name(id=name) | ir.ArrayName(id=name) | ir.Load(array=name) | ir.Atomic(array=name):
                    names.add(name)
        return not names.isdisjoint(self.kernel.per_thread)

    def reservation(self, name: str, start: ir.Expr | None) -> Iterator[str]:
        decl = self.kernel.array_decl(name)
        assert decl is not None, name
        element = self.type_text(decl.type.element)
        if start is None and decl.is_dynamic:
            yield f"{element}* {self.name(name)} = reinterpret_cast<{element}*>({MEMORY})"
        elif start is None and decl.space is ir.Space.SHARED:
            yield self.declaration(name)
        else:
            yield from super().reservation(name, start)
