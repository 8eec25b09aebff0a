"""Match a backward kernel with its forward: what each parameter of `@silu.backward` stands for.

    def silu(i, x, out): …                         the forward
    def silu_grad(i, x, grad_out, grad_x): …       x: a value; grad_out: an incoming gradient; grad_x: a result

In: the signature of a kernel, and those of its backwards. Out: `BackwardRoles` for each of them, or the `Misfit`s. The
text of a file and live kernels are matched by the same rules.

A parameter that the backward only reads is a value of the forward if the forward has its name, else the gradient
`grad_<output>`. A parameter that the backward writes is the gradient `grad_<input>`. Of an array that the forward
updates in place, both gradients have one name. A written array of any other name is scratch if a call of the backward
allocates it; the caller drops it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from py2cu.dtypes import Kind
from py2cu.ir.abi.parameters import Parameter, Role
from py2cu.ir.abi.signature import Signature, evaluate
from py2cu.ir.types import ArrayType, Name
from py2cu.records import record

PREFIX: Final = "grad_"


@record(frozen=True, slots=True)
class BackwardRoles:
    """What the parameters of a backward kernel stand for.

    `values` are parameters of the forward, `dims` its dimension names. `incoming` and `results` give, for a gradient,
    the array of the forward; a gradient that is updated in place is in both. The kernel's call allocates a result in
    neither `incoming` nor `accumulated`; one in `accumulated` starts as zeros.
    """

    values: tuple[str, ...]
    dims: tuple[str, ...]
    incoming: tuple[tuple[str, str], ...]
    results: tuple[tuple[str, str], ...]
    accumulated: tuple[str, ...]


class Misfit(NamedTuple):
    """Why the kernel at this place is no backward; the parameter that shows it, or the first of the kernel."""

    place: int
    parameter: Parameter
    message: str
    hint: str


class Match(NamedTuple):
    """The roles in each backward; or why some do not fit, and no roles."""

    all_roles: tuple[BackwardRoles, ...]
    misfits: tuple[Misfit, ...]


def match_backwards(forward: Signature, backwards: Sequence[Signature]) -> Match:
    """Match the backward kernels of `forward`, in the order in which they were attached."""
    computed: dict[str, str] = {}
    all_roles, misfits = [], []
    for place, backward in enumerate(backwards):
        pair = _Pair(forward, backward, place)
        of_parameters = [*pair.misfits_of_parameters()]
        misfits += of_parameters
        if not of_parameters:
            roles = pair.roles()
            misfits += pair.misfits_of_results(roles, computed)
            computed |= {target: backward.name for _, target in roles.results}
            all_roles.append(roles)
    return Match(() if misfits else tuple(all_roles), tuple(misfits))


@dataclass(frozen=True, slots=True)
class _Pair:
    """A forward, and a kernel that is attached to it as its backward."""

    forward: Signature
    backward: Signature
    place: int

    def roles(self) -> BackwardRoles:
        """The roles of the parameters of a backward that fits."""
        values, dims, accumulated = [], [], []
        incoming: dict[str, str] = {}
        results: dict[str, str] = {}
        for parameter in self.backward.parameters:
            name, target = parameter.name, self._target(parameter)
            if parameter.role is not Role.INPUT and target is not None:
                results[name] = target.name
                if parameter.role is Role.INOUT and target.role is Role.INOUT:
                    incoming[name] = target.name
                elif parameter.role is Role.INOUT:
                    accumulated.append(name)
            elif self._own(parameter) is not None:
                values.append(name)
            elif target is not None:
                incoming[name] = target.name
            elif self._is_dimension(parameter):
                dims.append(name)
        return BackwardRoles(tuple(values), tuple(dims), (*incoming.items(),), (*results.items(),), tuple(accumulated))

    def misfits_of_results(self, roles: BackwardRoles, computed: Mapping[str, str]) -> Iterator[Misfit]:
        """Why the kernel as a whole is no backward; `computed` gives the kernel behind each gradient so far."""
        name, first = self.backward.name, self.backward.parameters[0]
        if not roles.results:
            hint = f"store one of {_listed(self._results)}"
            yield self._misfit(first, f"`{name}` computes no gradient of `{self.forward.name}`", hint)
        elif not roles.incoming:
            written = (p for p in self.forward.arrays if p.role is not Role.INPUT)
            hint = f"name one of {_listed([f'{PREFIX}{p.name}' for p in written])}"
            yield self._misfit(first, f"`{name}` reads no incoming gradient of `{self.forward.name}`", hint)
        elif self.backward.size is None:  # rule: gradient-size
            what = f"the number of threads of `{name}` is unknown, so that `{self.forward.name}` cannot call it"
            yield self._misfit(first, what, f"write `@{self.forward.name}.backward(size=…)`")
        for gradient, target in roles.results:
            if target in computed:  # rule: gradient-twice
                what = f"`{gradient}` is already computed by `{computed[target]}`: each gradient comes from one kernel"
                again = f"run the definition of `{self.forward.name}` again, too: it keeps all attached backwards"
                hint = again if computed[target] == name else "compute it in one of the two kernels"
                yield self._misfit(self.backward.parameter(gradient), what, hint)

    def misfits_of_parameters(self) -> Iterator[Misfit]:
        """The parameters that are neither values of the forward nor gradients."""
        for parameter in self.backward.parameters:
            own, target = self._own(parameter), self._target(parameter)
            if own is not None and (parameter.role is Role.INPUT or target is None):
                yield from self._misfits_of_value(own, parameter)
            elif target is not None:
                yield from self._misfits_of_gradient(target, parameter)
            elif parameter.role is not Role.INPUT and not parameter.name.startswith(PREFIX):  # rule: gradient-scratch
                yield from self._misfits_of_scratch(parameter)
            elif not self._is_dimension(parameter) and (parameter.is_array or not self.backward.is_optional(parameter)):
                what = f"`{self.forward.name}` has no parameter `{parameter.name}`"
                yield self._misfit(parameter, what, f"a backward takes {_listed(self._names)}")

    def _misfits_of_scratch(self, parameter: Parameter) -> Iterator[Misfit]:
        """A written array that the call of the backward does not allocate."""
        if parameter.role is not Role.INOUT:
            return
        name, missing = parameter.name, self._missing_of_scratch(self.backward.array_type(parameter.name))
        what = f"`{name}` is no parameter of `{self.forward.name}`, and no scratch"
        if parameter.may_be_none:
            yield self._misfit(parameter, f"{what}: it may be None", "annotate it without `| None`")
        elif missing is not None:
            hint = "use constants, and the dimensions and dtypes of other arrays"
            yield self._misfit(parameter, f"{what}: no other array fixes its {missing}", hint)
        else:
            what = f"{what}: it is read, and a call allocates it without values"
            yield self._misfit(parameter, what, f'give it values: `init={{"{name}": 0, …}}`')

    def _missing_of_scratch(self, scratch: ArrayType) -> str | None:
        """What of an array's extents and dtype neither a number nor an array that is a value or a gradient fixes."""
        named = [p for p in self.backward.arrays if self._own(p) is not None or self._target(p) is not None]
        types = [self.backward.array_type(p.name) for p in named]
        unfixed = {dim.name for dim in self.backward.dims if dim.array not in (None, *(p.name for p in named))}
        unfixed -= {dim.id for type_ in types for dim in type_.dims if isinstance(dim, Name)}
        known = {dim.name: 1 for dim in self.backward.dims if dim.name not in unfixed}
        try:
            for dim in scratch.dims:
                evaluate(dim, known)
        except KeyError as unknown:
            return f"extent `{unknown.args[0]}`"
        return None if scratch.dtype.variable in (None, *(type_.dtype.variable for type_ in types)) else "dtype"

    def _misfits_of_value(self, own: Parameter, parameter: Parameter) -> Iterator[Misfit]:
        name = parameter.name
        if parameter.is_array != own.is_array:
            kind = "an array" if own.is_array else "a number"
            what = f"`{name}` is {kind} in `{self.forward.name}`"
            yield self._misfit(parameter, what, f"annotate `{name}` as there")
        elif parameter.role is not Role.INPUT:
            what = f"`{name}` is a value of `{self.forward.name}`, and its backward may not write it"
            yield self._misfit(parameter, what, f"write gradients: {_listed(self._results)}")
        elif own.may_be_none and not self.backward.is_optional(parameter):  # rule: gradient-optional
            yield self._never_none(parameter, own)
        elif own.role is not Role.OUTPUT and name in self.forward.strided and name not in self.backward.strided:
            what = f"`{name}` of `{self.forward.name}` may have any strides, and must be contiguous here"
            yield self._misfit(parameter, what, f'write `@{self.forward.name}.backward(strided="{name}")`')

    def _misfits_of_gradient(self, target: Parameter, parameter: Parameter) -> Iterator[Misfit]:
        name, forward = parameter.name, self.forward.name
        if not self._is_differentiable(target):  # rule: gradient-type
            kind = "integers have" if target.is_array else "a number has"
            yield self._misfit(parameter, f"`{target.name}` of `{forward}`: {kind} no gradient", f"remove `{name}`")
        elif not parameter.is_array:
            what = f"`{name}` is a gradient, and must be an array"
            yield self._misfit(parameter, what, f"annotate `{name}` like `{target.name}`")
        elif parameter.role is Role.INPUT and target.role is Role.INPUT:
            what = f"`{name}` is the gradient of an input of `{forward}`, and is never stored"
            yield self._misfit(parameter, what, f"store `{name}`, or remove the parameter")
        elif parameter.role is not Role.INPUT and target.role is Role.OUTPUT:
            what = f"`{name}` is the gradient of an output of `{forward}`, and its backward may only read it"
            yield self._misfit(parameter, what, f"write gradients of inputs: {_listed(self._results)}")
        elif parameter.role is Role.INOUT and target.may_be_none and not parameter.may_be_none:
            yield self._never_none(parameter, target)
        elif parameter.role is not Role.INPUT:
            yield from self._misfits_of_result(target, parameter)

    def _misfits_of_result(self, target: Parameter, parameter: Parameter) -> Iterator[Misfit]:
        """A gradient whose dtype or rank is not that of the input: autograd would round it, or sum it, in silence."""
        name, own = parameter.name, self.backward.array_type(parameter.name)
        given = self.forward.array_type(target.name)
        hint = f"annotate `{name}` like `{target.name}`"
        rounded = [i.dtype(target.name) for i in self.forward.instances or (self.forward,)]
        if own.dtype.variable is None and any(dtype.part.precision > own.dtype.part.precision for dtype in rounded):
            what = f"`{name}` is {own.dtype}, and `{target.name}` of `{self.forward.name}` may have more digits"
            yield self._misfit(parameter, what, hint)
        elif not (own.leading or given.leading) and len(own.dims) != len(given.dims):
            what = f"`{name}` has {len(own.dims)} dimensions, and `{target.name}` of `{self.forward.name}` has"
            yield self._misfit(parameter, f"{what} {len(given.dims)}", hint)

    def _never_none(self, parameter: Parameter, own: Parameter) -> Misfit:
        """Refuses a parameter that has no value in a call of the forward without `own`."""
        what = f"`{own.name}` of `{self.forward.name}` may be None, and `{parameter.name}` here may not"
        return self._misfit(parameter, what, f"annotate `{parameter.name}` with `| None = None`")

    def _misfit(self, parameter: Parameter, message: str, hint: str) -> Misfit:
        return Misfit(self.place, parameter, message, hint)

    def _own(self, parameter: Parameter) -> Parameter | None:
        """The parameter of the forward with this name."""
        return next((p for p in self.forward.parameters if p.name == parameter.name), None)

    def _target(self, parameter: Parameter) -> Parameter | None:
        """The parameter of the forward whose gradient this is by its name."""
        return next((p for p in self.forward.parameters if f"{PREFIX}{p.name}" == parameter.name), None)

    def _is_differentiable(self, parameter: Parameter) -> bool:
        """Whether it is an array of floats or complex numbers; in a generic kernel, whether it may be."""
        instances = self.forward.instances or (self.forward,)
        dtypes = (instance.dtype(parameter.name) for instance in instances if parameter.is_array)
        return any(dtype.kind in (Kind.FLOAT, Kind.COMPLEX) for dtype in dtypes)

    def _is_dimension(self, parameter: Parameter) -> bool:
        return not parameter.is_array and any(dim.name == parameter.name for dim in self.forward.dims)

    @property
    def _results(self) -> list[str]:
        """The gradients that a backward may store."""
        arrays = [p for p in self.forward.arrays if p.role is not Role.OUTPUT and self._is_differentiable(p)]
        return [f"{PREFIX}{p.name}" for p in arrays]

    @property
    def _names(self) -> list[str]:
        """The parameters that a backward may have."""
        written = [p for p in self.forward.arrays if p.role is not Role.INPUT and self._is_differentiable(p)]
        values = [p.name for p in self.forward.parameters]
        return [*dict.fromkeys([*values, *(f"{PREFIX}{p.name}" for p in written), *self._results])]


def _listed(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
