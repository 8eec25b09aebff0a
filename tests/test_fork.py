"""A process that has made small calls on the CPU can fork: they start no threads, for which a child would wait."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

pytestmark = pytest.mark.builds

SECONDS = 120  # a child that hangs is an error, not a test run that never ends

SETUP = """
import multiprocessing, os, signal, torch
from tests.support import kernels_of_blocks as blocks
from tests.support.kernels_that_fork import grown, scaled, summed, taken_in_turns

torch.cuda.is_available = lambda: False
torch.set_num_threads(2)


def call(number):
    x = torch.full((100,), float(number))
    assert scaled(x).tolist() == [2.0 * number] * 100
    assert scaled[(3, 1, 1), 64](x, out := torch.empty(100)) is None and out.tolist() == [2.0 * number] * 100
    assert summed(x.reshape(4, 25)).tolist() == [25.0 * number] * 4
    assert grown(x, by=3).tolist() == [number + 3.0] * 100
    assert taken_in_turns(torch.zeros(8, dtype=torch.int32)).item() == 8
    assert blocks.scan(torch.ones(300, dtype=torch.int32))[127] == 128
    return number


def main():
"""
WAYS = {
    "os.fork": """
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        os._exit(call(5) - 5)
    assert os.waitpid(child, 0)[1] == 0
    call(6)
""",
    "multiprocessing": """
    with multiprocessing.get_context("fork").Pool(2) as pool:
        assert pool.map_async(call, range(8)).get(60) == [*range(8)]
""",
    "a data loader": """
    class Numbers(torch.utils.data.Dataset):
        def __len__(self):
            return 8

        def __getitem__(self, number):
            return scaled(torch.full((3,), float(call(number))))

    options = dict(batch_size=4, num_workers=2, multiprocessing_context="fork", timeout=60)
    loader = torch.utils.data.DataLoader(Numbers(), **options)
    assert torch.cat([*loader]).tolist() == [[2.0 * number] * 3 for number in range(8)]
""",
}


@pytest.mark.parametrize("way", WAYS)
def test_small_calls_leave_nothing_that_a_child_waits_for(way: str, tmp_path: Path) -> None:
    script = tmp_path / "forks.py"
    end = 'if __name__ == "__main__":\n    call(1)\n    main()\n    print("done")\n'
    script.write_text(SETUP.lstrip() + WAYS[way].lstrip("\n") + "\n\n" + end, encoding="utf-8")
    environment = {"PYTHONPATH": os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])}
    done = run([sys.executable, "-W", "ignore", str(script)], environment)
    assert done == "done\n"


def run(command: list[str], environment: dict[str, str]) -> str:
    """What it prints. In a session of its own: what hangs goes with its children."""
    with subprocess.Popen(
        command, env=os.environ | environment, stdout=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        try:
            output, _ = process.communicate(timeout=SECONDS)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            raise
    assert process.returncode == 0
    return output
