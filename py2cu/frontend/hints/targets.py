"""Targets that do not fit their values, with the names that they need.

a, b = x[i]          a, b, v2 = x[i]          of three elements
for a in zip(x, y)   for a0, a1 in zip(x, y)
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from py2cu.frontend.names.syntax import source_text


def rewrite_names(targets: Sequence[cst.BaseExpression], count: int) -> str:
    """A hint: `count` names, as many of `targets` among them as there are."""
    texts = [source_text(target) for target in targets[:count]]
    texts += [f"v{at}" for at in range(len(texts), count)]
    return f"write {'one name' if count == 1 else f'{count} names'}: `{', '.join(texts)}`"


def unpacked_names(target: cst.BaseExpression, count: int) -> str:
    """The text of `count` names in place of the one in `target`."""
    return ", ".join(f"{source_text(target)}{at}" for at in range(count))
