"""Translate a live host function, with the host functions that it calls, and find the kernels that they mean.

In: a function under `@host`. Out: `HostTranslation`. Nothing of it is run. Errors: `TranslationError`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import libcst as cst

from py2cu.diagnostics import Reporter, TranslationError
from py2cu.frontend.source.reader import Module, read_module
from py2cu.function_text import source_file
from py2cu.hosts.functions import HostReader
from py2cu.hosts.live.marked import Marked
from py2cu.hosts.model.signatures import Callee, HostSignature
from py2cu.hosts.model.values import Value, identifier
from py2cu.hosts.text.render import HostFunction, render_host
from py2cu.live import defaults_of, live_attribute, visible_objects
from py2cu.source import Span
from py2cu.threads import with_deep_stack
from py2cu.translation import Text

if TYPE_CHECKING:
    from py2cu.kernels import Kernel


@dataclass(frozen=True, slots=True)
class HostTranslation:
    """The text of a host function and its host callees, and its signature.

    `kernels` are the kernels that the text calls by their operators, by name, and the host functions with a backward.
    `met` are these, all host functions, and the backwards of all; `counts` are how many backwards each of them has.
    """

    text: Text
    signature: HostSignature
    kernels: Mapping[str, Kernel | Marked]
    met: tuple[Kernel | Marked, ...]
    counts: list[int]

    @property
    def is_current(self) -> bool:
        """Whether no backward was attached since."""
        return [len(each.backwards) for each in self.met] == self.counts


@with_deep_stack
def translate_host(host: Marked) -> HostTranslation:
    """Translate the function of `host` with its text and the objects around it now.

    Raises:
        TranslationError: the function is outside the language, or its text is not available.
    """
    function, live = host._function, _Live()
    found = live.read(host)
    text = render_host(identifier(function.__name__), function.__code__.co_filename, tuple(live.done.values()))
    met = _with_backwards((*live.hosts, *live.kernels.values()))
    return HostTranslation(text, found.signature, live.kernels, met, [len(each.backwards) for each in met])


def _with_backwards(met: tuple[Kernel | Marked, ...]) -> tuple[Kernel | Marked, ...]:
    backwards = dict.fromkeys(backward for each in met for backward in each.backwards if backward not in met)
    return _with_backwards((*met, *backwards)) if backwards else met


@dataclass(slots=True)
class _Live:
    done: dict[str, HostFunction] = field(default_factory=dict)
    kernels: dict[str, Kernel | Marked] = field(default_factory=dict)
    hosts: list[Marked] = field(default_factory=list)
    open: list[Marked] = field(default_factory=list)
    by_name: dict[str, Marked] = field(default_factory=dict)
    constants: dict[str, Value] = field(default_factory=dict)

    def read(self, host: Marked) -> HostFunction:
        function = host._function
        file, line, name = source_file(function), function.__code__.co_firstlineno, function.__name__
        reporter, around = Reporter(file), visible_objects(function)
        module = read_module(file, reporter, around, name)
        source = module.function_at(line, name) if module is not None else None
        if module is None or source is None:
            if not reporter.failed:
                what = f"no function `{name}` begins here" if file.text else f"the source of `{name}` is not available"
                hint = "write the function with `def`, in a file or a notebook cell"
                reporter.error("P107", what, Span(line, 0, line, 1), hint)
            raise TranslationError(reporter.sorted)
        self.hosts.append(host)
        self.open.append(host)
        finder = _Finder(self, around, reporter)
        with_backward = [name] if host.backwards else []
        reader = HostReader(module, reporter, finder, defaults_of(function), self.done, with_backward=with_backward)
        found = reader.read(source)
        self.open.pop()
        for constant, value in found.constants.items() if found is not None else ():
            if self.constants.setdefault(constant, value) != value:
                what = f"`{constant}` has another value in a host function that is called here"
                reporter.error("P107", what, module.span(source.function.name), "give one another name")
        if found is None or reporter.failed:
            raise TranslationError(reporter.sorted)
        return found


@dataclass(frozen=True, slots=True)
class _Finder:
    """What names mean in one live function."""

    live: _Live
    around: Mapping[str, object]
    reporter: Reporter

    def __call__(self, node: cst.BaseExpression, module: Module) -> Callee | None:
        from py2cu.kernels import Kernel

        value = self._value(node)
        if isinstance(value, Kernel):
            signature = value.signature
            self.call_by_operator(signature.op, value, node, module)
            return Callee(identifier(signature.op), signature)
        if not isinstance(value, Marked):
            return None
        name = value._function.__name__
        if value in self.live.open:
            what = f"`{name}` and `{self.live.open[-1]._function.__name__}` call each other"
            self.reporter.error("P801", what, module.span(node), "a host function may call itself alone")
            return None
        other = self.live.by_name.setdefault(name, value)
        if other is not value or any(name == each._function.__name__ for each in self.live.open):
            what = f"two host functions are called `{name}`"
            self.reporter.error("P107", what, module.span(node), "give one another name")
            return None
        found = self.live.done.get(name) or self.live.read(value)
        if value.backwards:
            self.call_by_operator(found.signature.cpp_name, value, node, module)
        return Callee(found.signature.name, host=found.signature)

    def call_by_operator(self, name: str, value: Kernel | Marked, node: cst.BaseExpression, module: Module) -> None:
        if self.live.kernels.setdefault(name, value) is not value:
            what = f"two kernels are called `{name}`"
            self.reporter.error("P107", what, module.span(node), "give one another name: `@kernel(name=…)`")

    def _value(self, node: cst.BaseExpression) -> Any:
        match node:
            case cst.Name(value=name):
                return self.around.get(name)
            case cst.Attribute(value=owner, attr=cst.Name(value=attr)):
                return live_attribute(self._value(owner), attr)
            case _:
                return None
