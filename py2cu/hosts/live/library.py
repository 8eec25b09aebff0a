"""The compiled library of a live host function: built in the background, loaded once it is there, called.

In: a `HostTranslation`. Out: calls of the operator that the library registers. Errors: those of a build, and what the
Python raises in place of the C++.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import threading
import warnings
import weakref
from pathlib import Path
from types import FunctionType
from typing import Any, Final

import torch

from py2cu.build.library import Build
from py2cu.call.torch_state import are_plain_types, has_python_mode
from py2cu.function_text import source_file
from py2cu.hosts.live.arguments import check_arguments, explain
from py2cu.hosts.live.build_library import name_kernels, plan_host
from py2cu.hosts.live.translate import HostTranslation
from py2cu.hosts.model.values import Kind
from py2cu.source import SourceFile
from py2cu.threads import ForkSafeLock

_owners: Final[dict[str, weakref.ref[Library]]] = {}  # no `WeakValueDictionary`: see `threads._locks`
_OWNING: Final = ForkSafeLock()


def _is_seen_by_cpp(values: tuple[object, ...]) -> bool:
    """Whether C++ does what Python does: modes, subclasses and transforms may see each operator that Python calls."""
    return not has_python_mode() and are_plain_types(tuple(map(type, values)))


class Library:
    """The library of one text."""

    def __init__(self, translation: HostTranslation, function: FunctionType) -> None:
        self.translation = translation
        self.build = self._own_build()
        self._function = function
        self._path: Path | None = self.build.cached
        self._error: Exception | None = None
        self._accepted: set[tuple[object, ...]] = set()  # types of arguments for which the C++ checks the rest
        self._arguments = {p.name: p.argument for p in translation.signature.parameters}
        self._op: Any = None
        self._loaded: HostTranslation | None = None  # the translation whose kernels the library calls
        self._operators: dict[str, Any] = {}  # of the kernels; these live as long as the library may call them
        self._thread = threading.Thread(target=self._compile, name=f"build {function.__name__}", daemon=True)
        if self._path is None:
            self._thread.start()

    def _source(self) -> SourceFile:
        return source_file(self._function)

    def _own_build(self) -> Build:
        """The first build of this text that no other function uses: one with other kernels of the same names."""
        text, kernels = self.translation.text, tuple(sorted(self.translation.kernels))
        with _OWNING:
            for instance in itertools.count():
                build = plan_host(text, kernels, instance)
                if not kernels or build.key not in _owners:
                    _owners[build.key] = weakref.ref(self, functools.partial(_owners.pop, build.key))
                    return build
        raise AssertionError

    @property
    def path(self) -> Path:
        assert self._path is not None
        return self._path

    @property
    def op(self) -> Any:
        """The overload that the loaded library registers."""
        return self._op

    def _compile(self) -> None:
        try:
            self._path = self.build.library(self._source)
        except Exception as error:  # `wait` raises it in the thread that asks
            self._error = error

    def is_ready(self) -> bool:
        """Whether the library can be called now; loads it once it is built."""
        if self._loaded is self.translation:
            return True
        if self._path is None:
            if self._error is not None:
                error, self._error = self._error, None
                warnings.warn(f"{self._function.__name__} runs as Python: {error}", stacklevel=5)
            return False
        self._load()
        return True

    def wait(self) -> None:
        """Wait for the build, and load the library; raises what the build raised."""
        if self._thread.ident is not None:
            self._thread.join()
        if self._path is None:
            self._error = None
            self._path = self.build.library(self._source)
        self._load()

    def _load(self) -> None:
        if self._loaded is self.translation:
            return
        translation = self.translation
        operators = {name: kernel._prepare().operator for name, kernel in translation.kernels.items()}
        if self._op is None or operators != self._operators:
            names = {name: f"py2cu::{operator.name}" for name, operator in operators.items()}
            name_kernels(self.build.load(self._source), names)
            self._op = getattr(getattr(torch.ops, self.build.namespace), translation.signature.cpp_name).default
            self._operators = operators
        self._loaded = translation

    def check(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Check arguments against the annotations. Of arguments whose types were accepted, the C++ checks the rest.

        Raises:
            TypeError, RuntimeError: as `check_arguments`, and Python's own where they do not fit the parameters.
        """
        types = (*map(type, args), *kwargs, *map(type, kwargs.values()))
        if types in self._accepted and self._op is not None:
            return
        signature = self.translation.signature
        try:
            arguments = self._bound(args, kwargs)
        except TypeError:
            self._function(*args, **kwargs)  # raises Python's own error
            raise
        check_arguments(signature, arguments)
        if all(parameter.kind is not Kind.TENSORS for parameter in signature.parameters):
            self._accepted.add(types)

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> dict[str, Any]:
        bound = inspect.signature(self._function).bind(*args, **kwargs)
        bound.apply_defaults()
        return dict(bound.arguments)

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the operator, whose errors say where in the Python they come from; the Python until that is built."""
        if not self.is_ready() or not _is_seen_by_cpp((*args, *kwargs.values())):
            return self._function(*args, **kwargs)
        named = {self._arguments[name]: value for name, value in kwargs.items()} if kwargs else kwargs
        operators = self._operators  # torch crashes where one ends during the call: another thread may replace them
        try:
            result = self._op._op(*args, **named)  # without the overload's own call
        except Exception as error:
            failure = self._explained(args, kwargs, error)
        else:
            return tuple(result) if isinstance(result, list) and not self.translation.signature.is_list else result
        finally:
            del operators
        raise failure

    def _explained(self, args: tuple[Any, ...], kwargs: dict[str, Any], error: Exception) -> Exception:
        """What the Python raises in place of `error`."""
        arguments = self._bound(args, kwargs)
        try:
            check_arguments(self.translation.signature, arguments)
        except (TypeError, RuntimeError) as refused:
            return refused
        return explain(self._function, arguments, error)
