"""What kernels import from py2cu: functions and objects, and the decorators that enter them and their rows.

Functions of the GPU are placeholders. In Python, they document their arguments, and raise `RuntimeError` outside of the
simulator, which replaces them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, NoReturn, TypeVar

if TYPE_CHECKING:
    from py2cu.builtins.registry import Builtin, Rule

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

PUBLIC: Final[dict[str, object]] = {}
"""By name, what this package adds to `py2cu`; `__init__.pyi` lists the same for type checkers."""
PY2CU: Final = ("py2cu",)
CUDA: Final = ("py2cu", "numba.cuda")
"""The libraries that have most of these functions, under the same names."""


def public(value: T) -> T:
    """Enter `value`, a function, a class or an object, by its `__name__`."""
    name: str = getattr(value, "__name__", "")
    PUBLIC[name] = value
    return value


def builtin(
    rule: Rule, libraries: tuple[str, ...] = CUDA, *, in_python: bool = False, **fields: Any
) -> Callable[[F], F]:
    """Enter the decorated function and its row: names and parameters are the function's, `fields` the other ones.

    The function is a placeholder, unless it is one that works `in_python`.
    """

    def enter(function: F) -> F:
        from py2cu.builtins.registry import register

        register([row_of(function, rule, libraries, **fields)])
        return public(function if in_python else placeholder(function))

    return enter


def row_of(function: Callable[..., Any], rule: Rule, libraries: tuple[str, ...], **fields: Any) -> Builtin:
    """The row of a function that `libraries` have."""
    from py2cu.builtins.registry import Builtin

    code = function.__code__
    parameters = code.co_varnames[: code.co_argcount]
    least = len(parameters) - len(function.__defaults__ or ())
    names = tuple(f"{library}.{function.__name__}" for library in libraries)
    return Builtin(names, rule, (least, len(parameters)), parameters=parameters, **fields)


def placeholder(function: F, name: str = "") -> F:
    """`function`, which raises when it is called. Kernels call it `name`, by default its `__name__`."""

    @functools.wraps(function)
    def outside_of_the_simulator(*_: object, **__: object) -> NoReturn:
        raise outside_kernel(name or function.__name__)

    return outside_of_the_simulator  # type: ignore[return-value]


def outside_kernel(name: str) -> RuntimeError:
    """The error of a function or an object that is used outside of the simulator."""
    return RuntimeError(
        f"`{name}` works only inside a running kernel: call the kernel, or step through it with "
        "`your_kernel.simulate(...)`"
    )
