"""Which tests run, and what they may do; `tests/README.md` lists the kinds.

The default run leaves out what calls a compiler, takes long or needs a GPU, and says so in its first line. A test that
calls a compiler without the mark `builds` fails. Without torch, what translates is still tested: the tests of what runs
are left out. Under `-n`, a worker that is done takes over tests of another one, some of which build for half a minute.

py2cu's own pytest plugin is loaded from the checkout; where the package is installed, pytest found it already.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any, NoReturn

import pytest

from py2cu.passes.manager import OBSERVERS
from py2cu.passes.verified import verify_step

pytest_plugins = [] if entry_points(group="pytest11", name="py2cu") else ["py2cu.testing"]

NEED_TORCH = [
    "test_first_attempts.py",
    "unit/call/test_launch_bounds.py",
    "unit/call/test_pickles.py",
    "unit/call/test_template_arguments.py",
    "unit/check/test_compare.py",
    "unit/test_type_hints.py",
    *(
        f"unit/simulator/test_{name}.py"
        for name in (
            "elements",
            "ends_and_defaults",
            "findings",
            "functions",
            "rows",
            "simulate",
            "small_integers",
            "threads",
            "tuples",
        )
    ),
]
collect_ignore = NEED_TORCH if find_spec("torch") is None else []


LEFT_OUT = ("builds", "slow", "gpu")
COMPILERS = ("ninja", "nvcc", "c++", "g++", "clang++", "cc1plus", "ptxas", "cuobjdump")


OBSERVERS.append(verify_step)  # every kernel that a test translates is verified after every pass


def pytest_configure(config: pytest.Config) -> None:
    """Without `-m`, and unless a file or test is named, the quick ones run."""
    is_named = any("::" in argument or argument.endswith(".py") for argument in config.args)
    if not config.option.markexpr and not is_named:
        config.option.markexpr = " and ".join(f"not {mark}" for mark in LEFT_OUT)
        if "PYTEST_XDIST_WORKER" not in os.environ:
            rest = " or ".join(LEFT_OUT[:2])
            print(f"Left out: tests marked {', '.join(LEFT_OUT)}. `pytest -m '{rest}'` runs what needs no GPU of them.")


@pytest.fixture(autouse=True)
def _only_marked_tests_build(request: pytest.FixtureRequest) -> Iterator[None]:
    """A test that builds, or calls a compiler in another way, carries the mark, or it fails."""
    if find_spec("torch") is None or any(map(request.node.get_closest_marker, ("builds", "gpu"))):
        yield
        return
    from py2cu.build import library

    start = subprocess.Popen.__init__

    def refuse(*_: Any, **__: Any) -> NoReturn:
        pytest.fail("this test builds: it lacks the mark `builds`")

    def refuse_compilers(self: Any, command: Any, *rest: Any, **options: Any) -> None:
        words = [command] if isinstance(command, str | Path) else list(map(str, command))
        programs = {Path(word).name for word in words}  # behind a shell, too
        if programs.intersection(COMPILERS) and not {"--version", "--dryrun"}.intersection(words):
            refuse()
        start(self, command, *rest, **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(library, "_plan", refuse)
        patch.setattr(subprocess.Popen, "__init__", refuse_compilers)
        yield


@pytest.fixture(scope="session", autouse=True)
def _headers_are_compiled_once(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    if find_spec("torch") is None:
        yield
        return
    from py2cu.build import library
    from tests.support.precompiled import with_headers

    folder = tmp_path_factory.getbasetemp()
    folder = folder.parent if "PYTEST_XDIST_WORKER" in os.environ else folder  # which all workers share
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(library, "_plan", with_headers(library._plan, folder))
        yield


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The long ones first: at the end no worker then waits for another one."""
    items.sort(key=lambda item: not any(item.iter_markers("slow")))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Tests are very unlike in length."""
    from xdist.scheduler import WorkStealingScheduling

    return WorkStealingScheduling(config, log)


@pytest.fixture
def one_element_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    """Index kernels keep the bodies that their user wrote, for tests that read these."""
    monkeypatch.setattr("py2cu.targets.lowered.PACKING", ())
