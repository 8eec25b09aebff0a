"""Loads py2cu's own pytest plugin from the checkout; where the package is installed, pytest found it already.

Without torch, what translates is still tested: the tests of what runs are left out. Under `-n`, a worker that is done
takes over tests of another one, some of which build for half a minute.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
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


@pytest.fixture(scope="session", autouse=True)
def _headers_are_compiled_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    if find_spec("torch") is None:
        yield
        return
    from py2cu.runtime import build
    from tests.precompiled import with_headers

    folder = tmp_path_factory.getbasetemp()
    folder = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder  # which all workers share
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(build, "_job", with_headers(build._job, folder))
        yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The long ones first: at the end no worker then waits for another one."""
    items.sort(key=lambda item: not any(item.iter_markers("slow")))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Tests are very unlike in length."""
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log)
