"""Check the arguments of a call: devices, dtypes, shapes and layouts of tensors, and ranges of numbers.

In: the arguments of a call by name. Out: the device to run on. Errors: `RuntimeError`, which names the kernel and the
argument. A form's first call runs these checks, and so does each call that a launcher refuses; `simulate` and `check`
run them each time. The op's C++ checks the same in the same words, so that a call through `torch.ops` is as safe.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch.autograd import forward_ad

from py2cu import devices
from py2cu.call.launchers.memory import meet, overlaps_itself
from py2cu.call.launchers.values import integer_dtype, kind_of
from py2cu.dtypes import I64, Kind
from py2cu.ir.abi.parameters import Parameter, Role
from py2cu.ir.abi.signature import Signature, evaluate
from py2cu.ir.types import ArrayType, DimExpr

Tensors = Mapping[str, torch.Tensor]


def check_arguments(
    signature: Signature, values: Mapping[str, Any], *, on_grid: bool = False, has_memory: bool = True
) -> str:
    """Check `values`, and return the device type of the tensors, "cuda" or "cpu".

    Outputs and numbers that a shape determines may be absent. `on_grid`: the call is an explicit launch. Of a traced
    call, the tensors have no memory, extents and numbers may be symbolic, and strides are not checked: the tracer may
    see others than the op does at run time.
    """
    present = [p for p in signature.arrays if p.name in values]
    ordered = sorted(present, key=lambda p: p.role is Role.OUTPUT)
    try:
        for name in (p.name for p in signature.required):
            if name not in values and signature.measured_by(name, values) is None:  # rule: required-given
                raise ValueError(f"`{name}` is missing")
        for parameter in present:
            _check_storage(parameter, values[parameter.name])
        tensors = {p.name: values[p.name].resolve_conj().resolve_neg() for p in present}  # as the launcher gets them
        if not all(tensor.is_meta for tensor in tensors.values()):
            devices.of_tensors(tensors)
        for parameter in signature.parameters:
            if parameter.name in values and not parameter.is_array:
                _check_number(parameter, values[parameter.name])
        _check_dtypes(signature, ordered, tensors)
        for parameter in ordered:
            _check_layout(parameter, tensors[parameter.name], parameter.name in signature.strided or not has_memory)
        _check_shapes(signature.instance(tensors), ordered, tensors, values)
        if not has_memory:
            return ""
        _check_memory(signature, ordered, tensors, on_grid)
        return devices.of_tensors(tensors).value
    except ValueError as misfit:
        raise RuntimeError(f"{signature.name}: {misfit}") from None


def check_call(signature: Signature, values: Mapping[str, Any], *, on_grid: bool = False) -> str:
    """Check `values` and, beside them, whether this thread may write to its arrays and launch; return the device."""
    device = check_arguments(signature, values, on_grid=on_grid)
    require_writable(signature.name, {p.name: values[p.name] for p in signature.written if p.name in values})
    if on_grid:
        check_launch_gradients(signature, values)
    return device


# --- one tensor ---------------------------------------------------------------------------------------------------


def _check_storage(parameter: Parameter, tensor: torch.Tensor) -> None:
    """Refuse a tensor without dense storage, and one that must be written and cannot be written in place."""
    name = parameter.name
    if tensor.is_nested or tensor.layout is not torch.strided:  # rule: tensor-layout
        layout = "nested" if tensor.is_nested else str(tensor.layout).removeprefix("torch.")
        raise ValueError(f"`{name}` must be a dense tensor, got a {layout} one; pass `{name}.to_dense()`")
    if tensor.is_quantized:
        raise ValueError(f"`{name}` must not be quantized; pass `{name}.dequantize()`")
    if parameter.role is Role.INPUT:
        return
    if tensor.is_conj() or tensor.is_neg():  # rule: tensor-conjugate
        raise ValueError(f"`{name}` is written, and is a conjugate or negative view; pass a tensor of its own")
    if problem := leaf_problem(name, tensor):
        raise ValueError(problem)


def check_launch_gradients(signature: Signature, values: Mapping[str, Any]) -> None:
    """Refuse tensors that require grad as arguments of an explicit launch, which autograd cannot record."""
    by_grad = [p.name for p in signature.arrays if p.name in values and values[p.name].requires_grad]
    if by_grad and torch.is_grad_enabled():
        what = f"{signature.name}[grid, block](...) is not differentiable, and `{by_grad[0]}` requires grad"
        raise RuntimeError(f"{what}; pass `{by_grad[0]}.detach()`, or launch it under `torch.no_grad()`")


def require_writable(kernel: str, written: Mapping[str, torch.Tensor]) -> None:
    """Refuse to write to inference tensors outside of inference mode, as torch's own operators do: these have no
    version counter.
    """
    for name, tensor in written.items():
        if tensor.is_inference() and not torch.is_inference_mode_enabled():  # rule: inference-tensor
            what = f"{kernel}: `{name}` is written, and is an inference tensor outside of inference mode"
            raise RuntimeError(f"{what}; pass `{name}.clone()`, or call it under `torch.inference_mode()`")


def refuse_tangents(op: str, values: Mapping[str, Any]) -> None:
    """Refuse arrays with a tangent, which `op` would drop."""
    if forward_ad._current_level < 0:  # rule: gradient-forward
        return
    unpack_dual: Any = forward_ad.unpack_dual
    for name, value in values.items():
        if isinstance(value, torch.Tensor) and unpack_dual(value).tangent is not None:
            what = f"{op} has no forward-mode derivative, and `{name}` has a tangent"
            raise RuntimeError(f"{what}; use reverse mode, such as `torch.func.vjp`")


def check_recorded(signature: Signature, values: Mapping[str, Any]) -> None:
    """Refuse one array as an input and an output in a call that autograd records: it may save the former values."""
    for written, read in signature.in_place:
        a, b = values.get(written), values.get(read)
        if a is None or b is None or not torch._C._is_alias_of(a, b):  # type: ignore[attr-defined]
            continue  # tensors of a trace have no addresses to compare
        if a.storage_offset() == b.storage_offset() and a.stride() == b.stride():
            what = f"`{written}` and `{read}` are one array, and a gradient may need what it held before the call"
            raise RuntimeError(f"{signature.name}: {what}; pass `{written}` as a tensor of its own")


def leaf_problem(name: str, tensor: torch.Tensor) -> str:
    """Why torch's own in-place operations refuse a tensor: a leaf that requires grad, or a view of one; else empty."""
    base = tensor._base
    is_of_leaf = tensor.is_leaf or (base is not None and base.is_leaf and base.requires_grad)
    if not (tensor.requires_grad and is_of_leaf and torch.is_grad_enabled()):
        return ""
    return f"`{name}` is written, and is a leaf that requires grad, or a view of one; call it under `torch.no_grad()`"


def _check_dtypes(signature: Signature, ordered: Sequence[Parameter], tensors: Tensors) -> None:
    """Check every dtype against the instances that match the arrays before it."""
    candidates = signature.instances or (signature,)
    dtypes = {p.name: str(tensors[p.name].dtype).removeprefix("torch.") for p in ordered}
    for name, dtype in dtypes.items():
        admitted = dict.fromkeys(instance.dtype(name).name for instance in candidates)
        candidates = tuple(instance for instance in candidates if instance.dtype(name).name == dtype)
        if not candidates:
            one_of = "one of " if len(admitted) > 1 else ""
            advice = devices.autocast_advice(name, tensors[name], next(iter(admitted)))
            what = f"`{name}` must be {one_of}{', '.join(admitted)}, got {dtype}"
            raise ValueError(f"{what}{advice}{signature.refusal(dtypes)}")


def _check_layout(parameter: Parameter, tensor: torch.Tensor, is_strided: bool) -> None:
    assert isinstance(parameter.type, ArrayType)
    name, rank, leading = parameter.name, parameter.type.trailing, parameter.type.leading
    if tensor.dim() < rank or (tensor.dim() > rank and not leading):
        raise ValueError(f"`{name}` must have {'at least ' * bool(leading)}{rank} dimensions, got {tensor.dim()}")
    if not is_strided and not tensor.is_contiguous():
        ways = f"pass `{name}.contiguous()`" if parameter.role is Role.INPUT else "give a contiguous array"
        raise ValueError(f'`{name}` must be contiguous; {ways}, or declare `@kernel(strided="{name}")`')


# --- numbers ------------------------------------------------------------------------------------------------------


def _check_number(parameter: Parameter, value: Any) -> None:
    """Refuse a number that does not fit the op's argument, of 64 bits, or the parameter's type."""
    kind, too_small = kind_of(parameter), []
    if kind is Kind.BOOL or isinstance(value, torch.SymInt | torch.SymFloat):
        return
    if kind is Kind.INT:
        too_small = [each.c for each in (I64, integer_dtype(parameter)) if not each.holds(int(value))]
    else:
        try:
            complex(value)
        except OverflowError:
            too_small = ["double"]
    if too_small:  # rule: number-fits
        raise ValueError(f"`{parameter.name}` = {_shown(value)} does not fit {too_small[0]}")


def _shown(value: Any) -> str:
    """A number as text; Python refuses to print thousands of digits, so a large one is described by its bits."""
    if isinstance(value, int) and abs(value) >= 10**40:
        return f"a number of {value.bit_length()} bits"
    return str(value)


# --- shapes -------------------------------------------------------------------------------------------------------


def _check_shapes(
    signature: Signature, ordered: Sequence[Parameter], tensors: Tensors, values: Mapping[str, Any]
) -> None:
    """Check every extent against its annotation."""
    dims = _dims(signature, tensors, values)
    for divisor in signature.divisors():
        if evaluate(divisor, dims) == 0:
            raise ValueError(f"`{_printed(divisor)}` is 0, and an extent is divided by it")
    source_axes = {(dim.array, dim.axis) for dim in signature.dims if dim.is_extent}
    widths = dict(signature.vector_widths)
    for parameter in ordered:
        name, tensor = parameter.name, tensors[parameter.name]
        _check_leading(signature, name, tensors)
        shape = signature.flat_shape(name, tensors)
        for axis, dim in enumerate(signature.array_type(name).dims):
            if (name, axis) in source_axes:
                continue
            extent = evaluate(dim, dims)
            if shape[axis] != extent:
                place = axis + tensor.dim() - len(shape)
                what = f"dimension {place} of `{name}` is `{_printed(dim)}` = {extent}"
                raise ValueError(f"{what}, got {shape[axis]}")
        width = widths.get(name, 0)
        if width and shape[-1] % width:
            where = " in its last dimension" if len(shape) > 1 else ""
            raise ValueError(f"`{name}` is viewed in rows of {width} elements, but has {shape[-1]}{where}")


def _printed(extent: DimExpr) -> str:
    from py2cu.ir.printer import print_expr  # takes milliseconds, and only messages need it

    return print_expr(extent)


def _check_leading(signature: Signature, name: str, tensors: Tensors) -> None:
    """Check that the leading extents of an array are those of the array that they are taken from."""
    type_ = signature.array_type(name)
    source = signature.leading_source(type_)
    if source is None or source == name or source not in tensors:
        return
    leading, _ = type_.split(tensors[name].shape)
    expected, _ = signature.array_type(source).split(tensors[source].shape)
    if leading != expected:  # rule: leading-agrees
        what = f"the dimensions `{type_.leading}` of `{name}` are {[*leading]}, but those of `{source}` are"
        raise ValueError(f"{what} {[*expected]}")


def _dims(signature: Signature, tensors: Tensors, values: Mapping[str, Any]) -> dict[str, int]:
    """The value of each dimension name; an argument of the same name must be equal."""
    dims: dict[str, Any] = {name: value for name, value in values.items() if isinstance(value, int | torch.SymInt)}
    for dim in signature.dims:
        if dim.array is None:
            continue
        if dim.array not in tensors:  # an array that may be None
            dims[dim.name] = 0
            continue
        extent = dim.solve(signature.flat_shape(dim.array, tensors)[dim.axis], dims)
        if values.get(dim.name) not in (None, extent):
            what = f"`{dim.name}` is {values[dim.name]}, but dimension {dim.axis} of `{dim.array}` has {extent}"
            raise ValueError(what)
        dims[dim.name] = extent
    return dims


# --- memory -------------------------------------------------------------------------------------------------------


def _check_memory(signature: Signature, ordered: Sequence[Parameter], tensors: Tensors, on_grid: bool) -> None:
    """Check where the arrays begin, and that written ones overlap neither themselves nor others: kernels take
    `__restrict__` pointers. An output may be an input whose elements threads only overwrite one by one; not in an
    explicit launch, in which two threads may have one index.
    """
    for name in (p.name for p in ordered if p.role is not Role.INPUT):
        if overlaps_itself(tensors[name]):  # rule: strides-overlap
            raise ValueError(f"`{name}` is written, and its elements overlap in memory; pass a tensor of its own")
    for name, tensor in tensors.items():
        if tensor.data_ptr() == 0 and tensor.numel() and not tensor.is_meta:  # rule: tensor-memory
            raise ValueError(f"`{name}` has no memory: its storage was freed")
    widths = dict(signature.instance(tensors).vector_widths)
    for name in (p.name for p in ordered if p.name in signature.aligned):
        size = widths[name] * tensors[name].element_size()
        if tensors[name].data_ptr() % size:
            raise ValueError(f"`{name}` must begin at a multiple of {size} bytes; pass `{name}.clone()`")
    in_place = () if on_grid else signature.in_place  # rule: in-place-on-grid
    for written, other in ((one.name, two.name) for one, two in signature.apart(tensors)):
        if meet(tensors[written], tensors[other], (written, other) in in_place):  # rule: memory-overlaps
            raise ValueError(f"`{written}` is written and overlaps `{other}` in memory")
