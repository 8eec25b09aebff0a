"""The host functions of a file, which is read and not run: they call the kernels of the same file."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import PurePath

import libcst as cst

from py2cu.diagnostics import Reporter, TranslationError
from py2cu.frontend.source.reader import KernelSource, Module
from py2cu.hosts.functions import HostReader, host_sources
from py2cu.hosts.gradients import check_backwards, forward_of
from py2cu.hosts.model.signatures import Callee
from py2cu.hosts.text.render import render_host
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

    def called(name: str) -> Signature | None:
        source = next((each for each in module.kernels if each.function.name.value == name), None)
        return None if source is None else signature(source)

    def kernel(node: cst.BaseExpression, _: Module) -> Callee | None:
        found = called(node.value) if isinstance(node, cst.Name) else None
        return None if found is None or not isinstance(node, cst.Name) else Callee(node.value, found)

    sources = {source.function.name.value: source for source in host_sources(module)}
    with_backward = {*filter(None, map(forward_of, sources.values()))}
    reader = HostReader(module, reporter, kernel, sources=sources, with_backward=with_backward)
    for source in hosts:
        reader.read(source)
    if not reporter.failed:
        found = {name: function.signature for name, function in reader.done.items()}
        check_backwards(found, called, sources.values(), reporter)
    if reporter.failed:
        raise TranslationError(reporter.sorted)
    return render_host(name, PurePath(reporter.file.name).name, tuple(reader.done.values()))
