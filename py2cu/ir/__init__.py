"""The typed tree between the front end and the targets: what a kernel is made of.

`ir.Assign` and its like are the nodes, `ir.Kernel` holds them, `ir.PY_INT` and its like are the types of values; the
`__all__` of each file lists what it exports here. The files beside work on trees: `fields`, `visit`, `rewrite`,
`substitution`, `names`, `printer`, `verify`.

The files are loaded when a name is first asked for: a cached kernel is called by `ir/abi` alone.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from py2cu.ir.array_decls import *  # noqa: F403
    from py2cu.ir.elisions import *  # noqa: F403
    from py2cu.ir.expressions import *  # noqa: F403
    from py2cu.ir.kernels import *  # noqa: F403
    from py2cu.ir.statements import *  # noqa: F403
    from py2cu.ir.types import *  # noqa: F403


def __getattr__(name: str) -> Any:
    if name.startswith("_"):
        raise AttributeError(name)
    import importlib.util

    if importlib.util.find_spec(f"{__name__}.{name}") is not None:
        return importlib.import_module(f"{__name__}.{name}")
    for part in ("array_decls", "elisions", "expressions", "kernels", "statements", "types"):
        module = importlib.import_module(f"{__name__}.{part}")
        globals().update((exported, getattr(module, exported)) for exported in module.__all__)
    if name not in globals():
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return globals()[name]
