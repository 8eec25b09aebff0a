"""Shows two texts side by side: on a terminal, and in a notebook."""

from __future__ import annotations

import itertools


def side_by_side(left: str, right: str) -> str:
    """The lines of both, with a rule between them."""
    rows = [*itertools.zip_longest(left.expandtabs(4).splitlines(), right.splitlines(), fillvalue="")]
    width = max((len(a) for a, _ in rows), default=0)
    return "\n".join(f"{a:<{width}}  │  {b}".rstrip() for a, b in rows)


def html_side_by_side(left: str, right: str) -> str:
    import html

    cell = '<td style="vertical-align: top; text-align: left"><pre>{}</pre></td>'
    return f"<table><tr>{''.join(cell.format(html.escape(text)) for text in (left, right))}</tr></table>"
