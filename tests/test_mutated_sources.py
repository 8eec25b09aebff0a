"""A few hundred of the broken sources that `python -m tests.mutate` makes by the thousand."""

from __future__ import annotations

import pytest

from tests.mutate import limited, make_source
from tests.support.samples import sampled

INPUTS = 400
PART = 25


@pytest.mark.parametrize("first", sampled(range(0, INPUTS, PART), 2))
def test_broken_sources_are_translated_or_refused(first: int) -> None:
    for number in range(first, first + PART):
        try:
            limited(make_source(0, number))
        except Exception as error:
            raise AssertionError(f"python -m tests.mutate --only {number}") from error


def test_the_inputs_are_not_all_of_one_kind() -> None:
    outcomes = {limited(make_source(0, number)) for number in range(PART)}
    assert "translated" in outcomes and len(outcomes) > 3
