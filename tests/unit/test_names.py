"""The names that emitted texts take for themselves."""

from __future__ import annotations

from py2cu.passes.rename import HELPERS, RESERVED
from py2cu.targets import cpu_helpers, cuda_helpers, helpers


def test_no_function_of_the_user_hides_a_helper():
    taken = helpers.HELPERS.keys() | cuda_helpers.HELPERS.keys() | cpu_helpers.HELPERS.keys()
    assert taken - RESERVED == HELPERS
