"""The mutation table is up to date: every text that it replaces stands in the package, every case that it names exists.

That each case fails without what it guards, `python -m tests.mutations` shows.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from tests.mutations.rules import FOLDERS, MUTATIONS, Mutation, find

ROOT = Path(__file__).parents[1]


@pytest.mark.parametrize("mutation", MUTATIONS, ids=lambda mutation: f"{mutation.rule}: {mutation.old[:40]}")
def test_the_text_to_replace_stands_in_one_place(mutation: Mutation) -> None:
    assert len(find(mutation, ROOT)) == 1


def test_every_rule_has_two_mutations() -> None:
    assert [rule for rule, count in Counter(mutation.rule for mutation in MUTATIONS).items() if count < 2] == []


def test_the_cases_exist() -> None:
    for case in {case for mutation in MUTATIONS for case in mutation.cases}:
        how, _, name = case.partition(":")
        path = f"tests/cases/{FOLDERS[how]}/{name.partition('.')[0]}.case" if how in FOLDERS else how
        assert (ROOT / path).exists(), case
