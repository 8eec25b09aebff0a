"""What takes more than a second is announced in one line, to those who watch."""

from __future__ import annotations

import io
import sys
import time
from types import SimpleNamespace

import pytest

from py2cu.build import notices
from py2cu.build.notices import announced


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _soon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(notices, "_SECONDS", 0.05)
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: None))


def printed_on(stream: io.StringIO, seconds: float, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setattr(sys, "stderr", stream)
    with announced("compiling f for the CPU"):
        time.sleep(seconds)
    time.sleep(0.1)
    return stream.getvalue()


def test_a_long_step_is_announced_once_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    assert printed_on(Terminal(), 0.2, monkeypatch) == "py2cu: compiling f for the CPU …\n"


def test_a_short_step_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    assert printed_on(Terminal(), 0, monkeypatch) == ""


def test_a_file_gets_no_line_but_a_notebook_does(monkeypatch: pytest.MonkeyPatch) -> None:
    assert printed_on(io.StringIO(), 0.2, monkeypatch) == ""
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: "a shell"))
    assert printed_on(io.StringIO(), 0.2, monkeypatch) != ""


def test_a_process_without_stderr(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    with announced("compiling"):
        time.sleep(0.1)


def test_a_step_that_fails_is_not_announced_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", stream := Terminal())
    with pytest.raises(ZeroDivisionError), announced("compiling"):
        raise ZeroDivisionError
    time.sleep(0.1)
    assert stream.getvalue() == ""
