"""Print the name of a build step that takes more than a second.

In: the step, "compiling silu for the CPU". Out: one line on stderr, if that is a terminal or a notebook.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Iterator
from typing import Final

_SECONDS: Final = 1.0


@contextlib.contextmanager
def announced(step: str) -> Iterator[None]:
    """Print `step`, unless it is empty, once the block has run for a second, if stderr is a terminal or a notebook."""
    timer = threading.Timer(_SECONDS, print, [f"py2cu: {step} …"], {"file": sys.stderr, "flush": True})
    timer.daemon = True
    if step and _is_watched():
        timer.start()
    try:
        yield
    finally:
        timer.cancel()


def _is_watched() -> bool:
    """Whether stderr is a terminal or the output of a notebook's cell."""
    if sys.stderr is None:  # a process without a console
        return False
    shell = sys.modules.get("IPython")
    return sys.stderr.isatty() or (shell is not None and shell.get_ipython() is not None)
