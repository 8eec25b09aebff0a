"""Call a kernel with template arguments: each combination of their values is an instance in a compiled module.

In: the arguments of a call. Out: the result of the instance. The first call that needs an instance translates and
builds its module.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from py2cu.call.bind import BoundArguments
from py2cu.call.definition import Operator
from py2cu.call.native import Launch, Native
from py2cu.call.plan import KernelCall, argument_types
from py2cu.options import Values
from py2cu.translation import Translation


@dataclass(frozen=True, slots=True)
class ConstexprSources:
    """Where calls with arguments of certain types pass the template arguments: positions or keywords.

    `defaults` are those of template arguments that such calls leave out.
    """

    sources: tuple[int | str, ...]
    defaults: Mapping[str, int]


class Variants(Native):
    """The compiled code of a kernel with template arguments.

    Values without an instance in the kernel's own module get a module of their own at the first call with them.
    """

    def __init__(
        self, translation: Translation, translate: Callable[[Values], Translation], *, fma: bool = True
    ) -> None:
        super().__init__(translation, fma=fma)
        self._translate = translate
        self._base = Native(translation, fma=fma)
        self._instances: dict[tuple[int, ...], Native] = {}
        self._lock = threading.Lock()

    def run(self, device: str, values: Mapping[str, Any], launch: Launch = ()) -> Any:
        complete = self.binder.complete(dict(values))
        return self.instance(complete).run(device, complete, launch)

    def instance(self, values: Mapping[str, Any]) -> Native:
        """The code of the module that has an instance for the template arguments among `values`."""
        constexprs = self.signature.constexpr_ints
        numbers = {name: values[name] for name in constexprs if name in values}  # the op reports a missing one
        key = (*numbers.values(),)
        if key not in self._instances:
            with self._lock:
                if key not in self._instances:
                    is_in_base = all(value in constexprs[name].values for name, value in numbers.items())
                    is_in_base |= len(numbers) < len(constexprs)
                    self._instances[key] = self._base if is_in_base else self._translated(numbers)
        return self._instances[key]

    def _translated(self, numbers: Mapping[str, int]) -> Native:
        return Native(self._translate({name: (value,) for name, value in numbers.items()}), fma=self.fma)


class VariantCall(KernelCall):
    """Calls of a kernel with template arguments."""

    def __init__(self, native: Variants, operator: Callable[[], Operator]) -> None:
        super().__init__(native, operator)
        self._variants = native
        self._calls: dict[Native, KernelCall] = {}
        self._by_numbers: dict[tuple[int, ...], KernelCall] = {}
        self._sources: dict[tuple[object, ...], ConstexprSources] = {}
        self._launch_sources: dict[tuple[object, ...], ConstexprSources] = {}

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any], launch: Launch = ()) -> Any:
        key = argument_types(args, kwargs)
        known = self._launch_sources if launch else self._sources
        constexprs = known.get(key)
        if constexprs is not None:
            kwargs = {**kwargs, **constexprs.defaults} if constexprs.defaults else kwargs
            numbers = tuple(args[at] if isinstance(at, int) else kwargs[at] for at in constexprs.sources)
            if (call := self._by_numbers.get(numbers)) is not None:
                return call.call(args, kwargs, launch)
        if self.binder.may_pass_tuples(args, kwargs):
            return self.call((), self.binder.flatten(args, kwargs, in_order=bool(launch)), launch)
        bound = self.binder.bind_in_order(args, kwargs) if launch else self.binder.bind(args, kwargs)
        if constexprs is None and (constexprs := self._constexpr_sources(bound, kwargs)):
            known[key] = constexprs
        return self._call_for(bound.values).call((), bound.values, launch)

    def _constexpr_sources(self, bound: BoundArguments, kwargs: Mapping[str, Any]) -> ConstexprSources | None:
        """Where calls with arguments of these types pass the template arguments; None if a shape determines one."""
        values, positional = bound
        left_out = self.signature.constexprs.keys() - {*positional, *kwargs}
        if any(self.signature.is_derived(self.signature.parameter(name)) for name in left_out):
            return None
        numbers = self.signature.constexpr_ints
        sources = tuple(positional.index(name) if name in positional else name for name in numbers)
        return ConstexprSources(sources, {name: values[name] for name in left_out})

    def _call_for(self, values: Mapping[str, Any]) -> KernelCall:
        """The calls of the instance for the template arguments among `values`."""
        native = self._variants.instance(values)
        call = self._calls.setdefault(native, KernelCall(native, self._find_operator))
        self._by_numbers[tuple(values[name] for name in self.signature.constexpr_ints if name in values)] = call
        return call
