"""Host functions of a text, built in one library, beside the Python that they came from."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch

from py2cu import Host
from py2cu.hosts.live.build_library import plan_host
from py2cu.pipeline import translate_file
from py2cu.source import SourceFile
from tests.support.modules import import_file


class Hosts:
    """`python[name]` and `compiled[name]`: the host functions of `text`, which call no kernels."""

    def __init__(self, text: str, folder: Path) -> None:
        file = folder / "hosts_of_text.py"
        file.write_text(text, encoding="utf-8")
        translation = translate_file(SourceFile(file.name, text))
        assert translation.host is not None
        self.text = translation.host.text
        build = plan_host(translation.host, ())
        build.load(lambda: SourceFile(file.name, text))
        module = import_file(file)
        self.python = {n: v.python for n, v in vars(module).items() if isinstance(v, Host)}
        self.compiled = {name: getattr(getattr(torch.ops, build.namespace), name) for name in self.python}

    def outcomes(self, name: str, arguments: Mapping[str, Any]) -> tuple[Any, Any]:
        """What the Python and the C++ give for copies of the arguments: a list of tensors, or an error."""
        return _outcome(self.python[name], arguments), _outcome(self.compiled[name], arguments)


def _outcome(function: Any, arguments: Mapping[str, Any]) -> Any:
    try:
        result = function(**copy.deepcopy(dict(arguments)))
    except Exception as error:
        return error
    return [result] if isinstance(result, torch.Tensor) else [*(result or ())]


def differs(one: Any, other: Any) -> str:
    """What is different about two outcomes; nothing where they agree."""
    if isinstance(one, Exception) or isinstance(other, Exception):
        kinds = {AssertionError: RuntimeError, ZeroDivisionError: RuntimeError}  # torch has no such errors
        wanted = kinds.get(type(one), type(one))
        return "" if wanted is type(other) else f"{one!r} is not {other!r}"
    if len(one) != len(other):
        return f"{len(one)} tensors are not {len(other)}"
    for a, b in zip(one, other, strict=True):
        if a.dtype is not b.dtype or a.shape != b.shape or a.stride() != b.stride():
            return f"{a.dtype} {a.shape} {a.stride()} is not {b.dtype} {b.shape} {b.stride()}"
        try:
            torch.testing.assert_close(a, b, rtol=1e-6, atol=1e-6, equal_nan=True)
        except AssertionError as error:
            return str(error)
    return ""
