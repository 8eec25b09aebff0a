"""Calls that do not fit a function, with the arguments that it takes.

pow(2, 3, 5)       pow(2, 3)
torch.clamp(v)     torch.clamp(v, …, …)
divmod(i, 3) + 1   q, r = divmod(i, 3)
"""

from __future__ import annotations

from typing import Final

import libcst as cst

from py2cu import builtins
from py2cu.builtins.atomics import ATOMICS
from py2cu.frontend.names.syntax import source_text
from py2cu.suggestions import nearest

_FUNCTIONS: Final = (
    "kernels can call the functions of `math`, abs, min, max, round, int, float, bool, len and dtype casts"
)


def rewrite_call(signature: str, node: cst.Call) -> str:
    """`node` as `signature` says, `(a, b)` or `q, r = divmod(a, b)`, with the user's arguments in their places."""
    head, _, parameters = signature.strip("`").partition("(")
    results = f"{head.rpartition('=')[0]}= " if "=" in head else ""
    count = len(parameters.rstrip(")").split(", "))
    texts = [source_text(arg.value) for arg in node.args if arg.keyword is None][:count]
    return f"{results}{source_text(node.func)}({', '.join(texts + ['…'] * (count - len(texts)))})"


def nearest_function(qualified: str) -> str:
    """A hint for a function that kernels cannot call: the most similar name in its library, or what the library has."""
    library, _, name = qualified.rpartition(".")
    if library.endswith(".atomic"):
        near = nearest(f"{name}_", ATOMICS) or nearest(name, ATOMICS)
        return f"did you mean `atomic.{near}`?" if near else f"`atomic` has {', '.join(ATOMICS)}"
    known = {each.rpartition(".")[2]: each for each in builtins.names() if each.rpartition(".")[0] == library}
    if (near := nearest(name, known)) is None:
        return _FUNCTIONS
    spelled = known[near].removeprefix("builtins.").removeprefix("numba.")
    return f"did you mean `{spelled}`?"
