"""A deadline stops Python code, and leaves nothing behind where it was met."""

import subprocess
import sys
import time

import pytest

from py2cu.simulator.deadline import TooLong, deadline

TRACED = """
import sys
from py2cu.simulator.deadline import deadline

def called():
    return 1

with deadline(60):
    called()
lines = []
sys.settrace(lambda frame, event, argument: lines.append(event))
called()
sys.settrace(None)
assert lines == ["call"], lines
"""


def run_forever():
    while True:
        pass


def test_what_runs_too_long_is_stopped():
    started = time.perf_counter()
    with pytest.raises(TooLong), deadline(0.05):
        run_forever()
    assert time.perf_counter() - started < 5


def test_a_deadline_that_passes_as_the_work_ends_is_not_raised_later():
    for _ in range(200):
        try:
            with deadline(0.0005):
                time.sleep(0.0005)
        except TooLong:
            pass
        for _ in range(10):
            time.monotonic()


def test_a_tracer_works_after_a_deadline():
    done = subprocess.run([sys.executable, "-c", TRACED], capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
