"""Describes the torch binding of one kernel for the template `binding.cpp.j2`: parameters, checks, launches.

In: the instances of a kernel, its launchers and its `Signature`. Out: a `BindingView`. One binding serves both targets;
the template leaves out the stream for the CPU.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial, reduce
from itertools import chain
from typing import NamedTuple

from py2cu import ir
from py2cu.analysis.effects import syncs_grid
from py2cu.analysis.launches import launcher_arguments
from py2cu.dtypes import C128, Kind
from py2cu.ir.abi.parameters import Parameter, Role
from py2cu.ir.abi.signature import Signature
from py2cu.options import MAX_THREADS
from py2cu.targets.cxx.c_types import qualified
from py2cu.targets.cxx.dialect import Dialect
from py2cu.targets.cxx.instances import choices_of, constant_text, dtypes_of
from py2cu.targets.cxx.views import with_values
from py2cu.targets.torch_binding import checks
from py2cu.targets.torch_binding.op import Op


class Launch(NamedTuple):
    """A call of one launcher, and the condition on dtypes and template arguments under which it is made, if any."""

    condition: str
    function: str
    values: tuple[str, ...]


class BindingView:
    """The kernel whose instances are `family`, for the binding's template; checks and allocations are statements."""

    def __init__(self, family: ir.Instances, signature: Signature, dialect: Dialect, *, is_cuda: bool) -> None:
        op, kernel = Op(family, signature, dialect, is_cuda=is_cuda), family[0]
        self.name = op.name
        self.members = tuple(map(kernel.c_name, op.dims))  # of the struct of extents
        self.input_checks = tuple(checks.input_checks(op))
        self.output_checks = tuple(checks.output_checks(op))
        self.grid_checks = tuple(checks.grid_checks(op))
        self.allocations = tuple(checks.allocations(op))
        self.allocated = tuple(kernel.c_name(p.name) for p in signature.outputs)
        self.input_parameters = _flat(op.parameters, signature.inputs)
        self.input_call = ", ".join(_flat(op.names, signature.inputs))
        self.all_parameters = _flat(op.parameters, signature.parameters)
        self.array_parameters = _flat(op.parameters, signature.arrays)
        self.array_call = ", ".join(_flat(op.names, signature.arrays))
        self.launches = tuple(chain.from_iterable(_launches(op, instance) for instance in family))
        self.operators = op.overloads()
        self.has_default_launch = kernel.size is not None
        self.first = kernel.c_name(op.first.name)  # the array whose device is the call's
        self.syncs_grid = syncs_grid(kernel)
        self.blocks = _blocks(op) if kernel.size else ""  # the number of blocks of a launch without a grid
        self.launch_bounds = kernel.launch_bounds
        # Of a block.
        self.most_threads = kernel.launch_bounds[0] if kernel.launch_bounds else MAX_THREADS  # rule: bounds-of-binding
        # The block's extents, where only a call decides them.
        self.open_block = ", ".join(map(op.extent, kernel.block)) if kernel.has_open_block else ""  # rule: block-open
        # The parts of the template that the statements above need: its functions, and others.
        self.uses = frozenset(op.uses)

    @property
    def returns(self) -> str:
        types = ["Tensor"] * len(self.allocated)
        return types[0] if len(types) == 1 else f"std::tuple<{', '.join(types)}>"

    @property
    def allocated_call(self) -> str:
        names = ", ".join(self.allocated)
        return names if len(self.allocated) == 1 else f"std::make_tuple({names})"


def _flat(spell: Callable[[Parameter], tuple[str, ...]], parameters: Iterable[Parameter]) -> tuple[str, ...]:
    return tuple(chain.from_iterable(map(spell, parameters)))


def _blocks(op: Op) -> str:
    """The number of blocks of a launch without a grid: the fewest that have enough threads."""
    quotients: list[ir.Expr] = [
        ir.Binary("//", ir.Binary("-", ir.Binary("+", extent, block), ir.Constant(1)), block)
        for extent, block in zip(op.kernel.size or (), op.kernel.block, strict=False)
    ]
    return op.extent(reduce(partial(ir.Binary, "*"), quotients))


def _launches(op: Op, kernel: ir.Kernel) -> Iterator[Launch]:
    """The launches of the instances for one set of dtypes, one for each choice of template arguments."""
    plain = kernel.plain
    values = tuple(_launch_value(op, plain, name, p) for name, _, p in launcher_arguments(plain))
    dtype_tests = tuple(
        f"{kernel.c_name(op.dtype_sources[variable])}.scalar_type() == ScalarType::{dtype.torch}"
        for variable, dtype in zip(kernel.variables, dtypes_of(kernel), strict=True)
    )
    for choice in choices_of(kernel):
        pairs = zip(kernel.constexprs.items(), choice, strict=True)
        tests = (_value_test(op.scalar(name), value) for (name, constexpr), value in pairs if len(constexpr.values) > 1)
        launcher = with_values(f"{kernel.symbol}_launch", map(constant_text, choice))
        yield Launch(" && ".join((*dtype_tests, *tests)), launcher, values)


def _value_test(name: str, value: int) -> str:
    """The C++ test that a template argument has this value."""
    match value:
        case True:
            return name
        case False:
            return f"!{name}"
        case _:
            return f"{name} == {value}"


def _launch_value(op: Op, kernel: ir.Kernel, name: str, parameter: Parameter | None) -> str:
    """What `op` passes to a launcher of `kernel`, one of its instances."""
    c_name, dialect = kernel.c_name(name), op.dialect
    if parameter is not None and isinstance(parameter.type, ir.ArrayType):
        access, const = ("const", "const ") if parameter.role is Role.INPUT else ("mutable", "")
        dtype = parameter.type.dtype
        if parameter.may_be_none:
            return op.call(f"data_or_null<{const}{qualified(dialect.spell(dtype))}>", c_name)
        if dtype.is_half or dtype.kind is Kind.COMPLEX:  # torch has classes of its own
            return f"static_cast<{const}{qualified(dialect.spell(dtype))}*>({c_name}.{access}_data_ptr())"
        return f"{c_name}.{access}_data_ptr<{dtype.c}>()"
    if name in op.dims:
        return f"at.{c_name}"
    if parameter is not None and ir.is_complex(parameter.type):
        type_ = dialect.spell(parameter.type.dtype if isinstance(parameter.type, ir.ElementType) else C128)
        return f"{qualified(type_)}({', '.join(op.values(parameter))})"
    if (stride := next((each for each in kernel.strides if each.name == name), None)) is not None:
        array = op.signature.parameter(stride.array)
        return op.or_zero(array, op.call("stride_of", op.tensor(array), stride.axis))
    if parameter is None:
        return c_name
    (value,) = op.values(parameter)
    if isinstance(parameter.type, ir.ElementType):
        dtype = parameter.type.dtype
        value = f"static_cast<float>({value})" if dtype.is_half else value
        return f"static_cast<{dialect.spell(dtype)}>({value})"
    return value
