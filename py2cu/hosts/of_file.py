"""The host functions of a file, which is read and not run: they call the kernels of the same file."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import PurePath

import libcst as cst

from py2cu.diagnostics import Reporter, TranslationError
from py2cu.frontend.source.reader import KernelSource, Module
from py2cu.hosts.functions import HostReader
from py2cu.hosts.render import render_host
from py2cu.hosts.signatures import Callee
from py2cu.ir.abi.signature import Signature
from py2cu.translation import Text


def render_hosts(
    name: str,
    module: Module,
    hosts: Iterable[KernelSource],
    signature: Callable[[KernelSource], Signature | None],
    reporter: Reporter,
) -> Text:
    """The text of these host functions and their callees; `signature` returns the signature of a kernel.

    Raises:
        TranslationError: one of them is outside the language.
    """

    def kernel(node: cst.BaseExpression, _: Module) -> Callee | None:
        named = (
            each for each in module.kernels if isinstance(node, cst.Name) and each.function.name.value == node.value
        )
        source = next(named, None)
        found = None if source is None else signature(source)
        return None if source is None or found is None else Callee(source.function.name.value, found)

    reader = HostReader(module, reporter, kernel)
    for source in hosts:
        reader.read(source)
    if reporter.failed:
        raise TranslationError(reporter.sorted)
    return render_host(name, PurePath(reporter.file.name).name, tuple(reader.done.values()))
