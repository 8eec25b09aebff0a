"""The keywords of `@kernel(...)`, from its source: the file is not run, so every value is a literal or names one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import libcst as cst

from py2cu.diagnostics import Reporter
from py2cu.frontend.reader import KernelSource, Module
from py2cu.options import KernelOptions


@dataclass(frozen=True, slots=True)
class OptionReader:
    """Reads the decorator of one kernel."""

    reporter: Reporter
    source: KernelSource
    module: Module

    def read(self) -> KernelOptions:
        """What the decorator says; its values are not checked yet."""
        decorator = self.source.decorator
        if decorator is None or not isinstance(decorator.decorator, cst.Call):
            return KernelOptions()
        values: dict[str, Any] = {}
        for arg in decorator.decorator.args:
            name = arg.keyword.value if arg.keyword else None
            if name not in KernelOptions.__dataclass_fields__:
                what = f"`kernel` has no option `{name}`" if name else "the options of `kernel` go by keyword"
                self._error(what, arg, "size, block, init, name, strided and coarsen")
            elif isinstance(arg.value, cst.Name) and arg.value.value == "None":
                continue
            elif (value := self._literal(arg.value)) is None:
                self._error(f"`{name}` must be a literal", arg.value, "a kernel's file is read, not run")
            else:
                values[name] = value
        return KernelOptions(**values)

    def _literal(self, node: cst.BaseExpression) -> object:
        match node:
            case cst.Tuple(elements=elements) | cst.List(elements=elements):
                items = [self._literal(element.value) for element in elements]
                return tuple(items) if None not in items else None
            case cst.Dict(elements=elements):
                pairs = {}
                for element in elements:
                    if not isinstance(element, cst.DictElement):
                        return None
                    pairs[self._literal(element.key)] = self._literal(element.value)
                return pairs if None not in pairs and None not in pairs.values() else None
            case _:
                return self.source.environment.constant(node)

    def _error(self, message: str, node: cst.CSTNode, hint: str) -> None:
        self.reporter.error("P403", message, self.module.span(node), hint)
