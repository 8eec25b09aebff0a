"""Calls of a kernel, invented: extents, numbers and strides at which launchers may go wrong.

In: a `Signature` with its dtypes, values of template arguments, a generator of random numbers. Out: `Call`s whose
shapes agree, with stand-ins for tensors: extents beyond 2**31 and products beyond 2**63 need no memory.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Final

import torch

from py2cu.dtypes import DType, Kind
from py2cu.ir.abi.dims import bind_dims
from py2cu.ir.abi.parameters import Parameter, Role
from py2cu.ir.abi.signature import Signature, evaluate
from py2cu.ir.types import ElementType, PythonType

SMALL: Final = (
    0, 1, 1, 2, 3, 4, 5, 7, 8, 12, 15, 16, 17, 31, 32, 33, 64, 96, 100, 127, 128, 129, 255, 256, 257, 512, 1000, 1023,
    1024, 1025,
)  # fmt: skip
LIMITS: Final = (
    2**12, 2**15, 2**16, 2**20, 2**24, 2**31, 2**31 * 16, 2**31 * 64, 2**31 * 128, 2**31 * 256, 2**31 * 1024, 2**32,
    2**40, 2**53, 10**18, 2**62, 2**63,
)  # fmt: skip
INTEGERS: Final = (0, 1, -1, 2, -2, 7, -7, 255, -256, 2**31 - 1, -(2**31), 2**32, -(2**62), 2**63 - 1, -(2**63))
FLOATS: Final = (
    0.0, -0.0, 1.0, 0.1, -2.75, 1e-3, 2.0**-25, 2.0**-149, 2.0**-150, 1.5 * 2.0**-150, 1e-300, 5e-324, 65504.0, 65519.9,
    65520.0, -65536.0, 1 + 2.0**-11, 1 + 2.0**-11 + 2.0**-40, 1 + 3 * 2.0**-9, 1 + 2.0**-24, 1 + 2.0**-24 + 2.0**-50,
    16777217.0, 3.4028234663852886e38, 3.4028235677973366e38, 3.39e38, -1e39, 1e300, 1.7976931348623157e308, math.pi,
    math.nan, math.inf, -math.inf,
)  # fmt: skip
GRIDS: Final = (1, 1, 2, 3, 7, 64, 1000, 65535, 65536, 2**20, 2**24, 2**31 - 1)
BLOCKS: Final = (1, 1, 1, 2, 3, 4, 8, 16, 32, 33, 64, 65, 128, 256, 512, 1024, 1025)
_MOST_BYTES: Final = 2**63 - 2**12  # of the elements of an array, as torch counts them
_MEMORY: Final = 2**39
"""More bytes than a GPU has, on which emitted launchers rely."""

_MOST_OF_EMPTY: Final = 2**50
"""The product of the other extents of an empty array: emitted launchers multiply them by a block's threads."""


@dataclass(slots=True)
class Array:
    """A stand-in for a tensor: what a launcher asks one for."""

    dtype: torch.dtype
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    itemsize: int
    address: int = 0
    device: int = 0
    is_filled: bool = False
    is_nested: bool = False
    requires_grad: bool = False

    def stride(self) -> tuple[int, ...]:
        return self.strides

    def dim(self) -> int:
        return len(self.shape)

    def numel(self) -> int:
        return math.prod(self.shape)

    def element_size(self) -> int:
        return self.itemsize

    def data_ptr(self) -> int:
        return self.address

    def get_device(self) -> int:
        return self.device

    def is_inference(self) -> bool:
        return False

    def is_neg(self) -> bool:
        return False

    def is_conj(self) -> bool:
        return False

    def fill_(self, _: object) -> None:
        self.is_filled = True

    def is_contiguous(self) -> bool:
        wanted = zip(self.shape, self.strides, contiguous(self.shape), strict=True)
        return self.numel() == 0 or all(extent < 2 or stride == dense for extent, stride, dense in wanted)

    @property
    def span(self) -> int:
        """The bytes from its first element to its last."""
        if self.numel() == 0:
            return 0
        last = sum((extent - 1) * stride for extent, stride in zip(self.shape, self.strides, strict=True))
        return (last + 1) * self.itemsize


@dataclass(slots=True)
class InventedGuards:
    """Stands in for torch's guards, which compare real tensors: arrays of the same kind, extents and strides."""

    kinds: tuple[object, ...]

    def __init__(self, *arrays: Array, dynamic_dims_sizes: object, dynamic_dims_strides: object) -> None:
        self.kinds = (*map(_kind, arrays),) if dynamic_dims_sizes is None else ()

    def check(self, *arrays: Array) -> bool:
        return (*map(_kind, arrays),) == self.kinds


def _kind(array: Array) -> object:
    return array.dtype, array.device, array.shape, array.strides


@dataclass(frozen=True, slots=True)
class Call:
    """Arguments by parameter, None for what is left out; the dimensions that they have; an explicit grid and block."""

    arguments: Mapping[str, Any]
    dims: Mapping[str, int]
    shape: tuple[int, ...] = ()

    def __str__(self) -> str:
        shown = [f"{name}={_shown(value)}" for name, value in self.arguments.items()]
        return f"({', '.join(shown)}){f' on {self.shape}' * bool(self.shape)}"


def _shown(value: Any) -> str:
    if not isinstance(value, Array):
        return repr(value)
    strides = f" by {list(value.strides)}" * (not value.is_contiguous())
    return f"{value.dtype}{list(value.shape)}{strides} at {value.address}"


def contiguous(shape: Sequence[int]) -> tuple[int, ...]:
    strides = [1]
    for extent in reversed(shape[1:]):
        strides.append(strides[-1] * max(extent, 1))
    return (*reversed(strides),)[: len(shape)] if shape else ()


@dataclass(slots=True)
class Inventor:
    """Invents calls of one instance of a kernel."""

    signature: Signature
    constexprs: Mapping[str, int]
    random: Random

    def call(self, *, on_grid: bool) -> Call:
        """A call whose shapes agree. Extents are smaller where larger ones find no such call."""
        for attempt in range(500):
            call = self._try(is_small=attempt >= 40, on_grid=on_grid)
            if call is not None:
                return call
        raise AssertionError(f"no call of {self.signature.name} was found")

    def with_other_numbers(self, call: Call) -> Call:
        """The arrays of a call with other numbers, grid and block, which may not fit them."""
        numbers = {p.name: self._number(p, {}, [], is_small=True) for p in self.signature.parameters if not p.is_array}
        return Call({**call.arguments, **numbers}, call.dims, self._shape() if call.shape else ())

    def _try(self, *, is_small: bool, on_grid: bool) -> Call | None:
        random, signature = self.random, self.signature
        drawn: list[int] = []
        absent = {p.name for p in signature.arrays if p.may_be_none and random.random() < 0.4}
        dims = self._dims(absent, drawn, is_small=is_small)
        arguments: dict[str, Any] = {}
        leading: dict[object, tuple[int, ...]] = {}
        for parameter in signature.parameters:
            if parameter.name in absent:
                continue
            if not parameter.is_array:
                arguments[parameter.name] = self._number(parameter, dims, drawn, is_small=is_small)
                continue
            array = self._array(parameter, dims, leading)
            if array is None:
                return None
            arguments[parameter.name] = array
        if not self._place(arguments):
            return None
        try:
            known = bind_dims(signature, {name: value for name, value in arguments.items() if value is not None})
            threads = [evaluate(extent, known) for extent in signature.size or ()]
            for extent in signature.block:
                evaluate(extent, known)
            if any(evaluate(dim.factor, known) == 0 for dim in signature.dims):
                return None
        except (ValueError, KeyError):
            return None
        if not on_grid and min(threads, default=0) > 0 and _bytes_of(arguments) >= _MEMORY:
            return None
        everything = {p.name: arguments.get(p.name) for p in signature.parameters}
        return Call(everything, known, self._shape() if on_grid else ())

    # --- extents ---

    def _dims(self, absent: set[str], drawn: list[int], *, is_small: bool) -> dict[str, int]:
        dims: dict[str, int] = {}
        for dim in self.signature.dims:
            if dim.name in self.constexprs:
                dims[dim.name] = int(self.constexprs[dim.name])
            elif dim.array in absent:
                dims[dim.name] = 0
            else:
                dims[dim.name] = self._extent(drawn, is_small=is_small)
                drawn.append(dims[dim.name])
        return dims

    def _extent(self, drawn: Sequence[int], *, is_small: bool) -> int:
        """A small extent, one of any length, or one that brings a product of those drawn before close to a limit."""
        random = self.random
        kind = random.random()
        if is_small or kind < 0.4:
            return random.choice(SMALL)
        if kind < 0.5:
            return random.getrandbits(random.randrange(1, 63))
        others = [each for each in drawn if each > 0]
        product = random.choice((1, math.prod(others), *others))
        limit = random.choice(LIMITS) if random.random() < 0.6 else 2**31
        near = limit // (product * random.choice((1, 1, 1, 2, 3, 4, 8, 16, 64, 256)))
        return min(max(near + random.choice((-2, -1, -1, 0, 0, 1, 1, 2)), 0), 2**63 - 1)

    def _array(self, parameter: Parameter, dims: Mapping[str, int], leading: dict[object, tuple[int, ...]]) -> Any:
        """The array with these extents, not yet placed; None where there is none."""
        signature, name = self.signature, parameter.name
        type_ = signature.array_type(name)
        try:
            extents = tuple(evaluate(dim, dims) for dim in type_.dims)
        except (ValueError, KeyError):
            return None
        if min(extents, default=0) < 0 or max(extents, default=0) >= 2**63:
            return None
        if type_.leading:
            extents = (*leading.setdefault(type_.dims[0], self._factors(extents[0])), *extents[1:])
        width = dict(signature.vector_widths).get(name)
        dtype = type_.dtype
        array = Array(getattr(torch, dtype.name), extents, contiguous(extents), max(dtype.bits, 8) // 8)
        if (width and extents[-1] % width) or array.numel() * array.itemsize > _MOST_BYTES:
            return None
        if array.numel() == 0 and math.prod(max(extent, 1) for extent in extents) > _MOST_OF_EMPTY:
            return None
        if name in signature.strided and self.random.random() < 0.7:
            array.strides = self._strides(extents, is_written=parameter.role is not Role.INPUT)
        return array

    def _factors(self, product: int) -> tuple[int, ...]:
        """Leading extents of this product."""
        choices = [(product,), (1, product), (product, 1)]
        choices += [(factor, product // factor) for factor in (2, 3, 16) if product % factor == 0]
        choices += [()] * (product == 1) + [(0, 5, 2**20)] * (product == 0)
        return self.random.choice(choices)

    def _strides(self, extents: Sequence[int], *, is_written: bool) -> tuple[int, ...]:
        """Strides of a permuted and padded array, or of an expanded one, which is only read."""
        axes = [*range(len(extents))]
        self.random.shuffle(axes)
        strides, span = [0] * len(extents), self.random.choice((1, 1, 2, 3))
        for axis in axes:
            strides[axis] = span if is_written or self.random.random() < 0.85 else 0
            span = span * max(extents[axis], 1) + self.random.choice((0, 0, 1, 5, 2**16))
        return (*strides,)

    def _place(self, arguments: Mapping[str, Any]) -> bool:
        """Give each array an address of its own; False where they are too large together."""
        start = 2**20
        for array in (value for value in arguments.values() if isinstance(value, Array)):
            array.address = start if array.numel() else 0
            start += array.span + 4096 - array.span % 4096
        return start < _MEMORY

    # --- numbers ---

    def _number(self, parameter: Parameter, dims: Mapping[str, int], drawn: list[int], *, is_small: bool) -> Any:
        random, name = self.random, parameter.name
        if name in self.constexprs:
            return self.constexprs[name]
        if name in dims:
            return None if self.signature.is_derived(parameter) and random.random() < 0.5 else dims[name]
        if (parameter.may_be_none or parameter.default is not None) and random.random() < 0.3:
            return None
        match parameter.type:
            case ElementType(dtype=dtype):
                return self._of_dtype(dtype)
            case PythonType(kind=Kind.BOOL):
                return random.random() < 0.5
            case PythonType(kind=Kind.INT):
                if random.random() < 0.3:
                    return random.choice(INTEGERS)
                drawn.append(self._extent(drawn, is_small=is_small))
                return random.choice((1, 1, -1)) * drawn[-1]
            case PythonType(kind=Kind.FLOAT):
                return self._float()
            case _:
                return complex(self._float(), self._float())

    def _of_dtype(self, dtype: DType) -> Any:
        match dtype.kind:
            case Kind.BOOL:
                return self.random.random() < 0.5
            case Kind.INT:
                low, high = max(int(dtype.low), -(2**63)), min(int(dtype.high), 2**63 - 1)
                return self.random.choice((low, high, self.random.randint(low, high), 0, 1))
            case Kind.FLOAT:
                return self._float()
        return complex(self._float(), self._float())

    def _float(self) -> float:
        random = self.random
        kind = random.random()
        if kind < 0.5:
            return random.choice(FLOATS)
        if kind < 0.6:
            return random.choice((3, -(2**24) - 1, 2**53 + 1, 10**40))
        if kind < 0.8:
            return math.ldexp(1 + random.getrandbits(30) * 2.0**-30, random.randrange(-30, 20))
        value: float = struct.unpack("<d", random.getrandbits(64).to_bytes(8, "little"))[0]
        return value if value == value else math.nan

    def _shape(self) -> tuple[int, ...]:
        random = self.random
        grid = [random.choice(GRIDS) if random.random() < 0.6 else 1 for _ in range(3)]
        return (*grid, *(random.choice(BLOCKS) if random.random() < 0.5 or axis == 0 else 1 for axis in range(3)))


def _bytes_of(arguments: Mapping[str, Any]) -> int:
    """The bytes of all arrays as if none were expanded or empty: emitted launchers rely on that for their grid."""
    arrays = [value for value in arguments.values() if isinstance(value, Array)]
    return sum(max(array.span, array.itemsize * math.prod(max(e, 1) for e in array.shape)) for array in arrays)


def strides_of(array: Array | None, rank: int) -> Iterator[int]:
    """The strides as a binding passes them: 0 on an axis without neighbours, and for an array that is left out."""
    if array is None or array.numel() == 0:
        yield from [0] * rank
    else:
        yield from (stride if extent > 1 else 0 for extent, stride in zip(array.shape, array.strides, strict=True))
