"""The enumeration in every run: five hundred of its programs, and each kernel that was wrong once.

`python -m tests.enumerate` judges sixty thousand.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping

import pytest

from tests.enumerate.batches import verdicts_of
from tests.enumerate.compose import OUTER, programs, sample, write
from tests.enumerate.expected import expect
from tests.enumerate.in_place import calls, judge_in_place
from tests.enumerate.joins import JOINS
from tests.enumerate.judge import Outcome, Verdict, judge
from tests.enumerate.leaves import NUMBER_LEAVES, SEQUENCE_LEAVES
from tests.enumerate.report import Tally, grown
from tests.enumerate.reproducers import REPRODUCERS
from tests.support.compilers import gxx
from tests.support.libraries import Device

SIZE = 500


@pytest.mark.builds
def test_programs_agree_with_cpython():
    """And no more of them are refused for any reason than in the kept run."""
    gxx()
    tally = Tally()
    for program, verdict in verdicts_of(sample(SIZE), Device.CPU, jobs=2):
        tally.enter(program, verdict)
    assert not tally.faults and not tally.faults_of_simulator, tally.page({})
    assert not grown(SIZE, tally.codes)


@functools.cache
def reproduced() -> Mapping[str, Verdict]:
    """The verdict on each reproducer, all of them compiled together."""
    bodies = [body for _, body in REPRODUCERS]
    return dict(zip(bodies, judge([*map(write, bodies)], Device.CPU), strict=True))


@pytest.mark.builds
@pytest.mark.parametrize(("family", "body"), REPRODUCERS, ids=lambda text: text.replace("\n", "; "))
def test_what_was_wrong_is_right_or_refused(family, body):
    gxx()
    verdict = reproduced()[body]
    assert verdict.outcome is not Outcome.EXCLUDED
    assert not verdict.is_fault and not verdict.is_fault_of_simulator, f"{family}\n{verdict}"


@pytest.mark.builds
def test_a_call_in_place_has_one_thread_for_each_element():
    gxx()
    wrong = [verdict for _, verdict in judge_in_place(Device.CPU, [*calls()][::6]) if verdict.is_fault]
    assert not wrong, wrong[0]


@pytest.mark.slow
def test_the_sample_is_fixed_and_has_every_row():
    chosen = sample(SIZE)
    assert len(chosen) == SIZE == len({program.key for program in chosen})
    names = [program.key for program in programs()]
    assert 150_000 < len({*names}) == len(names) < 300_000
    whole = sample(60_000)
    assert {row for program in whole for row in program.rows} >= {form.template for form in (*OUTER, *JOINS)}
    sources = "\n".join(program.source for program in whole[::10])
    for leaf in (*NUMBER_LEAVES, *SEQUENCE_LEAVES):
        assert leaf.text in sources, leaf.what


def test_the_oracle_is_cpython():
    """Elements wrap, integers do not; a store wraps; what the contract leaves open has no row."""
    body = "v = (x[i] + 9223372036854775807) // 2\nr = int(x[i]) + 9223372036854775807\ny[i, 4] = v\ny[i, 5] = r >> 1\n"
    expected = expect(write(f"{body}y[i, 6] = r"))
    assert expected is not None
    assert expected.y(0, 2) == [5, 1, 2, 3, ((7 - 2**63 - 1) // 2), (7 + 2**63 - 1) >> 1, 7 - 2**63 - 1, 0]
    raises = expect(write("v = 1 // (x[i] - 7)\ny[i, 4] = v"))
    assert raises is not None
    assert raises.y(0, 2) is None
    assert raises.y(0, 1) == [2, 1, 2, 3, -1, 0, 0, 0]
