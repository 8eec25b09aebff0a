"""The launcher of calls: one Python function for each set of dtypes, written out from a kernel's signature and program.

    def launch_add(x, out):
        if x.dtype is not float32 or out.dtype is not float32: raise misfit
        …
        (n,) = x.shape
        …
        launch(kernel, (n + 255) // 256, 1, 1, 256, 1, 1, 0, stream, block.addresses, 0)

In: a `Signature` with its dtypes, the `LaunchProgram`, what compiles and loads an instance. Out: a function of one
positional argument for each parameter, and of a grid and a block if it is for explicit launches.
Promises: it accepts what `argument_checks.py` accepts, and nothing else; it raises `Misfit`, or what Python raises, and
has launched nothing then. Whoever calls it then asks `argument_checks.py` for the message.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import torch

from py2cu.call.argument_checks import MOST_BLOCKS_OF_CPU
from py2cu.call.engines import Engine, Frame, LaunchLines, half_bits, to_float32
from py2cu.call.memory import are_same, overlap, overlaps_itself
from py2cu.dtypes import BY_NAME, I64, DType, Kind
from py2cu.ir.abi.launch import INT32_MAX, MOST_THREADS, Bound, LaunchProgram, Source
from py2cu.ir.abi.parameters import Parameter, Role
from py2cu.ir.abi.signature import Dim, Signature, divisors
from py2cu.ir.types import ArrayType, Binary, Constant, DimExpr, ElementType, Name, PythonType
from py2cu.options import MAX_THREADS

LaunchFunction = Callable[..., Any]


class Misfit(RuntimeError):
    """Arguments that the kernel does not accept; `argument_checks.py` says why."""


@dataclass(frozen=True, slots=True)
class Overload:
    """Which parameters a launcher takes: all but the outputs, which it allocates; all; or all, a grid and a block."""

    allocates: bool
    on_grid: bool


def write_launcher(
    signature: Signature, program: LaunchProgram, overload: Overload, values: Sequence[int], engine: Engine
) -> LaunchFunction:
    """The launcher of one instance: `values` are those of the template arguments, `engine` runs compiled code."""
    writer = _Writer(signature, program, overload, dict(zip(program.constexprs, values, strict=True)), engine)
    text = "\n".join(writer.lines())
    exec(compile(text, f"<launcher of {signature.name}>", "exec"), writer.names)
    function: LaunchFunction = writer.names["launcher"]
    return function


@dataclass(slots=True)
class _Writer:
    """Writes one launcher. Names of the user's begin with `v_` (arguments), `d_` (dimensions), `p_` (addresses)."""

    signature: Signature
    program: LaunchProgram
    overload: Overload
    constexprs: dict[str, int]
    engine: Engine
    names: dict[str, Any] = field(default_factory=dict)
    _dims: set[str] = field(default_factory=set)

    def lines(self) -> Iterator[str]:
        signature = self.signature
        self.names |= {
            "misfit": Misfit(), "prod": math.prod, "overlaps_itself": overlaps_itself, "meet": _meet,
            "require_memory": _require_memory, "empty": torch.empty, "empty_like": torch.empty_like,
            "to_float32": to_float32, "half_bits": half_bits,
        }  # fmt: skip
        parameters = signature.inputs if self.overload.allocates else signature.parameters
        given = [p for p in parameters if p.is_array]
        taken = [f"v_{p.name}" for p in parameters] + (["grid", "block"] if self.overload.on_grid else [])
        yield f"def launcher({', '.join(taken)}):"
        body = chain(
            self._numbers(parameters),
            *(self._array(p) for p in given),
            self._device_guard(taken),
            self._shapes(given),
            self._extents(given),
            self._geometry(),
            self._allocation() if self.overload.allocates else (),
            self._memory(given),
            self._launch(),
        )
        yield from (f"    {line}" for line in body)

    # --- numbers ---

    def _numbers(self, parameters: Iterable[Parameter]) -> Iterator[str]:
        """Defaults of what the call leaves out, and numbers that are too large."""
        for parameter in parameters:
            name = f"v_{parameter.name}"
            if parameter.is_array or parameter.name in self.constexprs:
                continue
            if parameter.default is not None and not parameter.may_be_none:
                self.names[f"default_{parameter.name}"] = parameter.default.value
                yield f"if {name} is None: {name} = default_{parameter.name}"
            match parameter.type:
                case ElementType(dtype=DType(kind=Kind.INT) as dtype):
                    low, high = max(int(dtype.low), -(2**63)), min(int(dtype.high), 2**63 - 1)
                case PythonType(kind=Kind.INT):
                    low, high = -(2**63), 2**63 - 1
                case _:
                    continue
            test = f"{low} <= {name} <= {high}"
            is_optional = parameter.may_be_none or self.signature.is_derived(parameter)
            yield f"if {f'{name} is not None and ' if is_optional else ''}not {test}: raise misfit"

    # --- arrays ---

    def _array(self, parameter: Parameter) -> Iterator[str]:
        """Dtype, device and layout of one array."""
        name, array = parameter.name, f"v_{parameter.name}"
        dtype = self.signature.dtype(name)
        tests = [f"{array}.dtype is not {self._dtype(dtype)}"]
        if self.engine.is_cuda:
            if parameter is self._first:
                yield f"device = {array}.get_device()"
                tests.append("device < 0")
            else:
                tests.append(f"{array}.get_device() != device")
        else:
            tests.append(f"not {array}.is_cpu")
        lines = [f"if {' or '.join(tests)}: raise misfit"]
        is_lazy = f"{array}.is_neg()" + (f" or {array}.is_conj()" if dtype.kind is Kind.COMPLEX else "")
        resolve = f"{array} = {array}.resolve_conj().resolve_neg()" if parameter.role is Role.INPUT else "raise misfit"
        lines.append(f"if {is_lazy}: {resolve}")
        if name not in self.signature.strided:
            lines.append(f"if not {array}.is_contiguous(): raise misfit")
        yield from self._if_given(parameter, lines)

    def _device_guard(self, taken: Sequence[str]) -> Iterator[str]:
        if self.engine.is_cuda:
            self.names |= {"current_device": torch._C._cuda_getDevice, "on_device": _on_device}
            yield f"if current_device() != device: return on_device(device, launcher, {', '.join(taken)})"

    def _if_given(self, parameter: Parameter, lines: Sequence[str]) -> Iterator[str]:
        if parameter.may_be_none and lines:
            yield f"if v_{parameter.name} is not None:"
            yield from (f"    {line}" for line in lines)
        else:
            yield from lines

    @property
    def _first(self) -> Parameter:
        """The array whose device is the call's."""
        arrays = sorted(self.signature.arrays, key=lambda p: p.role is Role.OUTPUT)
        return next(p for p in arrays if not p.may_be_none)

    def _dtype(self, dtype: DType) -> str:
        self.names[dtype.name] = getattr(torch, dtype.name)
        return dtype.name

    def _shapes(self, given: Iterable[Parameter]) -> Iterator[str]:
        """`(x_0, x_1) = v_x.shape`, the product of leading extents as one."""
        for parameter in given:
            type_, name = self.signature.array_type(parameter.name), parameter.name
            axes = [f"{name}_{axis}" for axis in range(len(type_.dims))]
            if not type_.leading:
                targets = "".join(f"s_{axis}, " for axis in axes)
                lines = [f"{targets.rstrip()} = v_{name}.shape" if axes else f"if v_{name}.dim(): raise misfit"]
            else:
                lines = [f"shape_{name} = v_{name}.shape", f"cut_{name} = len(shape_{name}) - {type_.trailing}"]
                lines.append(f"if cut_{name} < 0: raise misfit")
                lines.append(f"leading_{name} = shape_{name}[:cut_{name}]")
                lines.append(f"s_{axes[0]} = prod(leading_{name})")
                lines += [f"s_{axis} = shape_{name}[cut_{name} + {at}]" for at, axis in enumerate(axes[1:])]
            yield from self._if_given(parameter, lines)

    def _extents(self, given: Sequence[Parameter]) -> Iterator[str]:
        """The dimensions, and the extents that must agree with them."""
        signature = self.signature
        for name, value in self.constexprs.items():
            if not any(dim.name == name for dim in signature.dims):
                self._dims.add(name)
                yield f"d_{name} = {int(value)}"
        for dim in signature.dims:
            yield from self._dim(dim)
            self._dims.add(dim.name)
            if dim.name in self.constexprs:
                yield f"if d_{dim.name} != {int(self.constexprs[dim.name])}: raise misfit"
        sources = {(dim.array, dim.axis) for dim in signature.dims if dim.is_extent}
        formulas = [d for p in signature.arrays for d in signature.array_type(p.name).dims]
        factors = (dim.factor for dim in signature.dims if not isinstance(dim.factor, Constant))
        all_divisors = chain(
            chain.from_iterable(map(divisors, (*formulas, *(signature.size or ()), *signature.block))), factors
        )
        for divisor in dict.fromkeys(map(self.text, all_divisors)):
            yield f"if {divisor} == 0: raise misfit"
        widths = dict(signature.vector_widths)
        for parameter in given:
            type_, name = signature.array_type(parameter.name), parameter.name
            lines = [
                f"if s_{name}_{axis} != {self.text(dim)}: raise misfit"
                for axis, dim in enumerate(type_.dims)
                if (name, axis) not in sources
            ]
            source = signature.leading_source(type_)
            if source is not None and source != name and any(p.name == source for p in given):
                test = f"leading_{name} != leading_{source}"
                optional = signature.parameter(source).may_be_none
                lines.append(f"if {f'v_{source} is not None and ' * optional}{test}: raise misfit")
            if widths.get(name):
                lines.append(f"if ({self._elements(name)}) % {widths[name]}: raise misfit")
            yield from self._if_given(parameter, lines)

    def _dim(self, dim: Dim) -> Iterator[str]:
        name = f"d_{dim.name}"
        parameter = next((p for p in self.signature.parameters if p.name == dim.name), None)
        if dim.array is None:
            yield f"{name} = v_{dim.name}.__index__()"
            return
        extent = f"s_{dim.array}_{dim.axis}"
        if not dim.is_extent:
            factor, rest = self.text(dim.factor), self.text(dim.rest)
            extent = f"(({extent} - {rest}) // {factor} if {extent} > {rest} and {factor} > 0 else 0)"
        if self.signature.parameter(dim.array).may_be_none:
            extent = f"0 if v_{dim.array} is None else {extent}"
        yield f"{name} = {extent}"
        if parameter is not None and parameter.name not in self.constexprs:
            yield f"if v_{dim.name} is not None and v_{dim.name} != {name}: raise misfit"

    def text(self, expr: DimExpr) -> str:
        """An extent in Python."""
        match expr:
            case Constant(value=value):
                return str(int(value))
            case Name(id=name):
                return self._symbol(name)
            case Binary(op=op, left=left, right=right):
                return f"({self.text(left)} {op} {self.text(right)})"
            case _:
                raise AssertionError(expr)

    def _symbol(self, name: str) -> str:
        match name.partition("."):
            case ("gridDim", _, axis):
                return f"g{axis}"
            case ("blockDim", _, axis):
                return f"b{axis}"
        if name in self.constexprs:
            return str(int(self.constexprs[name]))
        return f"d_{name}" if name in self._dims else self._stride(name) or f"v_{name}"

    def _stride(self, name: str) -> str:
        return f"t_{name}" if any(stride.name == name for stride in self.program.strides) else ""

    def _elements(self, name: str) -> str:
        dims = self.signature.array_type(name).dims
        return " * ".join(f"s_{name}_{axis}" for axis in range(len(dims))) or "1"

    # --- launch ---

    def _geometry(self) -> Iterator[str]:
        """Grid and block, as far as the call says them or its numbers do."""
        program = self.program
        most = self.signature.launch_bounds[0] if self.signature.launch_bounds else MAX_THREADS
        if self.overload.on_grid:
            for which, letter in (("grid", "g"), ("block", "b")):
                yield f"{letter}x, {letter}y, {letter}z = {which} if len({which}) == 3 else [*{which}, 1, 1][:3]"
                yield f"if not 0 < len({which}) <= 3: raise misfit"
                tests = (f"0 < {letter}{axis} <= {INT32_MAX}" for axis in "xyz")
                yield f"if not ({' and '.join(tests)}): raise misfit"
            if self.signature.launch_bounds or not self.engine.is_cuda:
                yield f"if bx * by * bz > {most}: raise misfit"
        else:
            for axis, extent in zip("xyz", (*program.block, *[Constant(1)] * 3), strict=False):
                yield f"b{axis} = {self.text(extent)}"
            if program.has_open_block:
                tests = (f"0 < b{axis} <= {64 if axis == 'z' else most}" for axis in "xyz")
                yield f"if not ({' and '.join(tests)} and bx * by * bz <= {most}): raise misfit"
            if not self.overload.allocates:
                yield from self._empty("return")
        for _, extent in program.checks_shared:
            yield f"if not 0 <= {self.text(extent)} <= {INT32_MAX}: raise misfit"

    def _empty(self, leave: str) -> Iterator[str]:
        """Computes the grid of a call; one without threads is not launched."""
        yield from self._overflows()
        for axis, extent in zip("xyz", self.program.size, strict=False):
            yield f"threads = {self.text(extent)}"
            yield f"if threads <= 0: {leave}"
            yield f"g{axis} = (threads + b{axis} - 1) // b{axis}"
            if self.engine.is_cuda:
                yield f"if g{axis} > {INT32_MAX}: raise misfit"
        yield from (f"g{axis} = 1" for axis in "xyz"[len(self.program.size) :])

    def _overflows(self) -> Iterator[str]:
        for bound in self.program.overflows:
            yield f"if {self._bound(bound)} > {MOST_THREADS!r}: raise misfit"

    def _bound(self, bound: Bound) -> str:
        """A bound in Python, in the order of the C++, so that doubles are rounded alike."""
        terms = []
        for term in bound.terms:
            factors = [
                f"abs(float({self._symbol(n)} or 0))" if n in term.signed else self._symbol(n) for n in term.names
            ]
            factors = [*(["1.0"] if term.in_double else []), *factors]
            terms.append(" * ".join([*([str(term.scale)] if term.scale != 1 or not factors else []), *factors]))
        return " + ".join(terms)

    def _allocation(self) -> Iterator[str]:
        signature = self.signature
        inits = dict(signature.inits)
        first = self._first.name
        for parameter in signature.outputs:
            type_, name = signature.array_type(parameter.name), parameter.name
            for axis, dim in enumerate(type_.dims):
                yield f"s_{name}_{axis} = {self.text(dim)}"
                if not isinstance(dim, Name | Constant):
                    yield f"if s_{name}_{axis} < 0: raise misfit"
            if (like := self._alike(parameter)) is not None:
                made = f"empty_like(v_{like})"
            else:
                sizes = [f"s_{name}_{axis}" for axis in range(len(type_.dims))]
                if (source := signature.leading_source(type_)) is not None:
                    sizes[:1] = [f"*leading_{source}"]
                shape = f"({''.join(f'{size}, ' for size in sizes)})"
                made = f"empty({shape}, dtype={self._dtype(type_.dtype)}, device=v_{first}.device)"
            yield f"v_{name} = {made}"
            if name in inits:
                self.names[f"init_{name}"] = inits[name]
                yield f"v_{name}.fill_(init_{name})"
            if width := dict(signature.vector_widths).get(name):
                yield f"if ({self._elements(name)}) % {width}: raise misfit"
        yield from self._empty(f"return {self._result}")

    def _alike(self, output: Parameter) -> str | None:
        """An input, contiguous and always given, that has the shape and the dtype of `output`."""
        type_ = self.signature.array_type(output.name)
        for parameter in self.signature.inputs:
            if isinstance(parameter.type, ArrayType) and not parameter.may_be_none:
                own = parameter.type
                is_same = own.dims == type_.dims and own.leading == type_.leading and own.dtype == type_.dtype
                if is_same and parameter.name not in self.signature.strided:
                    return parameter.name
        return None

    @property
    def _result(self) -> str:
        return ", ".join(f"v_{p.name}" for p in self.signature.outputs)

    # --- memory ---

    def _memory(self, given: Sequence[Parameter]) -> Iterator[str]:
        """Addresses, alignment, and overlaps of written arrays."""
        signature = self.signature
        arrays = list(given) + (list(signature.outputs) if self.overload.allocates else [])
        for parameter in arrays:
            name = parameter.name
            yield (
                f"p_{name} = 0 if v_{name} is None else v_{name}.data_ptr()"
                if parameter.may_be_none
                else f"p_{name} = v_{name}.data_ptr()"
            )
        if given:
            always = " and ".join(f"p_{p.name}" for p in given)
            tensors = ", ".join(f"v_{p.name}" for p in given)
            yield f"if not ({always}): require_memory({tensors})"
        widths = dict(signature.vector_widths)
        for parameter in (p for p in arrays if p.name in signature.aligned):
            size = widths[parameter.name] * signature.dtype(parameter.name).bits // 8
            yield f"if p_{parameter.name} % {size}: raise misfit"
        strided = [p for p in arrays if p.name in signature.strided]
        for parameter in strided:
            yield from self._strides(parameter)
        pairs = [*self._pairs(given)]
        for name in dict.fromkeys(chain.from_iterable(pairs)):
            yield from self._end(signature.parameter(name))
        for written, other in pairs:
            yield self._apart(written, other)

    def _strides(self, parameter: Parameter) -> Iterator[str]:
        """The strides of an array, 0 where there are no neighbours; a written one may not overlap itself."""
        name, rank = parameter.name, len(self.signature.array_type(parameter.name).dims)
        strides = [stride for stride in self.program.strides if stride.array == name]
        if rank:
            lines = ["".join(f"r_{name}_{axis}, " for axis in range(rank)).rstrip() + f" = v_{name}.stride()"]
            zeros = " = ".join(f"r_{name}_{axis}" for axis in range(rank)) + " = 0"
            lines.append(f"if not ({self._elements(name)}): {zeros}")
            lines += [f"if s_{name}_{axis} == 1: r_{name}_{axis} = 0" for axis in range(rank)]
            if parameter.role is not Role.INPUT:
                lines.append(f"if not v_{name}.is_contiguous() and overlaps_itself(v_{name}): raise misfit")
            if parameter.may_be_none:
                yield zeros
            yield from self._if_given(parameter, lines)
        yield from (f"t_{stride.name} = r_{name}_{stride.axis}" for stride in strides)

    def _pairs(self, given: Sequence[Parameter]) -> Iterator[tuple[str, str]]:
        """The arrays that must lie apart, the first of which is written."""
        ordered = sorted(given, key=lambda p: p.role is Role.OUTPUT)
        seen: set[frozenset[str]] = set()
        for written in (p for p in ordered if p.role is not Role.INPUT):
            for other in (p for p in ordered if p is not written):
                pair = frozenset((written.name, other.name))
                if pair not in seen:
                    seen.add(pair)
                    yield written.name, other.name

    def _end(self, parameter: Parameter) -> Iterator[str]:
        """`e_x`: the address behind the last element of `x`."""
        name, type_ = parameter.name, self.signature.array_type(parameter.name)
        size = max(type_.dtype.bits, 8) // 8
        elements = self._elements(name)
        if name in self.signature.strided and type_.dims:
            spans = [f"(s_{name}_{axis} - 1) * r_{name}_{axis}" for axis in range(len(type_.dims))]
            end = f"p_{name} + ((1 + {' + '.join(spans)}) * {size} if {elements} else 0)"
        else:
            end = f"p_{name} + {elements} * {size}"
        yield f"e_{name} = {end if not parameter.may_be_none else f'0 if v_{name} is None else {end}'}"

    def _apart(self, written: str, other: str) -> str:
        signature = self.signature
        in_place = not self.overload.on_grid and not {(written, other), (other, written)}.isdisjoint(signature.in_place)
        test = f"p_{written} < e_{other} and p_{other} < e_{written}"
        if in_place and not {written, other} & {*signature.strided}:
            test += f" and p_{written} != p_{other}"
        return f"if {test} and meet(v_{written}, v_{other}, {in_place}): raise misfit"

    # --- the launch itself ---

    def _launch(self) -> Iterator[str]:
        program, engine = self.program, self.engine
        if self.overload.on_grid and program.is_index:
            yield from self._overflows()
        if program.cooperative and not engine.is_cuda:
            yield f"if gx * gy * gz > {MOST_BLOCKS_OF_CPU}: raise misfit"
        shared = " + ".join(f"{self.text(each.count)} * {each.itemsize}" for each in program.shared) or "0"
        yield f"shared = {shared}"
        has_choice = program.has_index_type and bool(program.fits)
        tests = " and ".join(f"{self._bound(bound)} <= {INT32_MAX}" for bound in program.fits)
        yield f"narrow = {tests if has_choice else True}"
        values = []
        for passed in program.passed:
            values += self._passed(passed.name, passed.source, BY_NAME.get(passed.type))
        frame = self._frame()
        self.names |= {"free": frame.free, "new": frame.new, "pack": frame.pack}
        given = [f"v_{name} is not None" for name in program.optional]
        yield from self.engine.lines(self.names, LaunchLines(program, given, values))
        if self.overload.allocates:
            yield f"return {self._result}"

    def _frame(self) -> Frame:
        """The layout of a block; indices of both widths are int64 there, whose low half is an int32."""
        return Frame([None if p.source is Source.ARRAY else BY_NAME.get(p.type, I64) for p in self.program.passed])

    def _passed(self, name: str, source: Source, dtype: DType | None) -> list[str]:
        """The values that a frame packs for one argument."""
        match source:
            case Source.ARRAY:
                # The address of an array that is given is never null.
                is_optional = self.signature.parameter(name).may_be_none
                return [f"p_{name} or (v_{name} is not None)" if is_optional else f"p_{name}"]
            case Source.PRESENCE:
                return [f"v_{name} is not None"]
            case Source.STRIDE:
                return [f"t_{name}"]
        value = f"d_{name}" if name in self._dims else f"v_{name}"
        parameter = next((p for p in self.signature.parameters if p.name == name), None)
        if parameter is not None and parameter.may_be_none:
            value = f"({value} or 0)"
        if dtype is None:
            return [value]
        if dtype.kind is Kind.COMPLEX:
            parts = [f"complex({value}).real", f"complex({value}).imag"]
            return parts if dtype.bits == 128 else [f"to_float32({part})" for part in parts]
        if dtype.is_half:
            self.names[dtype.name] = getattr(torch, dtype.name)
            return [f"half_bits({value}, {dtype.name})"]
        return [f"to_float32({value})" if dtype.name == "float32" else value]


def _meet(written: torch.Tensor, other: torch.Tensor, in_place: bool) -> bool:
    """Whether two arrays share memory in a way that the kernel does not allow."""
    return overlap(written, other) and not (in_place and are_same(written, other))


def _require_memory(*tensors: torch.Tensor | None) -> None:
    """Refuse tensors with elements and without memory."""
    if any(tensor is not None and tensor.data_ptr() == 0 and tensor.numel() for tensor in tensors):
        raise Misfit


def _on_device(device: int, launcher: LaunchFunction, *values: Any) -> Any:
    with torch.cuda.device(device):
        return launcher(*values)
