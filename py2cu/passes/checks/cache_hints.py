"""Refuses cache hints of shared and local arrays, and `ldg` of arrays that the kernel writes.

ldg(out, i) … out[i] = v     P401: the read-only cache may keep the element as it was before the store
ldcs(tile, t)                P401: `tile` is a shared array, which no cache keeps
"""

from __future__ import annotations

from collections.abc import Container
from itertools import chain

from py2cu import ir
from py2cu.builtins.memory import CACHE_HINTS, LDG
from py2cu.diagnostics import Reporter
from py2cu.ir.visit import accesses, all_expressions
from py2cu.passes.infer_roles import accessed_arrays, stored_arrays


def check_cache_hints(kernel: ir.Kernel, reporter: Reporter) -> ir.Kernel:
    """Report these hints; the kernel is unchanged. What a device function does with an array, its caller does."""
    hinted, stored = accessed_arrays(kernel, _hinted), accessed_arrays(kernel, stored_arrays)
    read_only = accessed_arrays(kernel, lambda caller: _hinted(caller, (LDG,)))
    for caller in (kernel, *kernel.functions):
        own = {decl.name for decl in caller.array_decls if decl.space is not ir.Space.GLOBAL}
        for name in sorted(hinted[caller.key] & own):  # rule: hint-of-own
            what = f"`{name}` is an array of the kernel, and cache hints are for arrays of the call"
            _report(caller, name, what, reporter)
        for name in sorted(read_only[caller.key] & stored[caller.key] - own):  # rule: hint-of-written
            what = f"`{name}` is written by the kernel, and `ldg` reads arrays that stay as they are"
            _report(caller, name, what, reporter)
    return kernel


def _report(caller: ir.Kernel, name: str, what: str, reporter: Reporter) -> None:
    """Report the first hint of `name` in `caller`, or the call that passes the array to one."""
    hints = (node.span for node in accesses(caller.body) if node.hint and caller.base_array(node.array) == name)
    calls = (node for node in all_expressions(caller.body) if isinstance(node, ir.DeviceCall))
    passed = (call.span for call in calls for arg in call.args if isinstance(arg, ir.ArrayName) and arg.id == name)
    hint = f"access it without: `{name}[…]`"
    reporter.within(caller.origin).error("P401", what, next(chain(hints, passed)), hint)


def _hinted(caller: ir.Kernel, hints: Container[str] = CACHE_HINTS) -> set[str]:
    return {caller.base_array(node.array) for node in accesses(caller.body) if node.hint in hints}
