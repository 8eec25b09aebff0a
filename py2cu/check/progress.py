"""Show a progress bar on a terminal.

In: a description. Out: a context whose value is called with the number of steps done, and of all steps. If stderr is no
terminal (a pipe, a log, a notebook), nothing is shown and nothing imported.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

Progress = Callable[[int, int], None]  # the number of steps done, and of all steps


@contextmanager
def progress_bar(what: str) -> Iterator[Progress | None]:
    """Show a bar beside `what` while the context lasts; yields None if stderr is no terminal."""
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
