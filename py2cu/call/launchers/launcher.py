"""The launcher of a form of call: a Python function, written out from a kernel's signature and its launch program.

    def launcher(v_x, v_out):
        if v_x.dtype is not float32 or not v_x.is_cpu: raise misfit
        …
        s_x_0, = v_x.shape
        d_n = s_x_0
        …
        if entry(block.addresses, block.launch, block.message): raise failed(block)

In: a `Signature` with its dtypes, a `LaunchProgram`, the order of the arguments, what runs an instance. Out: a function
of these arguments by position.
Promises: it accepts arguments that `argument_checks.py` accepts, and no others; it raises one of `REFUSED`, and has
launched nothing then, unless `has_launched` says so. Whoever calls it asks `argument_checks.py` for the message; where
that has none, the launch is impossible, and the error says why.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import chain
from typing import Any, Final

import torch
from torch.autograd import forward_ad, profiler

from py2cu.call.launchers.engines import Engine, pool_of_blocks
from py2cu.call.launchers.extents import ExtentLines
from py2cu.call.launchers.likeness import LikenessLines, settle
from py2cu.call.launchers.memory import meet, memory_lines
from py2cu.call.launchers.values import half_bits, integer_dtype, kind_of, packed, to_float32, unpacked, value_lines
from py2cu.dtypes import I64, Kind
from py2cu.ir.abi import launch
from py2cu.ir.abi.parameters import Parameter, Role
from py2cu.ir.abi.signature import Signature
from py2cu.ir.types import Constant, DimExpr, Name
from py2cu.options import MAX_THREADS
from py2cu.records import record

LaunchFunction = Callable[..., Any]
_FAILED: Final = "the launch failed: invalid configuration argument"


class Misfit(RuntimeError):
    """Arguments that the kernel does not accept; `argument_checks.py` says why."""


@record(frozen=True, slots=True)
class Order:
    """What the arguments of a launcher are, by position: parameters and tuple parameters.

    On a grid, its three extents and those of the block come first. A launcher `of_call` also looks at what torch's
    dispatcher would have to see, and bumps version counters. Arguments that are None are `absent`; the kernel does not
    need them. Outputs that are not among `names` are allocated.
    """

    names: tuple[str, ...]
    on_grid: bool
    of_call: bool
    absent: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls, signature: Signature, names: Sequence[str], values: Iterable[object], *, on_grid: bool, of_call: bool
    ) -> Order:
        """The order of the arguments `names`, with these `values`. A launcher refuses None for an array it needs."""
        needed = {p.name for p in signature.arrays if not p.may_be_none}
        left_out = (name for name, value in zip(names, values, strict=True) if value is None and name not in needed)
        return cls(tuple(names), on_grid, of_call, frozenset(left_out))

    @property
    def given(self) -> tuple[str, ...]:
        return tuple(name for name in self.names if name not in self.absent)


def write_launcher(
    signature: Signature,
    program: launch.LaunchProgram,
    order: Order,
    values: Sequence[int],
    engine: Engine,
    record: LaunchFunction | None = None,
) -> LaunchFunction:
    """The launcher of one instance: `values` are those of the template arguments, `engine` runs compiled code.

    A call that autograd records goes to `record`, with the arguments, or is refused where that is None.
    """
    constexprs = dict(zip(program.constexprs, values, strict=True))
    tuples = dict(signature.tuples)
    given = {*chain.from_iterable(tuples.get(name, (name,)) for name in order.given)}
    writer = _Writer(ExtentLines(signature, program, constexprs, given), order, engine)
    text = "\n".join(writer.lines(record))
    exec(compile(text, f"<launcher of {signature.name}>", "exec"), writer.names)
    function: LaunchFunction = writer.names["launcher"]
    return function


class _Writer:
    """Writes one launcher.

    Names of the user's begin with `v_` (argument), `d_` (dimension), `s_` (extent), `p_` (address) or `t_` (stride), or
    as `values.py`, `memory.py` and `extents.py` say; no other name begins so.
    """

    def __init__(self, extents: ExtentLines, order: Order, engine: Engine) -> None:
        self.extents, self.order, self.engine = extents, order, engine
        self.program, self.constexprs = extents.program, extents.constexprs
        signature = self.signature = extents.signature
        self.arrays = [p for p in signature.arrays if p.name in extents.given]
        self.allocated = [p for p in signature.outputs if p.name not in extents.given]
        self.names: dict[str, Any] = {
            "misfit": Misfit, "prod": math.prod, "meet": meet,
            "require_memory": _require_memory, "empty": torch.empty, "empty_like": torch.empty_like,
            "dense": torch.contiguous_format, "to_float32": to_float32, "half_bits": half_bits,
        }  # fmt: skip

    def lines(self, record: LaunchFunction | None) -> Iterator[str]:
        """The launcher, which hands a call that autograd records over to `record`."""
        on_grid, of_call = self.order.on_grid, self.order.of_call
        shape = ["gx", "gy", "gz", "bx", "by", "bz"] if on_grid else []
        taken = [*shape, *(f"v_{name}" for name in self.order.names)]
        yield f"def launcher({', '.join(taken)}):"
        first = [*(self._watched() if of_call else ()), *unpacked(self.signature, self.order.names, self.names)]
        body = [
            *self._left_out(),
            *self._numbers(),
            *self.extents.lines(self.arrays),
            *self._block(),
            *self._allocation(),
            *memory_lines(self.extents, [*self.arrays, *self.allocated], self.arrays, on_grid=on_grid),
            *(self._versions() if of_call else ()),
            *self._grid(),
            *self._instance(),
            *value_lines(self.extents, self.names),
        ]
        self.names["record"] = record
        leave = "raise misfit" if record is None else f"return record({', '.join(taken)})"
        likeness = LikenessLines(self.signature, self.arrays, self.engine.is_cuda, leave if of_call else None)
        settled, defined, others = settle(body, likeness.known, [*taken, *(f"v_{name}" for name in self.extents.given)])
        guard = []
        if self.engine.is_cuda and torch.cuda.device_count() > 1:
            self.names["on_device"] = _on_device
            guard = [f"if current_device() != device: return on_device(device, launcher, {', '.join(taken)})"]
        others = [*guard, *others, *self._engine_lines(), f"return {self._result}"]
        lines = [*first, *likeness.lines([*guard, *settled], defined, others, self.names), *others]
        yield from (f"    {line}" for line in lines)

    # --- what the call passes and leaves out ---

    def _watched(self) -> Iterator[str]:
        """Leaves a call to the dispatcher if a mode, a tangent or a profiler may have to see it."""
        self.names |= {
            "dual": forward_ad, "profiler": profiler, "dispatch_modes": torch._C._len_torch_dispatch_stack,
            "function_modes": torch._C._len_torch_function_stack,
        }  # fmt: skip
        yield "if dispatch_modes() or function_modes(): raise misfit"
        yield "if dual._current_level >= 0 or profiler._is_profiler_enabled: raise misfit"

    def _left_out(self) -> Iterator[str]:
        signature = self.signature
        for parameter in signature.parameters:
            name = parameter.name
            if name in {*self.extents.given, *self.constexprs} or parameter in self.allocated:
                continue
            strides = [f"t_{stride.name}" for stride in self.program.strides if stride.array == name]
            default = parameter.default if signature.measured_by(name, self.extents.given) is None else None
            self.names[f"default_{name}"] = default and default.value
            yield f"v_{name} = default_{name}"
            if parameter.is_array:
                yield f"{' = '.join([f'p_{name}', *strides])} = 0"

    def _numbers(self) -> Iterator[str]:
        """Refuses whole numbers that do not fit their types."""
        for parameter in self.signature.parameters:
            name = parameter.name
            is_number = not parameter.is_array and name in self.extents.given and name not in self.constexprs
            if is_number and kind_of(parameter) is Kind.INT:
                dtype = integer_dtype(parameter)
                low, high = max(int(dtype.low), int(I64.low)), min(int(dtype.high), int(I64.high))
                yield f"if not {low} <= v_{name} <= {high}: raise misfit"

    # --- launch ---

    def _block(self) -> Iterator[str]:
        """Extents of shared arrays, and the block of a call."""
        program = self.program
        for name, extent in program.checks_shared:
            yield self._require(f"an extent of `{name}`", extent, launch.INT32_MAX, self.extents.text(extent))
        most = self.signature.launch_bounds[0] if self.signature.launch_bounds else MAX_THREADS
        if not self.order.on_grid:
            for axis, extent in zip("xyz", (*program.block, *[Constant(1)] * 3), strict=False):
                yield f"b{axis} = {self.extents.text(extent)}"
            if program.has_open_block:
                tests = (f"0 < b{axis} <= {64 if axis == 'z' else most}" for axis in "xyz")
                refused = self._refuse(f"blocks of {{bx}} x {{by}} x {{bz}} threads; there may be 1 to {most}")
                yield f"if not ({' and '.join(tests)} and bx * by * bz <= {most}): {refused}"
        elif self.signature.launch_bounds or not self.engine.is_cuda:
            refused = self._refuse(f"a block has at most {most} threads, got {{bx * by * bz}}")
            yield f"if bx * by * bz > {most}: {refused}"

    def _refuse(self, what: str) -> str:
        """The line that refuses a launch; `what` has expressions in braces."""
        return f'raise RuntimeError(f"{self.signature.name}: {what}")'

    def _require(self, what: str, extent: DimExpr, most: int, value: str) -> str:
        """The line that refuses an extent, of which `value` is the expression, below 0 or above `most`."""
        refused = f"refused_{len(self.names)}"
        self.names[refused] = partial(_refused_extent, f"{self.signature.name}: {what}", extent)
        return f"if not 0 <= {value} <= {most}: raise {refused}({value})"

    def _allocation(self) -> Iterator[str]:
        signature = self.signature
        inits, widths = dict(signature.inits), dict(signature.vector_widths)
        natural = {*self.constexprs, *(dim.name for dim in signature.dims if dim.array is not None)}
        for parameter in self.allocated:
            type_, name = signature.array_type(parameter.name), parameter.name
            for axis, dim in enumerate(type_.dims):
                yield f"s_{name}_{axis} = {self.extents.text(dim)}"
                if not (isinstance(dim, Constant) or (isinstance(dim, Name) and dim.id in natural)):
                    yield self._require(f"dimension {axis} of `{name}`", dim, 2**63 - 1, f"s_{name}_{axis}")
            if (like := self._alike(parameter)) is not None:
                yield f"v_{name} = empty_like(v_{like}, memory_format=dense)"
            else:
                sizes = [f"s_{name}_{axis}" for axis in range(len(type_.dims))]
                if (source := signature.leading_source(type_)) is not None:
                    sizes[:1] = [f"*leading_{source}"]
                first = min(self.arrays, key=lambda p: p.role is Role.OUTPUT).name  # says the device of the call
                shape = "".join(f"{size}, " for size in sizes)
                yield f"v_{name} = empty(({shape}), dtype=torch.{type_.dtype.name}, device=v_{first}.device)"
            if name in signature.strided:
                yield f"stride_{name} = v_{name}.stride()"
            if name in inits:
                self.names[f"init_{name}"] = inits[name]
                yield f"v_{name}.fill_(init_{name})"
            if widths.get(name):
                yield f"if ({self.extents.elements(name)}) % {widths[name]}: raise misfit"

    def _alike(self, output: Parameter) -> str | None:
        """A contiguous input that has the shape and the dtype of `output`."""
        inputs = (p for p in self.arrays if p.role is not Role.OUTPUT and p.name not in self.signature.strided)
        return next((p.name for p in inputs if p.type == output.type), None)

    def _versions(self) -> Iterator[str]:
        """Tells autograd that arrays change."""
        self.names["increment_version"] = torch._C._increment_version
        written = [p for p in self.arrays if p.role is not Role.INPUT]
        if any(p.role is Role.OUTPUT for p in written):  # outputs beside given ones count as written, too
            written += self.allocated
        if written:
            yield f"increment_version(({', '.join(f'v_{p.name}' for p in written)},))"  # rule: version-counts

    def _grid(self) -> Iterator[str]:
        """Refuses more threads than can be counted, and computes the grid of a call, which may launch nothing."""
        if self.program.is_index or not self.order.on_grid:
            what = _FAILED if self.engine.is_cuda else "a launch of more threads than 64 bits can count"
            for bound in self.program.overflows:
                yield f"if {self.extents.bound(bound)} > {launch.MOST_THREADS!r}: {self._refuse(what)}"
        if self.order.on_grid:
            return
        sizes = [*zip("xyz", self.program.size, strict=False)]
        for axis, extent in sizes:  # an empty launch may be too large on another axis
            yield f"n{axis} = {self.extents.text(extent)}"
            yield f"if n{axis} <= 0: return {self._result}"
        for axis, _ in sizes:
            if axis == "x" and self.program.packs is not None:
                yield from self._packs(self.program.packs, " * ".join(f"n{axis}" for axis, _ in sizes))
            else:
                yield f"g{axis} = (n{axis} + b{axis} - 1) // b{axis}"
            if self.engine.is_cuda:
                yield f"if g{axis} > {launch.INT32_MAX}: {self._refuse(_FAILED)}"
        yield from (f"g{axis} = 1" for axis in "xyz"[len(self.program.size) :])

    def _packs(self, packs: launch.PackedLaunch, elements: str) -> Iterator[str]:
        """The instance, by width and count of the packs of a thread, and the blocks on the x axis."""

        def of(width: int, count: int) -> str:
            span = f"(bx * {width * count})"
            return f"(instances[device, ({width}, {count})], (nx + {span} - 1) // {span})"

        ragged = " or ".join(["few", *(f"{self.extents.text(row)} % {packs.width}" for row in packs.rows)])
        yield f"few = {elements} <= {launch.FEW_ELEMENTS}"  # rule: launcher-few
        yield f"apart = {of(1, 1)} if few else {of(1, launch.SCATTERED)}"
        yield f"aligned = apart if {ragged} else {of(packs.width, packs.count)}"
        misaligned = f"({' | '.join(f'p_{name}' for name in packs.arrays)}) % {launch.ALIGNMENT}"
        yield f"instance, gx = apart if {misaligned} else aligned"

    @property
    def _result(self) -> str:
        """What the launcher returns: a call all outputs, an operator those that it allocates."""
        if self.order.on_grid:
            return "None"
        outputs = self.signature.outputs if self.order.of_call else self.allocated
        return ", ".join(f"v_{p.name}" for p in outputs) or "None"

    def _instance(self) -> Iterator[str]:
        """Looks up the instance; on the CPU there is one, which cannot run any number of blocks that wait."""
        program, text = self.program, self.extents.text
        shared = " + ".join(f"{text(count)} * {itemsize}" for count, itemsize in program.shared)
        if self.engine.is_cuda:
            yield f"shared = {shared or 0}"
            if program.packs is None or self.order.on_grid:
                fits = [f"{self.extents.bound(bound)} <= {launch.INT32_MAX}" for bound in program.fits]
                narrow = " and ".join(fits) if program.has_index_type and fits else "True"
                presence = [str(name in self.extents.given) for name in program.optional]
                form = narrow if program.packs is None else "(1, 1)"
                yield f"instance = instances[{', '.join(['device', form, *presence])}]"
        elif shared:  # a failed allocation in a thread of OpenMP ends the process
            refused = self._refuse(f"a block has at most {launch.INT32_MAX} bytes of shared memory, got {{{shared}}}")
            yield f"if {shared} > {launch.INT32_MAX}: {refused}"
        if program.cooperative and not self.engine.is_cuda:
            what = f"wait for each other, and at most {launch.MOST_BLOCKS_OF_CPU} run at once on the CPU"
            refused = self._refuse(f"{{gx * gy * gz}} blocks {what}")
            yield f"if gx * gy * gz > {launch.MOST_BLOCKS_OF_CPU}: {refused}"

    def _engine_lines(self) -> Iterator[str]:
        arguments = [packed(self.extents, each) for each in self.program.passed]
        self.names |= pool_of_blocks(self.engine.launch, [code for code, _ in arguments])
        values = [*chain.from_iterable(values for _, values in arguments)]
        return self.engine.lines(self.names, self.program, values)


def _refused_extent(what: str, extent: DimExpr, value: int) -> RuntimeError:
    """The error for a launch with an impossible extent."""
    from py2cu.ir.printer import print_expr

    return RuntimeError(f"{what} is `{print_expr(extent)}` = {value}")


def _require_memory(*tensors: torch.Tensor) -> None:
    """Refuse tensors with elements and without memory."""
    if any(tensor.data_ptr() == 0 and tensor.numel() for tensor in tensors):
        raise Misfit


def _on_device(device: int, launcher: LaunchFunction, *values: Any) -> Any:
    with torch.cuda.device(device):
        return launcher(*values)
