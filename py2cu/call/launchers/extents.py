"""The lines of a launcher about extents: shapes of arrays, the dimensions that they agree on, and expressions of these.

In: a `Signature` with its dtypes, values of template arguments. Out: lines of Python. Of an array `x` they define the
extents `s_x_0`, `s_x_1`, of a dimension `n` its value `d_n`; they refuse what `argument_checks.py` refuses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from py2cu.ir.abi.launch import LaunchProgram, extent_in_python
from py2cu.ir.abi.parameters import Parameter
from py2cu.ir.abi.signature import Dim, Signature
from py2cu.ir.types import DimExpr


def if_given(parameter: Parameter, lines: Sequence[str]) -> Iterator[str]:
    """Lines about an array, which may be left out."""
    if parameter.may_be_none and lines:
        yield f"if v_{parameter.name} is not None:"
        yield from (f"    {line}" for line in lines)
    else:
        yield from lines


@dataclass(slots=True)
class ExtentLines:
    """Writes the lines, and spells extents in terms of what they define."""

    signature: Signature
    program: LaunchProgram
    constexprs: Mapping[str, int]
    same: dict[str, str] = field(default_factory=dict)  # for an array, another one with the same extents
    _known: set[str] = field(default_factory=set)  # the dimensions that have a value

    def lines(self, arrays: Sequence[Parameter]) -> Iterator[str]:
        """For the arrays that a call gives."""
        yield from self._shapes(arrays)
        yield from self._extents(arrays)

    def of(self, name: str) -> list[str]:
        """The extents of an array."""
        axes = range(len(self.signature.array_type(name).dims))
        return [f"s_{self.same.get(name, name)}_{axis}" for axis in axes]

    def elements(self, name: str) -> str:
        """The number of elements of an array."""
        return " * ".join(self.of(name)) or "1"

    def text(self, extent: DimExpr) -> str:
        """An extent in Python."""
        return extent_in_python(extent, self.symbol)

    def symbol(self, name: str) -> str:
        """A name in an extent or a bound."""
        match name.partition("."):
            case ("gridDim", _, axis):
                return f"g{axis}"
            case ("blockDim", _, axis):
                return f"b{axis}"
        if name in self.constexprs:
            return str(int(self.constexprs[name]))
        if name in self._known:
            return f"d_{name}"
        return f"t_{name}" if any(stride.name == name for stride in self.program.strides) else f"v_{name}"

    def _shapes(self, arrays: Sequence[Parameter]) -> Iterator[str]:
        """`s_x_0, s_x_1, = shape_x`; the product of leading extents is the first.

        The extents of an array that is declared like an earlier one are those of that.
        """
        by_dims: dict[object, str] = {}
        for parameter in arrays:
            type_, name = self.signature.array_type(parameter.name), parameter.name
            axes = self.of(name)
            if type_.leading:
                lines = [f"cut_{name} = len(shape_{name}) - {type_.trailing}"]
                lines.append(f"if cut_{name} < 0: raise misfit")
                lines.append(f"leading_{name} = shape_{name}[:cut_{name}]")
                lines.append(f"{axes[0]} = prod(leading_{name})")
                lines += [f"{axis} = shape_{name}[cut_{name} + {at}]" for at, axis in enumerate(axes[1:])]
            elif not axes:
                lines = [f"if shape_{name}: raise misfit"]
            elif (other := by_dims.get(type_.dims)) is not None:
                self.same[name] = other
                lines = [f"if shape_{name} != shape_{other}: raise misfit"]
            else:
                if not parameter.may_be_none:
                    by_dims[type_.dims] = name
                lines = [f"{' '.join(f'{axis},' for axis in axes)} = shape_{name}"]
            yield from if_given(parameter, lines)

    def _extents(self, arrays: Sequence[Parameter]) -> Iterator[str]:
        """The dimensions, and the extents that must agree with them."""
        signature, names = self.signature, {p.name for p in arrays}
        for dim in signature.dims:
            if dim.array is None and dim.name in self.constexprs:
                continue
            yield from self._dim(dim, names)
            self._known.add(dim.name)
            if dim.name in self.constexprs:
                yield f"if d_{dim.name} != {int(self.constexprs[dim.name])}: raise misfit"
        for divisor in dict.fromkeys(map(self.text, signature.divisors())):
            yield f"if {divisor} == 0: raise misfit"
        sources = {(dim.array, dim.axis) for dim in signature.dims if dim.is_extent}
        widths = dict(signature.vector_widths)
        for parameter in arrays:
            type_, name = signature.array_type(parameter.name), parameter.name
            lines = [
                f"if s_{name}_{axis} != {self.text(dim)}: raise misfit"
                for axis, dim in enumerate(type_.dims)
                if (name, axis) not in sources and name not in self.same
            ]
            source = signature.leading_source(type_)
            if source is not None and source != name and source in names:
                given = f"v_{source} is not None and " * signature.parameter(source).may_be_none
                lines.append(f"if {given}leading_{name} != leading_{source}: raise misfit")
            if widths.get(name):
                lines.append(f"if ({self.of(name)[-1]}) % {widths[name]}: raise misfit")
            yield from if_given(parameter, lines)

    def _dim(self, dim: Dim, arrays: set[str]) -> Iterator[str]:
        name, signature = f"d_{dim.name}", self.signature
        number = next((p for p in signature.parameters if p.name == dim.name), None)
        if dim.array is None:
            measured = next((d for d in signature.measured if d.name == dim.name and d.array in arrays), None)
            if measured is not None:  # rule: extent-measured
                yield f"if v_{dim.name} is None: v_{dim.name} = {self._solved(measured)}"
            yield f"{name} = v_{dim.name}.__index__()"
            return
        extent = self._solved(dim) if dim.array in arrays else "0"
        is_optional = signature.parameter(dim.array).may_be_none and dim.array in arrays
        yield f"{name} = {f'0 if v_{dim.array} is None else ' * is_optional}{extent}"
        if number is not None and number.name not in self.constexprs:
            yield f"if v_{dim.name} is not None and v_{dim.name} != {name}: raise misfit"

    def _solved(self, dim: Dim) -> str:
        extent = self.of(str(dim.array))[dim.axis]
        if dim.is_extent:
            return extent
        factor, rest = self.text(dim.factor), self.text(dim.rest)
        return f"(({extent} - {rest}) // {factor} if {extent} > {rest} and {factor} > 0 else 0)"


def refused_extent(what: str, extent: DimExpr, value: int) -> RuntimeError:
    """The error for a launch with an impossible extent."""
    from py2cu.ir.printer import print_expr

    return RuntimeError(f"{what} is `{print_expr(extent)}` = {value}")
