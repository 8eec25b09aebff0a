"""A progress bar for what takes long, on a terminal alone.

In: what is done. Out: a context whose value is called with how much is done, and of how much. Nothing is shown, and
nothing imported, where stderr is no terminal: in a pipe, a log or a notebook.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[int, int], None]  # what is done, and of how much


@contextmanager
def progress_bar(what: str) -> Iterator[Progress | None]:
    """Show a bar beside `what` while the context lasts; None where there is no terminal to show it on."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bars

    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Bars(*columns, console=Console(stderr=True), transient=True) as bars:
        task = bars.add_task(escape(what), total=None)
        yield lambda done, total: bars.update(task, completed=done, total=total)
