"""The object `Host` that the decorator `@host` makes of a function.

In: a Python function. Out: a `Host`, translated at its first call. Its library is built in the background: until it is
there, a call runs the Python, whose kernels are compiled as ever.
"""

from __future__ import annotations

import functools
import inspect
import threading
import warnings
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any

from py2cu.call import python_text, remember_texts
from py2cu.call.dependencies import Dependencies
from py2cu.call.traced import Traced, add_backward, traced_as, traced_op
from py2cu.function_text import remember_cell, source_file
from py2cu.hosts.live.marked import Marked

if TYPE_CHECKING:
    from py2cu.build.host_library import HostBuild
    from py2cu.hosts.live.check import HostReport
    from py2cu.hosts.live.operators import HostCall
    from py2cu.hosts.live.translate import HostTranslation


def _traced_call(host: Host, *args: Any, **kwargs: Any) -> Any:
    """`Host.__call__` under Dynamo: the Python, or the operator of one with a backward, whenever a build ends."""
    if not host.backwards:
        return host._function(*args, **kwargs)
    result = traced_op(host)(*args, **kwargs)
    return tuple(result) if isinstance(result, list) else result


class Host(Marked, Traced):
    """A host function that can be called, checked and read as C++.

    A call takes tensors, lists of tensors and numbers as annotated. It returns a tensor, a tuple or a list of several,
    or None.

    Raises:
        TypeError: a call's arguments do not fit the parameters.
        RuntimeError: a tensor has another dtype, number of dimensions or extent than its annotation says; the message
            names the argument. Or an operator refuses its arguments; the message names the line.
        TranslationError: the function is outside the language.
    """

    __name__: str
    __qualname__: str
    kind = "host function"

    def __init__(self, function: Callable[..., Any], backwards: Iterable[Host] = ()) -> None:
        if not isinstance(function, FunctionType):
            raise TypeError(f"@host takes a plain Python function, not {function!r}")
        remember_cell(function)
        remember_texts(function)
        Traced.__init__(self)
        super().__init__(function, backwards)
        self._lock = threading.RLock()
        self._translation: HostTranslation | None = None
        self._dependencies: Dependencies | None = None
        self._library: _Library | None = None
        self._call: HostCall | None = None
        self._operators: list[Any] = []  # of the kernels and backwards of `_call`
        functools.update_wrapper(self, function)

    @traced_as(_traced_call)
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the C++ once it is built, before that the Python; see the class."""
        from py2cu.hosts.live.arguments import check_arguments

        translation = self.translation
        try:
            bound = inspect.signature(self._function).bind(*args, **kwargs)
        except TypeError:
            return self._function(*args, **kwargs)  # raises Python's own error
        bound.apply_defaults()
        check_arguments(translation.signature, bound.arguments)
        return (self._prepare() if self.backwards else self).run(translation, bound.arguments)

    def run(self, translation: HostTranslation, arguments: Mapping[str, Any]) -> Any:
        """Run the C++, or the Python until that is built, on checked arguments; autograd sees the operators inside."""
        library = self._current_library()
        if not library.is_ready(translation):
            return self._function(**arguments)
        return library.run(self, translation, arguments)

    def __get__(self, instance: object, owner: type | None = None) -> Host:
        """Return the host function itself: as a class attribute it does not bind the instance."""
        return self

    def build(self) -> None:
        """Wait until the library is built and loaded.

        Raises:
            TranslationError: the function is outside the language.
            BuildError, EnvironmentLacks: the compiler refused the text, or a tool is missing.
        """
        self._current_library().wait(self.translation)

    @property
    def library(self) -> Path:
        """The path of the built library; raises what `build` raises."""
        library = self._current_library()
        library.wait(self.translation)
        return library.path

    @property
    def op(self) -> Any:
        """The torch operator: an `OpOverload`. Waits for the build, and raises what `build` raises."""
        translation, library = self.translation, self._current_library()
        library.wait(translation)
        return self._prepare().op if self.backwards else library.operator(translation)

    def check(self, *args: Any, **kwargs: Any) -> HostReport:
        """Compare the C++ with the Python, on these arguments or, without any, on invented ones.

        Raises:
            TranslationError, BuildError, EnvironmentLacks: as `build`.
        """
        from py2cu.hosts.live.check import check_host

        self.build()
        return check_host(self, self._function, self.translation.signature, args, kwargs)

    # --- gradients ---

    def backward(self, function: Host | Callable[..., Any]) -> Host:
        """Attach a host function that computes gradients: `@f.backward`, or `f.backward(g)`.

        The outputs of this function are the names in its one `return`. The parameters of the backward are those of this
        function and its outputs by their names, and `grad_<output>` for incoming gradients; it returns locals
        `grad_<input>`. Several may be attached, each for other inputs.

        Args:
            function: a Python function, or a host function.

        Returns:
            The backward.

        Raises:
            TypeError: `function` is neither, or a host function whose backward is this one.
        """
        backward = function if isinstance(function, Host) else Host(function)
        add_backward(self, backward)
        return backward

    def _prepare(self) -> HostCall:
        """The function as it is now, as autograd knows it."""
        from py2cu.hosts.live.operators import HostCall

        with self._lock:
            translation = self.translation
            calls = [backward._as_backward() for backward in self.backwards]
            kernels = [kernel._prepare().operator for kernel in translation.kernels.values()]
            operators = [translation, *kernels, *(call.operator for call in calls)]
            if self._call is None or [*map(id, operators)] != [*map(id, self._operators)]:
                self._call, self._operators = HostCall(self, translation, calls), operators
            return self._call

    def _as_backward(self) -> HostCall:
        return self._prepare().as_backward()

    # --- reading ---

    @property
    def python(self) -> FunctionType:
        """The decorated function."""
        return self._function

    @property
    def cpp_source(self) -> str:
        """The text of the `_host.cpp` file."""
        return self.translation.text.text

    @property
    def translation(self) -> HostTranslation:
        """The text, the signature and the kernels.

        Raises:
            TranslationError: the function is outside the language.
        """
        dependencies, last = self._dependencies, self._translation
        if last is None or dependencies is None or not (dependencies.unchanged() and last.is_current):
            from py2cu.hosts.live.translate import translate_host

            with self._lock:
                self._dependencies = Dependencies(self._function)
                self._translation = last = translate_host(self)
        return last

    def __repr__(self) -> str:
        return python_text(self._function)

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Pickle by module and name, as functions do, or else by the function."""
        from py2cu.call.pickles import is_found_by_name, portable

        arguments = portable(self._function), tuple(self.backwards)
        return self.__qualname__ if is_found_by_name(self) else (Host, arguments)

    def __deepcopy__(self, memo: object = None) -> Host:
        """Return the host function itself, as for functions."""
        return self

    __copy__ = __deepcopy__

    def _current_library(self) -> _Library:
        with self._lock:
            translation = self.translation
            if self._library is None or self._library.text != translation.text.code:
                self._library = _Library(translation, self._function)
            return self._library


class _Library:
    """The compiled library of one text. A background thread builds it, unless it is cached."""

    def __init__(self, translation: HostTranslation, function: FunctionType) -> None:
        from py2cu.build.host_library import plan_host

        self.text = translation.text.code
        self.build: HostBuild = plan_host(translation.text, tuple(sorted(translation.kernels)))
        self._function = function
        self._path: Path | None = self.build.cached
        self._error: Exception | None = None
        self._is_loaded = False
        self._operators: dict[str, Any] = {}  # of the kernels; these live as long as the library may call them
        self._thread = threading.Thread(target=self._compile, name=f"build {function.__name__}", daemon=True)
        if self._path is None:
            self._thread.start()

    @property
    def path(self) -> Path:
        assert self._path is not None
        return self._path

    def _compile(self) -> None:
        try:
            self._path = self.build.library(lambda: source_file(self._function))
        except Exception as error:  # `wait` raises it in the thread that asks
            self._error = error

    def is_ready(self, translation: HostTranslation) -> bool:
        """Whether the library can be called now; loads it once it is built."""
        if self._path is None:
            if self._error is not None:
                error, self._error = self._error, None
                warnings.warn(f"{self._function.__name__} runs as Python: {error}", stacklevel=4)
            return False
        self._load(translation)
        return True

    def wait(self, translation: HostTranslation) -> None:
        """Wait for the build, and load the library; raises what the build raised."""
        if self._thread.ident is not None:
            self._thread.join()
        if self._path is None:
            self._error = None
            self._path = self.build.library(lambda: source_file(self._function))
        self._load(translation)

    def _load(self, translation: HostTranslation) -> None:
        operators = {name: kernel._prepare().operator for name, kernel in translation.kernels.items()}
        if self._is_loaded and operators == self._operators:
            return
        names = {name: f"py2cu::{operator.name}" for name, operator in operators.items()}
        self.build.load(self.path, names)
        self._operators, self._is_loaded = operators, True

    def operator(self, translation: HostTranslation) -> Any:
        import torch

        return getattr(getattr(torch.ops, self.build.namespace), translation.signature.cpp_name).default

    def run(self, host: Host, translation: HostTranslation, arguments: Mapping[str, Any]) -> Any:
        """Call the operator; its errors say where in the Python they come from."""
        from py2cu.hosts.live.arguments import explain

        signature = translation.signature
        positional = [arguments[p.name] for p in signature.parameters if not p.by_keyword]
        named = {p.argument: arguments[p.name] for p in signature.parameters if p.by_keyword}
        try:
            result = self.operator(translation)(*positional, **named)
        except Exception as error:
            failure = explain(host._function, arguments, error)
        else:
            return tuple(result) if isinstance(result, list) and not signature.is_list else result
        raise failure
