"""Kernels as PyTorch users write them who have read nothing but the README, each with a reference in plain PyTorch.

The files of `tests/first_attempts` were written before any of them was translated, and stay as they were written. Each
has a `KERNEL`, a `reference` and `cases` of keyword arguments; of a kernel that works in place, `IN_PLACE` names the
arguments that it changes. `REFUSED` lists those that py2cu refuses today, and why.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType
from typing import Any, Final

import pytest
import torch

from py2cu.diagnostics import TranslationError
from tests.support.modules import import_file

FILES: Final = sorted((Path(__file__).parent / "first_attempts").glob("*.py"))
REFUSED: Final = {
    "gated_activation": "`match`",
    "gpt2_global_norm": "`b` is an element, and later an index",
}
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")  # of torch, about sparse tensors
RIGHT: Final = [path for path in FILES if path.stem not in REFUSED]


def results(module: ModuleType, case: dict[str, Any]) -> Any:
    """What the kernel returns, or of one that works in place, what it changes."""
    arguments = {name: each.clone() if isinstance(each, torch.Tensor) else each for name, each in case.items()}
    returned = module.KERNEL(**arguments)
    changed = getattr(module, "IN_PLACE", None)
    return returned if changed is None else tuple(arguments[name] for name in changed)


@pytest.mark.builds
@pytest.mark.parametrize("path", RIGHT, ids=lambda path: path.stem)
def test_a_first_attempt_is_right(path: Path) -> None:
    module = import_file(path)
    for case in module.cases():
        expected, got = module.reference(**case), results(module, case)
        pairs = [(expected, got)] if isinstance(expected, torch.Tensor) else zip(expected, got, strict=True)
        for one, other in pairs:
            torch.testing.assert_close(other, one, **getattr(module, "TOLERANCE", {}))


@pytest.mark.parametrize("name", REFUSED)
def test_a_refused_attempt_says_why(name: str) -> None:
    module = import_file(next(path for path in FILES if path.stem == name))
    with pytest.raises((TranslationError, TypeError)):
        results(module, next(module.cases()))
