"""Loads py2cu's own pytest plugin from the checkout; where the package is installed, pytest found it already.

Without torch, what translates is still tested: the tests of what runs are left out. Under `-n`, a worker that is done
takes over tests of another one, some of which build for half a minute.
"""

from __future__ import annotations

from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import Any

import pytest

pytest_plugins = [] if entry_points(group="pytest11", name="py2cu") else ["py2cu.testing"]

TOPICS = (
    "compare",
    "elements",
    "findings",
    "functions",
    "launch_bounds",
    "rows",
    "simulate",
    "small_integers",
    "template_arguments",
    "threads",
)
NEED_TORCH = [f"unit/test_{name}.py" for name in TOPICS]
collect_ignore = NEED_TORCH if find_spec("torch") is None else []


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Tests are very unlike in length."""
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log)
