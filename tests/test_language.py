"""The language reference is true: its tables are those of today, its kernels are translated or refused as it shows.

`pytest --update-golden` rewrites the generated parts; the diff is the review.
"""

from __future__ import annotations

import re
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from docs.tables import BESIDE, TABLES, kernels_of, refusal, regenerate, translate
from py2cu.codes import CODES

DOCUMENTS = Path(__file__).parent.parent / "docs"
PAGE = DOCUMENTS / "language.md"
PAGES = [PAGE, DOCUMENTS / "from-numba.md"]
BLOCKS = kernels_of(PAGE.read_text(encoding="utf-8"))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_generated_parts_are_as_kept(page: Path, pytestconfig: pytest.Config) -> None:
    kept = page.read_text(encoding="utf-8")
    with ProcessPoolExecutor(1, get_context("spawn")) as fresh:  # as `docs/tables.py` runs: alone
        made = fresh.submit(regenerate, kept).result()
    if pytestconfig.getoption("--update-golden"):
        page.write_text(made, encoding="utf-8")
    else:
        assert made == kept, "the reference is out of date (pytest --update-golden accepts it)"


def test_every_table_stands_in_a_page() -> None:
    named = {name for page in PAGES for name in re.findall(r"<!-- generated: (\w+) -->", page.read_text("utf-8"))}
    assert named == {*TABLES, *BESIDE}


@pytest.mark.parametrize(("python", "refused"), [pytest.param(*b[1:], id=f"line_{b[0]}") for b in BLOCKS])
def test_every_kernel_is_translated_or_refused_as_shown(python: str, refused: bool) -> None:
    if refused:
        assert re.search(r"error\[P\d{3}\]", refusal(python))
    else:
        translate(python)


def test_every_code_in_the_text_is_one() -> None:
    assert set(re.findall(r"P\d{3}", PAGE.read_text(encoding="utf-8"))) <= set(CODES)
