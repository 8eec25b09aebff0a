"""Test kernels in a project's own test suite: two assertions and a pytest option.

In: kernels. Out: an `AssertionError` that shows the difference. `pytest --update-golden` rewrites the texts that
`assert_golden` compares with. Importing this module imports neither torch nor pytest: it is a pytest plugin, loaded in
every test run of an environment with py2cu.
"""

from __future__ import annotations

import difflib
import warnings
from pathlib import Path
from typing import Any, Protocol

OPTION = "--update-golden"
_updating = False


class Checkable(Protocol):
    def check(self, *args: Any, **kwargs: Any) -> Any: ...


class Translated(Protocol):
    @property
    def cuda_source(self) -> str: ...


class OptionParser(Protocol):
    """The part of `pytest.Parser` that the plugin uses."""

    def getgroup(self, name: str, description: str = "") -> Any: ...


def assert_matches_python(kernel: Checkable, *args: Any, **kwargs: Any) -> None:
    """Assert that the compiled kernel agrees with its Python: that `kernel.check(*args, **kwargs)` finds no failure.

    Without arguments, the cases are invented. If too little can be compared, this warns.

    Args:
        kernel: a `Kernel`.
        args: tensors and numbers of a call.
        kwargs: arguments by name, and the options of `Kernel.check`.

    Raises:
        AssertionError: the kernel differs; with the report's text.
        TypeError, RuntimeError, ValueError, BuildError, EnvironmentLacks: as for `Kernel.check`.
    """
    __tracebackhide__ = True
    report = kernel.check(*args, **kwargs)
    if not report.ok:
        raise AssertionError(str(report))
    if not report.checked:
        warnings.warn(str(report), stacklevel=2)


def assert_golden(kernel: Translated, path: str | Path) -> None:
    """Assert that `kernel.cuda_source` is the text of the file `path`.

    If the file is missing, or with `pytest --update-golden`, the text is written to it instead.

    Raises:
        AssertionError: the texts differ; with a unified diff.
        TranslationError: the kernel is outside the language.
    """
    __tracebackhide__ = True
    golden, text = Path(path), kernel.cuda_source
    if _updating or not golden.exists():
        golden.parent.mkdir(parents=True, exist_ok=True)
        golden.write_text(text, encoding="utf-8")
        return
    expected = golden.read_text(encoding="utf-8")
    if expected != text:
        diff = difflib.unified_diff(
            expected.splitlines(), text.splitlines(), str(golden), "translated now", lineterm=""
        )
        raise AssertionError("\n".join(["the translation changed (pytest --update-golden accepts it)", *diff]))


def pytest_addoption(parser: OptionParser) -> None:
    """Add `--update-golden`, unless another plugin of the project has added it."""
    try:
        parser.getgroup("py2cu").addoption(
            OPTION, action="store_true", help="rewrite the golden texts of py2cu kernels"
        )
    except ValueError:  # "option names {'--update-golden'} already added"
        return


def pytest_configure(config: Any) -> None:
    global _updating
    _updating = bool(config.getoption(OPTION, default=False))
