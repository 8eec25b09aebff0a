"""The lines of a launcher about extents: shapes of arrays, the dimensions that they agree on, and expressions of these.

In: a `Signature` with its dtypes, values of template arguments. Out: lines of Python. Of an array `x` they define the
extents `s_x_0`, `s_x_1`, of a dimension `n` its value `d_n`; they refuse what `argument_checks.py` refuses.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence, Set

from py2cu.ir.abi.launch import Bound, LaunchProgram
from py2cu.ir.abi.parameters import Parameter
from py2cu.ir.abi.signature import Dim, Signature
from py2cu.ir.types import Binary, Constant, DimExpr, Name


class ExtentLines:
    """Writes the lines, and spells extents in terms of what they define.

    `given` are the parameters for which a call has a value.
    """

    def __init__(
        self, signature: Signature, program: LaunchProgram, constexprs: Mapping[str, int], given: Set[str]
    ) -> None:
        self.signature = signature
        self.program = program
        self.constexprs = constexprs
        self.given = given
        self.optional = {p.name for p in signature.parameters if p.may_be_none}
        self._strides = {stride.name for stride in program.strides}
        self._same: dict[str, str] = {}  # for an array, another one with the same extents
        self._known: set[str] = set()  # the dimensions that have a value

    def lines(self, arrays: Sequence[Parameter]) -> Iterator[str]:
        """For the arrays that a call gives."""
        by_dims: dict[object, str] = {}
        for parameter in arrays:
            yield from self._shape(parameter, by_dims)
        yield from self._dims({p.name for p in arrays})
        for divisor in dict.fromkeys(map(self.text, self.signature.divisors())):
            yield f"if {divisor} == 0: raise misfit"
        yield from self._agreement(arrays)

    def of(self, name: str) -> list[str]:
        """The extents of an array."""
        axes = range(len(self.signature.array_type(name).dims))
        return [f"s_{self._same.get(name, name)}_{axis}" for axis in axes]

    def elements(self, name: str) -> str:
        return " * ".join(self.of(name)) or "1"

    def text(self, extent: DimExpr) -> str:
        """An extent in Python."""
        match extent:
            case Constant(value=value):
                return str(int(value))
            case Name(id=name):
                return self.symbol(name)
            case Binary(op=op, left=left, right=right):
                return f"({self.text(left)} {op} {self.text(right)})"
            case _:
                raise AssertionError(extent)

    def bound(self, bound: Bound) -> str:
        """A bound in Python, in the order of the C++, so that doubles are rounded alike."""
        terms = []
        for term in bound.terms:
            names = (f"abs(float({self.symbol(name)} or 0))" if name in term.signed else self.symbol(name)
                     for name in term.names)  # fmt: skip
            factors = [*(["1.0"] if term.in_double else []), *names]
            terms.append(" * ".join([*([str(term.scale)] if term.scale != 1 or not factors else []), *factors]))
        return " + ".join(terms)

    def symbol(self, name: str) -> str:
        """A name in an extent or a bound."""
        match name.partition("."):
            case ("gridDim", _, axis):
                return f"g{axis}"
            case ("blockDim", _, axis):
                return f"b{axis}"
        if name in self.constexprs:
            return str(int(self.constexprs[name]))
        return f"{'d' if name in self._known else 't' if name in self._strides else 'v'}_{name}"

    def _shape(self, parameter: Parameter, by_dims: dict[object, str]) -> list[str]:
        """`s_x_0, s_x_1, = shape_x`; the product of leading extents is the first.

        The extents of an array that is declared like an earlier one are those of that.
        """
        type_, name = self.signature.array_type(parameter.name), parameter.name
        axes = self.of(name)
        if type_.leading:
            return [
                f"cut_{name} = len(shape_{name}) - {type_.trailing}",
                f"if cut_{name} < 0: raise misfit",
                f"leading_{name} = shape_{name}[:cut_{name}]",
                f"{axes[0]} = prod(leading_{name})",
                *(f"{axis} = shape_{name}[cut_{name} + {at}]" for at, axis in enumerate(axes[1:])),
            ]
        if not axes:
            return [f"if shape_{name}: raise misfit"]
        if (other := by_dims.get(type_.dims)) is not None:
            self._same[name] = other
            return [f"if shape_{name} != shape_{other}: raise misfit"]
        by_dims[type_.dims] = name
        return [f"{' '.join(f'{axis},' for axis in axes)} = shape_{name}"]

    def _dims(self, arrays: set[str]) -> Iterator[str]:
        for dim in self.signature.dims:
            name = dim.name
            if dim.array is not None:
                yield f"d_{name} = {self._solved(dim) if dim.array in arrays else 0}"
                self._known.add(name)
                if name in self.constexprs:
                    yield f"if d_{name} != {int(self.constexprs[name])}: raise misfit"
                elif name in self.given:
                    yield f"if v_{name} != d_{name}: raise misfit"
            elif name not in self.constexprs:
                measured = self.signature.measured_by(name, arrays)
                if measured is not None and name not in self.given:  # rule: extent-measured
                    yield f"v_{name} = {self._solved(measured)}"
                yield f"d_{name} = v_{name}.__index__()"
                self._known.add(name)

    def _solved(self, dim: Dim) -> str:
        extent = self.of(str(dim.array))[dim.axis]
        if dim.is_extent:
            return extent
        factor, rest = self.text(dim.factor), self.text(dim.rest)
        return f"(({extent} - {rest}) // {factor} if {extent} > {rest} and {factor} > 0 else 0)"

    def _agreement(self, arrays: Sequence[Parameter]) -> Iterator[str]:
        """The extents that must agree with dimensions, with leading extents and with the width of rows."""
        signature, given = self.signature, {p.name: p for p in arrays}
        sources = {(dim.array, dim.axis) for dim in signature.dims if dim.is_extent}
        widths = dict(signature.vector_widths)
        for name, parameter in given.items():
            type_ = signature.array_type(name)
            for axis, dim in enumerate(type_.dims):
                if (name, axis) not in sources and name not in self._same:
                    yield f"if s_{name}_{axis} != {self.text(dim)}: raise misfit"
            source = given.get(signature.leading_source(type_) or name)
            if source is not None and source is not parameter:
                yield f"if leading_{name} != leading_{source.name}: raise misfit"
            if widths.get(name):
                yield f"if ({self.of(name)[-1]}) % {widths[name]}: raise misfit"
