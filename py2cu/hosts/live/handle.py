"""The object `Host` that the decorator `@host` makes of a function.

In: a Python function. Out: a `Host`, translated at its first call. Its library is built in the background: until it is
there, a call runs the Python, whose kernels are compiled as ever.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any

from py2cu.call.traced import Traced, add_backward, traced_as, traced_op
from py2cu.function_text import remember_cell
from py2cu.hosts.live.marked import Marked
from py2cu.live.dependencies import Dependencies
from py2cu.live.texts import python_text, remember_texts
from py2cu.threads import ForkSafeLock

if TYPE_CHECKING:
    from py2cu.hosts.live.check import HostReport
    from py2cu.hosts.live.library import Library
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
        if isinstance(function, Traced):
            what = f"@host takes a plain Python function, and `{function.__name__}` is a {function.kind}"
            raise TypeError(f"{what}; write `@NAME.backward` above `@host`")
        if not isinstance(function, FunctionType):
            raise TypeError(f"@host takes a plain Python function, not {function!r}")
        remember_cell(function)
        remember_texts(function)
        Traced.__init__(self)
        super().__init__(function, backwards)
        self._lock = ForkSafeLock()
        self._state: tuple[Dependencies | None, HostTranslation | None] = None, None
        self._library: Library | None = None
        self._call: HostCall | None = None
        self._operators: list[Any] = []  # of the kernels and backwards of `_call`
        functools.update_wrapper(self, function)

    @traced_as(_traced_call)
    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Run the C++ once it is built, before that the Python; see the class."""
        library = self._current_library()
        library.check(args, kwargs)
        return self._prepare().run(args, kwargs) if self.backwards else library.run(args, kwargs)

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run the C++, or the Python until that is built, on checked arguments; autograd sees the operators inside."""
        return self._current_library().run(args, kwargs)

    def __get__(self, instance: object, owner: type | None = None) -> Host:
        """Return the host function itself: as a class attribute it does not bind the instance."""
        return self

    def build(self) -> None:
        """Wait until the library is built and loaded.

        Raises:
            TranslationError: the function is outside the language.
            BuildError, EnvironmentLacks: the compiler refused the text, or a tool is missing.
        """
        self._current_library().wait()

    @property
    def library(self) -> Path:
        """The path of the built library; raises what `build` raises."""
        library = self._current_library()
        library.wait()
        return library.path

    @property
    def op(self) -> Any:
        """The torch operator: an `OpOverload`. Waits for the build, and raises what `build` raises."""
        library = self._current_library()
        library.wait()
        return self._prepare().op if self.backwards else library.op

    def check(self, /, *args: Any, **kwargs: Any) -> HostReport:
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
        dependencies, last = self._state
        if last is None or dependencies is None or not (dependencies.unchanged() and last.is_current):
            from py2cu.hosts.live.translate import translate_host

            with self._lock:
                before = Dependencies(self._function)
                last = translate_host(self)
                after = Dependencies(*(each._function for each in last.met))
                self._state = after if before.unchanged() else before, last
        return last

    def __repr__(self) -> str:
        return python_text(self._function)

    def __reduce__(self) -> str | tuple[Any, ...]:
        """Pickle by module and name, as functions do, or else by the function."""
        from py2cu.live.pickles import is_found_by_name, portable

        arguments = portable(self._function), tuple(self.backwards)
        return self.__qualname__ if is_found_by_name(self) else (Host, arguments)

    def __deepcopy__(self, memo: object = None) -> Host:
        """Return the host function itself, as for functions."""
        return self

    __copy__ = __deepcopy__

    def _current_library(self) -> Library:
        translation, library = self.translation, self._library
        if library is not None and library.translation is translation:
            return library
        from py2cu.hosts.live.library import Library

        with self._lock:
            if self._library is None or self._library.translation.text.code != translation.text.code:
                self._library = Library(translation, self._function)
            self._library.translation = translation
            return self._library
