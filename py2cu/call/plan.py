"""From a Python call to a torch op: which argument is which, on which device, through which compiled code.

The first call of a form binds its arguments by name and leaves a plan; the next one of that form goes straight to the
op. What a tensor must be is checked in the op's C++, so that a call through `torch.ops` is as safe.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import torch

from py2cu import devices
from py2cu.build.library import load
from py2cu.call.argument_checks import needs_grad
from py2cu.call.bind import ArgumentBinder, Bound
from py2cu.call.outputs import allocate_outputs
from py2cu.ir.abi.parameters import Parameter, Role
from py2cu.ir.abi.signature import Signature
from py2cu.ir.types import is_complex
from py2cu.options import Values as Choice
from py2cu.source import SourceFile
from py2cu.translation import TargetName, Translation

Launch = tuple[list[int], list[int]] | tuple[()]
"""The grid and the block of an explicit launch; empty for a call."""


@dataclass(slots=True)
class Plan:
    """How calls of one form (arguments of these types by their places, of those by these names) reach the op.

    `sources` says for each of the op's arguments which positional or keyword argument it is; where the
    positional ones come first, in order, `behind` names the rest; `defaults` are those of
    numbers that such calls leave out; `first` is the place of an array, whose device picks the op; `written` are the
    places of arrays that the kernel writes; `returns` picks the outputs that the caller gave, where the op makes none.
    """

    sources: tuple[int | str, ...]
    behind: tuple[str, ...] | None
    defaults: dict[str, Any]
    first: int
    written: tuple[int, ...]
    returns: Callable[[Sequence[Any]], Any] | None
    ops: dict[str, Callable[..., Any]] = field(default_factory=dict)


def _form(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[object, ...]:
    """What decides how a call is read: the types of its arguments, and names."""
    return (*map(type, args), *kwargs, *map(type, kwargs.values())) if kwargs else tuple(map(type, args))


class Call:
    """Calls of one kernel."""

    def __init__(self, translation: Translation, *, fma: bool = True) -> None:
        self.translation = translation
        self.fma = fma
        self.signature: Signature = translation.signatures[0]
        self.binder = ArgumentBinder(self.signature)
        self._packets: dict[str, Any] = {}
        self._plans: dict[tuple[object, ...], Plan] = {}
        self._launch_plans: dict[tuple[object, ...], Plan] = {}

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any], launch: Launch = ()) -> Any:
        # `_form`, written out: a call of it takes as long as its work.
        form = (*map(type, args), *kwargs, *map(type, kwargs.values())) if kwargs else tuple(map(type, args))
        plan = self._launch_plans.get(form) if launch else self._plans.get(form)
        if plan is not None:
            named = plan.defaults | kwargs if plan.defaults else kwargs
            values = (*args, *map(named.get, plan.behind)) if plan.behind else args
            if plan.behind is None:
                values = tuple(args[at] if isinstance(at, int) else named.get(at) for at in plan.sources)
            op = plan.ops.get(values[plan.first].device.type)
            for place in plan.written:
                if values[place].requires_grad and needs_grad(values[place]):
                    op = None
            if op is not None:
                try:
                    made = op(*values, *launch) if launch else op(*values)
                except (RuntimeError, OverflowError):
                    pass  # nothing was launched: it is said again below, with what the caller can mend
                else:
                    return made if plan.returns is None else plan.returns(values)
        return self._run_bound(args, kwargs, launch)

    def _run_bound(self, args: tuple[Any, ...], kwargs: dict[str, Any], launch: Launch) -> Any:
        """Any call: bound by name and checked, and planned for the next one of its form."""
        bound = self.binder.bind_in_order(args, kwargs) if launch else self.binder.bind(args, kwargs)
        values, name = bound.values, self.signature.name
        missing = [p.name for p in self.signature.outputs if p.name not in values]
        if missing and launch:
            raise TypeError(f"{name}[grid, block](...) needs every argument; missing {_list(missing)}")
        device = self.binder.accept(values)
        if self.signature.size is None and not launch:
            raise TypeError(f"{name} has no size: launch it as {name}[grid, block](...), or say @kernel(size=…)")
        makes_all = bool(missing) and len(missing) == len(self.signature.outputs)
        if makes_all or not missing:
            taken = self.signature.inputs if makes_all else self.signature.parameters
            op = self._op(device, makes_all, launch)
            plans = self._launch_plans if launch else self._plans
            form = _form(args, kwargs)
            if form not in plans:
                plans[form] = self._plan(bound, args, kwargs, taken, returns=not (makes_all or launch))
            plans[form].ops[device] = op
            made = op(*(values.get(p.name) for p in taken), *launch)
            return made if makes_all or launch else self.result(values)
        values = allocate_outputs(self.signature, values)
        self.run(device, values)
        return self.result(values)

    def _plan(
        self, bound: Bound, args: tuple[Any, ...], kwargs: dict[str, Any], taken: Sequence[Parameter], *, returns: bool
    ) -> Plan:
        """How calls of this form reach an op that takes `taken`: types and names decide how a call is read."""
        places: dict[str, int | str] = {name: place for place, name in enumerate(bound.placed)}
        sources = tuple(places.get(p.name, p.name) for p in taken)
        outputs = [place for place, p in enumerate(taken) if p.role is Role.OUTPUT]
        left_out = (p for p in taken if p.default is not None and p.name not in {*bound.placed, *kwargs})
        in_order = sources[: len(args)] == tuple(range(len(args)))
        return Plan(
            sources,
            behind=tuple(map(str, sources[len(args) :])) if in_order else None,
            defaults={p.name: bound.values[p.name] for p in left_out},
            first=next(place for place, p in enumerate(taken) if p.is_array),
            written=tuple(place for place, p in enumerate(taken) if p.role is not Role.INPUT),
            returns=operator.itemgetter(*outputs) if outputs and returns else None,
        )

    def run(self, device: str, values: Mapping[str, Any]) -> None:
        """Run the code for `device` on arguments that include every array."""
        op = self._op(device, makes_all=False)
        op(*(values.get(p.name) for p in self.signature.parameters))

    def _op(self, device: str, makes_all: bool, launch: Launch = ()) -> Callable[..., Any]:
        """The overload that makes the outputs, the one that is given every array, or that with a grid."""
        packet = self.packet(device)
        if launch:
            return self._called(packet.grid, self.signature.parameters)
        if makes_all:
            return self._called(packet.default, self.signature.inputs)
        op = packet.out if self.signature.outputs else packet.default
        return self._called(op, self.signature.parameters)

    def _called(self, op: Any, parameters: Sequence[Parameter]) -> Callable[..., Any]:
        """An overload as this class calls it: with one argument for each of `parameters`."""
        flat = flat_op(op, parameters)
        return asserting(flat) if self.signature.asserts else flat

    @property
    def op(self) -> Any:
        """The allocating overload, for the best device here."""
        packet = self.packet(devices.best().value)
        return packet.default if self.signature.size is not None else packet.grid

    def packet(self, device: str) -> Any:
        """The op's overloads for a device; the first use builds or loads them."""
        if device not in self._packets:
            texts = self.translation.artifacts(TargetName(device))
            namespace = getattr(torch.ops, load(texts, fma=self.fma, source=self._source))
            self._packets[device] = getattr(namespace, self.signature.op)
        return self._packets[device]

    def _source(self) -> SourceFile:
        """The Python, for a compiler's messages; a notebook cell has no file, but lines."""
        import linecache

        name = self.translation.python_file
        return SourceFile(name, "".join(linecache.getlines(name)))

    def result(self, values: Mapping[str, Any]) -> Any:
        """What a call returns: its outputs in parameter order, one bare, none as None."""
        outputs = tuple(values[p.name] for p in self.signature.outputs)
        return outputs[0] if len(outputs) == 1 else outputs or None


@dataclass(frozen=True, slots=True)
class ConstexprKey:
    """Where calls with arguments of certain types say the numbers: at a place or by keyword.

    `added` are the defaults of what they leave out.
    """

    sources: tuple[int | str, ...]
    added: Mapping[str, int]


class VariantCall(Call):
    """Calls of a kernel with template arguments.

    Numbers that its module has no instances for get a module of their own when a call first asks for them.
    """

    def __init__(
        self, translation: Translation, translate: Callable[[Choice], Translation], *, fma: bool = True
    ) -> None:
        super().__init__(translation, fma=fma)
        self._translate = translate  # for these numbers
        self._base_call = Call(translation, fma=fma)
        self._variants: dict[tuple[int, ...], Call] = {}
        self._forms: dict[tuple[object, ...], ConstexprKey] = {}
        self._launch_forms: dict[tuple[object, ...], ConstexprKey] = {}
        self._lock = threading.Lock()

    def __call__(self, args: tuple[Any, ...], kwargs: dict[str, Any], launch: Launch = ()) -> Any:
        key = _form(args, kwargs)
        forms = self._launch_forms if launch else self._forms
        form = forms.get(key)
        if form is not None:
            kwargs = {**kwargs, **form.added} if form.added else kwargs
            numbers = tuple(args[at] if isinstance(at, int) else kwargs[at] for at in form.sources)
            if (call := self._variants.get(numbers)) is not None:
                return call(args, kwargs, launch)
        bound = self.binder.bind_in_order(args, kwargs) if launch else self.binder.bind(args, kwargs)
        if form is None and (form := self._form(bound, kwargs)):
            forms[key] = form
        return self._variant(bound.values)((), bound.values, launch)

    def _form(self, bound: Bound, kwargs: Mapping[str, Any]) -> ConstexprKey | None:
        """How calls like this one say their numbers; None where a shape tells one."""
        values, placed = bound
        left_out = self.signature.constexprs.keys() - {*placed, *kwargs}
        if any(self.signature.is_derived(self.signature.parameter(name)) for name in left_out):
            return None
        numbers = self.signature.constexpr_ints
        sources = tuple(placed.index(name) if name in placed else name for name in numbers)
        return ConstexprKey(sources, {name: values[name] for name in left_out})

    def run(self, device: str, values: Mapping[str, Any]) -> None:
        complete = self.binder.complete(dict(values))
        self._variant(complete).run(device, complete)

    @property
    def op(self) -> Any:
        lacking = [name for name, constexpr in self.signature.constexpr_ints.items() if not constexpr.values]
        if lacking:
            how = ", ".join(f"{name}=(16, 32)" for name in lacking)
            raise TypeError(f"{self.signature.name} has no instances yet: say which, `.with_values({how}).op`")
        return self._base_call.op

    def _variant(self, values: Mapping[str, Any]) -> Call:
        """The calls of the module that has an instance for these numbers."""
        numbers = self.signature.constexpr_ints
        chosen = {name: values[name] for name in numbers if name in values}  # of one that is absent the op complains
        key = (*chosen.values(),)
        if key not in self._variants:
            with self._lock:
                if key not in self._variants:
                    is_own = all(value in numbers[name].values for name, value in chosen.items())
                    is_own |= len(chosen) < len(numbers)
                    asked = {name: (value,) for name, value in chosen.items()}
                    self._variants[key] = self._base_call if is_own else Call(self._translate(asked), fma=self.fma)
        return self._variants[key]


_ASSERTION: Final = ": assertion failed at "
"""How the CPU's launchers begin what they throw, behind the kernel's name."""


def asserting(op: Callable[..., Any]) -> Callable[..., Any]:
    """`op`, whose failed assertions are `AssertionError`s, as in Python."""

    def call(*values: Any) -> Any:
        try:
            return op(*values)
        except RuntimeError as error:
            if _ASSERTION not in str(error):
                raise
            failure = AssertionError(str(error))
        raise failure

    return call


def flat_op(op: Any, parameters: Sequence[Parameter]) -> Callable[..., Any]:
    """`op` for arguments in the order of `parameters`, and what it takes behind them, all by their places.

    The op takes a complex number as two real ones, and by keyword what follows a default in its schema.
    """
    names = [argument.name for argument in op._schema.arguments if argument.kwarg_only]
    if not names and not any(is_complex(parameter.type) for parameter in parameters):
        return op  # type: ignore[no-any-return]
    count = len(op._schema.arguments) - len(names)

    def call(*values: Any) -> Any:
        flat: list[Any] = []
        for place, value in enumerate(values):
            has_parts = place < len(parameters) and is_complex(parameters[place].type)
            flat += (float(value.real), float(value.imag)) if has_parts else (value,)
        return op(*flat[:count], **dict(zip(names, flat[count:], strict=True)))

    return call


def _list(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
