"""py2cu: write a kernel in Python, debug it in Python, get readable CUDA C++, and evidence that both agree.

Importing the package imports neither torch nor a compiler; what a name needs is loaded when it is first used. Names of
the language are entered by `py2cu.builtins`; `__init__.pyi` lists them for type checkers.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from importlib.machinery import PathFinder

__version__ = "0.1.0"

_HOMES = {
    **dict.fromkeys(
        ("EnvironmentLacks", "NarrowIntegerWarning", "Py2cuError", "TranslationError"), "py2cu.diagnostics"
    ),
    "Kernel": "py2cu.kernels",
    "kernel": "py2cu.decorator",
    "Host": "py2cu.hosts.live.handle",
    "host": "py2cu.decorator",
}


def __getattr__(name: str) -> object:
    if name == "__all__":
        return sorted([*_HOMES, *_language()])
    if name in _HOMES:
        value = getattr(importlib.import_module(_HOMES[name]), name)
    elif not name.startswith("_") and name in (names := _language(name)):
        value = names[name]
    else:
        raise AttributeError(f"module 'py2cu' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES, *_language()])


def _language(name: str = "") -> Mapping[str, object]:
    """The public names of the language. For a `name`, it imports only as many modules as define it: all take 20 ms.

    Python also asks for modules of this package, in `from py2cu import ir`, before it imports them.
    """
    if PathFinder.find_spec(f"{__name__}.{name}", __path__):
        return {}
    from py2cu.builtins.public import PUBLIC

    for module in ("annotations", "launch", "memory", "sync", "rows"):
        if name not in PUBLIC:
            importlib.import_module(f"py2cu.builtins.{module}")
    return PUBLIC
